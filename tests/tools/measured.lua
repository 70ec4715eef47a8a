-- SPDX-License-Identifier: MIT
-- A cache of measurements of a test's own: run(code) runs a script that uses it, in a process of its own, and returns
-- what it printed; `file` is the cache, lines() how many ways it holds; remove() at the end.
local folder = os.tmpname()
os.remove(folder)
local program = '"/proc/$PPID/exe"'
local measured = {file = folder .. '/quoll/measured.tsv'}

function measured.run(code)
	local name = os.tmpname()
	local file = assert(io.open(name, 'w'))
	file:write(code)
	file:close()
	local pipe = io.popen(('XDG_CACHE_HOME=%s %s %s 2>&1'):format(folder, program, name))
	local output, good = pipe:read 'a', pipe:close()
	os.remove(name)
	assert(good, output)
	return output
end

function measured.lines()
	local n = 0
	for _ in io.lines(measured.file) do n = n + 1 end
	return n
end

function measured.remove() os.execute('rm -rf ' .. folder) end

return measured
