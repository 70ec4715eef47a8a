-- SPDX-License-Identifier: MIT
-- Every number format as weights of models: layers compute with the decoded weights, traced graphs give the bits of the model, and
-- what has no integer version says so.
local SPECS = {'fp8_e4m3', 'fp8_e4m3/1', 'fp8_e5m2:32', 'fp6_e2m3', 'fp6_e3m2:32', 'fp4_e2m1', 'mxfp8_e4m3', 'mxfp8_e5m2', 'mxfp6_e2m3', 'mxfp6_e3m2', 'mxfp4',
	'mxint8', 'nvfp4', 'nf4', 'nf4:16:3', 'af4', 'ternary', 'int2', 'int3/1', 'int5:32', 'uint6/1', 'int4:32', 'uint2:32+min', 'uint4:16+min', 'uint8:32+min',
	'int4 log', 'binary'}
tensor.seed(4)
local x = tensor.randn(8, 75)
local mlp = nn.Sequential {nn.Linear(75, 20), nn.ReLU(), nn.Linear(20, 4)}
local images = tensor.randn(2, 3, 8, 8)
local conv = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 6, 3, {groups=2})}
local ids = tensor.randint{4, 3, low=1, high=30, dtype='int32'}
local words = nn.Sequential {nn.Embedding(30, 70), nn.Linear(70, 3)}
local steps = tensor.randn(2, 4, 20)
local lstm = nn.Sequential {nn.LSTM(20, 9)}

