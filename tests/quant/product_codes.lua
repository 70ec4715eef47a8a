-- SPDX-License-Identifier: MIT
-- Products that give codes (out=) in one pass against those in two: a scale for each row of x, all the same, takes the
-- second way, and must give the same bits. Every kernel level runs this file.
tensor.seed(5)

local function both(m, n, k, out, act, bias, dtype, weight)
	local x, w = tensor.randn(m, k), (tensor.randn(n, k) * 0.3):quantize(weight)
	local scale, zero = 0.02, dtype == 'uint8' and 117 or nil
	local one = x:quantize {dtype=dtype, scale=scale, zero_point=zero}
	local rows = x:quantize {dtype=dtype, axis=1, scale=tensor.full {m, value=scale},
		zero_point=zero and tensor.full {m, value=zero, dtype='uint8'} or nil}
	assert(one:codes():ne(rows:codes()):any():item() == false)
	local o = {act=act, out=out}
	local a = bias and one:linear(w, bias, o) or one:linear(w, o)
	local b = bias and rows:linear(w, bias, o) or rows:linear(w, o)
	assert(a:dtype() == quant.spec(out).dtype and a:qparams().scale:item() == b:qparams().scale:item())
	assert(a:codes():ne(b:codes()):any():item() == false, ('%dx%dx%d %s'):format(m, n, k, tostring(quant.spec(out))))
	return a
end

for _, dtype in ipairs {'int8', 'uint8'} do
	for _, act in ipairs {false, 'relu'} do
		it(('%s, act %s'):format(dtype, act), function()
			for _, size in ipairs {{1, 1, 1}, {3, 5, 7}, {17, 63, 65}, {33, 130, 127}, {2, 300, 784}} do
				local m, n, k = table.unpack(size)
				for _, out in ipairs {{dtype='uint8', scale=0.05, zero_point=100}, {dtype='int8', scale=0.11}, 'uint8', 'int8'} do
					for _, weight in ipairs {'int8', 'int8/1'} do
						both(m, n, k, out, act or nil, nil, dtype, weight)
						both(m, n, k, out, act or nil, tensor.randn(n) * 3, dtype, weight)
					end
				end
			end
		end)
	end
end

it('saturates at both ends', function()
	local q = both(8, 16, 200, {dtype='int8', scale=1e-3}, nil, nil, 'int8', 'int8/1')
	assert(q:codes():max():item() == q:qparams().max and q:codes():min():item() == q:qparams().min)
end)

it('a bias beyond 2^30 steps takes the way of two passes', function()
	both(2, 3, 4, {dtype='int8', scale=1e7}, nil, tensor {1e9, -1e9, 5}, 'int8', 'int8/1')
end)

it('a nan in the bias gives the zero point, infinities saturate', function()
	local bias = tensor {0 / 0, 1, 1 / 0, -1 / 0}
	for _, act in ipairs {false, 'relu'} do
		for _, out in ipairs {{dtype='uint8', scale=0.05, zero_point=100}, {dtype='int8', scale=0.11}, {dtype='int16', scale=0.01}} do
			local q = both(3, 4, 9, out, act or nil, bias, 'uint8', 'int8/1')
			local p = q:qparams()
			local zero = p.zero_point and p.zero_point:item() or 0
			local codes = q:codes():to 'int64'
			for i = 1, 3 do
				assert(codes[i][1]:item() == zero and codes[i][3]:item() == p.max)
				assert(codes[i][4]:item() == (act and zero or p.min))
			end
		end
	end
	-- the range is found: by the columns that have one
	local x, w = tensor.randn(5, 8):quantize 'uint8', tensor.randn(2, 8):quantize 'int8/1'
	local q = x:linear(w, tensor {0 / 0, 0}, {out='uint8'})
	assert(q[{{}, 1}]:dequantize():abs():max():item() == 0)
	assert(q[{{}, 2}]:codes():ne(x:linear(w[{{2, 2}}], {out={dtype='uint8', scale=q:qparams().scale:item(), zero_point=q:qparams().zero_point:item()}})[{{}, 1}]:codes()):any():item() == false)
end)
