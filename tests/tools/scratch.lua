-- SPDX-License-Identifier: MIT
-- A folder for the files of a test, and this program run in it or elsewhere.
local scratch = {}

-- What a command of the shell prints.
function scratch.output(command)
	local pipe <close> = io.popen(command)
	return pipe:read 'a'
end

-- The path of this program.
scratch.program = scratch.output 'readlink /proc/$PPID/exe':gsub('\n', '')

-- What a piece of Lua prints in a process whose folder of data is another one.
function scratch.with_data(folder, code) return scratch.output(('QUOLL_DATA=%q exec %s -e %q 2>&1'):format(folder, scratch.program, code)) end

-- Writes a file.
function scratch.write(path, text)
	local file <close> = assert(io.open(path, 'wb'))
	file:write(text)
end

-- The bytes of a file; nil: there is none.
function scratch.read(path)
	local file <close> = io.open(path, 'rb')
	return file and file:read 'a'
end

-- A new folder, which is removed with those of the run (os.tmpname), and the functions write(name, text) and read(name) for files in
-- it.
function scratch.folder()
	local folder = os.tmpname()
	os.remove(folder)
	assert(os.execute('mkdir ' .. folder))
	return folder, function(name, text) scratch.write(folder .. '/' .. name, text) end,
		function(name) return scratch.read(folder .. '/' .. name) end
end

-- Runs the program with these arguments in the folder. Gives what it printed to stdout and to stderr, and its exit code.
function scratch.quoll(folder, arguments)
	local errors = os.tmpname()
	local pipe = io.popen(('cd %s && exec %s %s 2>%s'):format(folder, scratch.program, arguments, errors))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	local text = scratch.read(errors)
	os.remove(errors)
	return out, text, code
end

-- Runs a command in the folder; $exe is the program. Gives what it printed to both, and its exit code or 'signal'.
function scratch.shell(folder, command)
	local pipe = io.popen(('cd %s && exe=%s && { %s; } 2>&1'):format(folder, scratch.program, command))
	local text = pipe:read 'a'
	local _, how, code = pipe:close()
	return text, how == 'exit' and code or how
end

return scratch
