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

-- TensorFlow Lite's QuantizedMeanOrSum: the multiplier of s / s_out, shifted left and divided by n.
it('in fixed point', function()
	local oracle = dofile 'tests/tools/requantize.lua'
	local function flat(t) return t:contiguous():view(t:nelem()):totable() end
	for _, rule in ipairs {'single', 'double', 'exact'} do
		for _, c in ipairs {{'int8', {1, 2}, 0.011}, {'uint8', {3}, 0.4}, {'int16', {2}, 0.02}} do
			local q, out = x:quantize(c[1]), {dtype='int8', scheme='asymmetric', scale=c[3], zero_point=-9, rounding=rule}
			local y, p = q:mean {axis=c[2], out=out}, q:qparams()
			assert(y:origin().path == 'integer ' .. rule)
			local sums = flat((q:codes():to 'int64' - (p.zero_point and math.tointeger(p.zero_point:item()) or 0)):sum {axis=c[2]})
			local n, m, shift = q:nelem() // #sums, p.scale:item() / oracle.single(c[3]), 0
			while n >> shift + 1 > 0 do shift = shift + 1 end
			local part, exponent = m, 0
			while part < 0.5 do part, exponent = part * 2, exponent - 1 end
			while part >= 1 do part, exponent = part / 2, exponent + 1 end
			local multiplier = ((math.tointeger(math.floor(part * 2.0 ^ 31 + 0.5))) << shift) // n
			local right = 31 - (exponent - shift)
			for i, got in ipairs(flat(y:codes())) do
				local v = sums[i] * multiplier
				if rule == 'exact' then
					v = sums[i] * (p.scale:item() / (n * oracle.single(c[3])))
					v = math.tointeger(v < 0 and math.ceil(v - 0.5) or math.floor(v + 0.5))
				elseif rule == 'single' then
					v = (v + (1 << right - 1)) // (1 << right)
				else -- the high half, then halves away from 0
					local high, more = (v + (1 << 30)) // (1 << 31), right - 31
					v = more <= 0 and high or (high + (1 << more - 1) - (high < 0 and 1 or 0)) // (1 << more)
				end
				assert(got == math.max(-128, math.min(127, v - 9)), i)
			end
		end
	end
end)
