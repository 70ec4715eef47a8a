-- SPDX-License-Identifier: MIT
-- Pass recognize_attention: softmax(scale q kᵀ [+ mask]) v that is spelled out becomes `attention`. As torch's exporters and transformers
-- write it: the scale on the scores, or its root on q and on k; k turned by permute, or as matrices of all heads; heads of k and v
-- repeated for several of q; a mask that is added, or scores that are replaced where nothing is seen; a softcap; and 0 instead of nan where
-- a query sees no key, as attention has it. A constant mask that hides the future becomes causal=. Values change in the last bits.
local _, internal = ...
local pattern = internal.import 'nn/graph/pattern'
local number_of = pattern.number_of

local MASKS = 4 -- of one softmax, at most
local NOTHING = -1e30 -- scores from here down are those of keys that are not seen

---------------------------------------------------------------- looking

local function node_of(e, ref) return type(ref) == 'string' and e.nodes[ref] or nil end

-- The node of that op that makes the value, if only one op uses it.
local function only(e, ref, op)
	local node = node_of(e, ref)
	return node and node.op == op and not node.mode and #e:users_of(ref) == 1 and node or nil
end

local function same_shape(a, b)
	if #a ~= #b then return false end
	for i = 1, #a do
		if a[i] ~= b[i] then return false end
	end
	return true
end

local function shape_of(e, ref) return e:result_of(ref).shape end

-- The value without factors that are numbers, and their product. all: also where others use the product.
local function unscaled(e, ref, all)
	local factor = 1
	while true do
		local node = all and node_of(e, ref) or only(e, ref, 'mul') or only(e, ref, 'div')
		local times, over = node and node.op == 'mul', node and node.op == 'div'
		if not (times or over) or node.mode or node.attrs.act or node.attrs.out then return ref, factor end
		local a, b = node.inputs[1], node.inputs[2]
		local n = number_of(e, b)
		if not n and times then a, n = b, number_of(e, a) end
		if not n or n == 0 or type(a) ~= 'string' or not same_shape(shape_of(e, a), node.results[1].shape) then return ref, factor end
		ref, factor = a, times and factor * n or factor / n
	end
end

---------------------------------------------------------------- q, k, v: (batch, heads, rows, width)

local KEEPS_ORDER = {reshape = true, view = true, unsqueeze = true, squeeze = true}

local function only_view(e, ref)
	local node = node_of(e, ref)
	return node and KEEPS_ORDER[node.op] and only(e, ref, node.op)
end

-- A value whose elements are in the same order and that has this shape; nil if there is none.
local function in_shape(e, ref, shape)
	while true do
		if same_shape(shape_of(e, ref), shape) then return ref end
		local node = node_of(e, ref)
		if not node or not KEEPS_ORDER[node.op] or type(node.inputs[1]) ~= 'string' then return nil end
		ref = node.inputs[1]
	end
end

-- The heads that a value (b, h, rows, width) repeats: the edge of (b, fewer, rows, width), or nil.
local function repeated(e, ref, shape)
	local node = node_of(e, ref)
	while node and KEEPS_ORDER[node.op] do node = node_of(e, node.inputs[1]) end
	local wide = node and node.op == 'expand' and node.results[1].shape
	if not wide or #wide ~= 5 or wide[1] ~= shape[1] or wide[4] ~= shape[3] or wide[5] ~= shape[4] then return end
	local narrow = shape_of(e, node.inputs[1])
	if #narrow ~= 5 or narrow[3] ~= 1 or narrow[2] ~= wide[2] or narrow[1] ~= wide[1] or narrow[4] ~= wide[4] or narrow[5] ~= wide[5] then return end
	return in_shape(e, node.inputs[1], {narrow[1], narrow[2], narrow[4], narrow[5]})
end

local function add_view(e, before, op, ref, attrs, shape)
	local name = e:fresh(before.name .. '.' .. op)
	e:add({name = name, op = op, inputs = {ref}, attrs = attrs, results = {{shape = shape, dtype = e:result_of(ref).dtype, alias = 1}},
		module = before.module, kind = before.kind}, before.name)
	return name
end

-- The value as (b, h, rows, width): an edge, or a function that adds a view of one.
local function heads_of(e, ref, shape)
	local edge = repeated(e, ref, shape) or in_shape(e, ref, shape)
	return edge or function(before) return add_view(e, before, 'reshape', ref, {size = shape}, shape) end
