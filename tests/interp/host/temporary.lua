-- SPDX-License-Identifier: MIT
-- os.tmpname in TMPDIR; the folder of a run of tests, which is gone after success, failure, Ctrl-C and kill alike.
local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local scratch = dofile 'tests/tools/scratch.lua'
local read, program = scratch.output, scratch.program
local base = scratch.folder()
local function count() return tonumber(read('find ' .. base .. ' -mindepth 1 | wc -l')) end

-- Runs the code as a test file, and `more` files, in a run of its own below `base`. A shell may have taken SIGINT away.
local file = base .. '.lua'
local function run(code, more)
	local f = assert(io.open(file, 'w'))
	f:write(code)
	f:close()
	return read(('env --default-signal=INT TMPDIR=%s timeout 20 %s test %s %s 2>&1'):format(base, program, file, more or ''))
end

it('is a new empty file in TMPDIR', function()
	local name = os.tmpname()
	assert(name:find(os.getenv 'TMPDIR', 1, true) == 1 and name ~= os.tmpname())
	assert(io.open(name):read 'a' == '')
	assert(read('stat -c %a ' .. name) == '600\n')
	local one = read(('TMPDIR=%s %s -e "print(os.tmpname())"'):format(base, program)):gsub('\n', '')
	assert(one:find(base .. '/', 1, true) == 1 and count() == 1)
	os.remove(one)
	one = read(('env TMPDIR= %s -e "print(os.tmpname())"'):format(program)):gsub('\n', '')
	assert(one:find '^/tmp/lua_' and os.remove(one))
end)
it('is an error where nothing can be written', function()
	local text = read(('TMPDIR=%s/none %s -e "os.tmpname()" 2>&1'):format(base, program))
	assert(text:find('tmpname: wanted a folder that can be written (TMPDIR, else /tmp), got ' .. base .. '/none', 1, true), text)
	text = read(('TMPDIR=%s/none %s test %s 2>&1; echo $?'):format(base, program, file))
	assert(text:find('test: wanted a folder for temporary files', 1, true) and text:find '1\n$', text)
end)

-- Each says what it made, so that a run that made nothing fails.
local made = 'local f = os.tmpname() tensor.save(f .. ".npy", tensor{1}) io.stderr:write(f, "\\n") os.execute("mkdir " .. f .. ".d") '
local function leaves_nothing(text)
	local _, stop = text:find(base .. '/quoll-test-', 1, true)
	assert(stop and text:find('^%w+/[%w/_-]*lua_%w+\n', stop + 1), text)
	for _ = 1, 100 do -- after a kill the remover may need a moment
		if count() == 0 then return end
		os.execute 'sleep 0.02'
	end
	error('left: ' .. read('find ' .. base))
end
it('leaves nothing after a good run', function()
	local text = run(made .. 'assert(true)')
	leaves_nothing(text)
	assert(text:find '1 passed, 0 failed', text)
end)
it('leaves nothing after a failure', function()
	local text = run(made .. 'error "on purpose"')
	leaves_nothing(text)
	assert(text:find '0 passed, 1 failed', text)
end)
it('leaves nothing after several files', function()
	local text = run(made .. 'assert(true)', file)
	leaves_nothing(text)
	assert(text:find '2 passed, 0 failed', text)
end)
it('leaves nothing after Ctrl-C', function()
	local text = run(made .. 'io.popen("kill -INT $PPID"):close() while true do end')
	leaves_nothing(text)
	assert(text:find('interrupted', 1, true), text)
end)
it('leaves nothing after a kill and a crash', function()
	for _, signal in ipairs {'KILL', 'ABRT', 'TERM'} do
		local text = run(made .. ('io.popen("kill -%s $PPID"):close() while true do end'):format(signal))
		leaves_nothing(text)
		assert(not text:find 'passed', text)
	end
end)
os.execute('rm -rf ' .. quote(base) .. ' ' .. quote(file))
