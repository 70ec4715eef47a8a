-- SPDX-License-Identifier: MIT
-- labels: quick host
-- mean of codes with out=, against float64: the rounded exact means, but for ties.
tensor.seed(37)
local x = tensor.randn(7, 6, 40) + 0.4

it('is the rounded mean', function()
	for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int4'} do
		local q = x:quantize(input)
		for _, out in ipairs {{dtype='int8', scale=0.01, zero_point=3}, {dtype='uint8', scale=0.01, zero_point=128}, {dtype='int16', scale=2e-4}} do
			for _, o in ipairs {{}, {axis=1}, {axis={2, 3}}, {axis=-1, keep=true}} do
				local y = q:mean {axis=o.axis, keep=o.keep, out=out}
				local want = q:dequantize():to 'float64':mean(o):to 'float32':quantize(out)
				assert(y:origin().kernel == 'mean_int' and y:dim() == want:dim())
				assert((y:codes():to 'int64' - want:codes():to 'int64'):abs():max():item() <= (out.dtype == 'int16' and 1 or 0))
			end
		end
	end
end)

it('views, and where it falls back', function()
	local q, out = x:quantize 'int8', {dtype='int8', scale=0.01}
	print(q:transpose(1, 3):mean {axis=1, out=out}:codes():eq(q:mean {axis=3, out=out}:codes():t()):all():item())  --> true
	print((q:mean {out='int8'}:explain()))  --> ...fallback...one given scale
	print((q:narrow(1, 1, 0):mean {out=out}:explain()))  --> ...fallback...the mean of nothing is nan
	print(q:mean():dtype(), pcall(q.mean, q, {axis=4, out=out}))  --> float32 false ...1 to 3...got 4
end)
