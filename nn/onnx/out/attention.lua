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

-- Adds -inf where a query would see later keys or keys as far away as the window.
local function mask(n, scores, t, s, dtype, causal, window)
	if size.is_affine(t) or size.is_affine(s) then n:refuse 'causal= and window= of as many positions as the batch' end
	local function hidden() return tensor.full {t, s, value = -math.huge, dtype = dtype} end
	local m = causal and hidden():triu(1 + s - t) or tensor.zeros {t, s, dtype = dtype}
	if window then
		m = m + hidden():tril(s - t - window)
		if not causal then m = m + hidden():triu(s - t + window) end
	end
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
	local causal, window, cap = n:attr('causal', false), n:attr('window', nil), n:attr('softcap', nil)
	if cap then
		local limit = n:number(cap + 0.0, dtype)
		scores = n:emit('Mul', {n:emit('Tanh', {n:emit('Div', {scores, limit})}), limit})
	end
	if causal or window then scores = mask(n, scores, shapes[1][2], shapes[2][2], dtype, causal, window) end
	local y = n:emit('MatMul', {n:emit('Softmax', {scores}, {axis = -1}), x[3]})
	if heads then
		local t = shapes[1][2]
		y = n:emit('Reshape', {n:emit('Transpose', {y}, {perm = {0, 2, 1, 3}}), n:ints {0, size.is_affine(t) and 0 or t, heads * shapes[3][3]}})
	end
	return n:cast(y, dtype, n:typed())
end

-- Sizes of a table (t, pairs): (t, 1, pairs), or with the positions on the last but one axis (t, pairs).
local function table_sizes(t, after, pairs_of)
	local sizes = {t}
	for _ = 1, after do sizes[#sizes + 1] = 1 end
	sizes[#sizes + 1] = pairs_of
	return sizes
end

-- Cosines and sines of the positions of n numbers.
local function angles(n, t, width, after, dtype)
	local base, start = n:attr('base', 10000), n:attr('start', 1)
	if size.is_affine(t) or size.is_affine(start) then n:refuse 'as many positions as the batch' end
	local position = tensor.arange(start - 1, start + t - 2):to 'float64':view(t, 1)
	local list = {dtype = 'float64'}
	for i = 0, width // 2 - 1 do list[i + 1] = (base + 0.0) ^ (-2 * i / width) end
	local a, sizes = position * tensor(list):view(1, width // 2), table_sizes(t, after, width // 2)
	local function constant(name, y) return n.w:initializer(n.name .. name, y:to(dtype):view(table.unpack(sizes))) end
	return constant('.cos', a:cos()), constant('.sin', a:sin())
end

-- Those that are given, (t, pairs).
local function given_angles(n, t, width, after, dtype)
	local shape = n.shapes[2]
	if #shape ~= 2 or shape[2] * 2 ~= width then n:refuse 'tables of each row, or of each number of a pair' end
	local sizes = table_sizes(t, after, width // 2)
	local function read(i) return after == 0 and n:input(i, dtype) or n:reshape(n:input(i, dtype), sizes, n.shapes[i]) end
	return read(2), read(3)
end

local function part(n, x, first, last, axis)
	return n:emit('Slice', {x, n:ints {first}, n:ints {last}, n:ints {axis}})
end

-- Both numbers of each pair, and y of what they become.
local function pairs_of(n, x, shape, width)
	local rank = #shape
	if n:attr('style', 'pairs') == 'half' then
		local half = width // 2
		return part(n, x, 0, half, rank - 1), part(n, x, half, width, rank - 1), function(a, b) return n:emit('Concat', {a, b}, {axis = rank - 1}) end
	end
	local split, plain = table.move(shape, 1, rank - 1, 1, {}), table.move(shape, 1, rank - 1, 1, {})
	split[rank], split[rank + 1], plain[rank] = width // 2, 2, width
	x = n:reshape(x, split, plain)
	local function pick(i) return n:emit('Gather', {x, n:number(i, 'int64')}, {axis = rank}) end
	return pick(0), pick(1), function(a, b)
		return n:reshape(n:emit('Concat', {n:unsqueeze(a, {rank}), n:unsqueeze(b, {rank})}, {axis = rank}), plain, split)
	end
end

function ops.rope(n)
	local rank, shape, dtype = n:rank(1), n.shapes[1], linear.precision(n)
	local axis, d = n:axis(n:attr('axis', -2), rank), shape[rank]
	local width, x = n:attr('dims', d), n:input(1, dtype)
	local cos, sin = (n.shapes[2] and given_angles or angles)(n, shape[axis + 1], width, rank - 2 - axis, dtype)
	local a, b, join = pairs_of(n, width < d and part(n, x, 0, width, rank - 1) or x, shape, width)
	local function mul(y, z) return n:emit('Mul', {y, z}) end
	local y = join(n:emit('Sub', {mul(a, cos), mul(b, sin)}), n:emit('Add', {mul(a, sin), mul(b, cos)}))
	if width < d then y = n:emit('Concat', {y, part(n, x, width, d, rank - 1)}, {axis = rank - 1}) end
	return n:cast(y, dtype, n:typed())
end

return ops
