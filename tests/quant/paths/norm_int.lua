-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Norms of codes with out=, against float64: at most a code off, in rows that are far from 0, too; groups of channels have the codes of
-- layernorm of their rows.
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

it('rows of several axes', function()
	local out = {dtype='int8', scale=0.04, zero_point=-3}
	local q, v, c = x:view(10, 6, 8, 5):quantize 'int8', tensor.randn(8, 5), tensor.randn(8, 5)
	for _, op in ipairs {'layernorm', 'rmsnorm'} do
		for _, t in ipairs {q, q:transpose(3, 4):contiguous():transpose(3, 4), q:transpose(1, 2)} do
			local rows = t:contiguous():view(60, 40)
			local list = {v, op == 'layernorm' and c or nil}
			local flat = {v:view(40), op == 'layernorm' and c:view(40) or nil}
			list[#list + 1], flat[#flat + 1] = {axes=2, out=out}, {out=out}
			local y = t[op](t, table.unpack(list))
			assert(y:origin().kernel == 'norm_int' and y:codes():contiguous():view(60, 40):eq(rows[op](rows, table.unpack(flat)):codes()):all():item())
		end
	end
end)

-- The codes of each group of channels by layernorm of its rows.
local function by_rows(q, groups, weight, bias, o)
	local list, per, inner = {}, q:size(2) // groups, q:nelem() // (q:size(1) * q:size(2))
	for g = 1, groups do
		local rows = q:narrow(2, (g - 1) * per + 1, per):contiguous():view(q:size(1), per * inner)
		local function wide(t) return t:narrow(1, (g - 1) * per + 1, per):repeatinterleave(inner) end
		list[g] = rows:layernorm(wide(weight), wide(bias), o):codes():to 'int32':view(q:size(1), per, inner)
	end
	return tensor.cat(list, {axis=2})
end

it('groups of channels', function()
	for _, input in ipairs {'int8', 'uint8', 'int16', 'int4'} do
		for _, dtype in ipairs {'int8', 'uint8', 'int16', 'int4'} do
			local o = {eps=1e-3, out={dtype=dtype, scale=dtype == 'int4' and 0.4 or 0.03, zero_point=dtype == 'uint8' and 100 or nil}}
			local q, v, c = tensor.randn(5, 6, 8, 10):quantize(input), tensor.randn(6), tensor.randn(6)
			for _, t in ipairs(input == 'int4' and {q} or {q, q:transpose(1, 2):contiguous():transpose(1, 2), q:narrow(4, 2, 1), q:narrow(1, 1, 0)}) do
				for _, groups in ipairs {1, 2, 6} do
					local y = nn.groupnorm(t, groups, v, c, o)
					assert(y:origin().kernel == 'norm_int' and y:origin().path == 'integer' and y:dtype() == dtype)
					assert(t:nelem() == 0 or y:codes():to 'int32':view(t:size(1), 6, -1):eq(by_rows(t, groups, v, c, o)):all():item(), input .. dtype)
					if groups == 6 then assert(nn.instancenorm(t, v, c, o):codes():eq(y:codes()):all():item()) end
				end
			end
			assert(nn.groupnorm(q, 3, o):codes():eq(nn.groupnorm(q, 3, tensor.ones(6), tensor.zeros(6), o):codes()):all():item())
			assert(off(nn.groupnorm(q, 2, v, c, o), nn.groupnorm(q:dequantize(), 2, v, c, {eps=1e-3}):quantize(o.out)) <= 1)
		end
	end
	local odd = tensor.randn(5, 6, 3, 3):quantize 'int4' -- rows of codes end within a byte
	local bytes = odd:dequantize():quantize {dtype='int8', scale=odd:qparams().scale:item()}
	for _, dtype in ipairs {'int8', 'int4'} do
		local o = {out={dtype=dtype, scale=0.4}}
		assert(nn.groupnorm(odd, 2, o):codes():eq(nn.groupnorm(bytes, 2, o):codes()):all():item())
		assert(odd:layernorm {axes=2, out=o.out}:codes():eq(bytes:layernorm {axes=2, out=o.out}:codes()):all():item())
	end
	local q, o, before = tensor.randn(5, 6, 8, 10):quantize 'int8', {out={dtype='int4', scale=0.4}}, tensor.threads()
	local want = nn.groupnorm(q, 3, o):codes()
	for threads = 1, 3 do
		tensor.threads(threads)
		assert(nn.groupnorm(q, 3, o):codes():eq(want):all():item())
	end
	tensor.threads(before)
	print((nn.groupnorm(q, 3, {out='int8'}):explain()))  --> ...fallback...one given scale
	print((nn.instancenorm(q, tensor.ones(6):quantize 'int8', {out={dtype='int8', scale=0.05}}):explain()))  --> ...fallback...weight or bias is quantized
	print(nn.groupnorm(q:dequantize(), 3, o):dtype(), pcall(nn.groupnorm, q, 4, o))  --> int4 false ...wanted a divisor of 6...
end)

it('falls back and says why', function()
	local q, out = x:quantize 'int8', {dtype='int8', scale=0.05}
	print((q:layernorm {out='int8'}:explain()))  --> ...fallback...one given scale
	print((q:layernorm(w:quantize 'int8', {out=out}):explain()))  --> ...fallback...weight or bias is quantized
	print((tensor.zeros(1, 24000):quantize {dtype='int16', scale=1}:layernorm {out=out}:explain()))  --> ...fallback...do not fit 64 bits
	print((x:quantize {dtype='int8', scale=1e-12}:layernorm {out=out}:explain()))  --> ...fallback...do not fit 64 bits
	print(pcall(q.layernorm, q, tensor.ones(3), {out=out}))  --> false ...wanted shape (40)...
end)
