-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Products of few rows with one weight again and again. int8 with a contiguous summed axis is read as it lies, and only the sums
-- of its lines are kept; of other weights the second product keeps packed panels, and the third reads them. The bits are those of
-- a weight that was never multiplied before; what is written to is packed anew; memory is given back with the weight.
tensor.seed(41)

local function same(a, b) return a:ne(b):any():item() == false end
local function fresh(w) return w:clone() end
local function now()
	collectgarbage() collectgarbage()
	return tensor.memory().now
end

for _, spec in ipairs {'int8', 'int8/1', 'uint8/1', 'int4/1', 'uint4', 'binary', {dtype='int8', scheme='asymmetric'}} do
	it(tostring(quant.spec(spec)), function()
		for _, size in ipairs {{1, 1, 1}, {1, 70, 130}, {8, 65, 67}, {64, 33, 100}, {65, 10, 9}, {3, 4, 66000}} do
			local m, n, k = table.unpack(size)
			local w, bias = tensor.randn(n, k):quantize(spec), tensor.randn(n)
			for _, x in ipairs {tensor.randn(m, k):quantize 'uint8', (tensor.randn(m, k) + 1):quantize 'int8'} do
				local want = x:linear(fresh(w), bias)
				for _ = 1, 4 do assert(same(x:linear(w, bias), want)) end
				assert(same(x:matmul(w:t()), x:matmul(fresh(w):t())))
				assert(x:linear(w, bias):origin().kernel:find '^gemm_i8')
			end
		end
	end)
end

it('has no second copy of an int8 weight', function()
	for _, m in ipairs {1, 8, 64} do
		local w, x = tensor.randn(256, 512):quantize 'int8/1', tensor.randn(m, 512):quantize 'int8'
		local before = now()
		for _ = 1, 4 do x:linear(w) end
		local sums = now() - before
		assert(sums >= 4 * 256 and sums < 4 * 256 + 256, sums)
	end
end)

it('reads panels that are there, whatever the number of rows', function()
	local w = tensor.randn(70, 130):quantize 'uint8/1'
	local one, some = tensor.randn(1, 130):quantize 'int8', tensor.randn(9, 130):quantize 'int8'
	for _ = 1, 2 do some:linear(w) end
	local kept = now()
	for _ = 1, 3 do assert(same(one:linear(w), one:linear(fresh(w)))) end
	assert(now() == kept)
end)

it('takes memory at the second product only, by few rows only, and gives it back', function()
	local w = tensor.randn(256, 512):quantize 'uint8/1'
	local one, many = tensor.randn(1, 512):quantize 'uint8', tensor.randn(65, 512):quantize 'uint8'
	for _ = 1, 3 do many:linear(w) end
	local before = now()
	one:linear(w)
	assert(now() - before < 1024)
	one:linear(w)
	local panels = now() - before
	assert(panels >= 256 * 512 and panels < 1.2 * 256 * 512, panels)
	for _ = 1, 3 do one:linear(w) end
	assert(now() - before == panels)
	w:t():t():view(256, 512)
	local view = w[{{1, 128}}]
	for _ = 1, 3 do one:linear(view) end
	assert(now() - before > panels + 128 * 512) -- a view has its own
	w, view = nil, nil -- luacheck: ignore 311
	assert(before - now() >= 256 * 512) -- panels and weight are gone
end)

it('packs anew what was written to', function()
	for _, spec in ipairs {'int8/1', 'uint8/1'} do
		local w, x = tensor.randn(20, 30):quantize(spec), tensor.randn(2, 30):quantize 'int8'
		for _ = 1, 3 do x:linear(w) end
		local before, kept = x:linear(w), now()
		w[7][11] = w[7][11]:item() + 0.5
		assert(not same(x:linear(w), before) and now() < kept)
		for _ = 1, 3 do assert(same(x:linear(w), x:linear(fresh(w)))) end
		local rows = w[{{5, 9}}]
		for _ = 1, 3 do x:linear(rows) end
		w[5][1] = -w[5][1]:item() - 0.25 -- through another view
		assert(same(x:linear(rows), x:linear(fresh(rows))))
		w:neg_()
		assert(same(x:linear(w), x:linear(fresh(w))))
	end
end)

it('every level of kernels has panels of its own', function()
	local w, x = tensor.randn(70, 33):quantize 'uint8/1', tensor.randn(3, 33):quantize 'uint8'
	local want = x:linear(fresh(w))
	for _, level in ipairs {'native', 'ref', 'avx2', 'avxvnni', 'avx512vnni', 'native'} do
		hw.force(level)
		for _ = 1, 3 do assert(same(x:linear(w), want), level) end
	end
	hw.force(os.getenv 'QUOLL_KERNEL' or 'native')
end)
