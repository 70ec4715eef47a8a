-- SPDX-License-Identifier: MIT
-- Attention and rotary positions, by nn.attention and nn.rope. Q (batch, heads, queries, d) or (batch, queries, heads * d); K and V may have
-- fewer heads, of which each serves several of Q. Where the products are a result, too, or the softmax has another precision, attention is
-- products and a softmax.
local internal = select(2, ...)
local ops = {}

---------------------------------------------------------------- what may be seen

-- Keys that each query may see by its position: those up to it (causal), those in a window. `before`: keys before the first query, a
-- number, or a tensor (batch, 1, 1, 1); nil: all of them.
local function seen_by_place(n, queries, keys, before)
	local causal, left, right = n:attr('is_causal', 0) ~= 0, n:attr('left_window_size', -1), n:attr('right_window_size', -1)
	if left < -1 or right < -1 then n:fail('left_window_size, right_window_size: wanted -1 or more, got %d, %d', left, right) end
	if not causal and left < 0 and right < 0 then return nil end
	local ahead = n:quietly(function() return tensor.arange(0, keys - 1):view(1, keys) - tensor.arange(0, queries - 1):view(queries, 1) end)
	local function limits()
		local far, seen = ahead - before, nil -- how far a key is after the query
		if causal or right >= 0 then seen = far:le(causal and 0 or right) end
		if causal and right == 0 then right = -1 end
		if left >= 0 then seen = seen and seen:band(far:ge(-left)) or far:ge(-left) end
		return seen
	end
	return type(before) == 'number' and n:quietly(limits) or limits()
end

-- A mask that ends before the last key hides those after its end.
local function widened(n, mask, keys)
	local less = keys - mask:size(mask:dim())
	if less < 0 then n:fail('attn_mask: wanted at most %d keys, got %d', keys, keys - less) end
	if less == 0 then return mask end
	if not n.is_bool(mask) then return mask:pad {sizes = {0, less}, value = -math.huge} end
	return mask:to 'uint8':pad {sizes = {0, less}, value = 0}:ne(0)
end

-- A constant of that dtype, for all elements.
local function constant(n, value, dtype)
	return n:quietly(function() return tensor {value, dtype = dtype} end)
end

local function both(a, b) return a and b and a:band(b) or a or b end

-- What is seen (bool, or nil for all) and what is added to the scores (nil: nothing).
local function mask_of(n, mask, lengths, queries, keys, past)
	local valid, before = nil, past
	if lengths then
		lengths = n.to(lengths, 'int64'):view(-1, 1, 1, 1)
		valid = n:quietly(function() return tensor.arange(0, keys - 1) end):lt(lengths)
		before = lengths - queries
	end
	local seen = both(seen_by_place(n, queries, keys, before), valid)
	if not mask then return seen end
	mask = widened(n, mask, keys)
	if n.is_bool(mask) then return both(seen, mask) end
	return nil, seen and tensor.where(seen, mask, constant(n, -math.huge, mask:dtype())) or mask
end

-- The queries that see a key, or nil if all do.
local function answered(n, seen, added)
	local function some()
		if seen then return seen:any {axis = seen:dim(), keep = true} end
		return added:max {axis = added:dim(), keep = true}:gt(-math.huge)
	end
	local given = seen or added
	if not given then return nil end
	if not n.known(given) then return some() end
	local rows = n:quietly(some)
	return not n:quietly(function() return rows:all():item() end) and rows or nil
end

---------------------------------------------------------------- heads

