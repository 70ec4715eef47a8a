-- SPDX-License-Identifier: MIT
-- One case for each unit test of the requirement's quantization module, in this API.
tensor.seed(3)
it('reports the hardware', function() assert(hw.features().cores >= 1 and hw.features().level) end)
it('has defaults: signed codes are symmetric, unsigned ones asymmetric', function()
	assert(quant.spec('int8').scheme == 'symmetric' and quant.spec('int4').scheme == 'symmetric')
	assert(quant.spec('uint8').scheme == 'asymmetric' and quant.spec('int16').scheme == 'symmetric')
end)
it('names every dtype with bits and range', function()
	local want = {int8 = {8, -128, 127}, uint8 = {8, 0, 255}, int4 = {4, -8, 7}, uint4 = {4, 0, 15}, int16 = {16, -32768, 32767},
		uint16 = {16, 0, 65535}, binary = {1, -1, 1}}
	for name, w in pairs(want) do
		local d = quant.dtype(name)
		assert(d.bits == w[1] and d.min == w[2] and d.max == w[3], name)
	end
	assert(quant.dtype('int4').packed == 2 and quant.dtype('int4').levels == 16 and quant.dtype('binary').packed == 8)
end)
it('quantizes and dequantizes to the same size', function()
	local x = tensor.randn(5, 7)
	assert(x:quantize('int8'):dequantize():nelem() == 35 and x:quantize('int8'):codes():nelem() == 35)
end)
it('creates quantized tensors', function()
	local z = tensor.zeros{2, 3, 4, quant = 'int8/2'}
	assert(select('#', z:size()) == 3 and z:dtype() == 'int8' and tostring(z:spec()) == 'int8/2')
	assert(z:dequantize():abs():max():item() == 0)
end)
it('estimates memory: ideal 0.75, 0.875, 0.96875, and what scales add', function()
	local function ideal(spec) return quant.estimate({1000, 1000}, spec).ideal end
	assert(ideal 'int8' == 0.75 and ideal 'int4' == 0.875 and ideal 'binary' == 0.96875)
	local e = quant.estimate({1000, 1024}, 'int4:32')
	assert(e.bytes == 1000 * 1024 / 2 + 2 * 1000 * 32 and math.abs(e.saving - 0.859375) < 1e-9)
	local x = tensor.randn(10, 20)
	assert(quant.estimate(x, 'uint8/1').bytes == x:quantize('uint8/1'):nbytes())
	assert(tensor.randn(100, 100):quantize('int8'):ratio() >= 3.9)
	local m = nn.Sequential {nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 5)}
	for _, spec in ipairs {'int8/1', 'int4:32'} do
		local q, whole = m:quantize {mode='weight_only', weight=spec}, quant.estimate(m, spec)
		assert(whole.bytes == q.conv1.weight:nbytes() + q.linear1.weight:nbytes() and math.abs(whole.saving - (1 - whole.bytes / (4 * 376))) < 1e-9)
		assert(whole.sqnr > (spec == 'int8/1' and 35 or 15))
	end
	assert(not pcall(quant.estimate, m:quantize {mode='weight_only'}, 'int8') and not pcall(quant.estimate, nn.ReLU(), 'int8'))
end)
it('estimates accuracy by measuring: int4 below int8, one scale per row above one', function()
	local x = tensor.randn(256, 64)
	local function sqnr(spec) return quant.estimate(x, spec).sqnr end
	assert(sqnr 'int8' > 35 and sqnr 'int4' < sqnr 'int8' and sqnr 'int8/1' > sqnr 'int8')
end)
it('benchmarks: 4 dtypes, 5 sizes, quantize and dequantize', function()
	local r = bench.ops{sizes = {64, 128, 256, 512, 1024}, dtypes = {'int8', 'uint8', 'int4', 'int16'}, runs = 1, warmup = 0}
	assert(#r >= 40 and r[1].ms > 0)
end)
it('finds params from a range, and refuses impossible ones', function()
	local p = quant.params(-1, 3, 'uint8')
	assert(p.zero_point == 64 and math.abs(p.scale - 4 / 255) < 1e-8)
	assert(not pcall(quant.params, 3, -1, 'uint8') and not pcall(quant.params, 0, 0 / 0, 'uint8'))
end)
it('keeps params through slices, reshapes, clones and files', function()
	local q = tensor.randn(6, 8):quantize 'int8/1'
	local file = os.tmpname() .. '.safetensors'
	tensor.save(file, {w = q})
	local back = tensor.load(file).w
	os.remove(file)
	for _, t in ipairs{q[{{2, 3}, {}}], q:view(6, 2, 4), q:t(), q:clone(), back} do assert(t:qparams().axis) end
	assert(back:dequantize():metrics(q:dequantize()).max == 0 and tostring(back:spec()) == 'int8/1')
	back:check()
end)
