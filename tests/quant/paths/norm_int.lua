-- SPDX-License-Identifier: MIT
-- labels: quick host
-- layernorm and rmsnorm of codes with out=, against float64: at most a code off, in rows that are far from 0, too.
tensor.seed(33)
local x, w, b = tensor.randn(60, 40), tensor.randn(40), tensor.randn(40)
local w64, b64 = w:to 'float64', b:to 'float64'

local function off(y, want)
	return (y:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
end

it('is within a code of the exact result', function()
	for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int4'} do
		for _, shift in ipairs {0, 0.5, 20} do
			local q = ((x + shift) * 0.3):quantize(input)
			local d = q:dequantize():to 'float64'
			for _, out in ipairs {{dtype='int8', scale=0.04, zero_point=-3}, {dtype='uint8', scale=0.03, zero_point=100}, {dtype='int16', scale=1e-3}} do
				for _, eps in ipairs {0, 1e-5, 0.1} do
					if eps > 0 or shift < 20 then -- a row of equal codes and no eps: 0 here, nan in floats
						local name = ('%s %g %s %g'):format(input, shift, out.dtype, eps)
						local y, r = q:layernorm(w, b, {out=out, eps=eps}), q:rmsnorm(w, {out=out, eps=eps})
						assert(y:origin().kernel == 'norm_int' and r:origin().kernel == 'norm_int')
						assert(off(y, d:layernorm(w64, b64, {eps=eps}):to 'float32':quantize(out)) <= 1, name)
						assert(off(r, d:rmsnorm(w64, {eps=eps}):to 'float32':quantize(out)) <= 1, name)
					end
				end
			end
		end
	end
end)

it('without weight and bias; rows of one and of none; equal codes', function()
	local out = {dtype='int8', scale=0.05}
	local q = tensor{{1, 3}, {-5, 5}}:quantize {dtype='int8', scale=0.5}
	print(q:layernorm {eps=0, out=out}:codes():view(4))  --> int8(4) -20  20 -20  20
	print(q:narrow(2, 1, 1):layernorm {out=out}:codes():view(2))  --> int8(2)  0  0
	print(q:narrow(1, 1, 0):layernorm {out=out}:size())  --> 0 2
	print(tensor.zeros(1, 3):quantize {dtype='int8', scale=1}:layernorm(tensor.ones(3), tensor{1, 2, 3}, {eps=0, out=out}):codes():view(3))  --> int8(3)  20  40  60
end)

it('falls back and says why', function()
	local q, out = x:quantize 'int8', {dtype='int8', scale=0.05}
	print((q:layernorm {out='int8'}:explain()))  --> ...fallback...one given scale
	print((q:layernorm(w:quantize 'int8', {out=out}):explain()))  --> ...fallback...weight or bias is quantized
	print((tensor.zeros(1, 24000):quantize {dtype='int16', scale=1}:layernorm {out=out}:explain()))  --> ...fallback...do not fit 64 bits
	print((x:quantize {dtype='int8', scale=1e-12}:layernorm {out=out}:explain()))  --> ...fallback...do not fit 64 bits
	print(pcall(q.layernorm, q, tensor.ones(3), {out=out}))  --> false ...wanted shape (40)...
end)