local function heads_of(n, x, name)
	if x:dim() == 4 then return x end
	local heads, sizes = n:attr(name, 0), {x:size()}
	if x:dim() ~= 3 or heads < 1 or sizes[3] % heads ~= 0 then
		n:fail('%s: wanted a number of heads that divides the last of 3 axes, got %d for %s', name, heads, tostring(sizes[#sizes]))
	end
	return x:reshape(sizes[1], sizes[2], heads, sizes[3] // heads):transpose(2, 3)
end

-- a (batch, heads, rows, …) by b (batch, heads / r, …)
local function product(n, a, b)
	local sizes, fewer = {a:size()}, b:size(2)
	if fewer == sizes[2] then return a:matmul(b) end
	if fewer == 0 or sizes[2] % fewer ~= 0 then n:fail('wanted heads of K and V that divide %d, got %d', sizes[2], fewer) end
	local y = a:reshape(sizes[1], fewer, sizes[2] // fewer, sizes[3], sizes[4]):matmul(b:unsqueeze(3))
	return y:reshape(sizes[1], sizes[2], sizes[3], y:size(5))
end

---------------------------------------------------------------- attention

-- Whether nn.attention computes it.
local function is_plain(n, q)
	local precise = n:given('softmax_precision', 'integer')
	local dtype = precise and internal.onnx_dtype(precise) or q:dtype()
	return n.outputs < 4 and dtype == q:dtype() and (dtype == 'float32' or dtype == 'float64')
end

-- Options of nn.attention. Its causal= is that of queries at the end of the keys, its lengths= do not move them.
local function plain(n, q, k, v, scale, mask, lengths, past)
	local causal, windows = n:attr('is_causal', 0) ~= 0, n:attr('left_window_size', -1) >= 0 or n:attr('right_window_size', -1) >= 0
	local cap = n:attr('softcap', 0.0)
	local o = {scale = scale, softcap = cap > 0 and cap or nil}
	if not windows and not (causal and lengths) and (not causal or k:size(3) == q:size(3) + past) then
		o.causal, o.lengths = causal or nil, lengths
		o.mask = mask and widened(n, mask, k:size(3))
	else
		local seen, added = mask_of(n, mask, lengths, q:size(3), k:size(3), past)
		o.mask = seen or added
	end
	return nn.attention(q, k, v, o)
end

local AFTER = {[0] = 'product', 'softcap', 'mask', 'softmax'}

local function composed(n, q, k, v, scale, seen, added)
	local mode, cap, precise = n:attr('qk_matmul_output_mode', 0), n:attr('softcap', 0.0), n:given('softmax_precision', 'integer')
	local shown = {}
	if not AFTER[mode] then n:fail('qk_matmul_output_mode: wanted 0 to 3, got %s', tostring(mode)) end
	local s = product(n, q * scale, k:transpose(3, 4))
	shown.product = s
	if cap > 0 then s = (s / cap):tanh() * cap end
	shown.softcap = s
	if added then s = s + added end
	if seen then s = tensor.where(seen, s, constant(n, -math.huge, q:dtype())) end
	shown.mask = s
	local dtype = precise and internal.onnx_dtype(precise)
	local p = (dtype and n.to(s, dtype) or s):softmax(4)
	local rows = answered(n, seen, added)
	if rows then p = tensor.where(rows, p, constant(n, 0, p:dtype())) end
	p = n.to(p, q:dtype())
	shown.softmax = p
	return product(n, p, v), n.outputs >= 4 and shown[AFTER[mode]] or nil
end

function ops.Attention(n, q, k, v, mask, past_k, past_v, lengths)
	if (past_k == nil) ~= (past_v == nil) then n:fail 'past_key, past_value: wanted both or none, got one' end
	if past_k and lengths then n:fail 'nonpad_kv_seqlen: wanted none beside past_key, got some' end
	local joined = q:dim() == 3
	local a, b, c = heads_of(n, q, 'q_num_heads'), heads_of(n, k, 'kv_num_heads'), heads_of(n, v, 'kv_num_heads')
	local scale, past = n:attr('scale', 1 / math.sqrt(a:size(4))), past_k and past_k:size(3) or 0
	if past_k then b, c = tensor.cat({past_k, b}, {axis = 3}), tensor.cat({past_v, c}, {axis = 3}) end
	local y, shown
	if is_plain(n, a) then
		y = plain(n, a, b, c, scale, mask, lengths, past)
	else
		y, shown = composed(n, a, b, c, scale, mask_of(n, mask, lengths, a:size(3), b:size(3), past))
	end
	if joined then y = y:transpose(2, 3):reshape(q:size(1), q:size(2), y:size(2) * y:size(4)) end
	return y, b, c, shown
end

---------------------------------------------------------------- rotary positions

-- Pairs (a, b) of the last axis, neighbours or halves, become (a cos - b sin, a sin + b cos).
local function turned(x, cos, sin, interleaved)
	local sizes = {x:size()}
	local half = sizes[4] // 2
	local a, b
	if interleaved then
		local pairs = x:reshape(sizes[1], sizes[2], sizes[3], half, 2)
		a, b = pairs:select(5, 1), pairs:select(5, 2)
	else
		a, b = x:narrow(4, 1, half), x:narrow(4, half + 1, half)
	end
	local real, imag = a * cos - b * sin, a * sin + b * cos
	if interleaved then return tensor.stack({real, imag}, {axis = 5}):reshape(table.unpack(sizes)) end
	return tensor.cat({real, imag}, {axis = 4})
end

-- A table (1 or batch, steps, pairs) as nn.rope takes it.
local function table_of(n, t, batch)
	if n.known(t) and t:size(1) == 1 then return t:select(1, 1) end
	return t:expand(batch, t:size(2), t:size(3))
end

local function rotated(n, x, cos, sin, part, axis)
	local interleaved = n:attr('interleaved', 0) ~= 0
	if x:dtype() == 'float32' or x:dtype() == 'float64' then
		return nn.rope(x, {cos = table_of(n, cos, x:size(1)), sin = table_of(n, sin, x:size(1)), style = not interleaved and 'half' or nil,
			dims = part < x:size(4) and part or nil, axis = axis == 3 and 2 or nil})
	end
	local y = turned(part < x:size(4) and x:narrow(4, 1, part) or x, cos:unsqueeze(axis), sin:unsqueeze(axis), interleaved)
	return part < x:size(4) and tensor.cat({y, x:narrow(4, part + 1, x:size(4) - part)}, {axis = 4}) or y
end

-- Tables (1 or batch, steps, pairs); heads: of x of three axes.
local function rotary(n, x, cos, sin, heads)
	local shape, y = {x:size()}, x
	if #shape == 3 then
		if heads < 1 or shape[3] % heads ~= 0 then n:fail('num_heads: wanted a divisor of %d, got %d', shape[3], heads) end
		y = x:reshape(shape[1], shape[2], heads, shape[3] // heads)
	end
	local width, part = y:size(4), n:attr('rotary_embedding_dim', 0)
	if part == 0 then part = width end
	if part < 0 or part % 2 ~= 0 or part > width or cos:size(3) ~= part // 2 then
		n:fail('rotary_embedding_dim: wanted an even number up to %d, with tables of half of it, got %d', width, part)
	end
	local z = rotated(n, y, cos, sin, part, #shape == 3 and 3 or 2) -- the axis of heads
	return #shape == 3 and z:reshape(table.unpack(shape)) or z
end

-- Tables of (positions, pairs), or with no position_ids of (batch, steps, pairs).
function ops.RotaryEmbedding(n, x, cos, sin, ids)
	if ids then
		local rows = n.positions(ids)
		cos, sin = cos:embedding(rows), sin:embedding(rows)
	end
	return rotary(n, x, cos, sin, n:attr('num_heads', 0))
end

return {ops = ops, rotary = rotary}
