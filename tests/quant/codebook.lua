-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- kmeans4: the codebook of a tensor has the least squared error of all, by a dynamic program over the sorted values.
local K = 16

-- The least weighted squared error of ascending v in at most K runs, in O(K n^2).
local function least_error(v, w)
	local n, W, S, Q = #v, {[0] = 0}, {[0] = 0}, {[0] = 0}
	for i = 1, n do W[i], S[i], Q[i] = W[i - 1] + w[i], S[i - 1] + w[i] * v[i], Q[i - 1] + w[i] * v[i] * v[i] end
	local function cost(a, b)
		local s = S[b] - S[a - 1]
		return math.max(Q[b] - Q[a - 1] - s * s / (W[b] - W[a - 1]), 0)
	end
	local last = {[0] = 0}
	for i = 1, n do last[i] = cost(1, i) end
	for _ = 2, K do
		local now = {[0] = 0}
		for i = 1, n do
			now[i] = last[i]
			for a = 1, i do now[i] = math.min(now[i], last[a - 1] + cost(a, i)) end
		end
		last = now
	end
	return last[n]
end

-- The squared error of x under spec, and the least that 16 values can have with its scales. weights: of columns.
local function errors(x, spec, weights)
	local q = x:quantize(spec)
	local block, columns = q:spec().block or x:nelem(), x:size(x:dim())
	local scale = q:qparams().scale:to 'float64':contiguous():view(q:qparams().scale:nelem()):totable()
	local list, y, pairs_of, sum = x:contiguous():view(x:nelem()):totable(), q:dequantize():view(x:nelem()):totable(), {}, 0
	for i, v in ipairs(list) do
		local s, c = scale[(i - 1) // block + 1], weights and weights[(i - 1) % columns + 1] or 1
		if s > 0 and c > 0 then pairs_of[#pairs_of + 1] = {v / s, c * s * s} end
		sum = sum + c * (v - y[i]) ^ 2
	end
	table.sort(pairs_of, function(a, b) return a[1] < b[1] end)
	local v, w = {}, {}
	for i, p in ipairs(pairs_of) do v[i], w[i] = p[1], p[2] end
	return sum, least_error(v, w), q
end

it('has the least squared error', function()
	tensor.seed(5)
	local columns = tensor.rand(64):totable()
	for _, case in ipairs {{tensor.randn(8, 64), 'kmeans4:64'}, {tensor.randn(8, 64) ^ 3, 'kmeans4:16'}, {tensor.rand(512) + 3, {dtype = 'kmeans4', block = 512}},
		{tensor.randn(8, 64) * tensor.rand(8, 1), {dtype = 'kmeans4', block = 64, importance = tensor(columns)}, columns}} do
		local got, least = errors(case[1], case[2], case[3])
		assert(got <= least * 1.002 and got >= least * 0.999, ('%s: %g %g'):format(case[2], got, least))
	end
end)

it('finds up to 16 values again', function()
	for n = 1, 15 do
		local list = {}
		for i = 1, 320 do list[i] = (i * 7 % n - n // 3) / 4 end
		list[#list + 1] = n / 2 -- the largest of all, so that scales are exact
		local x = tensor(list)
		local q = x:quantize {dtype = 'kmeans4', block = #list}
		assert((q:dequantize() - x):abs():max():item() < 1e-6, n)
	end
	assert(tensor.zeros(3, 70):quantize 'kmeans4':dequantize():eq(0):all():item())
	assert(tensor.zeros(0, 64):quantize 'kmeans4':nelem() == 0)
	assert(tensor {0 / 0, 1, 2, 1 / 0}:quantize 'kmeans4':qparams().nan == 1)
end)

it('decodes blocks of zeros to zeros beside others, however small these are', function()
	quant.scheme {name = 'nozero', table = {-4, -2, -1, 1, 2, 4}}
	for _, size in ipairs {1, 1e-4, 1e-6} do
		local x = tensor.randn(6, 64) * size
		x[3] = tensor.zeros(64)
		for _, spec in ipairs {'kmeans4:64', 'kmeans4:32', 'nozero:32', 'nozero/1'} do
			local q = x:quantize(spec):check()
			assert(q:dequantize()[3]:eq(0):all():item(), spec)
			if spec:find 'kmeans' then assert(x:error(q).sqnr > 18, ('%s %g %g'):format(spec, size, x:error(q).sqnr)) end
			local file = os.tmpname() .. '.safetensors'
			tensor.save(file, {w = q})
			assert(tensor.load(file).w:dequantize():eq(q:dequantize()):all():item())
			os.remove(file)
		end
	end
end)

it('has the same bits for every number of threads', function()
	tensor.seed(6)
	local x, threads, first = tensor.randn(1300, 512), tensor.threads(), nil
	for n = 1, 3 do
		tensor.threads(n)
		local q = x:quantize 'kmeans4'
		first = first or q
		assert(q:qparams().values:eq(first:qparams().values):all():item() and q:codes():eq(first:codes()):all():item(), n)
	end
	tensor.threads(threads)
end)

it('goes with views, copies and files, and counts in bytes', function()
	tensor.seed(7)
	local x = tensor.randn(6, 130)
	local q = x:quantize 'kmeans4'
	assert(tostring(q:spec()) == 'kmeans4' and tostring(quant.spec 'kmeans4:32') == 'kmeans4:32' and q:spec() == quant.spec 'kmeans4')
	assert(q:nbytes() == quant.bytes({6, 130}, 'kmeans4') and q:nbytes() == 6 * 65 + 6 * 3 * 2 + 64, q:nbytes())
	local values, whole = q:qparams().values, q:dequantize()
	assert(values:dtype() == 'float32' and values:nelem() == 16 and q:spec().values == nil)
	for i = 2, 16 do assert(values[i]:item() > values[i - 1]:item()) end
	assert(q['2:4']:qparams().values:eq(values):all():item() and q['2:4']:dequantize():eq(whole['2:4']):all():item())
	assert(q:t():dequantize():eq(whole:t()):all():item() and q:clone():dequantize():eq(whole):all():item())
	local file = os.tmpname() .. '.safetensors'
	tensor.save(file, {w = q})
	local r = tensor.load(file).w
	os.remove(file)
	assert(r:codes():eq(q:codes()):all():item() and r:dequantize():eq(whole):all():item() and r:spec() == q:spec())
	local both = tensor.cat({q, q}, 1)
	assert(both:dequantize():eq(tensor.cat({whole, whole}, 1)):all():item())
	local other = tensor.cat({q, (x * x):quantize 'kmeans4'}, 1) -- another codebook
	assert(other['1:6']:dequantize():sub(whole):abs():max():item() < 0.8)
	q[2] = tensor.zeros(130)
	assert(q[2]:dequantize():abs():max():item() < 0.2 and q[1]:dequantize():eq(whole[1]):all():item())
end)

it('refuses what it cannot use', function()
	local function refused(spec) return select(2, pcall(quant.spec, spec)) end
	assert(refused 'kmeans4@mse':find('observer: wanted minmax with the format kmeans4, got mse', 1, true), refused 'kmeans4@mse')
	assert(tostring(quant.spec {dtype = 'kmeans4', priority = 'accuracy'}) == 'kmeans4')
	local x = tensor.randn(2, 64)
	local _, why = pcall(x.quantize, x, {dtype = 'kmeans4', importance = tensor.ones(3)})
	assert(why:find('importance: wanted a plain tensor of the 64 columns, got 3 numbers', 1, true), why)
end)

it('is a format of weights like others', function()
	tensor.seed(8)
	local m = nn.Sequential {nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)}
	local x = tensor.randn(5, 64)
	local y = m(x)
	local k = m:clone():quantize {mode = 'weight_only', weight = 'kmeans4:32'}
	local n = m:clone():quantize {mode = 'weight_only', weight = 'int3:32'}
	assert((k(x) - y):pow(2):mean():item() < (n(x) - y):pow(2):mean():item())
	local z = x:fake 'kmeans4'
	assert(z:eq(x:quantize 'kmeans4':dequantize()):all():item())
end)
