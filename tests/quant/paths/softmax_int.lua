-- SPDX-License-Identifier: MIT
-- labels: quick host
-- softmax of codes with out=: 8-bit results are the rounded exact ones, 16-bit ones off by at most 1.
tensor.seed(32)
local x = tensor.randn(60, 40)

it('is within a code of the exact result', function()
	for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16', 'uint4'} do
		for _, k in ipairs {0.1, 1, 5, 50} do
			local q = (x * k):quantize(input)
			for _, out in ipairs {{dtype='int8', scale=1 / 256, zero_point=-128}, {dtype='uint8', scale=1 / 255}, {dtype='int16', scale=1 / 32768},
				{dtype='uint16', scale=1 / 65536}, {dtype='uint4', scale=1 / 16}} do
				for axis = 1, 2 do
					quant.log 'reset'
					local y = q:softmax {axis=axis, out=out}
					assert(#quant.log() == 1 and quant.log().kernel == 'softmax_int')
					local want = q:dequantize():to 'float64':softmax(axis):to 'float32':quantize(out)
					local off = (y:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
					assert(off <= (out.dtype:find '16' and 1 or 0), ('%s %g %s: %d'):format(input, k, out.dtype, off))
				end
			end
		end
	end
end)

it('extremes: equal codes, one element, tiny and huge scales', function()
	local out = {dtype='uint8', scale=1 / 256}
	local q = tensor.zeros(2, 4):quantize {dtype='int8', scale=0.1}
	print(q:softmax {out=out}:codes()[1])  --> uint8(4)  64  64  64  64
	print(q:narrow(2, 1, 1):softmax {out=out}:codes():view(2))  --> uint8(2) 255 255
	local wide = tensor{-1, 1, 1}:quantize {dtype='int8', scale=1e9}
	print(wide:dequantize():softmax():max():item(), wide:softmax {out=out}:codes())  --> 0.3333... uint8(3)  85  85  85
	print((tensor{-1e10, 1e10}:quantize {dtype='int8', scale=1e9}):softmax {out=out}:codes())  --> uint8(2)   0 255
	print((tensor{-1, 1}:quantize {dtype='int8', scale=1e-30}):softmax {out=out}:codes())  --> uint8(2) 128 128
	print(q:narrow(1, 1, 0):softmax {out=out}:size())  --> 0 4
end)

it('falls back and says why', function()
	local q = x:quantize 'int8'
	print((q:softmax {out='uint8'}:explain()))  --> ...fallback...out= is not an affine spec with one given scale
	print((x:quantize 'int8/1':softmax {out={dtype='uint8', scale=1 / 256}}:explain()))  --> ...fallback...several scales...
	print(pcall(q.softmax, q, {axis=3, out='int8'}))  --> false ...1 to 2...got 3
end)
