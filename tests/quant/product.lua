-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Products with one weight again and again. From the second one on, panels replace 8-bit codes if they need about as many bytes, and
-- strips codes of fewer bits. A smaller int8 weight is read as it lies, and only the sums of its lines are kept, if they are small beside
-- it; others are packed for each product. The bits are those of a weight that was never multiplied before; what is written to is packed
-- anew; memory is given back with the weight.
tensor.seed(41)

local function same(a, b) return a:ne(b):any():item() == false end
local function fresh(w) return w:clone() end
local function now()
	collectgarbage() collectgarbage()
	return tensor.memory().now
end

for _, spec in ipairs {'int8', 'int8/1', 'uint8/1', 'int4/1', 'uint4', 'binary', {dtype='int8', scheme='asymmetric'}} do
	it(tostring(quant.spec(spec)), function()
		for _, size in ipairs {{1, 1, 1}, {1, 70, 130}, {1, 144, 256}, {8, 65, 67}, {5, 128, 130}, {70, 192, 64}, {64, 33, 100}, {65, 10, 9}, {3, 4, 66000}} do
			local m, n, k = table.unpack(size)
			local w, bias = tensor.randn(n, k):quantize(spec), tensor.randn(n)
			for _, x in ipairs {tensor.randn(m, k):quantize 'uint8', (tensor.randn(m, k) + 1):quantize 'int8'} do
				local want = x:linear(fresh(w), bias)
				for _ = 1, 4 do assert(same(x:linear(w, bias), want)) end
				assert(same(x:matmul(w:t()), x:matmul(fresh(w):t())))
				local packed = m == 1 and not w:dtype():find '8' -- one row reads strips by a kernel of their own; with many tails there are none
				local kernel = x:linear(w, bias):origin().kernel
				assert(kernel:find(packed and n % 16 == 0 and '^gemm_coded' or '^gemm_i8') or packed and kernel:find '^gemm_coded')
			end
		end
	end)
end

it('has no second copy of an int8 weight', function()
	for _, spec in ipairs {'int8/1', 'uint8/1'} do
		for _, m in ipairs {1, 8, 64, 65, 300} do
			local w, x = tensor.randn(256, 512):quantize(spec), tensor.randn(m, 512):quantize 'int8'
			local before = now()
			for _ = 1, 4 do x:linear(w) end
			local sums = now() - before
			assert(sums >= 4 * 256 and sums < 4 * 256 + 1024, sums)
		end
	end
end)

it('finds codes whose panels replaced them', function()
	for _, turned in ipairs {false, true} do
		local w = tensor.randn(256, 512):quantize 'int8/1'
		local x = tensor.randn(3, turned and 256 or 512):quantize 'uint8'
		if turned then w = w:dequantize():quantize 'int8' end
		local codes, real, text = w:codes():clone(), w:dequantize(), tostring(w)
		local copy = fresh(w)
		local function product(of) return turned and x:matmul(of) or x:linear(of) end
		local want = product(copy)
		local before = now()
		for _ = 1, 3 do assert(same(product(w), want)) end
		assert(now() - before < 8192)
		assert(same(w:codes(), codes) and same(w:dequantize(), real) and tostring(w) == text)
		assert(same(w[{{3, 70}}]:dequantize(), real[{{3, 70}}]) and same(w:t():dequantize(), real:t()))
		assert(w[7][11]:item() == real[7][11]:item() and same(tensor.embedding(w, tensor {1, 256, dtype='int32'}), tensor.embedding(real, tensor {1, 256, dtype='int32'})))
		local file = os.tmpname() .. '.safetensors'
		tensor.save(file, {w=w})
		assert(same(tensor.load(file).w:codes(), codes))
		os.remove(file)
		assert(same(product(w), want))
		w:codes():fill_(3) -- the same storage
		assert(w:codes():eq(3):all():item() and same(product(w), product(fresh(w))) and not same(product(w), want))
	end
end)

