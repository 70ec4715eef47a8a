-- SPDX-License-Identifier: MIT
-- labels: quick host
-- resize of codes with out=: within a code of float64, exact sums by the weights in 15 bits, all modes and dtypes, views, threads, refusals.
tensor.seed(9)
local MODES = {{mode='bilinear'}, {mode='bilinear', coords='align_corners'}, {mode='bicubic'}, {mode='area'}, {mode='bilinear', antialias=true},
	{mode='nearest'}, {mode='bicubic', a=-0.5, excludeoutside=true}}

local function with(o, size, out)
	local copy = {size=size, out=out}
	for key, value in pairs(o) do copy[key] = value end
	return copy
end

it('is within a code of the exact result', function()
	local x = tensor.randn(2, 3, 6, 9)
	for _, input in ipairs {'uint8', 'int8', 'int16', 'uint16', 'int4', {dtype='uint8', scheme='asymmetric'}} do
		local q = x:quantize(input)
		local d = q:dequantize():to 'float64'
		for _, out in ipairs {{dtype='uint8', scale=0.03, zero_point=100}, {dtype='int8', scale=0.04}, {dtype='int16', scale=2e-4}, {dtype='int4', scale=0.5}} do
			for _, o in ipairs(MODES) do
				for _, size in ipairs {{11, 4}, {3, 20}, {6, 9}, {1, 1}} do
					local y = q:resize(with(o, size, out))
					assert(y:origin().path == 'integer' and y:origin().kernel == 'resize_int' and y:dtype() == out.dtype)
					local off = (y:codes():to 'int32' - d:resize(with(o, size)):to 'float32':quantize(out):codes():to 'int32'):abs():max():item()
					-- weights are off by 2^-16 each: more steps of a fine scale
					assert(off <= 1 + math.floor(5 * 3 / 32768 / out.scale), ('%s %s %d'):format(o.mode, out.dtype, off))
				end
			end
		end
	end
end)

it('has the sums of its formula', function()
	local q = tensor{{-128, 5}, {77, 127}}:quantize {dtype='int8', scale=1}
	-- rows and columns 0, 1/4, 3/4, 1 of the two: weights of 8192, 24576, 32768 over 2^15
	local y = q:resize {size=4, out={dtype='int16', scale=1 / 16}}
	print(table.concat(y:codes():view(16):totable(), ' '))  --> -2048 -1516 -452 80 -1228 -779 119 568 412 695 1261 1544 1232 1432 1832 2032
	local c = tensor.full {1, 1, 5, 7, value=100}:quantize {dtype='uint8', scale=1}
	for _, o in ipairs(MODES) do -- weights add up to 1: a constant stays
		assert(c:resize(with(o, {17, 13}, {dtype='uint8', scale=1})):codes():eq(100):all():item(), o.mode)
	end
end)

it('takes views, wide and empty images, and has the same bits on any number of threads', function()
	local q, out, before = tensor.randn(3, 2, 5, 600):quantize 'int8', {dtype='int8', scale=0.03}, tensor.threads()
	local y = q:resize {size={9, 701}, out=out}
	for threads = 1, 3 do
		tensor.threads(threads)
		assert(q:resize {size={9, 701}, out=out}:codes():eq(y:codes()):all():item())
		assert(q:transpose(1, 2):contiguous():transpose(1, 2):resize {size={9, 701}, out=out}:codes():eq(y:codes()):all():item())
	end
	tensor.threads(before)
	print(tensor.zeros(0, 2, 3, 4):quantize({dtype='int8', scale=0.1}):resize {size=2, out=out}:size())  --> 0 2 2 2
	local x = q:dequantize()
	assert(x:resize {size={9, 701}, out=out}:codes():eq(x:resize {size={9, 701}}:quantize(out):codes()):all():item())
end)

it('falls back and says why', function()
	local q = tensor.randn(1, 2, 4, 4):quantize 'int8'
	print((q:resize {size=2, out='int8'}:explain()))  --> ...fallback...one given scale
	print((tensor.randn(1, 2, 4, 4):quantize 'int8/2':resize {size=2, out={dtype='int8', scale=1}}:explain()))  --> ...fallback...several scales...
	print((q:resize {size=2}:explain()))  --> ...fallback...only mode nearest moves codes
end)