-- The float model with the decoded weights.
local function rounded(m, spec)
	local copy = m:clone()
	for _, layer in ipairs {'linear1', 'linear2', 'conv1', 'conv2', 'embedding1', 'lstm1'} do
		for _, field in ipairs {'weight', 'weight_ih1', 'weight_hh1'} do
			local own = rawget(copy, layer) and rawget(copy[layer], field)
			if own then
				local flat = quant.spec(spec).block and own:dim() > 2 and own:view(own:size(1), own:nelem() // own:size(1)) or own
				tensor.nograd(function() own:copy_(flat:detach():quantize(spec):dequantize():view(own:size())) end)
			end
		end
	end
	return copy
end

-- Devices may add products of codes in another order than those of decoded weights.
local MOST = x:device() == 'cpu' and 0 or 1e-4
local function same(a, b, what) assert((a - b):abs():max():item() <= MOST, what) end

for _, spec in ipairs(SPECS) do
	it('weights ' .. spec, function()
		for kind, case in pairs {mlp = {mlp, x}, conv = {conv, images}, words = {words, ids}, lstm = {lstm, steps}} do
			local m, input = table.unpack(case)
			local q, r = m:quantize {mode='weight_only', weight=spec}
			local y = q(input)
			same(y, rounded(m, spec)(input), kind)
			same(graph.trace(q, input):run(input), y, kind .. ': graph')
			same((graph.trace(m, input):quantize {mode='weight_only', weight=spec}):run(input), y, kind .. ': g:quantize')
			assert(r[1].weight == quant.spec(spec).name and r[1].bits < 32 and r[1].why == '')
		end
	end)
end

it('formats without an integer product are refused in static and dynamic; optional=true makes them weight_only', function()
	for _, spec in ipairs {'mxfp8_e4m3', 'nf4', 'fp6_e3m2:32', 'fp8_e4m3/1', 'uint4/2+min', 'int4 log'} do
		local ok, message = pcall(mlp.quantize, mlp, {mode='dynamic', weight=spec})
		assert(not ok and message:find("quantize: linear1: weight: wanted affine codes with one scale per output in mode 'dynamic', got '", 1, true), message)
		ok, message = pcall(function() return graph.trace(mlp, x):quantize {mode='dynamic', weight=spec} end)
		assert(not ok and message:find('weight_only decodes any', 1, true), message)
		local q, r = mlp:quantize {mode='dynamic', rules={{'linear1', spec, optional=true}}}
		assert(r[1].mode == 'weight_only' and r[1].why:find 'have no integer product' and r[2].mode == 'dynamic', r[1].why)
		assert(q(x):size(2) == 4)
	end
	for _, spec in ipairs {'uint4:32+min', 'uint4/1+min', 'mxint8', 'mxfp4', 'nvfp4', 'fp4_e2m1/1', 'mxfp6_e2m3'} do -- integer sums of blocks
		local q, r = mlp:quantize {mode='dynamic', weight=spec}
		assert(r[1].mode == 'dynamic')
		same((graph.trace(mlp, x):quantize {mode='dynamic', weight=spec}):run(x), q(x), spec)
	end
	local _, r = mlp:quantize {mode='dynamic', rules={{'linear1', 'fp8_e4m3/1', optional=true}}}
	print(r[1].why)  --> codes of 'fp8_e4m3/1' have no integer product
end)

it('integers below 8 bits and ternary codes run in integers', function()
	mlp:calibrate({{x, x}}, {log=false})
	for _, spec in ipairs {'ternary', 'int2/1', 'int3/1', 'uint5/1', 'int6'} do
		for _, mode in ipairs {'static', 'dynamic'} do
			local q, r = mlp:quantize {mode=mode, weight=spec}
			assert(r[1].mode == mode and r[1].why == '')
			same(graph.trace(q, x):run(x), q(x), spec)
		end
	end
end)

it('activations in floating point: one scale, floats in the layer', function()
	mlp:calibrate({{x, x}}, {log=false})
	for _, input in ipairs {'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3', 'fp4_e2m1'} do
		local q = mlp:quantize {mode='static', input=input}
		assert(q.linear1.quantized.input.format == input and q.linear1.quantized.input.scale)
		same(graph.trace(q, x):run(x), q(x), input)
		local g = graph.trace(mlp, x):quantize {mode='static', input=input}
		same(g:run(x), q(x), input .. ': g:quantize')
		local found = graph.trace(mlp, x):quantize {mode='dynamic', input=input}
		local ok, message = pcall(found.export, found, {dir=os.tmpname() .. 'x', name='net'})
		assert(not ok and message:find(input, 1, true) and not message:find '\n.*\n', message)
		assert(mlp(x):error(q(x)).sqnr > (input:find 'fp8' and 20 or 10))
	end
	-- weights in floating point, too: the values of both, multiplied as floats
	for _, case in ipairs {{mlp, x, 'fp8_e4m3/1'}, {conv, images, 'fp8_e4m3/1'}, {mlp, x, 'mxfp4'}} do
		local m, given, weight = table.unpack(case)
		m:calibrate({{given, given}}, {log=false})
		for _, mode in ipairs {'static', 'dynamic'} do
			local q, r = m:quantize {mode=mode, weight=weight, input='fp8_e4m3'}
			assert(r[1].mode == mode and r[1].why == "codes of 'fp8_e4m3' have no integer product: computed with decoded floats", r[1].why)
			same((graph.trace(m, given):quantize {mode=mode, weight=weight, input='fp8_e4m3'}):run(given), q(given), weight .. ' ' .. mode)
			local float = rounded(m, weight)
			local first = float[1](given:fake(mode == 'static' and q[1].quantized.input or 'fp8_e4m3'))
			local got = q[1](given)
			got = got:quantized() and got:dequantize() or got
			local most = (mode == 'static' and 1 / 16 or 1e-5) * first:abs():max():item() -- static: rounded again for the next layer
			assert(first:relu():error(got:relu()).max < most, ('%s %s: %g'):format(weight, mode, first:relu():error(got:relu()).max))
		end
	end
	for input, wanted in pairs {['mxfp4'] = 'one scale for the whole tensor', nf4 = 'one scale for the whole tensor', ['uint8+min'] = 'codes without a minimum'} do
		local ok, message = pcall(mlp.quantize, mlp, {mode='static', input=input})
		assert(not ok and message:find(wanted, 1, true), message)
	end
end)

it('observers know the reach of floating-point codes', function()
	for _, spec in ipairs {'fp8_e4m3', 'fp4_e2m1', 'fp6_e3m2', 'uint4+min'} do
		local o = quant.observer(spec)
		o:update(tensor.randn(64, 64))
		assert(o:stats().clipped < 0.1, spec)
	end
end)

it('sensitivity, search and estimate', function()
	local data = {{x, tensor.randint{8, low=1, high=4}}}
	for _, spec in ipairs {'mxfp4', 'nf4', 'nvfp4', 'fp8_e4m3/1', 'ternary', 'uint4:32+min', 'nf4:16:3'} do
		local r = quant.sensitivity(mlp, {data=data, spec=spec, log=false})
		assert(r[1].spec == quant.spec(spec).name and r[1].weight > 3 and r[1].cause)
		local _, found = quant.search(mlp, {data=data, choices={spec, 'int8/1', false}, bytes=1e6, log=false})
		assert(#found > 0)
		local w = mlp.linear1.weight:quantize(spec):nbytes() + mlp.linear2.weight:quantize(spec):nbytes()
		assert(quant.estimate(mlp, spec).bytes == w)
	end
end)

it('bounds, scaling and rounding of an input spec are kept', function()
	local m = nn.Sequential{nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 4)}:eval()
	local x = tensor.randn(16, 64)
	m:calibrate{{x}}
	local function made(input) return m:quantize{weight = 'int8/1', input = input, mode = 'static'} end
	local plain, narrow = made 'uint8', made 'uint8 quant_max=31'
	assert(m(x):error(narrow(x)).sqnr < m(x):error(plain(x)).sqnr - 6)
	local random = made 'uint8 rounding=stochastic'
	assert(random(x):error(random(x)).max > 0 and plain(x):error(plain(x)).max == 0)
	local power = made 'uint8 scale=pow2'
	assert(m(x):error(power(x)).max > 0 and power(x):error(plain(x)).max > 0)
end)
