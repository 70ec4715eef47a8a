-- SPDX-License-Identifier: MIT
-- Where data is looked for, in processes with environments of their own.
local function run(setting, code)
	local pipe = io.popen(('exec env -i PATH="$PATH" %s "/proc/$PPID/exe" -e %q 2>&1'):format(setting, code))
	local text = pipe:read 'a'
	pipe:close()
	return (text:gsub('\n$', ''))
end

local folders = "print(table.concat(data.folders(), ' '))"
print(run('QUOLL_DATA=/a/b HOME=/h', folders))              --> /a/b
print(run('HOME=/h', folders))                              --> data /h/.local/share/quoll
print(run('HOME=/h XDG_DATA_HOME=/x', folders))             --> data /x/quoll
print(run('HOME=/h XDG_DATA_HOME=relative', folders))       --> data /h/.local/share/quoll
print(run('', folders))                                     --> data

local here = os.tmpname()
os.remove(here)
os.execute(('mkdir -p %s/mnist && touch %s/mnist/a'):format(here, here))
print(run('QUOLL_DATA=' .. here, "print((data.find 'mnist/a'):sub(-8), data.find 'mnist')") == '/mnist/a\t' .. here .. '/mnist')  --> true
print(run('QUOLL_DATA=' .. here, "print(data.find 'mnist/b')") == 'nil\tthere is no mnist/b in ' .. here)  --> true
print(run('HOME=/h', "print(data.find 'b')"))               --> nil there is no b in data or /h/.local/share/quoll
os.execute('rm -r ' .. here)
data.find()     --> error: find: wanted the name of a file, got nil
data.find ''    --> error: find: wanted the name of a file, got ''
