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

-- Adds -inf where a query would see later keys, or keys as far as the window from it.
local function places(n, scores, t, s, causal, window, dtype)
	if size.is_affine(t) or size.is_affine(s) then n:refuse 'causal= or window= of as many positions as the batch' end
	local seen = tensor.ones(t, s)
	if causal then seen = seen:tril(s - t) end
	if window then seen = seen:tril(s - t + window - 1):triu(s - t - window + 1) end
	local m = tensor.where(seen:ne(0), 0, -math.huge):to(dtype)
	return n:emit('Add', {scores, n.w:initializer(n.name .. '.mask', m)})
end

-- Operands after v: a mask, of bool or added, and the lengths of the keys.
local function hidden(n, scores, s, dtype)
	local low = n:number(-math.huge, dtype)
	for i = 4, n.count do
		local d = quant.dtype(n:dtype(i))
		if d.kind == 'bool' then
			scores = n:emit('Where', {n:input(i), scores, low})
		elseif d.float then
			scores = n:emit('Add', {scores, n:input(i, dtype)})
		else
			local list = {dtype = 'int64'}
			for k = 1, size.is_affine(s) and n:refuse 'lengths of as many keys as the batch' or s do list[k] = k - 1 end
			local inside = n:emit('Less', {n.w:initializer(n.name .. '.keys', tensor(list)), n:unsqueeze(n:input(i, 'int64'), {1, 2, 3})})
			scores = n:emit('Where', {inside, scores, low})
		end
	end
	return scores
end

-- Softmax of scores; a query that sees no key gets zeros.
local function shares(n, scores, dtype, masked)
	local y = n:emit('Softmax', {scores}, {axis = -1})
	return masked and n:emit('Where', {n:emit('IsNaN', {y}), n:number(0.0, dtype), y}) or y
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
	local causal, window, cap = n:attr('causal', false), n:attr 'window', n:attr 'softcap'
	if cap then
		local by = n:number(cap + 0.0, dtype)
		scores = n:emit('Mul', {n:emit('Tanh', {n:emit('Div', {scores, by})}), by})
	end
	if causal or window then scores = places(n, scores, shapes[1][2], shapes[2][2], causal, window, dtype) end
	scores = hidden(n, scores, shapes[2][2], dtype)
	local y = n:emit('MatMul', {shares(n, scores, dtype, causal or window or n.count > 3), x[3]})
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

-- Tables that are operands: (positions, pairs or twice as many), (1, positions, …) or (batch, positions, …), as factors of the first and
-- of the second numbers of pairs.
local function tables(n, i, rank, after, pairs, half, dtype)
	local shape, x, made = n.shapes[i], n:input(i, dtype), {}
	local sizes, last = {}, #shape - 1
	if #shape == 3 and shape[1] ~= 1 then
		sizes[1] = 0
		for _ = 2, rank - 2 - after do sizes[#sizes + 1] = 1 end
	end
	sizes[#sizes + 1] = shape[last]
	for _ = 1, after do sizes[#sizes + 1] = 1 end
	sizes[#sizes + 1] = pairs
	for k = 1, 2 do
		local y = x
		if shape[#shape] ~= pairs then y = half and n:slice(x, last, (k - 1) * pairs, k * pairs) or n:slice(x, last, k - 1, math.maxinteger, 2) end
		made[k] = n:emit('Reshape', {y, n:ints(sizes)})
	end
	return made
end

-- Pairs are neighbours, or with style='half' numbers of the two halves; dims: of the first numbers only.
function ops.rope(n)
	local rank, shape, dtype = n:rank(1), n.shapes[1], linear.precision(n)
	local axis, d, half = n:axis(n:attr('axis', -2), rank), n:attr('dims', n.shapes[1][n:rank(1)]), n:attr 'style' == 'half'
	local after = rank - 2 - axis
	local cos, sin
	if n.count > 1 then
		n:attr 'base'
		n:attr 'start'
		cos, sin = tables(n, 2, rank, after, d // 2, half, dtype), tables(n, 3, rank, after, d // 2, half, dtype)
	else
		local c, v = angles(n, shape[axis + 1], d, after, dtype)
		cos, sin = {c, c}, {v, v}
	end
	local whole = n:input(1, dtype)
	local first = d < shape[rank] and n:slice(whole, rank - 1, 0, d) or whole
	local inner = table.move(shape, 1, rank - 1, 1, {})
	inner[rank] = d
	local split = table.move(inner, 1, rank - 1, 1, {})
	split[rank], split[rank + 1] = half and 2 or d // 2, half and d // 2 or 2
	local at = half and rank - 1 or rank
	local x = n:reshape(first, split, inner)
	local function part(i) return n:emit('Gather', {x, n:number(i, 'int64')}, {axis = at}) end
	local a, b = part(0), part(1)
	local function mul(y, z) return n:emit('Mul', {y, z}) end
	local even = n:emit('Sub', {mul(a, cos[1]), mul(b, sin[1])})
	local odd = n:emit('Add', {mul(a, sin[2]), mul(b, cos[2])})
	local y = n:reshape(n:emit('Concat', {n:unsqueeze(even, {at}), n:unsqueeze(odd, {at})}, {axis = at}), inner, split)
	if d < shape[rank] then y = n:emit('Concat', {y, n:slice(whole, rank - 1, d, math.maxinteger)}, {axis = rank - 1}) end
	return n:cast(y, dtype, n:typed())
end

return ops
