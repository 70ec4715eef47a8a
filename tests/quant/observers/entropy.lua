-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- The observer entropy against TensorRT's algorithm written out here and in numpy, and what must hold of it.
local function threshold(s, x)
	local lo, hi = quant.observer(s):update(x):range()
	return math.max(-lo, hi)
end

-- D(P || Q) of the first i of 2048 bins, as it is described, step by step (GTC 2017 s7310).
local function divergence(h, i, levels)
	local kept, tail, d, k = 0, 0, 0, 0
	for j = 1, 2048 do
		if j <= i then kept = kept + h[j] else tail = tail + h[j] end
	end
	local all = kept + tail
	while k < i do
		local level, sum, held, first = k * levels // i, 0, 0, k
		while k < i and k * levels // i == level do
			sum, held, k = sum + h[k + 1], held + (h[k + 1] > 0 and 1 or 0), k + 1
		end
		for j = first + 1, k do
			local p = (h[j] + (j == i and tail or 0)) / all
			if p > 0 then d = d + (h[j] > 0 and p * math.log(p / (sum / held / kept)) or math.huge) end
		end
	end
	return d
end

local function bins_of(list)
	local most, h = 0, {}
	for _, v in ipairs(list) do most = math.max(most, math.abs(v)) end
	for i = 1, 2048 do h[i] = 0 end
	for _, v in ipairs(list) do
		local i = math.min(2048, math.floor(math.abs(v) / most * 2048) + 1)
		h[i] = h[i] + 1
	end
	h[1] = h[2]
	return h, most
end

-- The last bin with the least divergence.
local function best_bin(h, levels)
	local least, best = math.huge, nil
	for i = 128, 2048 do
		local d = divergence(h, i, levels)
		if d <= least + 1e-12 then least, best = math.min(d, least), i end
	end
	return best
end

local N = 200000
local distributions = {
	normal = function() return tensor.randn(N) end, uniform = function() return tensor.rand(N) * 2 - 1 end,
	laplace = function() return (1 - tensor.rand(N)):log() * tensor.randn(N):sign() end, relu = function() return tensor.randn(N):relu() end,
	lognormal = function() return tensor.randn(N):exp() end,
	outliers = function()
		local x = tensor.randn(N)
		x[77], x[99], x[1234] = 20, -17, 12.5
		return x
	end,
}
-- The bins that a program of its own in Python found (numpy, float64; it builds P and Q of every candidate and sums p log(p / q)).
local found_by_numpy = {
	normal = {int8 = 1801, uint8 = 1801, int4 = 1440, uint4 = 1440}, uniform = {int8 = 2048, uint8 = 2048, int4 = 2048, uint4 = 2048},
	laplace = {int8 = 1559, uint8 = 1559, int4 = 976, uint4 = 976}, relu = {int8 = 1909, uint8 = 1876, int4 = 1584, uint4 = 1726},
	lognormal = {int8 = 512, uint8 = 751, int4 = 272, uint4 = 424}, outliers = {int8 = 451, uint8 = 451, int4 = 345, uint4 = 345},
}
for name, make in pairs(distributions) do
	it('finds the bin of the algorithm: ' .. name, function()
		tensor.seed(5)
		local x = make()
		local most = math.max(-x:min():item(), x:max():item())
		for dtype, bin in pairs(found_by_numpy[name]) do
			local s = dtype .. '@entropy'
			assert(threshold(s, x) == most * bin / 2048, s)
			local lo, hi = quant.observer(s):update(x):range()
			assert(x:quantize(s):qparams().scale:item() == quant.params(lo, hi, s).scale)
			local o = quant.observer(s)
			for k = 0, 15 do o:update(x[{{k * N // 16 + 1, (k + 1) * N // 16}}]) end
			lo, hi = o:range()
			assert(math.max(-lo, hi) == threshold(s, x), s)
		end
	end)
end
it('finds the bin of the algorithm, computed as it is described', function()
	tensor.seed(8)
	for levels, s in pairs {[128] = 'int8@entropy', [8] = 'int4@entropy'} do
		local x = tensor.randn(20000) * tensor.randn(20000):exp()
		local h, most = bins_of(x:totable())
		assert(threshold(s, x) == most * best_bin(h, levels) / 2048, s)
	end
end)
it('finds it in more batches than it keeps, whose bins are made of finer ones', function()
	for name, make in pairs(distributions) do
		tensor.seed(9)
		local x = tensor.cat({make(), make(), make(), make(), make()}, {axis = 1})
		for _, s in ipairs {'int8@entropy', 'uint8@entropy'} do
			local o, n = quant.observer(s), 5 * N // 16
			for k = 0, 15 do o:update(x[{{k * n + 1, (k + 1) * n}}]) end
			local lo, hi = o:range()
			assert(math.abs(math.max(-lo, hi) / threshold(s, x) - 1) < 0.02, name .. ' ' .. s)
		end
	end
end)
it('keeps all of evenly spread values', function()
	for _, s in ipairs {'int8@entropy', 'uint8@entropy', 'int4@entropy'} do
		assert(threshold(s, tensor.linspace(-1, 1, 1 << 17)) == 1, s)
	end
end)
it('is scaled with the data', function()
	tensor.seed(6)
	local x = tensor.randn(1000000)
	x[1] = 30
	for _, s in ipairs {'int8@entropy', 'int4@entropy'} do
		local t = threshold(s, x)
		assert(t < 6)
		for _, c in ipairs {0.001, 3, 1000, 1e30} do
			assert(math.abs(threshold(s, x * c) / c / t - 1) < 0.02, s .. ' ' .. c)
		end
		assert(threshold(s, x * 1024) == 1024 * t) -- cells scale exactly by powers of two
	end
end)
it('is not minmax in disguise: 200000 normal values and one of 20', function()
	tensor.seed(1)
	local x = tensor.randn(200001)
	x[200001] = 20
	assert(threshold('int8@entropy', x) < 6)
	local m = {}
	for _, name in ipairs {'minmax', 'percentile', 'entropy', 'mse'} do m[name] = x:metrics(x:quantize('int8@' .. name)).sqnr end
	assert(math.abs(m.minmax - 26.85) < 0.1, m.minmax) -- measured with numpy: 26.86 dB, percentile 28.61, mse 29.95
	assert(math.abs(m.percentile - 28.6) < 0.2 and math.abs(m.mse - 29.95) < 0.1, m.percentile .. ' ' .. m.mse)
	assert(m.entropy > m.minmax + 1.5, m.entropy)
	print(quant.observer{dtype = 'int8', observer = 'entropy', bins = 1024}:update(x):range() > -6)  --> true
end)
it('keeps all of few values, and of more codes than there are bins for', function()
	local x = tensor{-1, 0.5, 3}
	assert(threshold('int8@entropy', x) == 3 and threshold('int8@entropy', tensor.zeros(9)) == 0)
	tensor.seed(7)
	local wide = tensor.randn(10000)
	assert(threshold('int16@entropy', wide) == math.max(-wide:min():item(), wide:max():item()))
end)
print(pcall(quant.spec, {dtype = 'int8', observer = 'entropy', bins = 128}))  --> false ...bins: wanted 1024...got 128
print(quant.spec{dtype = 'int8', observer = 'entropy', bins = 4096})  --> int8@entropy bins=4096
