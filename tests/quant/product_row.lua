-- SPDX-License-Identifier: MIT
-- One row times codes of few bits, whose strips the kernel reads as they are held from the second product on, against the first row of
-- two, which are multiplied by panels. Every kernel level runs this file. Devices have no strips: there small products, once.
tensor.seed(11)
local host = tensor.ones(1):device() == 'cpu'
local sizes = host and {{1, 4100}, {33, 130}, {64, 128}, {70, 511}, {16, 24}, {257, 40}, {17, 4096}, {160, 288}, {48, 1024}, {48, 1001}, {64, 637}} or {{33, 130}, {70, 511}, {16, 24}}

local weights = {'int2/1', 'uint2/1', 'int3/1', 'uint3/1', 'int4/1', 'uint4/1', 'int4', 'int5/1', 'uint5', 'int6', 'uint6/1', 'ternary', 'binary/1', 'binary'}

for _, weight in ipairs(weights) do
	it(weight, function()
		for _, size in ipairs(sizes) do
			local n, k = table.unpack(size)
			local x, w = tensor.randn(2, k), tensor.randn(n, k):quantize(weight)
			for _, spec in ipairs {'uint8', 'int8'} do
				local q = x:quantize(spec)
				local one, bias = q:narrow(1, 1, 1), tensor.randn(n)
				for _ = 1, host and 3 or 1 do
					local y = one:linear(w, bias, {act='relu'})
					assert(y:eq(q:linear(w, bias, {act='relu'}):narrow(1, 1, 1)):all():item(), ('%s %dx%d'):format(spec, n, k))
					local codes = one:linear(w, {out='int16'}):dequantize()
					assert(codes:sub(one:linear(w)):abs():max():item() <= codes:abs():max():item() / 32767)
				end
				local strips = n * k > 16384 and (k % 8 == 0 or k > 600) and n % 16 == 0 -- with many tails codes stay
				if strips and host then -- what devices run has other names
					quant.log 'reset'
					one:linear(w)
					assert(quant.log().kernel:find 'coded')
				end
			end
		end
	end)
end

it('takes the largest sums', function()
	local k = 32768
	local q = tensor.full({2, k}, {value=-255}):quantize {dtype='uint8', scale=1, zero_point=255}
	local w = tensor.full({20, k}, {value=-8}):quantize {dtype='int4', axis=1, scale=tensor.full({20}, {value=1})}
	local y = q:narrow(1, 1, 1)
	for _ = 1, 3 do assert(y:linear(w):eq(255 * 8 * k):all():item()) end
end)

-- Strips of a view that cuts rows within a byte do not have what is behind it, so they take the place of codes only where that is 0.
it('keeps codes behind rows that end within a byte', function()
	local x, held = tensor.randn(1, 1001):quantize 'int8', 0
	for _, weight in ipairs {'int4', 'uint2', 'int3', 'int5', 'uint6', 'binary', 'fp4_e2m1', 'ternary'} do
		for _, last in ipairs {-9, 0, 9} do
			local q = tensor.cat({tensor.randn(64, 1001), tensor.full({64, 7}, {value = last})}, 2):quantize(weight)
			local codes, view = q:codes():to 'int32', q:narrow(2, 1, 1001)
			local want = x:linear(view) -- strips are made for the second product
			local kernel
			for _ = 1, 3 do
				quant.log 'reset'
				local y = x:linear(view)
				kernel = quant.log().kernel
				assert(not y:ne(want):any():item(), weight)
			end
			local empty = codes:narrow(2, 1002, 7):eq(weight == 'binary' and -1 or 0):all():item()
			assert(not host or not kernel:find 'coded' or empty or weight == 'fp4_e2m1', weight)
			held = held + (kernel:find 'coded' and 1 or 0)
			assert(q[64]:codes():to 'int32':eq(codes[64]):all():item(), weight)
			assert(q:codes():to 'int32':eq(codes):all():item(), weight)
		end
	end
	assert(not host or held >= 5, held)
end)
