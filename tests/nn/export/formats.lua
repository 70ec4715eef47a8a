-- SPDX-License-Identifier: MIT
-- labels: full
-- Weights of every number format in exported C: the same bits as g:run, by every compiler that is here.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()

-- Short blocks at the end of rows, fields across bytes, each form of scales and minimums.
local SPECS = {'fp8_e4m3', 'fp8_e4m3/1', 'fp8_e5m2:32', 'fp6_e2m3', 'fp6_e3m2/1', 'fp6_e3m2:32', 'fp4_e2m1', 'fp4_e2m1:16', 'mxfp8_e4m3', 'mxfp8_e5m2',
	'mxfp6_e2m3', 'mxfp6_e3m2', 'mxfp4', 'mxint8', 'nvfp4', 'nf4', 'nf4:16', 'nf4:16:3', 'af4', 'kmeans4', 'kmeans4:16', 'ternary', 'int2', 'int2:32', 'uint2/1', 'int3', 'int3/1', 'int3:32', 'uint3/1',
	'int5/1', 'uint5:16', 'int6:32', 'uint6/1', 'int4:32', 'uint2:32+min', 'uint3:32+min', 'uint4:16+min', 'uint4/1+min', 'uint5:32+min', 'uint6:32+min', 'uint8:32+min',
	'int8 log', 'int4/1 log', 'uint4 log', 'int16 log', 'binary', 'binary/1'}
-- Rows of linear layers, in which every format decodes, are compiled by all; other products, which call the same functions, by each compiler
-- at one level: with and without the optimizer.
local ALL, MOST, LEAST = {}, {}, {}
for cc, levels in pairs {gcc = {MOST, '-O3', LEAST, '-O0'}, clang = {LEAST, '-O3', MOST, '-O0'}} do
	if os.execute(cc .. ' --version >/dev/null 2>&1') then
		for i = 1, 3, 2 do
			local compiler = cc .. ' ' .. levels[i + 1]
			ALL[#ALL + 1], levels[i][#levels[i] + 1] = compiler, compiler
		end
	end
end
if #ALL == 0 then ALL, MOST, LEAST = exported.FLAGS, exported.FLAGS, exported.FLAGS end

-- The cases as the variants of one program.
local function equal(cases, compilers)
	local program = exported.program(cases)
	local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. program.folder) end})
	for _, cc in ipairs(compilers) do
		local _, wrong = exported.differing(program, {cc = cc})
		assert(wrong == '', cc .. ': ' .. wrong)
	end
end

-- The model with weights of each format.
local function every(m, x, compilers, specs)
	local cases = {}
	for i, spec in ipairs(specs or SPECS) do
		cases[i] = {name = spec, x = x, graph = exported.quantized(m, x, {mode='weight_only', weight=spec})}
	end
	equal(cases, compilers)
end

tensor.seed(15)
it('linear: 1000 inputs', function()
	every(nn.Sequential {nn.Linear(75, 13), nn.ReLU(), nn.Linear(13, 5, {bias=false})}, tensor.randn(1000, 75), ALL)
end)
-- A case of the model with weights by m:quantize, whose ranges are found for each row of x.
local function found(m, x, spec, input)
	local graph = graph.trace(m:quantize {mode='dynamic', weight=spec, input=input}, x:narrow(1, 1, 1))
	return {name=('%s by %s'):format(input, spec), x=x, graph=graph, single=true}
end

local BLOCKS = {'int4:32', 'int8:32', 'uint8:16', 'uint4:8', 'uint4:32', 'int4:128', 'int3:16', 'uint5:16', 'int6:32', 'int2:32', 'mxint8',
	'uint4:16+min', 'uint4/1+min', 'uint2:32+min', 'uint6:32+min', 'uint8:32+min', 'mxfp4', 'nvfp4', 'fp4_e2m1', 'fp4_e2m1/1', 'fp6_e2m3:16', 'mxfp6_e2m3', 'int4:32:64', 'int8:16:32'}
