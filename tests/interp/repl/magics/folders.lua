-- SPDX-License-Identifier: MIT
-- %%cd, %%pwd, %%ls.
local prompt = dofile 'tests/tools/prompt.lua'
local check = prompt.check

local folder = os.tmpname()
os.execute(('rm %s && mkdir -p "%s/sub one" %s/b && touch %s/b.lua %s/a.txt %s/.hidden'):format(folder, folder, folder, folder, folder, folder))
local here = io.popen('pwd -P'):read 'l'
local there = io.popen('cd ' .. folder .. ' && pwd -P'):read 'l'

it('%cd goes to a folder and back', function()
	check(('%%pwd\n%%cd %s\n%%pwd\n%%cd -\n%%pwd\n%%cd -'):format(folder), ('%s\n%s\n%s\n%s\n%s\n%s\n'):format(here, there, there, here, here, there))
	check(('%%cd %s\n%%cd sub one\n%%cd ..\n%%cd "sub one"'):format(folder), ('%s\n%s/sub one\n%s\n%s/sub one\n'):format(there, there, there, there))
	check('%cd', there .. '\n', nil, 'HOME=' .. folder)
	check('%cd ~/b', there .. '/b\n', nil, 'HOME=' .. folder)
	check(('%%cd %s\nio.open("a.txt") ~= nil\n!ls a.txt'):format(folder), there .. '\nOut[2]: true\na.txt\n')
end)
it('%cd tells what is wrong, and stays', function()
	check('%cd /nonexistent\n%pwd', 'cd: /nonexistent: No such file or directory\n' .. here .. '\n')
	check('%cd -', 'cd: there is no folder before\n')
	check('%cd -P', "cd: wanted a folder or -, got '-P'\n")
end)
it('%ls lists files', function()
	check(('%%ls %s'):format(folder), 'a.txt     b.lua     b/        sub one/\n')
	check(('%%cd %s\n%%ls\n%%ls *.lua\n%%ls b*\n%%ls sub one\n%%ls ?.txt\n%%ls *.c'):format(folder), there ..
		'\na.txt     b.lua     b/        sub one/\nb.lua\nb.lua  b/\nno files\na.txt\nno such file\n')
	check(('%%ls %s/*.txt'):format(folder), 'a.txt\n')
	check('%ls /nonexistent', 'ls: /nonexistent: no such folder\n')
	check('%ls -l', "ls: wanted a folder or names with *, got '-l'; !ls -l is the shell's\n")
	check(('%%set width 20\n%%ls %s'):format(folder), 'a.txt     b/\nb.lua     sub one/\n')
end)
it('a notebook keeps its outputs beside itself wherever it goes', function()
	local file = io.open(folder .. '/nb.lua', 'w')
	file:write '-- %%\n%cd b\n-- %%\nio.open("made", "w"):close()\n'
	file:close()
	local pipe = io.popen(('program=$(readlink /proc/$PPID/exe); cd %s && exec "$program" run nb.lua --md nb.md 2>&1'):format(folder))
	local out = pipe:read 'a'
	assert(pipe:close(), out)
	assert(io.open(folder .. '/nb.out.json') and io.open(folder .. '/b/made') and io.open(folder .. '/nb.md'))
end)
os.execute('rm -r "' .. folder .. '"')
