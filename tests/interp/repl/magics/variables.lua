-- SPDX-License-Identifier: MIT
-- %%who, %%forget, %%save, %%load.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

local path = os.tmpname()
os.remove(path)
path = path .. '.safetensors'

-- What the lines print after the variables went through a file.
local function through(make, ask)
	local first = session(make .. '\n%save ' .. path)
	local second = session('%load ' .. path .. '\n' .. ask):gsub('^[^\n]*\n', '', 1)
	os.remove(path)
	return second, first
end

local function same(make, ask, wanted)
	local got, first = through(make, ask)
	if got ~= wanted then error(('%q, %q: wanted %q, got %q after %q'):format(make, ask, wanted, got, first), 2) end
end

describe('%save and %load', function()
	it('keep numbers, text, booleans as they were', function()
		same('a, b, c, d = 1, 2.0, -0.0, 2^53 + 1.0 e, f = 1/0, true g = math.mininteger', 'a, b, c, d == 2^53, e, f, g == math.mininteger',
			'Out[2]: 1\t2.0\t-0.0\ttrue\tinf\ttrue\ttrue\n')
		same('n = 0/0 t = 0.1 + 0.2', 'n ~= n, t == 0.1 + 0.2', 'Out[2]: true\ttrue\n')
		same([[s = 'a"\\\n\0é' r = '\xff\xfe\0']], [[s == 'a"\\\n\0é', r == '\xff\xfe\0']], 'Out[2]: true\ttrue\n')
	end)
	it('keep tables with what they share and their cycles', function()
		same('t = {1, 2, a = {b = {3}}} t.self = t u = t.a', 't.self == t, u == t.a, u.b[1], #t, t[2]', 'Out[2]: true\ttrue\t3\t2\t2\n')
		same('t = {} t[1.5] = 1 t[true] = 2 t[t] = 3 k = {} t[k] = 4', 't[1.5], t[true], t[t], t[k]', 'Out[2]: 1\t2\t3\t4\n')
		same('local t = {} for i = 1, 500 do t = {t} end deep = t', 'local n, t = 0, deep while t[1] do t, n = t[1], n + 1 end n', 'Out[2]: 500\n')
	end)
	it('keep tensors with dtype, shape and quant params', function()
		same("x = tensor{{1, 2}, {3, 4}} y = x y2 = {x}", 'x, x == y, y2[1] == x', 'Out[2]:\nfloat32(2, 2)\n  1  2\n  3  4\ntrue\ntrue\n')
		for _, spec in ipairs {'int8', 'uint8/1', 'int4:32', 'binary', 'int16', 'uint4/2', 'nvfp4', 'mxfp4', 'nf4:32:2', 'int4:32+min', 'ternary'} do
			same(("tensor.seed(1) x = tensor.randn(4, 64) q = x:quantize '%s'"):format(spec),
				("q:dequantize():error(x:quantize '%s':dequantize()).max, q:quantized()"):format(spec), 'Out[2]: 0.0\ttrue\n')
		end
		for _, dtype in ipairs {'float16', 'bfloat16', 'float64', 'int64', 'uint16', 'bool'} do
			same(("x = tensor.ones{3, dtype='%s'}"):format(dtype), 'x:dtype(), x:sum():item()',
				('Out[2]: "%s"\t%s\n'):format(dtype, dtype:find 'float' and '3.0' or '3'))
		end
		same('x = tensor.zeros(0, 3) s = tensor{2.5}:sum()', 'x:size()', 'Out[2]: 0\t3\n')
		same('w = tensor{1, 2, grad=true}', 'w:requires_grad()', 'Out[2]: true\n')
	end)
	it('keep specs', function()
		same("s = {} for i, t in ipairs{'mxfp4 scaling=even', 'nf4:32:4', 'int4:32+min', 'fp8_e4m3/1 saturate=false', 'int8/1 bits=8,4', 'int4 bits=3', 'uint8@percentile p=99'} " ..
			'do s[i] = quant.spec(t) end', 'table.unpack(s)', 'Out[2]: mxfp4 scaling=even\tnf4:32:4\tuint4:32+min\tfp8_e4m3/1 saturate=false\tint8/1 bits=8,4\tint4 bits=3\tuint8@percentile p=99\n')
		same("s = quant.spec{dtype='nf4', block=32, observer=function(h) return -1, 1 end} k = 2", 's, k', 'Out[2]: nf4:32\t2\n')
		same("s = quant.spec{dtype='uint8', scale=0.25, zero_point=3}", 's', 'Out[2]: uint8 scale=0.25 zero_point=3\n')
	end)
	it('keep models, quantized ones too, and optimizers that go on', function()
		local net = 'tensor.seed(3) m = nn.Sequential{nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)} x = tensor.randn(5, 3) '
		same(net .. 'y = m(x)', 'm(x):error(y).max, m.linear1.weight == m:parameters()[1], #m', 'Out[2]: 0.0\ttrue\t3\n')
		same(net .. "q = m:quantize{mode='weight_only', weight='int8/1'} y = q(x)", 'q(x):error(y).max', 'Out[2]: 0.0\n')
		same(net .. "m:calibrate({{x}}, {input='uint8', batches=1}) q = m:quantize{mode='static', weight='int8/1'} y = q(x)",
			'q(x):error(y).max', 'Out[2]: 0.0\n')
		same(net .. 'o = optim.adam(m, {lr=0.1}) function step() o:zero() m(x):pow(2):mean():backward() o:step() end step() c = m:clone() ' ..
			'copy = optim.adam(c, {lr=0.1}):load(o:state()) c(x):pow(2):mean():backward() copy:step() step = nil',
			'm(x):pow(2):mean():backward() o:step() m.linear1.weight:error(c.linear1.weight).max', 'Out[2]: 0.0\n')
	end)
	it('bring locals back as locals', function()
		same('local k = 5', 'k, _G.k', 'Out[2]: 5\tnil\n')
	end)
	it('name what they cannot keep', function()
		local _, said = through('function f() end x = 1 t = {call = print, 5} o = quant.observer "int8"', 'x')
		assert(said:find 'f %(a function%)' and said:find 't%.call %(a function%)' and said:find 'o %(', said)
		assert(said:find '2 variables in', said)
		check('function f() end\n%save ' .. path, 'save: nothing can be kept: f (a function)\n')
		_, said = through('m = nn.module(function(self, x) return x end) x = 1', 'x')
		assert(said:find 'm %(a module with a function of yours', said)
	end)
	it('take names', function()
		check(('a, b = 1, 2\n%%save %s b\na, b = 8, 9\n%%load %s\na, b'):format(path, path),
			(session(('a, b = 1, 2\n%%save %s b\n%%load %s'):format(path, path))) .. 'Out[5]: 8\t2\n')
		check(('%%load %s zzz'):format(path), "load: no variable 'zzz'\n")
		check('abc = 1\n%save ' .. path .. ' abd', "save: no variable 'abd'; did you mean 'abc'?\n")
		os.remove(path)
	end)
	it('replace sessions, and nothing else', function()
		local before = session(('m = nn.Linear(2, 2)\nm:save "%s";\nx = 1\n%%save %s\nm:load "%s";\n"good"'):format(path, path, path))
		assert(before:find('save: ' .. path .. ' is there already, and no session', 1, true), before)
		assert(before:find '"good"' and not before:find 'missing', before)
		os.remove(path)
		local out = session(('x = 1\n%%save %s\nx = 2\n%%save %s\n%%load %s\nx'):format(path, path, path))
		assert(out:find 'Out%[6%]: 2\n', out)
		local file = io.open(path, 'wb')
		file:write(('\255'):rep(20))
		file:close()
		has('x = 1\n%save ' .. path, 'is there already')
		os.remove(path)
	end)
	it('tell bad files and names', function()
		check('%save', 'usage: %save file [name ...]\n')
		check('%save ' .. path, 'save: there are no variables yet\n')
		check('x = 1\n%save file.txt', 'save: wanted a file that ends in .safetensors, got file.txt\n')
		has('%load /nonexistent/x', '/nonexistent/x.safetensors')
		tensor.save(path, {w = tensor{1}})
		check('%load ' .. path, ("load: %s: no variables of a session in it; tensor.load '%s' reads its tensors\n"):format(path, path))
		os.remove(path)
		has('x = 1\n%save /nonexistent/folder/x', '/nonexistent/folder/x.safetensors')
	end)
end)