it('linear: codes by codes with scales or minimums in blocks along k', function()
	local m, x, cases = nn.Sequential {nn.Linear(75, 13), nn.ReLU(), nn.Linear(13, 5, {bias=false}), nn.Tanh()}, tensor.randn(60, 75), {}
	for i, spec in ipairs(BLOCKS) do
		cases[#cases + 1] = found(m, i % 2 == 0 and x or x:view(20, 3, 75), spec, 'int8')
		cases[#cases + 1] = found(m, i % 2 == 1 and x or x:view(20, 3, 75), spec, 'uint8')
	end
	equal(cases, MOST)
end)
it('linear: codes with a known scale by blocks, codes or floats as results', function()
	local x, b, cases = tensor.randn(30, 45), tensor.randn(11), {}
	local ins, outs = {'uint8 scale=0.02 zero_point=120', 'int8 scale=0.03'}, {false, 'int8 scale=0.1', 'uint8 scale=0.07 zero_point=100'}
	for i, spec in ipairs(BLOCKS) do
		local w, input, out = tensor.randn(11, 45):quantize(spec), ins[i % 2 + 1], outs[i % 3 + 1] or nil
		local f = function(self, a) return a:quantize(input):linear(self.w, i % 4 > 0 and self.b or nil, {out=out, act=i % 5 > 2 and 'relu' or nil}) end
		cases[i] = {name=spec, x=x, graph=exported.of(function(self, a) return out and f(self, a):dequantize() or f(self, a) end, x, {w=w, b=b})}
	end
	equal(cases, LEAST)
end)
it('linear: graphs that g:quantize makes have the sums of blocks', function()
	local m, x, cases = nn.Sequential {nn.Linear(75, 13), nn.ReLU(), nn.Linear(13, 5, {bias=false})}, tensor.randn(60, 75), {}
	for i, spec in ipairs {'int4:32', 'uint4:8', 'int8:16', 'mxint8', 'uint4:32+min', 'uint4/1+min', 'uint5/1+min', 'mxfp4', 'fp6_e2m3/1', 'int4:32:256'} do
		for _, mode in ipairs {'static', 'dynamic'} do
			local input = i % 2 == 0 and 'int8' or 'uint8'
			cases[#cases + 1] = {name=('%s %s'):format(mode, spec), x=x, graph=exported.quantized(m, x, {mode=mode, weight=spec, input=input}), single=mode == 'dynamic'}
		end
	end
	equal(cases, LEAST)
end)
it('linear by blocks: formats of GGUF, the largest codes', function()
	local m, x, cases = nn.Sequential {nn.Linear(512, 13), nn.ReLU()}, tensor.randn(40, 512), {}
	for i, spec in ipairs {'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl',
		'gguf.mxfp4'} do cases[i] = found(m, x, spec, 'uint8') end
	local large = nn.Sequential {nn.Linear(16384, 2)}
	tensor.nograd(function() large.linear1.weight:copy_(tensor.full {2, 16384, value=-7}) end)
	for _, value in ipairs {-3, 3} do
		for _, spec in ipairs {'int8:16384', 'uint8:16384', 'int4:64', 'fp6_e2m3/1'} do
			cases[#cases + 1] = found(large, tensor.full {1, 16384, value=value}, spec, value < 0 and 'int8' or 'uint8')
		end
	end
	equal(cases, MOST)
end)
it('channels that differ in bits, as dense codes of the widest', function()
	local m, x = nn.Sequential {nn.Linear(21, 4), nn.ReLU(), nn.Linear(4, 3)}, tensor.randn(50, 21)
	local rules, cases = {{'linear1', {bits={8, 4, 2, 3}, axis=1}}, {'linear2', {dtype='uint4', bits={2, 4, 3}, axis=1}}}, {}
	for i, mode in ipairs {'weight_only', 'static'} do
		cases[i] = {name = mode, x = x, graph = exported.quantized(m, x, {mode=mode, rules=rules})}
	end
	equal(cases, MOST)
end)
it('formats of GGUF', function()
	every(nn.Sequential {nn.Linear(256, 13), nn.ReLU()}, tensor.randn(100, 256), ALL, {'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'q2_k', 'q3_k',
		'q4_k', 'q5_k', 'q6_k', 'iq4_nl', 'tq1_0', 'tq2_0', 'gguf.mxfp4'})
end)
it('convolutions, one of them in groups', function()
	every(nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 6, 3, {groups=2, stride=2})}, tensor.randn(40, 3, 7, 6), MOST)
end)
it('embedding', function()
	every(nn.Sequential {nn.Embedding(30, 70), nn.Linear(70, 3)}, tensor.randint{50, 4, low=1, high=30, dtype='int32'}, LEAST)
end)
it('lstm', function() every(nn.Sequential {nn.LSTM(20, 9)}, tensor.randn(20, 4, 20), MOST, {'mxfp4', 'nf4', 'nvfp4', 'int3:32', 'fp8_e4m3/1', 'uint4:16+min', 'uint4/1+min'}) end)
it('many scales of NVFP4 keep their 8 bits', function()
	local m = nn.Sequential {nn.Linear(256, 48)}
	every(m, tensor.randn(20, 256), LEAST, {'nvfp4'})
	local folder = exported.new_folder()
	exported.quantized(m, tensor.randn(2, 256), {mode='weight_only', weight='nvfp4'}):export {dir=folder, name='net'}
	local text = exported.text_of(folder .. '/net_weights.h')
	os.execute('rm -r ' .. folder)
	assert(text:find 'uint8_t linear1_weight_scale%[768%]' and text:find 'uint8_t linear1_weight%[6144%]', text:sub(1, 2000))
end)
it('codes of 2 to 6 bits in integers', function()
	local m = nn.Sequential {nn.Linear(75, 13), nn.ReLU(), nn.Linear(13, 5)}
	local x, cases = tensor.randn(100, 75), {}
	for _, mode in ipairs {'static', 'dynamic'} do
		for _, spec in ipairs {'ternary', 'int2/1', 'int3/1', 'int5', 'int6/1', 'uint2/1', 'uint3/1', 'uint5/1', 'uint6'} do
			cases[#cases + 1] = {name=mode .. ' ' .. spec, x=x, graph=exported.quantized(m, x, {mode=mode, weight=spec}), single=mode == 'dynamic'}
		end
	end
	equal(cases, {'cc -O2'})
end)
it('activations in floating point, with nan, infinities and zeros', function()
	local m = nn.Sequential {nn.Linear(75, 13), nn.ReLU(), nn.Linear(13, 9), nn.ReLU(), nn.Linear(9, 5, {bias=false})}
	local x, odd = tensor.randn(1000, 75), tensor.randn(1000, 75)
	odd[1]:fill_(0)
	odd[2][2], odd[3][1], odd[4][1] = 0 / 0, 1 / 0, -1 / 0
	odd[5]:mul_(1e-6)
	odd[6]:mul_(-100)
	local conv = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 6, 3, {groups=2}), nn.Flatten(), nn.Linear(120, 3)}
	local images, cases = tensor.randn(20, 3, 7, 6), {}
	local function add(model, given, tested, input, weight)
		cases[#cases + 1] = {name=('%s by %s, %d'):format(input, weight, #cases), x=tested,
			graph=exported.quantized(model, given, {mode='static', weight=weight, input=input})}
	end
	for _, input in ipairs {'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3', 'fp6_e3m2', 'fp4_e2m1'} do
		for _, weight in ipairs {'int8/1', 'fp8_e4m3/1', 'mxfp4'} do add(m, x, odd, input, weight) end
		add(conv, images, images, input, 'fp8_e4m3/1')
	end
	for _, input in ipairs {'fp8_e4m3 saturate=false', 'fp8_e5m2 saturate=false', 'int8 log', 'int4 log'} do add(m, x, odd, input, 'int8/1') end
	equal(cases, ALL)
end)
-- Ops between codes of a table, with and without out=.
it('ops of codes in floating point', function()
	local x, images, cases = tensor.randn(40, 16), tensor.randn(8, 3, 8, 8), {}
	local residual = nn.module(function(m, x) local y = m.a(x):tanh(); return m.c(m.b(y):relu() + y * 2) end,
		{a=nn.Linear(16, 16), b=nn.Linear(16, 16), c=nn.Linear(16, 5)})
	local joined = nn.module(function(m, x) local y = m.a(x); return m.c(tensor.cat({y, m.b(y):relu()}, {axis=2})) end,
		{a=nn.Linear(16, 16), b=nn.Linear(16, 16), c=nn.Linear(32, 5)})
	for _, input in ipairs {'fp8_e4m3', 'fp6_e3m2', 'fp4_e2m1', 'int8 log'} do
		for name, case in pairs {norm = {nn.Sequential {nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8), nn.Softmax(2)}, x},
			pool = {nn.Sequential {nn.Conv2d(3, 8, 3), nn.Sigmoid(), nn.AvgPool2d(2), nn.Conv2d(8, 8, 2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 4)}, images},
			residual = {residual, x}, joined = {joined, x}} do
			cases[#cases + 1] = {name=input .. ' ' .. name, x=case[2],
				graph=exported.quantized(case[1], case[2], {mode='static', weight='int8/1', input=input})}
		end
	end
	equal(cases, {'cc -O2'})
end)
it('out= of codes of another kind than the operands', function()
	local x, cases = tensor.randn(6, 4, 6, 6), {}
	local OPS = {avgpool = function(v, o) return tensor.avgpool2d(v, {k=2, out=o}) end, relu = function(v, o) return v:relu{out=o} end,
		gelu = function(v, o) return v:gelu{out=o} end, add = function(v, o) return tensor.add(v, v, {out=o}) end,
		mul = function(v, o) return tensor.mul(v, 3, {out=o}) end, softmax = function(v, o) return v:softmax(2, {out=o}) end,
		matmul = function(v, o) return tensor.matmul(v, v, {out=o}) end, cat = function(v, o) return tensor.cat({v, v}, {axis=2, out=o}) end,
		convert = function(v, o) return v:quantized() and v:requantize(o) or v:quantize(o) end}
	for from, to in pairs {int8 = 'fp8_e4m3', fp8_e4m3 = 'int8', float32 = 'int8', fp6_e3m2 = 'fp4_e2m1'} do
		local spec, out = from ~= 'float32' and quant.spec(from .. ' scale=0.05'), quant.spec(to .. ' scale=0.07')
		for name, op in pairs(OPS) do
			local f = nn.module(function(_, v) return op(spec and v:quantize(spec) or v, out):dequantize() end, {})
			cases[#cases + 1] = {name = from .. ' ' .. to .. ' ' .. name, x = x, graph = graph.trace(f, x:narrow(1, 1, 1))}
		end
	end
	equal(cases, {'cc -O0'})
end)