end

local function permuted(order, a, b)
	local made = table.move(order, 1, #order, 1, {})
	made[a], made[b] = made[b], made[a]
	return made
end

local function swaps_last(order)
	for i, axis in ipairs(order) do
		if axis ~= (i == #order and i - 1 or i == #order - 1 and i + 1 or i) then return false end
	end
	return true
end

-- The order of axes that a view gives.
local function order_of(node)
	if node.op == 'permute' then return node.attrs.order end
	if node.op ~= 'transpose' then return end
	local order = {}
	for i = 1, #node.results[1].shape do order[i] = i end
	return permuted(order, node.attrs.a, node.attrs.b)
end

-- k of a value (b, h, d, s), with the factor that is on it: an edge or a function, as heads_of.
local function turned(e, ref, shape)
	local base, first = unscaled(e, ref)
	local node, wanted = node_of(e, base), {shape[1], shape[2], shape[4], shape[3]}
	while node and KEEPS_ORDER[node.op] do -- matrices of all heads
		local x = shape_of(e, node.name)
		if x[#x] ~= shape[4] or x[#x - 1] ~= shape[3] then return end
		node = node_of(e, node.inputs[1])
	end
	local order, result = node and order_of(node), node and node.results[1].shape
	if not order or result[#result] ~= shape[4] or result[#result - 1] ~= shape[3] then return end
	local x = node.inputs[1]
	if swaps_last(order) then
		local edge, second = unscaled(e, x)
		return heads_of(e, edge, wanted), first * second
	end
	if not same_shape(result, shape) then return end
	local axes = permuted(order, 3, 4)
	return function(before) return add_view(e, before, 'permute', x, {order = axes}, wanted) end, first
end

---------------------------------------------------------------- masks

-- A mask is broadcast to the scores.
local function fits(e, ref, shape)
	local mask = shape_of(e, ref)
	if #mask > 4 then return false end
	for i = 1, #mask do
		local size = mask[#mask - i + 1]
		if size ~= 1 and size ~= shape[#shape - i + 1] then return false end
	end
	return true
end

local function constant(e, ref)
	local node = node_of(e, ref)
	local value = node and node.op == 'const' and node.value
	return value and not value:quantized() and value or nil
end

-- What a constant mask (what is added) comes to: 'none', 'causal', or nil.
local function meaning(mask, queries, keys)
	local x = mask:to 'float32'
	local free, hidden = x:eq(0), x:le(NOTHING)
	if free:all():item() then return 'none' end
	if math.type(queries) ~= 'integer' or math.type(keys) ~= 'integer' or x:dim() < 2 or x:size(x:dim()) ~= keys or x:size(x:dim() - 1) ~= queries then return end
	local ahead = tensor.arange(1, keys):view(1, keys) - tensor.arange(1, queries):view(queries, 1) - (keys - queries)
	local future = ahead:gt(0)
	if keys >= queries and free:ne(future):all():item() and hidden:eq(future):all():item() then return 'causal' end
end

-- The scores that are replaced by a large negative number where nothing is seen.
local function without_replaced(e, node, shape)
	local seen, ref, low = node.inputs[1], node.inputs[2], number_of(e, node.inputs[3])
	local inverted = not low
	if inverted then ref, low = node.inputs[3], number_of(e, node.inputs[2]) end
	if not low or low > NOTHING or type(ref) ~= 'string' or type(seen) ~= 'string' or not fits(e, seen, shape) or not same_shape(shape_of(e, ref), shape) then return end
	return ref, {seen = seen, low = low, inverted = inverted}
end

local function add_const(e, before, name, value, dtype)
	e:add({name = name, op = 'const', inputs = {}, attrs = {}, results = {{shape = {value:size()}, dtype = dtype}}, value = value:to(dtype),
		module = before.module, kind = before.kind}, before.name)
	return name
end

-- As a mask that is added: what was replaced by so low a number has it still after a sum.
local function as_added(e, mask, before, dtype)
	local name = e:fresh(before.name .. '.mask')
	if mask.added and not mask.shape then return mask.added end
	local value = constant(e, mask.added or mask.seen)
	if mask.added then
		if value then return add_const(e, before, name, value:reshape(table.unpack(mask.shape)), dtype) end
		return add_view(e, before, 'reshape', mask.added, {size = mask.shape}, mask.shape)
	end
	local low = mask.low
	if value then
		local zeros = tensor.zeros {value:size()}
		return add_const(e, before, name, mask.inverted and tensor.where(value, zeros + low, zeros) or tensor.where(value, zeros, zeros + low), dtype)
	end
	e:add({name = name, op = 'where', inputs = {mask.seen, mask.inverted and low or 0.0, mask.inverted and 0.0 or low}, attrs = {},
		results = {{shape = shape_of(e, mask.seen), dtype = dtype}}, module = before.module, kind = before.kind}, before.name)
	return name
end

local function broadcast(a, b)
	local made = {}
	for i = 1, math.max(#a, #b) do
		local x, y = a[#a - i + 1] or 1, b[#b - i + 1] or 1
		table.insert(made, 1, x == 1 and y or x)
	end
	return made
end

-- All masks as one that is added.
local function joined(e, masks, before, dtype)
	local all = as_added(e, masks[1], before, dtype)
	for i = 2, #masks do
		local one = as_added(e, masks[i], before, dtype)
		local a, b, name = constant(e, all), constant(e, one), e:fresh(before.name .. '.mask')
		if a and b then
			add_const(e, before, name, a + b, dtype)
		else
			e:add({name = name, op = 'add', inputs = {all, one}, attrs = {}, results = {{shape = broadcast(shape_of(e, all), shape_of(e, one)), dtype = dtype}},
				module = before.module, kind = before.kind}, before.name)
		end
		all = name
	end
	return all
end

---------------------------------------------------------------- the whole

-- The softmax of the probabilities, also within where(isnan(p), 0, p).
local function softmax_of(e, ref)
	local node = only(e, ref, 'softmax')
	local chosen = only(e, ref, 'where')
	if chosen and number_of(e, chosen.inputs[2]) == 0 then
		local asked = only(e, chosen.inputs[1], 'isnan')
		node = node_of(e, chosen.inputs[3])
		if not asked or not node or node.op ~= 'softmax' or asked.inputs[1] ~= node.name or #e:users_of(node.name) ~= 2 then return end
	end
	if not node or node.mode or node.attrs.out or node.attrs.axis ~= #node.results[1].shape then return end
	return node
end

-- Softcap: cap tanh(x / cap).
local function uncapped(e, ref)
	local base, cap = unscaled(e, ref)
	local node = only(e, base, 'tanh')
	if not node or node.attrs.out or cap <= 0 then return ref end
	local inner, factor = unscaled(e, node.inputs[1])
	return inner, cap, factor -- scores are inner times factor times cap
end

-- The product of q and k, if the value is that with a scale and a softcap.
local function product_of(e, ref)
	local inner, cap, factor = uncapped(e, ref)
	local base, scale = unscaled(e, inner)
	local product = only(e, base, 'matmul')
	if not product or product.attrs.out then return end
	return {product = product, masks = {}, cap = cap, scale = cap and scale * factor * cap or scale}
end

local scores_of

-- f with one more mask.
local function masked(f, mask)
	if f then f.masks[#f.masks + 1] = mask end
	return f
end

-- A mask that is added.
local function of_sum(e, node, shape, left)
	for at = 1, 2 do
		local ref, mask = node.inputs[at], node.inputs[3 - at]
		if type(ref) == 'string' and type(mask) == 'string' and same_shape(shape_of(e, ref), shape) and fits(e, mask, shape) and
			e:result_of(mask).dtype == node.results[1].dtype then
			local f = masked(scores_of(e, ref, shape, left), {added = mask})
			if f then return f end
		end
	end
end

-- A mask that is added to the scores of all windows of one picture (Swin): (1, windows, heads, t, s).
local function of_windows(e, node, shape, left)
	local sum = only(e, node.inputs[1], 'add')
	local wide = {1, table.unpack(shape)}
	if not sum or sum.attrs.act or sum.attrs.out or not same_shape(sum.results[1].shape, wide) then return end
	for at = 1, 2 do
		local mask = sum.inputs[3 - at]
		local view, size = only_view(e, sum.inputs[at]), type(mask) == 'string' and shape_of(e, mask)
		if view and size and #size == 5 and same_shape(shape_of(e, view.inputs[1]), shape) and same_shape(broadcast(size, wide), wide) and
			e:result_of(mask).dtype == sum.results[1].dtype then
			local f = masked(scores_of(e, view.inputs[1], shape, left), {added = mask, shape = table.move(size, 2, 5, 1, {})})
			if f then return f end
		end
	end
end

-- The product of q and k behind scores, and what is between them; left: masks that there may still be.
function scores_of(e, ref, shape, left)
	local f = product_of(e, ref)
	if f or left == 0 then return f end
	local node = only(e, ref, 'add') or only(e, ref, 'where') or only_view(e, ref)
	if not node or node.attrs.act or node.attrs.out then return end
	if node.op == 'add' then return of_sum(e, node, shape, left - 1) end
	if node.op ~= 'where' then return of_windows(e, node, shape, left - 1) end
	local inner, mask = without_replaced(e, node, shape)
	return inner and masked(scores_of(e, inner, shape, left - 1), mask)
end

-- 1 / sqrt(d) where it is that but for roundings.
local function exact(scale, width)
	local usual = math.type(width) == 'integer' and 1 / math.sqrt(width) or 0
	return math.abs(scale - usual) <= 1e-6 * usual and usual or scale
end

local function is_float(e, ref)
	local r = e:result_of(ref)
	return (r.dtype == 'float32' or r.dtype == 'float64') and not r.spec
end

local function found_at(e, node)
	local softmax = not node.mode and not node.attrs.out and #node.results[1].shape == 4 and softmax_of(e, node.inputs[1])
	local f = softmax and type(softmax.inputs[1]) == 'string' and scores_of(e, softmax.inputs[1], softmax.results[1].shape, MASKS)
	if not f or type(node.inputs[2]) ~= 'string' or type(f.product.inputs[1]) ~= 'string' or type(f.product.inputs[2]) ~= 'string' then return end
	local k_shape, v_shape, shape = shape_of(e, f.product.inputs[2]), shape_of(e, node.inputs[2]), softmax.results[1].shape
	if #k_shape ~= 4 or #v_shape ~= 4 or #shape_of(e, f.product.inputs[1]) ~= 4 then return end
	for i = 1, 2 do
		if k_shape[i] ~= shape[i] or v_shape[i] ~= shape[i] then return end
	end
	local q, on_q = unscaled(e, f.product.inputs[1], true)
	local k, on_k = turned(e, f.product.inputs[2], k_shape)
	if not k or not is_float(e, q) or not is_float(e, node.inputs[2]) or shape_of(e, q)[1] ~= shape[1] or shape_of(e, q)[2] ~= shape[2] then return end
	f.q, f.k, f.v = q, k, heads_of(e, node.inputs[2], v_shape)
	f.scale = exact(f.scale * on_q * on_k, k_shape[3])
	return f
end

-- Fewer heads of k and of v are a matter of both.
local function heads(e, edge, all)
	return type(edge) == 'string' and shape_of(e, edge)[2] or all
end

local function replace(e, node, f)
	local shape = f.product.results[1].shape
	local q_heads = shape[2]
	if heads(e, f.k, q_heads) ~= heads(e, f.v, q_heads) then return false end
	local function edge(x) return type(x) == 'string' and x or x(node) end
	local inputs = {f.q, edge(f.k), edge(f.v)}
	local attrs = {scale = f.scale, softcap = f.cap}
	if #f.masks > 0 then
		local mask = joined(e, f.masks, node, e:result_of(f.q).dtype)
		local value = constant(e, mask)
		local means = value and meaning(value, shape[3], shape[4])
		if means == 'causal' then attrs.causal = true elseif means ~= 'none' then inputs[4] = mask end
	end
	e:change(node, {op = 'attention', inputs = inputs, attrs = attrs})
	return attrs.causal and 'causal' or inputs[4] and 'with a mask' or nil, true
end

return {group = 'layers', needs = {'softmax'}, text = 'attention that is spelled out becomes one op', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local f = node.op == 'matmul' and found_at(e, node)
		if f then
			local how, done = replace(e, node, f)
			if done then say(name, ('matmul and what it uses become attention%s'):format(how and ', ' .. how or '')) end
		end
	end
end}
