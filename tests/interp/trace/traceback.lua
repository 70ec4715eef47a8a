-- SPDX-License-Identifier: MIT
-- What an error of a script shows: the values that the failing line names, the layer that was running, error objects.
local program = '"/proc/$PPID/exe"'
local file = os.tmpname()

-- What running the text writes, and the exit code.
local function run(text, command)
	local f = io.open(file, 'w')
	f:write(text)
	f:close()
	local pipe = io.popen(('%s %s %s 2>&1'):format(program, command or '', file))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	return out, code
end

local function has(text, ...)
	local out, code = run(text)
	assert(code == 1, code)
	for _, part in ipairs {...} do
		if not out:find(part, 1, true) then error(('%s: wanted %q in %s'):format(text, part, out), 2) end
	end
	return out
end

it('an interrupt within the library tells the line of the user', function()
	local out, code = run('while true do\n\tlocal r = report{{a=1}, {a=2}, {a=3}} r:where{a=2}\nend\n', '--time 1')
	assert(code ~= 0 and out:find '^quoll: [^\n]*:[12]: %-%-time: the time is over\n' and not out:find('quoll/interp/', 1, true), out)
end)

describe('plain values', function()
	it('of locals, upvalues, globals and fields that the line names', function()
		local out = has([[
local n, s, flag, unused = 3, 'text', true, 7
local t = {1, 2, a = 4, b = {x = 1}, c = {}, f = print}
count = 5
up = function()
	local x = tensor.zeros(n, 2)
	return x + tensor.zeros(count, #s, flag and t.a)
end
up()]], '    n = 3\n' and '    s = "text"\n', '    flag = true\n', '    t = {1, 2, a = 4, b = {…}, c = {}, f = function}\n', '    count = 5\n',
			'    t.a = 4\n', '    x = float32(3, 2)\n')
		assert(not out:find 'unused =' and not out:find ' n = ' and not out:find ' tensor = ', out)
	end)
	it('long ones are cut, control characters are none', function()
		local out = has([[
local s, t, many = ('x'):rep(500) .. '\27[31m', {('y'):rep(500), 'z'}, {1, 2, 3, 4, 5, 6, 7, 8}
local e = 'a\27b'
error(s .. t .. many .. e)]], '    e = "a?b"\n', '    many = {1, 2, 3, 4, 5, 6, …}\n')
		for line in out:gmatch '[^\n]+' do assert(#line < 400 and not line:find '\27', line) end
	end)
	it('line breaks in texts are written as in Lua', function()
		has("local s, t = 'a\\nb\\tc\\r', {'x\\ny'} error(s .. t)", '    s = "a\\nb\\tc\\r"\n', '    t = {"x\\ny"}\n')
		has("local s = ('\\n'):rep(500) error(s .. nil)", '    s = "\\n\\n', '..."\n')
	end)
	it('run nothing of the user', function()
		has([[
local t = setmetatable({1}, {__index = function() print 'CALLED' end, __len = function() print 'CALLED' end,
	__pairs = function() print 'CALLED' end})
local u = {inner = setmetatable({}, {__tostring = function() print 'CALLED' return 'x' end})}
error(#u .. rawlen(t), t, u)]], '    u = {inner = {}}\n')
		local out = run "local t = setmetatable({1}, {__len = function() print 'CALLED' end}) error('x' .. rawlen(t))"
		assert(not out:find '\nCALLED' and not out:find '^CALLED', out)
	end)
	it('keys are in order', function()
		has("local t = {c = 1, b = 2, a = 3, ['x y'] = 4} error(t.a .. 'x')", '    t = {a = 3, b = 2, c = 1, ["x y"] = 4}\n')
	end)
	it('may be of a large table, below a long message', function()
		has("local t = {} for i = 1, 100 do t['k' .. i] = i end\nlocal function f() error(('x'):rep(3000), #t) end f()", '    t = {k')
		has("local t = {} for i = 1, 64 do t['k' .. i] = i end\nlocal a, b, c = t, t, t\nerror(('x'):rep(3000), #a + #b + #c)", '    c = {k1 = 1, ')
	end)
	it('below messages of every length, of locals, upvalues, globals and fields', function()
		local trace = debug.getregistry()['quoll.internal'].traceback
		local a, b, t, f = tensor{1}, tensor{2}, {x = tensor{3}}, nn.Linear(2, 2)
		for n = 0, 2200, 11 do
			local message = ('m'):rep(n)
			local function fail()
				local c, d = tensor{4}, f
				error(message, (a == b and t.x == c and d) and 1 or 1)
			end
			local _, text = xpcall(fail, trace)
			assert(text:find('c = float32(1)', 1, true) and text:find('b = float32(1)', 1, true) and text:find('t.x = float32(1)', 1, true) and
				text:find('d = Linear', 1, true), text)
		end
	end)
end)

describe('the layer', function()
	it('that failed is named with its arguments', function()
		has("m = nn.Sequential{nn.Linear(4, 5), nn.ReLU(), nn.Linear(6, 2)}\nm(tensor.zeros(1, 4))",
			'got (1, 5) and (2, 6) (in linear2, Linear(6, 2))\nstack traceback:\n')
		has("m = nn.Sequential{nn.Linear(4, 5), nn.Residual{nn.Linear(5, 5), nn.Linear(6, 5, {name = 'fc'})}}\nm(tensor.zeros(1, 4))",
			'(in residual1.fc, Linear(6, 5))\n')
		has('nn.Linear(6, 2)(tensor.zeros(1, 4))', '(in Linear(6, 2))\n')
	end)
	it('may be a function of the user', function()
		has([[
b = nn.module(function(self, x) return x:view(7, 7) end, {})
nn.Sequential{nn.Linear(4, 5), b}(tensor.zeros(1, 4))]], '(in module1, module)\n')
	end)
	it('is named while calibrating and of quantized modules', function()
		has("m = nn.Sequential{nn.Linear(4, 5), nn.Linear(6, 2)}\nm:calibrate({{tensor.zeros(1, 4), tensor.zeros(1)}})", '(in linear2, Linear(6, 2)')
		has("m = nn.Sequential{nn.Linear(4, 5), nn.Linear(6, 2)}:quantize{mode='weight_only'}\nm(tensor.zeros(1, 4))", '(in linear2, Linear(6, 2)')
	end)
	it('is not told once it has ended', function()
		local out = has("nn.Linear(4, 5)(tensor.zeros(1, 4))\nerror 'later'", 'later\nstack')
		assert(not out:find 'in Linear', out)
	end)
	it('has all results of a call', function()
		local y, state = nn.LSTM(3, 4)(tensor.zeros(2, 1, 3))
		assert(y:size(3) == 4 and state, 'two results')
	end)
end)

describe('error objects', function()
	it('show their fields, or what their __tostring says', function()
		has('error{code = 1, why = "x"}', 'quoll: error object {code = 1, why = "x"}\n')
		has("error(setmetatable({code = 1}, {__tostring = function(e) return 'code ' .. e.code end}))", 'quoll: code 1\n')
		has('error(setmetatable({code = 2}, {}))', 'quoll: error object {code = 2}\n')
		has("error(setmetatable({code = 3}, {__tostring = error}))", 'error object {code = 3}')
		has('error(print)', 'quoll: (error object is a function value)\n')
		has('error()', 'quoll: ')
	end)
end)

it('there is no traceback without a function of the user', function()
	for _, command in ipairs {'sweep --nothing', 'sweep report nothing.db', 'convert nothing.lua'} do
		local pipe = io.popen(('%s %s 2>&1'):format(program, command))
		local out = pipe:read 'a'
		pipe:close()
		assert(out ~= '' and not out:find 'traceback', out)
	end
end)

it('a trial of a sweep shows the values, too', function()
	local out = run([[
sweep.run{name = 's', db = arg[0] .. '.db', grid = {a = {1}}, run = function(c)
	local x = tensor.zeros(2, 4)
	return {y = (x + tensor.zeros(3, c.a + 4)):sum():item()}
end}]], 'sweep')
	os.remove(file .. '.db')
	assert(out:find('| +3 | return {y') and out:find('x = float32(2, 4)', 1, true) and out:find('c = {a = 1}', 1, true), out)
end)
os.remove(file)
