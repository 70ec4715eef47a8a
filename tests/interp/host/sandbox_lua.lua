-- SPDX-License-Identifier: MIT
-- --sandbox and --time: what a script may still do, and attempts to do more. Each attempt runs in a program of its own and must
-- end in its own refusal; what it was after lies in a folder beside and must be as before.
local base = os.tmpname()
os.remove(base)
local inside, beside = base .. '/inside', base .. '/beside'
assert(os.execute(('mkdir -p %s %s'):format(inside, beside)))
local secret = beside .. '/secret.txt'

local scratch = dofile 'tests/tools/scratch.lua'
local write, read = scratch.write, scratch.read

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- A token that no script may see; and LeakSanitizer looks into its own process by ptrace, which the sandbox refuses.
local environment = 'SECRET_TOKEN=secret ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"'

-- Runs code with the options; INSIDE and BESIDE are the folders in it. Gives its output and its exit code.
local function run(options, code)
	code = code:gsub('INSIDE', inside):gsub('BESIDE', beside)
	local pipe = io.popen(('%s "/proc/$PPID/exe" %s -e %s 2>&1 </dev/null'):format(environment, options, quote(code)))
	local text = pipe:read 'a'
	local _, _, status = pipe:close()
	return text, status
end

local sandbox = '--sandbox ' .. inside
local kernel = run(sandbox, 'print(1)')
if kernel:find 'this kernel has no' then
	skip('no sandbox: ' .. kernel:match '[^\n]*')
	return
end

write(secret, 'secret')
write(beside .. '/evil.lua', 'return "secret"')
write(beside .. '/evil.csv', 'a,b\n1,2\n')
write(inside .. '/good.lua', 'return "good"')
assert(os.execute(('ln -s %s %s/link'):format(secret, inside)))

describe('a script in the sandbox', function()
	local function works(code, wanted)
		local text, status = run(sandbox, code)
		assert(status == 0 and text == wanted .. '\n', code .. ': ' .. text)
	end
	it('computes, quantizes and trains', function()
		works([[local m = nn.Sequential{nn.Linear(2, 2)} local o = optim.sgd(m, {lr=0.1})
			local loss = m(tensor.ones(1, 2)):sum() loss:backward() o:step() print((tensor{1, 2}:quantize 'int8'):dtype())]], 'int8')
	end)
	it('reads and writes its own folder, atomically too', function()
		works([[io.open('INSIDE/a.txt', 'w'):write 'a' tensor.save('INSIDE/x.npy', tensor{1, 2})
			print(io.open('INSIDE/a.txt') ~= nil, tensor.load('INSIDE/x.npy'):sum():item())]], 'true\t3.0')
		assert(read(inside .. '/a.txt') == 'a')
	end)
	it('loads modules and files in Lua from there', function()
		works([[package.path = 'INSIDE/?.lua' print(require 'good', dofile 'INSIDE/good.lua')]], 'good\tgood')
	end)
	it('has temporary files', function()
		works([[local f = io.tmpfile() f:write 'abc' f:seek 'set' print(f:read 'a', f:close(), io.open(os.tmpname(), 'w') ~= nil)]], 'abc\ttrue\ttrue')
	end)
	it('runs a notebook beside an old side file that may not be read', function()
		write(beside .. '/nb.lua', '-- %%\nprint "ran"')
		write(beside .. '/nb.out.json', 'old')
		local pipe = io.popen(('%s "/proc/$PPID/exe" %s run %s/nb.lua 2>&1'):format(environment, sandbox, beside))
		local text = pipe:read 'a'
		pipe:close()
		assert(text:find 'the outputs are not kept: [^\n]*Permission denied\n' and text:find 'ran\n' and read(beside .. '/nb.out.json') == 'old', text)
		os.remove(beside .. '/nb.lua')
		os.remove(beside .. '/nb.out.json')
	end)
	it('draws', function()
		works([[plot.line({1, 2, 3}):save 'INSIDE/p.svg' print(io.open('INSIDE/p.svg') ~= nil)]], 'true')
	end)
	it('sees the modules of the prelude whole', function() -- they use what is taken from scripts
		local code = "help 'conv2d' source 'nn.Linear' x = tensor{1, 2} who() print(pcall(tensor.zeros, {2, dtyp=1}))"
		assert(run(sandbox, code) == run('', code))
	end)
	it('may have several folders, or none', function()
		assert(run(sandbox .. ':' .. beside, [[print(io.open('BESIDE/secret.txt'):read 'a', io.open('INSIDE/a.txt') ~= nil)]]) == 'secret\ttrue\n')
		assert(run('--sandbox none', [[print(io.open 'INSIDE/a.txt')]]):find 'Permission denied')
	end)
	it('reads the script and the files named behind it', function()
		write(beside .. '/script.lua', 'print(io.open(arg[1]):read "a", io.open(arg[0]:gsub("script", "evil"), "r"))')
		local pipe = io.popen(('%s "/proc/$PPID/exe" %s %s/script.lua %s 2>&1'):format(environment, sandbox, beside, secret))
		local text = pipe:read 'a'
		pipe:close()
		assert(text:find '^secret\tnil\t.*evil.lua: Permission denied', text)
	end)
end)