it('reads panels for floats, and strips for integers', function()
	for _, spec in ipairs {'int8/1', 'uint8/1', 'int4/1', 'uint3', 'binary/1'} do
		for _, first in ipairs {'codes', 'floats'} do
			for _, size in ipairs {{256, 512}, {70, 264}, {90, 1000}} do
				local w, x = tensor.randn(size[1], size[2]):quantize(spec), tensor.randn(3, size[2])
				local codes, want = x:quantize 'int8', x:linear(fresh(w))
				local sums = codes:linear(fresh(w))
				local before = now()
				for _ = 1, 3 do (first == 'codes' and codes or x):linear(w) end
				for _ = 1, 3 do assert(same(x:linear(w), want) and same(codes:linear(w), sums), spec) end
				assert(same(x:linear(w[{{17, 48}}]), want[{{}, {17, 48}}]))
				if size[1] == 256 then assert(now() - before < 4 * 256 + 2048, spec .. now() - before) end
			end
		end
	end
end)

it('does not take the codes of the other operand', function()
	local w = tensor.randn(256, 256):quantize 'int8'
	local want = fresh(w):linear(fresh(w))
	for _ = 1, 4 do assert(same(w:linear(w), want)) end
	for _ = 1, 3 do w:linear(fresh(w)) tensor.randn(2, 256):quantize('int8'):linear(w) end
	for _ = 1, 2 do assert(same(w:linear(w), want)) end
end)

it('reads panels that are there, whatever the number of rows', function()
	local w = tensor.randn(70, 130):quantize 'uint8/1'
	local one, some = tensor.randn(1, 130):quantize 'int8', tensor.randn(9, 130):quantize 'int8'
	for _ = 1, 2 do some:linear(w) end
	local kept = now()
	for _ = 1, 3 do assert(same(one:linear(w), one:linear(fresh(w)))) end
	assert(now() == kept)
end)

it('has the codes of a weight below 8 bits in strips from the second product on, and makes panels of them each time', function()
	for _, spec in ipairs {'int2/1', 'uint3', 'int4/1', 'uint5/1', 'int6', 'binary/1'} do
		for _, m in ipairs {1, 65, 300} do
			local w, x = tensor.randn(256, 512):quantize(spec), tensor.randn(m, 512):quantize 'uint8'
			local codes, want = w:codes():clone(), x:linear(fresh(w))
			local before = now()
			x:linear(w)
			assert(now() - before < 1024)
			for _ = 1, 3 do assert(same(x:linear(w), want), spec) end
			local sums = now() - before
			assert(sums < 4 * 256 + 1536, spec .. sums)
			assert(same(w:codes(), codes) and same(fresh(w):codes(), codes) and now() - before == sums)
			for i = 1, 256, 51 do assert(same(w[i]:codes(), codes[i])) end
			local view = w[{{1, 128}}]
			for _ = 1, 3 do assert(same(x:linear(view), want[{{}, {1, 128}}])) end
		end
	end
end)

it('makes panels of strips for products of any length', function()
	for _, k in ipairs {8, 40, 1000, 66000} do
		for _, spec in ipairs {'int4/1', 'uint3/1', 'binary'} do
			local w = (tensor.randn(33, k) + 1):quantize(spec)
			local many = k > 1000 and 9 or 70 -- sums of 64 bits are slow without vectors
			for _, x in ipairs {tensor.randn(2, k):quantize 'uint8', (tensor.randn(many, k) + 1):quantize 'int8'} do
				local want = x:linear(fresh(w))
				for _ = 1, 3 do assert(same(x:linear(w), want), spec .. k) end
			end
		end
	end
end)

it('reads the panels of a view', function()
	local w, one = tensor.randn(256, 512):quantize 'uint8/1', tensor.randn(1, 512):quantize 'uint8'
	local want = one:linear(fresh(w))
	for _ = 1, 3 do one:linear(w) end
	local before = now()
	for _, first in ipairs {1, 17, 65, 100, 129} do
		local view = w[{{first, first + 63}}]
		for _ = 1, 3 do assert(same(one:linear(view), want[{{}, {first, first + 63}}])) end
	end
	assert(now() - before < 2048)
end)

it('packs anew what was written to', function()
	tensor.seed(7) -- the code that is written is not the largest of its row already
	for _, spec in ipairs {'int8/1', 'uint8/1'} do
		local w, x = tensor.randn(20, 300):quantize(spec), tensor.randn(2, 300):quantize 'int8'
		for _ = 1, 3 do x:linear(w) end
		local before, kept = x:linear(w), now()
		w[7][11] = w[7][11]:item() + 0.5
		assert(not same(x:linear(w), before) and now() <= kept)
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
