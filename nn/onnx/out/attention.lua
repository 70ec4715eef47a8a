-- SPDX-License-Identifier: MIT
-- Attention and rotary positions, composed of products.
local _, internal = ...
local linear = internal.import 'nn/onnx/out/linear'
local size = internal.import 'nn/graph/size'
local ops = {}

-- (b, t, heads * d) as (b, heads, t, d).
local function by_heads(n, x, shape, heads)
	local list = {0, size.is_affine(shape[2]) and 0 or shape[2], heads, shape[3] // heads}
	return n:emit('Transpose', {n:emit('Reshape', {x, n:ints(list)})}, {perm = {0, 2, 1, 3}})
end

-- Heads of k and v that serve several heads of q, repeated.
local function repeated(n, x, shape, times)
	if times == 1 then return x end
	local wide = n:emit('Expand', {n:unsqueeze(x, {2}), n:ints {1, 1, times, 1, 1}})
	local list = {0, shape[1] * times, size.is_affine(shape[2]) and -1 or shape[2], shape[3]}
	return n:emit('Reshape', {wide, n:ints(list)})
end

-- Adds -inf where a query would see later keys.
local function mask(n, scores, t, s, dtype)
	if size.is_affine(t) or size.is_affine(s) then n:refuse 'causal= of as many positions as the batch' end
	local m = tensor.full {t, s, value = -math.huge, dtype = dtype}:triu(1 + s - t)
	return n:emit('Add', {scores, n.w:initializer(n.name .. '.mask', m)})
end

function ops.attention(n)
	local dtype, heads = linear.precision(n), n:attr 'heads'
	local x, shapes = {}, {}
	for i = 1, 3 do
		local shape = n.shapes[i]
		x[i] = n:input(i, dtype)
		if heads then
			local own = i == 1 and heads or n.shapes[2][3] // (n.shapes[1][3] // heads)
			x[i], shapes[i] = by_heads(n, x[i], shape, own), {own, shape[2], shape[3] // own}
		else
			shapes[i] = {shape[2], shape[3], shape[4]}
		end
	end
	for i = 2, 3 do x[i] = repeated(n, x[i], shapes[i], shapes[1][1] // shapes[i][1]) end
	local scale = n:attr('scale', shapes[1][3] ^ -0.5) + 0.0
	local q = n:emit('Mul', {x[1], n:number(scale, dtype)})
	local scores = n:emit('MatMul', {q, n:emit('Transpose', {x[2]}, {perm = {0, 1, 3, 2}})})
	if n:attr('causal', false) then scores = mask(n, scores, shapes[1][2], shapes[2][2], dtype) end
	local y = n:emit('MatMul', {n:emit('Softmax', {scores}, {axis = -1}), x[3]})
	if heads then
		local t = shapes[1][2]
		y = n:emit('Reshape', {n:emit('Transpose', {y}, {perm = {0, 2, 1, 3}}), n:ints {0, size.is_affine(t) and 0 or t, heads * shapes[3][3]}})
	end
	return n:cast(y, dtype, n:typed())
end

-- Cosines and sines of the positions: (t, 1, d / 2), or with the positions on the last but one axis (t, d / 2).
local function angles(n, t, d, after, dtype)
	local base, start = n:attr('base', 10000), n:attr('start', 1)
	if size.is_affine(t) or size.is_affine(start) then n:refuse 'as many positions as the batch' end
	local position = tensor.arange(start - 1, start + t - 2):to 'float64':view(t, 1)
	local list = {dtype = 'float64'}
	for i = 0, d // 2 - 1 do list[i + 1] = (base + 0.0) ^ (-2 * i / d) end
	local a = position * tensor(list):view(1, d // 2)
	local sizes = {t}
	for _ = 1, after do sizes[#sizes + 1] = 1 end
	sizes[#sizes + 1] = d // 2
	local function constant(name, y) return n.w:initializer(n.name .. name, y:to(dtype):view(table.unpack(sizes))) end
	return constant('.cos', a:cos()), constant('.sin', a:sin())
end

function ops.rope(n)
	local rank, shape, dtype = n:rank(1), n.shapes[1], linear.precision(n)
	local axis, d = n:axis(n:attr('axis', -2), rank), shape[rank]
	local cos, sin = angles(n, shape[axis + 1], d, rank - 2 - axis, dtype)
	local split = table.move(shape, 1, rank - 1, 1, {})
	split[rank], split[rank + 1] = d // 2, 2
	local x = n:reshape(n:input(1, dtype), split, shape)
	local function part(i) return n:emit('Gather', {x, n:number(i, 'int64')}, {axis = rank}) end
	local a, b = part(0), part(1)
	local function mul(y, z) return n:emit('Mul', {y, z}) end
	local even = n:emit('Sub', {mul(a, cos), mul(b, sin)})
	local odd = n:emit('Add', {mul(a, sin), mul(b, cos)})
	local y = n:emit('Concat', {n:unsqueeze(even, {rank}), n:unsqueeze(odd, {rank})}, {axis = rank})
	return n:cast(n:reshape(y, shape, split), dtype, n:typed())
end

return ops