-- code -> what is said
local attempts = {
	{[[os.execute 'touch BESIDE/new']], 'os.execute: not with --sandbox'},
	{[[io.popen('touch BESIDE/new')]], 'io.popen: not with --sandbox'},
	{[[os.remove 'BESIDE/secret.txt']], 'os.remove: not with --sandbox'},
	{[[os.rename('BESIDE/secret.txt', 'INSIDE/mine.txt')]], 'os.rename: not with --sandbox'},
	{[[os.exit(0)]], 'os.exit: not with --sandbox'},
	{[[package.loadlib('/usr/lib/x86_64-linux-gnu/libc.so.6', 'system')]], 'package.loadlib: not with --sandbox'},
	{[[require('os').execute 'touch BESIDE/new']], 'os.execute: not with --sandbox'},
	{[[package.loaded.io.popen('touch BESIDE/new')]], 'io.popen: not with --sandbox'},
	{[[print(os.getenv 'SECRET_TOKEN')]], 'nil'},
	{[[assert(io.open 'BESIDE/secret.txt')]], 'Permission denied'},
	{[[assert(io.open('BESIDE/secret.txt', 'w'))]], 'Permission denied'},
	{[[assert(io.open('BESIDE/secret.txt', 'a'))]], 'Permission denied'},
	{[[assert(io.open('BESIDE/new', 'w'))]], 'Permission denied'},
	{[[assert(io.open 'INSIDE/../beside/secret.txt')]], 'Permission denied'},
	{[[assert(io.open 'INSIDE/link')]], 'Permission denied'},
	{[[assert(io.open('INSIDE/link', 'w'))]], 'Permission denied'},
	{[[assert(io.open('/proc/self/root' .. 'BESIDE/secret.txt'))]], 'Permission denied'},
	{[[assert(io.open '/proc/self/mem')]], 'Permission denied'},
	{[[assert(io.open('/proc/self/mem', 'r+'))]], 'Permission denied'},
	{[[assert(io.open '/proc/self/environ')]], 'Permission denied'},
	{[[assert(io.open '/proc/1/cmdline')]], 'Permission denied'},
	{[[assert(io.open '/etc/passwd')]], 'Permission denied'},
	{[[for line in io.lines 'BESIDE/secret.txt' do print(line) end]], 'Permission denied'},
	{[[io.input 'BESIDE/secret.txt']], 'Permission denied'},
	{[[io.output 'BESIDE/new']], 'Permission denied'},
	{[[dofile 'BESIDE/evil.lua']], 'cannot open'},
	{[[assert(loadfile 'BESIDE/evil.lua')]], 'cannot open'},
	{[[package.path = 'BESIDE/?.lua' print(require 'evil')]], "module 'evil' not found"},
	{[[package.cpath = '/usr/lib/x86_64-linux-gnu/lua/5.4/?.so' require 'posix']], "module 'posix' not found"},
	{[[tensor.load 'BESIDE/secret.txt']], 'Permission denied'},
	{[[tensor.save('BESIDE/new.npy', tensor{1})]], 'Permission denied'},
	{[[tensor.save('BESIDE/secret.txt', tensor{1}, {format='npy'})]], '.'},
	{[[plot.line({1, 2}):save 'BESIDE/new.svg']], 'Permission denied'},
	{[[bench.load 'BESIDE/evil.csv']], 'Permission denied'},
	{[[sweep.load 'BESIDE/new.db']], '.'},
	{[[data.idx 'BESIDE/secret.txt']], '.'},
	{[[assert(load(string.dump(function() end)))]], 'attempt to load a binary chunk'},
	{[[assert(load(string.dump(function() end), 'x', 'b'))]], 'attempt to load a binary chunk'},
	{[[debug.getregistry()]], 'debug.getregistry: not with --sandbox'},
	{[[debug.getupvalue(print, 1)]], 'debug.getupvalue: not with --sandbox'},
	{[[debug.setupvalue(print, 1, 2)]], 'debug.setupvalue: not with --sandbox'},
	{[[debug.upvaluejoin(print, 1, print, 1)]], 'debug.upvaluejoin: not with --sandbox'},
	{[[debug.setmetatable(io.stdout, {})]], 'debug.setmetatable: not with --sandbox'},
	{[[debug.getlocal(1, 1)]], 'debug.getlocal: not with --sandbox'},
	{[[debug.sethook()]], 'debug.sethook: not with --sandbox'},
	{[[debug.debug()]], 'debug.debug: not with --sandbox'},
	{[[require('debug').getuservalue(io.stdout)]], 'debug.getuservalue: not with --sandbox'},
	{[[print(pcall(getmetatable(io.stdout).__gc, tensor{1}))]], 'false'},
	{[[graph.trace(nn.Linear(2, 2), tensor.ones(1, 2)):export{folder='BESIDE/new'}]], '.'},
	{[[nn.Linear(1, 1):save 'BESIDE/new.safetensors']], 'Permission denied'},
	{[[local s = ('x'):rep(1 << 20) local t = {} while true do t[#t + 1] = s .. #t end]], 'not enough memory'},
	{[[local t = {} while true do t[#t + 1] = tensor.zeros(1 << 24) end]], 'memory'},
}

describe('attempts', function()
	for _, attempt in ipairs(attempts) do
		it(attempt[1], function()
			local text = run('--memory 400 ' .. sandbox, 'SECRET = nil ' .. attempt[1])
			assert(text:find(attempt[2], 1, attempt[2] ~= '.'), text)
			assert(not text:find 'secret\n', text)
		end)
	end
	it('leave everything outside as it was', function()
		assert(#attempts >= 40 and read(secret) == 'secret')
		local pipe = io.popen('ls ' .. beside)
		assert(pipe:read 'a' == 'evil.csv\nevil.lua\nscript.lua\nsecret.txt\n')
		pipe:close()
	end)
	it('by commands and the prompt', function()
		local function says(rest, wanted)
			local pipe = io.popen(('%s "/proc/$PPID/exe" %s'):format(environment, rest))
			local text = pipe:read 'a'
			pipe:close()
			assert(text:find(wanted, 1, true), text)
		end
		says(sandbox .. ' -i 2>&1 < /dev/null', 'In [1]')
		says(('%s -i 2>&1 <<\'X\'\n!touch %s/new\n$ touch %s/new\n%%save %s/new\nX\n'):format(sandbox, beside, beside, beside), '!: --sandbox runs no programs')
		says(('%s -i 2>&1 <<\'X\'\nx = 1\n%%save %s/new\nX\n'):format(sandbox, beside), 'Permission denied')
		says(('%s run %s/evil.lua --out %s/new 2>&1'):format(sandbox, beside, beside), 'Permission denied')
		says(('%s convert %s/evil.lua %s/new.html 2>&1'):format(sandbox, beside, beside), 'Permission denied')
		says('--bytecode ' .. sandbox .. ' -e "print(1)" 2>&1', 'not with --bytecode')
		assert(not read(beside .. '/new') and not read(beside .. '/new.html'))
	end)
end)

describe('bad folders', function()
	it('an empty text does not open everything', function()
		for _, how in ipairs {"--sandbox ''", '--sandbox='} do
			assert(run(how, 'print(1)') == 'quoll: --sandbox: wanted a value, got an empty one\n')
		end
		local pipe = io.popen 'QUOLL_SANDBOX= "/proc/$PPID/exe" -e "print(1)" 2>&1'
		assert(pipe:read 'a' == 'quoll: QUOLL_SANDBOX: wanted folders or none, got an empty text\n')
		pipe:close()
	end)
	it('are refused before anything runs', function()
		assert(run('--sandbox ' .. base .. '/missing', 'print(1)') == ('quoll: --sandbox: %s/missing: No such file or directory\n'):format(base))
		assert(run('--sandbox ' .. secret, 'print(1)') == ('quoll: --sandbox: %s: wanted a folder\n'):format(secret))
		assert(run(("--sandbox '%s:'"):format(inside), 'print(1)'):find 'a folder without a name')
	end)
end)

it('sweeps say that no program is started, before the first trial', function()
	local code = ("sweep.run{name='s', db='%s/s.db', grid={n={1, 2}}, log=false, %%srun=function(c) return {a=c.n} end}")
		:format(inside)
	local text, status = run('--sandbox ' .. inside, code:format '')
	assert(status == 1 and text:find('sweep.run: jobs: wanted 0, which runs the trials in this process, for --sandbox starts ' ..
		'no programs; got 1\n', 1, true), text)
	text, status = run('--sandbox ' .. inside, 'print(#' .. code:format 'jobs=0, ' .. ')')
	assert(text == '2\n' and status == 0, text)
end)

describe('--time', function()
	it('ends loops that catch every error, and kernels', function()
		local text, status = run('--time 1', 'print(1) while true do pcall(function() while true do end end) end')
		assert(status == 124 and text:find 'the time is over' and text:find '1\n', text)
		text, status = run('--time 1', 'local x = tensor.randn(2000, 2000) while true do pcall(x.matmul, x, x) end')
		assert(status == 124 and text:find 'the time is over', text)
	end)
	it('ends a wait for input, and the prompt', function()
		local pipe = io.popen [[sleep 8 | "/proc/$PPID/exe" --time 1 -i 2>&1; echo "$?"]]
		local began = os.time()
		local text = pipe:read 'a'
		assert(text:find '124' or text:find '0\n', text)
		pipe:close()
		assert(os.time() - began <= 9)
	end)
	it('does nothing to a program that ends before', function()
		local text, status = run('--time 60', 'print(2)')
		assert(text == '2\n' and status == 0)
	end)
end)

os.execute('rm -r ' .. base)
