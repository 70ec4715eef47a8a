-- SPDX-License-Identifier: MIT
-- labels: quick host
-- quant.scheme with functions: number formats whose codes and values Lua makes.
local function whole(x, s) return (x / s):round():clamp(-7, 7) end
local function times(c, s) return c * s end
local function define(t) return quant.scheme {name=t.name or 'mine', bits=t.bits or 4, signed=t.signed ~= false, unit=t.unit or 7, block=t.block,
	encode=t.encode or whole, decode=t.decode or times, fit=t.fit, text=t.text} end
local function same(a, b, what)
	assert(table.concat({a:size()}, 'x') == table.concat({b:size()}, 'x'), what)
	assert(a:nelem() == 0 or (a - b):abs():max():item() == 0, what)
end
local function codes(q) return q:codes():to 'int32' end
local function fails(f, ...)
	local good, message = pcall(f, ...)
	assert(not good, 'wanted an error, got none')
	return tostring(message)
end
local function has(message, wanted) assert(message:find(wanted, 1, true), message) end

local spec = define {text='int4, by functions'}
print(spec, spec.format, spec.dtype, spec.bits, spec.scheme, spec.functions, spec.affine, spec.values, spec.min, spec.max)  --> mine mine int4 4 functions true false nil -8 7

it('functions that do what int4 does give its codes, scales and values', function()
	tensor.seed(7)
	for _, shape in ipairs {{5, 70}, {3, 4, 9}, {2, 3, 5, 33}, {64}, {1, 1}, {7, 32}, {33, 2}} do
		local x = tensor.randn(table.unpack(shape))
		local rest = {'', ':32', ':7', '/1', '/-1', '/1:2', ':1', '/-1:16'}
		if #shape > 2 then rest[#rest + 1], rest[#rest + 2] = '/2', '/2:3' end
		for _, s in ipairs(rest) do
			local a, b = x:quantize('mine' .. s), x:quantize('int4' .. s)
			local what = ('%s of %s'):format(s, table.concat(shape, 'x'))
			same(codes(a), codes(b), what)
			same(a:qparams().scale, b:qparams().scale, what)
			same(a:dequantize(), b:dequantize(), what)
			assert(a:qparams().scale:dtype() == b:qparams().scale:dtype() and a:nbytes() == b:nbytes(), what)
			assert(a:check():spec().functions and tostring(a:spec()):find '^mine', what)
		end
	end
	same(tensor.zeros(0, 4):quantize('mine/1'):dequantize(), tensor.zeros(0, 4))
	same(tensor.zeros {3, 40, quant='mine:32'}:dequantize(), tensor.zeros(3, 40))
	assert(tensor.randn(2, 3):t():quantize('mine/1'):check())
end)

