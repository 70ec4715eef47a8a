-- SPDX-License-Identifier: MIT
-- Attention and rotary positions of com.microsoft, as onnxruntime's tools and exporters of language models write them.
local internal = select(2, ...)
local attention = internal.import 'nn/onnx/ops/attention'
local ops = {}

---------------------------------------------------------------- rotary positions

-- Positions of each row as those of tables: given for all, or the first of them.
local function rows_of(n, ids, batch, steps)
	if ids:dim() > 1 then
		if ids:size(2) ~= steps then n:fail('position_ids: wanted %d positions, got %d', steps, ids:size(2)) end
		return n.positions(ids)
	end
	if ids:nelem() ~= 1 then n:fail('position_ids: wanted one number, or one for each of %d x %d, got %d', batch, steps, ids:nelem()) end
	local after = n:quietly(function() return tensor.arange(1, steps):to 'int64':view(1, steps) end)
	return n.to(ids, 'int64'):reshape(1, 1) + after
end

-- X (batch, heads, steps, d) or (batch, steps, heads * d), tables (positions, pairs).
function ops.RotaryEmbedding(n, x, ids, cos, sin)
	if n:attr('is_packed_batching', 0) ~= 0 then n:fail 'is_packed_batching: wanted 0, got another' end
	if n:attr('scale', 1.0) ~= 1 then n:fail('scale: wanted 1, got %g', n:attr 'scale') end
	local three, steps = x:dim() == 3, x:size(x:dim() == 3 and 2 or 3)
	local rows = rows_of(n, ids, x:size(1), steps)
	local heads = n:attr('num_heads', 0)
	if three and heads == 0 then heads = x:size(3) // (2 * cos:size(2)) end
	return attention.rotary(n, x, cos:embedding(rows), sin:embedding(rows), heads)
end

---------------------------------------------------------------- attention

-- (batch, rows, heads * d) as (batch, heads, rows, d); four axes stay.
local function heads_of(n, x, heads, what)
	if x:dim() == 4 then return x end
	if x:dim() ~= 3 or heads < 1 or x:size(3) % heads ~= 0 then n:fail('%s: wanted (batch, rows, %d heads * d), got %d axes', what, heads, x:dim()) end
	return x:reshape(x:size(1), x:size(2), heads, x:size(3) // heads):transpose(2, 3)
end

-- q, k and v with their biases, which are one after the other; also packed as (batch, rows, heads, 3, d), or k and v as (…, 2, d).
local function operands(n, q, k, v, bias, heads)
	local list = {q, k, v}
	if q:dim() == 5 then
		for i = 1, 3 do list[i] = q:select(4, i):reshape(q:size(1), q:size(2), -1) end
	elseif k and k:dim() == 5 then
		for i = 1, 2 do list[i + 1] = k:select(4, i):reshape(k:size(1), k:size(2), -1) end
	end
	if not list[2] or not list[3] then n:fail 'key, value: wanted both, or packed ones, got fewer' end
	local from = 1
	for i, name in ipairs {'query', 'key', 'value'} do
		local x = list[i]
		local width = x:dim() == 4 and x:size(2) * x:size(4) or x:size(3)
		if bias then
			local part = bias:narrow(1, from, width)
			x = x + (x:dim() == 4 and part:view(1, heads, 1, -1) or part)
		end
		list[i], from = heads_of(n, x, heads, name), from + width
	end
	return list[1], list[2], list[3]
end

-- What is added to the scores where keys are padding: (batch, keys) or (batch, queries, keys), 0 where they are.
local function padding(n, mask)
	if mask:dim() ~= 2 and mask:dim() ~= 3 then n:fail('key_padding_mask: wanted 1 to 3 axes, got %d', mask:dim()) end
	local filter = n:attr('mask_filter_value', -10000.0)
	local seen = mask:ne(0)
	return tensor.where(mask:dim() == 2 and seen:unsqueeze(2):unsqueeze(3) or seen:unsqueeze(2), 0.0, filter)
end

function ops.MultiHeadAttention(n, q, k, v, bias, mask, added, past_k, past_v, past_length, beams)
	if past_length or beams then n:fail 'past_sequence_length, cache_indirection: wanted none, got some' end
	if n.outputs > 3 then n:fail('outputs: wanted at most 3, got %d', n.outputs) end
	local heads = n:attr('num_heads', 0)
	local a, b, c = operands(n, q, k, v, bias, heads)
	if past_k then b, c = tensor.cat({past_k, b}, {axis = 3}), tensor.cat({past_v, c}, {axis = 3}) end
	local scale, o = n:attr('scale', 0.0), {causal = n:attr('unidirectional', 0) ~= 0 or nil}
	o.scale = scale ~= 0 and scale or 1 / math.sqrt(a:size(4))
	if mask and mask:dim() == 1 then
		if mask:size(1) ~= a:size(1) then n:fail('key_padding_mask: wanted lengths of %d rows, got %d', a:size(1), mask:size(1)) end
		o.lengths = n.to(mask, 'int64')
	elseif mask then
		added = added and padding(n, mask) + added or padding(n, mask)
	end
	o.mask = added
	local y = nn.attention(a, b, c, o)
	return y:transpose(2, 3):reshape(y:size(1), y:size(3), y:size(2) * y:size(4)), b, c
end

return {domain = 'com.microsoft', ops = ops}