describe('a hostile file', function()
	local function load_json(json)
		local bytes = {dtype = 'uint8'}
		for i = 1, #json do bytes[i] = json:byte(i) end
		tensor.save(path, {['quoll.workspace'] = tensor(bytes), t = tensor{1}})
		local out = session('%load ' .. path .. '\nx')
		os.remove(path)
		return out
	end
	it('is refused with a message and changes nothing', function()
		for _, json in ipairs {
			'', '{', '[]', '{"version":1}', '{"version":2,"variables":[],"objects":[]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[]}',
			'{"version":1,"variables":[{"name":"x","value":{"t":"none"}}],"objects":[]}',
			'{"version":1,"variables":[{"name":"x y","value":1}],"objects":[]}',
			'{"version":1,"variables":[{"name":"x","value":{"k":"hook"}}],"objects":[]}',
			'{"version":1,"variables":[{"name":"x","value":{"f":"os.exit()"}}],"objects":[]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"function","items":[]}]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"module","class":"Evil","items":[]}]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"module","class":"Linear","items":[]}]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"optimizer","rule":"adam","items":[]}]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"table","items":[[1]]}]}',
			'{"version":1,"variables":[{"name":"x","value":{"r":1}}],"objects":[{"kind":"table","items":[[{"f":"nan"},1]]}]}',
		} do
			local out = load_json(json)
			assert(out:find '^load: ' and out:find 'Out%[2%]: nil\n$', json .. ' -> ' .. out)
		end
	end)
	it('cannot replace what is Quoll\'s own', function()
		local out = load_json '{"version":1,"variables":[{"name":"print","value":1}],"objects":[]}'
		assert(out:find '^load: ', out)
	end)
end)