it('the functions get rows of one scale, short blocks in a call of their own', function()
	local seen = {}
	local function sizes(t) return t and table.concat({t:size()}, 'x') or 'nil' end
	local function note(name, a, b) seen[#seen + 1] = ('%s %s %s %s'):format(name, a:dtype(), sizes(a), sizes(b)) end
	define {name='seen', encode=function(x, s) note('encode', x, s) return whole(x, s) end, decode=function(c, s) note('decode', c, s) return times(c, s) end,
		fit=function(x, importance) note('fit', x, importance) return x:abs():max {axis=2} / 7 end}
	local function calls(f)
		seen = {}
		f()
		return table.concat(seen, ', ')
	end
	local x, q = tensor.randn(3, 70), nil
	print(calls(function() q = x:quantize 'seen:32' end))  --> fit float32 6x32 nil, fit float32 3x6 nil, encode float32 6x32 6x1, encode float32 3x6 3x1
	print(calls(function() q:dequantize() end))            --> decode int32 6x32 6x1, decode int32 3x6 3x1
	print(calls(function() x:quantize 'seen' end))         --> fit float32 1x210 nil, encode float32 1x210 1x1
	print(calls(function() x:quantize 'seen/2' end))       --> fit float32 70x3 nil, encode float32 70x3 70x1
	print(calls(function() x:quantize {dtype='seen', axis=1, scale=tensor{1, 2, 3}} end))  --> encode float32 3x70 3x1
	print(calls(function() x:quantize {dtype='seen', block=32, importance=tensor.ones(70)} end))  --> fit float32 6x32 6x32, fit float32 3x6 3x6, encode float32 6x32 6x1, encode float32 3x6 3x1
	print(calls(function() x:quantize 'seen/1@percentile' end))  --> fit float32 3x2 nil, encode float32 3x70 3x1
	print(calls(function() return quant.params(-3, 5, 'seen').scale end))  --> fit float32 1x2 nil
	print(calls(function() tensor.zeros(0, 70):quantize 'seen':dequantize() end) == '')  --> true
	print(calls(function() return tostring(tensor.ones(600, 600):quantize 'seen/1') end):match '[^,]*$')  -->  decode int32 1x1 1x1
end)

it('a logarithmic format, by a plain loop', function()
	-- code 0 is 0, 1 to 7 are 2^0 to 2^-6, 8 to 15 the same below 0
	define {name='octaves', signed=false, unit=1, encode=function(x, s)
		local v = x / s
		local e = (-(v:abs() + 1e-30):log2()):round():clamp(0, 7)
		return tensor.where(e:lt(7), e + 1, e * 0) + (v:lt(0):to 'float32') * e:lt(7):to 'float32' * 8
	end, decode=function(c, s)
		local low = (c % 8):to 'float32'
		return tensor.where(low:gt(0), (-(low - 1) * math.log(2)):exp(), low * 0) * (1 - 2 * c:ge(8):to 'float32') * s
	end}
	local x = tensor.randn(4, 32)
	local q = x:quantize 'octaves/1'
	local got, scale, list, values = q:codes():totable(), q:qparams().scale:totable(), x:totable(), q:dequantize():totable()
	for i = 1, 4 do
		local most = 0
		for k = 1, 32 do most = math.max(most, math.abs(list[i][k])) end
		assert(scale[i] == most)
		for k = 1, 32 do
			local v = math.abs(list[i][k]) / most
			local e = v > 0 and math.floor(-math.log(v, 2) + 0.5) or 7
			local code = e >= 7 and 0 or e + 1 + (list[i][k] < 0 and 8 or 0)
			local edge = v > 0 and math.abs(-math.log(v, 2) % 1 - 0.5) < 1e-4
			assert(edge or got[i][k] == code, ('%d %d: %d, %d'):format(i, k, got[i][k], code))
			local c = got[i][k]
			local wanted = c % 8 == 0 and 0 or (c >= 8 and -1 or 1) * 2.0 ^ -(c % 8 - 1) * most
			assert(math.abs(values[i][k] - wanted) <= 1e-6 * most)
		end
	end
end)

it('a block float whose values depend on the scale', function()
	-- scales are powers of two; below 1 codes are coarse, of even numbers only
	define {name='steps', bits=5, fit=function(x) return (x:abs():max {axis=2} / 15):log2():ceil():mul(math.log(2)):exp() end,
		encode=function(x, s) local step = s:lt(0.125):to 'float32' + 1 return (x / s / step):round() * step end,
		decode=function(c, s) return c * s end}
	local x = tensor.randn(6, 48) * tensor{{0.1}, {1}, {2}, {4}, {8}, {0.01}}
	local q = x:quantize 'steps:16'
	local scale, got, list = q:qparams().scale:totable(), q:codes():totable(), x:totable()
	for i = 1, 6 do
		for k = 1, 48 do
			local s = scale[i][(k - 1) // 16 + 1]
			local step = s < 0.125 and 2 or 1
			local v = list[i][k] / s / step
			local even = math.floor(v + 0.5)
			assert(math.abs(v % 1 - 0.5) < 1e-4 or got[i][k] == even * step, ('%g under %g: %d'):format(list[i][k], s, got[i][k]))
			assert(step == 1 or got[i][k] % 2 == 0)
		end
	end
	assert(x:error(q).sqnr > 15)
end)

it('scales of any sign, of 0, and numbers for one row', function()
	define {name='signs', fit=function(x) return -x:abs():max {axis=2, keep=true} / 7 end}
	local x = tensor.randn(4, 32)
	local q = x:quantize 'signs/1'
	assert(q:check():qparams().scale:max():item() < 0)
	same(q:dequantize(), x:quantize('int4/1'):dequantize())
	define {name='none', fit=function() return 0 end, encode=function(v) return v * 0 end}
	q = x:quantize 'none'
	assert(q:check():qparams().scale:item() == 0 and q:dequantize():abs():max():item() == 0)
	same(tensor{-2, 4}:quantize {dtype='mine', scale=-2}:codes():to 'int32', tensor{1, -2}:to 'int32')
end)

it('importance reaches fit, in rows like those of x', function()
	local got
	define {name='weighted', fit=function(x, w) got = w return (x:abs() * w):max {axis=2} / 7 end}
	local w = tensor.arange(0, 5)
	local x = tensor.ones(2, 6)
	print(x:quantize {dtype='weighted', block=4, importance=w}:qparams().scale:view(4) * 7)  --> float16(4)  3  5  3  5
	assert(got:dim() == 2 and got:size(1) == 2 and got:size(2) == 2)
	has(fails(x.quantize, x, {dtype='weighted', importance=tensor.ones(5)}), 'wanted a plain tensor of the 6 columns, got 5 numbers')
	has(fails(quant.spec, {dtype='weighted', importance=w, scale=1}), 'importance: wanted none beside an explicit scale')
	has(fails(quant.spec, {dtype='weighted', importance=w, observer='percentile'}), 'observer: wanted minmax beside importance')
	has(fails(quant.spec, {dtype='mine', importance=w}), 'importance: wanted none beside mine')
end)

it('NaN is 0 and infinity the largest of its row, and both are counted', function()
	local q = tensor{{1, 0 / 0, 7, -1 / 0}, {1 / 0, 1, 2, 0 / 0}}:quantize 'mine/1'
	same(codes(q), tensor{{1, 0, 7, -7}, {7, 3, 7, 0}}:to 'int32')
	print(q:qparams().nan, q:qparams().inf)  --> 2 2
end)

it('bits of 2 to 8, signed or not, in packed dtypes', function()
	local dtypes = {'', 'int2', 'int3', 'int4', 'int5', 'int6', 'int8', 'int8'}
	for bits = 2, 8 do
		for _, signed in ipairs {true, false} do
			local name = ('b%d%s'):format(bits, signed and 's' or 'u')
			local lo = signed and -2 ^ (bits - 1) or 0
			local s = define {name=name, bits=bits, signed=signed, encode=function(x) return x end, decode=function(c) return c end}
			assert(s.dtype == (signed and '' or 'u') .. dtypes[bits] and s.bits == bits and s.min == lo and s.max == lo + 2 ^ bits - 1, name)
			local x = tensor.arange(0, 2 ^ bits - 1) + lo
			local q = x:view(2, 2 ^ (bits - 1)):quantize(name)
			same(q:check():dequantize():view(2 ^ bits), x:to 'float32', name)
		end
	end
end)

it('views, slices, writing and printing', function()
	local x = tensor.randn(6, 32)
	local q, r = x:quantize 'mine:16', x:quantize 'int4:16'
	same(q:t():dequantize(), r:t():dequantize())
	same(q:narrow(1, 2, 3):dequantize(), r:narrow(1, 2, 3):dequantize())
	same(q:narrow(2, 17, 16):dequantize(), r:narrow(2, 17, 16):dequantize())
	same(q:view(3, 2, 32):dequantize(), r:view(3, 2, 32):dequantize())
	assert(x:quantize('mine/1')[3]:dequantize()[4]:item() == x:quantize('int4/1')[3]:dequantize()[4]:item())
	local c, d = q:clone(), r:clone()
	c[2], d[2] = x[3], x[3]
	same(c:dequantize(), d:dequantize())
	c:mul_(0.5)
	d:mul_(0.5)
	same(c:dequantize(), d:dequantize())
	print((tostring(tensor{-7, 1}:quantize 'mine'):gsub('%s+', ' ')))  --> mine(2), scale 1, 5 B -7 1
	same(q:to 'float32', q:dequantize())
	same(tensor.cat({q, q}, {axis=1}):dequantize(), tensor.cat({r, r}, {axis=1}):dequantize())
	same(x:quantize('mine/1'):embedding(tensor{1, 3}:to 'int64'), x:quantize('int4/1'):embedding(tensor{1, 3}:to 'int64'))
end)

it('ops decode first and say why; out= encodes', function()
	local x = tensor.randn(8, 8)
	local q, r = x:quantize 'mine', x:quantize 'int4':dequantize()
	quant.log(true)
	same(q:relu(), r:relu())
	same(q:matmul(q), r:matmul(r))
	same(q:max {axis=2}, r:max {axis=2})
	same(q:exp {out='int8'}:dequantize(), r:exp():quantize('int8'):dequantize())
	same(x:quantize('int8'):exp {out='mine'}:dequantize(), x:quantize('int8'):dequantize():exp():quantize('mine'):dequantize())
	same(r:relu {out={dtype='mine', scale=0.25}}:dequantize(), r:relu():quantize {dtype='int4', scale=0.25}:dequantize())
	local rows = quant.log()
	quant.log(false)
	local reasons = {}
	for i = 1, #rows do
		if rows[i].path == 'fallback' then reasons[#reasons + 1] = rows[i].op .. ': ' .. rows[i].reason end
		assert(rows[i].op ~= 'quantize' or not rows[i].operands:find 'mine' or rows[i].kernel == 'functions')
	end
	local text = table.concat(reasons, '\n')
	has(text, 'exp: codes of functions: only these can decode them')
	has(text, 'matmul: ')
	has(text, 'relu: ')
	local _ <close> = setmetatable({quant.fallback 'error'}, {__close = function(t) quant.fallback(t[1]) end})
	has(fails(q.relu, q), "(quant.fallback is 'error')")
end)

it('fake quantization, whose gradient passes everywhere', function()
	local x = tensor.randn(8, 32)
	same(x:fake 'mine:16', x:quantize('mine:16'):dequantize())
	local v = tensor{0.5, -70, 3, grad=true}
	v:fake {dtype='mine', scale=1}:sum():backward()
	print(v:grad())  --> float32(3)  1  1  1
	local w = tensor{{1, 2, 3, 4}, {5, -6, 7, 8}, grad=true}
	w:quantize('mine/1'):matmul(x:narrow(1, 1, 4)):sum():backward()
	assert((w:grad() - x:narrow(1, 1, 4):sum {axis=2}:view(1, 4)):abs():max():item() < 1e-4)
end)

it('reports: compare, error, estimate, formats', function()
	local x = tensor.randn(64, 64)
	local r = quant.compare(x, {'mine:32', 'int4:32'})
	assert(r[1].sqnr == r[2].sqnr and r[1].bytes == r[2].bytes)
	assert(quant.estimate(x, 'mine:32')[1].bytes == x:quantize('mine:32'):nbytes())
	assert(x:error(x:quantize 'mine').clipped == 0)
	assert(quant.formats('mine').storage == 'int4' and quant.formats('mine').what == 'int4, by functions')
	assert(tostring(x:quantize('mine:32'):qparams()):find 'scheme     functions')
end)

it('models: weights, activations with calibration, rules, search', function()
	tensor.seed(3)
	local m = nn.Sequential {nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)}
	local x = tensor.randn(40, 64)
	local y = m(x):argmax(-1):detach()
	local function by(options) return m:quantize(options):forward(x) end
	same(by {weight='mine:32', mode='weight_only'}, by {weight='int4:32', mode='weight_only'})
	same(by {mode='weight_only', rules={{'linear1', 'mine/1'}, {'.', 'int8/1'}}},
		by {mode='weight_only', rules={{'linear1', 'int4/1'}, {'.', 'int8/1'}}})
	assert(m:quantize {weight='mine:32', mode='weight_only'}:clone().linear1.weight:spec().functions)
	has(fails(m.quantize, m, {weight='mine/1', mode='dynamic'}), "wanted affine codes with one scale per output in mode 'dynamic', got 'mine/1'")
	for _, fit in ipairs {false, true} do
		define {name='act', bits=8, unit=127, encode=function(v, s) return (v / s):round():clamp(-127, 127) end,
			fit=fit and function(v) return v:abs():max {axis=2} / 127 end or nil}
		local wanted
		for _, input in ipairs {'act', {dtype='int8', scheme='symmetric'}} do
			m:calibrate({{x, y}}, {input=input, log=false})
			local q = m:quantize {mode='static', weight='int8/1'}
			local got = q:forward(x)
			assert(got:error(m(x)).sqnr > 25, got:error(m(x)).sqnr)
			wanted = wanted or got
			assert(got:error(wanted).sqnr > 25)
		end
	end
	m:calibrate({{x, y}}, {input='act@percentile', log=false})
	assert(by {mode='static', weight='int8/1'}:error(m(x)).sqnr > 15)
	local rules = quant.search(m, {data={{x, y}}, metric='accuracy', choices={'mine/1', 'int8/1'}, drop=50, log=false})
	assert(#rules > 0)
	assert(#quant.sensitivity(m, {data={{x, y}}, metric='accuracy', spec='mine/1', log=false}) == 2)
	has(tostring(quant.estimate(m, 'mine:32')), 'mine:32')
	local saw = quant.observer 'act':update(x)
	assert(saw:stats() and saw:params().scale:item() > 0)
	has(fails(saw.params, saw, {observer='mse'}), 'params: observer: wanted one that does not try codes beside the format act of functions, got mse')
end)

it('graphs run them and exported C refuses', function()
	local m = nn.Sequential {nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)}
	local x = tensor.randn(8, 16)
	local folder = os.tmpname()
	local function refused(g, node, got)
		has(fails(g.export, g, {dir=folder, name='net'}),
			("export: node '%s': wanted codes of integers or of a table, got '%s', whose codes are made by Lua functions"):format(node, got))
	end
	local q = m:quantize {weight='mine/1', mode='weight_only'}
	local g = graph.trace(q, x)
	same(g:run(x), q:forward(x))
	refused(g, 'linear1.weight', 'mine/1')
	m:calibrate({{x, x}}, {input='mine', log=false})
	q = m:quantize {weight='int8/1', mode='static'}
	g = graph.trace(q, x)
	same(g:run(x), q:forward(x))
	refused(g, 'linear1.quantize1', tostring(g.nodes['linear1.quantize1'].attrs.spec))
	g = graph.trace(nn.module(function(_, v) return v:fake {dtype='mine', scale=0.5} end), x)
	same(g:run(x), x:fake {dtype='mine', scale=0.5})
	refused(g, 'fake1', 'mine scale=0.5')
end)

it('files keep codes, scales and the name, which must be defined', function()
	local path = os.tmpname() .. '.safetensors'
	local q = tensor.randn(5, 40):quantize 'mine:16'
	define {name='seven', bits=7, encode=function(x, c) return (x / c * 7):round() end}
	tensor.save(path, {q=q, r=tensor.randn(3, 4):quantize 'seven'})
	local back = tensor.load(path)
	assert(back.q:spec() == q:spec() and back.q:spec().functions and back.r:spec().bits == 7)
	same(codes(back.q), codes(q))
	same(back.q:dequantize(), q:dequantize())
	local function other(before)
		local run <close> = io.popen(("\"/proc/$PPID/exe\" -e '%s print(pcall(function() local t = tensor.load(\"%s\") return t.q, t.r end))' 2>&1"):format(before, path))
		return run:read 'a'
	end
	has(other '', 'made by quant.scheme{name=\'mine\', encode=…, decode=…} before loading, got none')
	local one = 'for _, n in ipairs {"mine", "seven"} do quant.scheme {name=n, %s} end '
	has(other(one:format 'table={1, 2}'), "made by quant.scheme{name='mine', encode=")
	has(other(one:format 'bits=4, signed=true, encode=print, decode=print'), 'in int4 for the format seven (4 bits), got functions in int8 with 7 bits')
	has(other(one:format 'bits=n == "mine" and 4 or 7, signed=true, encode=print, decode=print'), 'true')
	quant.scheme {name='tabled', table={1, 2}}
	tensor.save(path, {q=tensor.randn(4):quantize 'tabled'})
	has(other '', "wanted the format 'tabled', made by quant.scheme{name='tabled', table=…} with the values that the file was written with")
	os.remove(path)
end)

it('what functions return is checked', function()
	local x = tensor.randn(4, 32)
	local function wrong(t, want, s)
		t.name = 'wrong'
		define(t)
		has(fails(function() return x:quantize(s or 'wrong:32'):dequantize() end), want)
	end
	wrong({encode=function(v) return v:view(128) end}, 'scheme wrong: encode: wanted codes of shape (4, 32), got (128)')
	wrong({encode=function() end}, 'scheme wrong: encode: wanted a tensor, got nil')
	wrong({encode=function() return 3 end}, 'scheme wrong: encode: wanted a tensor, got number')
	wrong({encode=function(v) return v * 0 + 0.5 end}, 'scheme wrong: encode: wanted whole numbers from -8 to 7, got 0.5')
	wrong({encode=function(v) return v * 0 + 8 end}, 'scheme wrong: encode: wanted whole numbers from -8 to 7, got 8')
	wrong({encode=function(v) return v * 0 - 1 end, signed=false}, 'scheme wrong: encode: wanted whole numbers from 0 to 15, got -1')
	wrong({encode=function(v) return v * (0 / 0) end}, 'scheme wrong: encode: wanted whole numbers from -8 to 7, got')
	wrong({encode=function(v) return v:quantize 'int8' end}, 'scheme wrong: encode: wanted plain codes, got a quantized tensor')
	wrong({decode=function(c) return c:sum() end}, 'scheme wrong: decode: wanted values of shape (4, 32), got ()')
	wrong({decode=function() return 1 end}, 'scheme wrong: decode: wanted a tensor, got number')
	wrong({fit=function() return 1 end}, 'scheme wrong: fit: wanted scales of shape (4, 1), got ()')
	wrong({fit=function(v) return v end}, 'scheme wrong: fit: wanted scales of shape (4, 1), got (4, 32)')
	wrong({fit=function(v) return v:sum {axis=2} * (1 / 0) end}, 'scheme wrong: fit: wanted finite float32 scales, got')
	wrong({fit=function() return 'a' end}, 'scheme wrong: fit: wanted a tensor, got string')
	wrong({fit=function() return 1e300 end}, 'scheme wrong: fit: wanted finite float32 scales, got inf for row 1', 'wrong')
end)

it('errors of the functions come out with their text', function()
	local x = tensor.randn(4, 32)
	local function raises(e, want)
		for _, name in ipairs {'encode', 'decode', 'fit'} do
			define {name='raises', [name]=function() error(e) end}
			has(fails(function() return x:quantize 'raises':dequantize() end), ('scheme raises: %s: %s'):format(name, want))
		end
	end
	raises('boom', 'tests/quant/user_functions.lua')
	raises(setmetatable({}, {__tostring = function() return 'an object' end}), 'an object')
	raises(setmetatable({}, {__tostring = function() error 'again' end}), 'failed')
	raises(setmetatable({}, {__tostring = function() return {} end}), 'failed')
	raises(nil, 'nil')
	define {name='raises', encode=function(v) return v:matmul(v) end}
	has(fails(x.quantize, x, 'raises'), 'scheme raises: encode: ')
	for _ = 1, 200 do pcall(x.quantize, x, 'raises') end
	assert(x:quantize 'mine':dequantize():dim() == 2) -- nothing is left half done
end)

it('functions may yield inside, close, collect, redefine and quantize', function()
	local x = tensor.randn(4, 64)
	local wanted = x:quantize 'int4:16'
	local function check(t)
		t.name = 'wild'
		define(t)
		local q = x:quantize 'wild:16'
		same(q:dequantize(), wanted:dequantize())
	end
	local run = coroutine.wrap(function()
		define {name='yields', encode=function(v) coroutine.yield() return v end}
		return fails(x.quantize, x, 'yields')
	end)
	has(run(), 'attempt to yield across a C-call boundary')
	check {encode=function(v, s)
		local inner = coroutine.wrap(function() coroutine.yield(v / s) coroutine.yield((v / s):round()) end)
		inner()
		return inner():clamp(-7, 7)
	end}
	check {encode=function(v, s)
		local made = whole(v, s)
		local a <close> = v
		local b <close> = s
		collectgarbage()
		return made, a, b
	end, decode=function(c, s)
		local made = times(c, s)
		do
			local a <close> = c
			local b <close> = s
			assert(a and b)
		end
		collectgarbage()
		return made
	end}
	check {encode=function(v, s) -- the same name again: what runs stays as it is
		define {name='wild', encode=function() error 'not this one' end}
		collectgarbage()
		return whole(v, s)
	end}
	check {encode=function(v, s) v:fill_(0) return whole(x:view(16, 16), s) end}
	local depth = 0
	check {encode=function(v, s) -- with the same format, four deep
		depth = depth + 1
		if depth < 4 then same(v:quantize 'wild/1':dequantize(), v:quantize 'int4/1':dequantize()) end
		depth = depth - 1
		return whole(v, s)
	end}
	define {name='endless', encode=function(v) return v:quantize 'endless':codes() end}
	has(fails(x.quantize, x, 'endless'), 'scheme endless: encode: ')
	define {name='endless', decode=function(c) return c:to 'float32':quantize 'endless':dequantize() end}
	has(fails(function() return x:quantize 'endless':dequantize() end), 'scheme endless: decode: ')
	local target = x:quantize 'mine'
	check {decode=function(c, s) target:copy_(x * 0) return times(c, s) end}
	local q
	define {name='own', encode=function(v, s) if q then local _ <close> = q end return whole(v, s) end}
	q = tensor.randn(3, 3):quantize 'own'
	pcall(function() q[1] = tensor.ones(3) end)
	local kept
	check {encode=function(v, s) kept = {v, s} return whole(v, s) end}
	collectgarbage()
	same(kept[1]:view(4, 64), x)
	define {name='sleepy', fit=function(v) return v:abs():max() end, encode=function(v, s) return (v / s * 3):round() end,
		decode=function(c, s) local w = tensor{1, 2, grad=true} pcall(function() (w * w):sum():backward() end) return c * s / 3 end}
	local y = tensor{1.5, 2, grad=true}
	y:fake 'sleepy':sum():backward()
	assert(y:grad():sum():item() == 2)
	assert(not pcall(graph.trace, nil) and x:quantize 'sleepy':matmul(tensor.ones(64, 1)):dim() == 2)
end)

it('a trial of a sweep defines the format in its run function', function()
	local folder = os.tmpname()
	os.execute('rm -rf ' .. folder .. ' && mkdir ' .. folder)
	local f = assert(io.open(folder .. '/s.lua', 'w'))
	f:write [[print(sweep.run {name='s', grid={spec={'tried:16', 'int4:16'}}, run=function(c)
	quant.scheme {name='tried', bits=4, signed=true, unit=7, encode=function(x, s) return (x / s):round():clamp(-7, 7) end,
		decode=function(q, s) return q * s end}
	tensor.seed(1)
	local x = tensor.randn(8, 32)
	return {sqnr=x:error(x:quantize(c.spec)).sqnr}
end})]]
	f:close()
	local run <close> = io.popen(('cd %s && "/proc/$PPID/exe" s.lua 2>&1'):format(folder))
	local text = run:read 'a'
	os.execute('rm -rf ' .. folder)
	local a, b = text:match 'spec=tried:16[^\n]*sqnr=([%d.]+)', text:match 'spec=int4:16[^\n]*sqnr=([%d.]+)'
	assert(a and a == b, text)
end)

it('definitions without a meaning are refused', function()
	local function refused(t, want)
		t.name = t.name or 'bad'
		has(fails(quant.scheme, t), 'scheme: ' .. want)
	end
	local f = print
	refused({}, 'wanted table=, or encode= and decode=, got neither')
	refused({bits=4}, 'encode: wanted a function, as encode= and decode= belong together, got nil')
	refused({bits=4, encode=f}, 'decode: wanted a function, as encode= and decode= belong together, got nil')
	refused({bits=4, encode=f, decode=3}, 'decode: wanted a function, as encode= and decode= belong together, got number')
	refused({bits=4, encode=f, decode=f, fit=3}, 'fit: wanted a function, got number')
	refused({encode=f, decode=f}, 'bits: wanted 2 to 8 beside encode= and decode=, got nil')
	for _, bits in ipairs {1, 9, 16} do refused({encode=f, decode=f, bits=bits}, 'bits: wanted 2 to 8, got ' .. bits) end
	refused({encode=f, decode=f, bits=2.5}, 'bits: wanted an integer above 0, got 2.5')
	refused({encode=f, decode=f, bits=4, signed=1}, 'signed: wanted true or false, got number')
	refused({encode=f, decode=f, bits=4, unit=0}, 'unit: wanted a number above 0, got 0')
	refused({encode=f, decode=f, bits=4, unit=1e300}, 'unit: wanted a finite number above 0')
	refused({encode=f, decode=f, bits=4, table={1, 2}}, 'encode: wanted none beside table=, got both')
	refused({table={1, 2}, bits=2}, 'bits: wanted none beside table=, got both')
	refused({table={1, 2}, signed=true}, 'signed: wanted none beside table=, got both')
	refused({encode=f, decode=f, bits=4, name='int8'}, "name: wanted a new one, got 'int8'")
	for s, want in pairs {['mine@mse'] = 'observer: wanted one that does not try codes beside the format mine of functions, got mse',
		['mine+min'] = '+min: wanted none beside the format mine', ['mine:32:8'] = 'outer: ', ['mine rounding=stochastic'] = 'rounding: ',
		['mine scaling=pow2'] = 'scaling: ', ['mine saturate=false'] = 'saturate: ', ['mine rounding=single'] = 'rounding: ', ['mine quant_min=-3'] = 'quant_min: ',
		['mine bits=3'] = 'bits: wanted none beside the format mine', ['mine zero_point=1'] = 'zero_point: ', ['int4 functions'] = 'scheme: wanted the name of a format',
		['mine scale=nan'] = 'scale: '} do
		has(fails(quant.spec, s), 'spec: ' .. want)
	end
end)

it('help and quant.formats show formats of the user', function()
	local function shown(name)
		local old, text = print, nil
		print = function(s) text = s end
		local good, message = pcall(help, name)
		print = old
		assert(good, message)
		return (text:gsub('%s+', ' '))
	end
	quant.scheme {name='halves', table={-1, -0.5, 0, 0.5, 1}, block=16, text='Halves.'}
	has(shown 'halves', "halves, a format of quant specs: x:quantize 'halves'")
	has(shown 'halves', 'Halves. Values: -1 -0.5 0 0.5 1. Codes of 3 bits in uint3, a scale per 16 elements unless the spec says otherwise (halves:64).')
	has(shown 'mine', 'Codes and values are made by functions of quant.scheme. Codes of 4 bits in int4, a scale per tensor; mine/1 and mine:32 as with other dtypes.')
	local many = {}
	for i = 1, 40 do many[i] = i end
	quant.scheme {name='many', table=many}
	has(shown 'many', '31 32 … (40 values).')
	define {name='relu', text='a method has this name, too'}
	has(shown 'relu', "relu, a format of quant specs: x:quantize 'relu'")
	has(shown 'relu', 'Of the same name: ')
	local count = 0
	for _, row in ipairs(quant.formats()) do count = count + (row.name == 'mine' and 1 or 0) end
	local f, t, g, k = quant.formats 'mine', quant.formats 'halves', quant.formats 'q4_0', quant.formats 'q4_k'
	assert(count == 1 and f.kind == 'functions' and f.bits == 4 and f.block == 0 and f.scale == 'float32')
	assert(t.kind == 'table' and t.bits == 4 and t.block == 16 and t.storage == 'uint3')
	assert(g.kind == 'integers' and g.scale == 'float16' and k.scale == 'uint6' and quant.formats 'gguf.mxfp4'.scale == 'float8_e8m0')
	assert(quant.formats 'q2_k'.scale == 'uint4' and quant.formats 'q6_k'.scale == 'int8' and quant.formats 'mxint8'.kind == 'integers')
end)
