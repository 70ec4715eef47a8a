-- SPDX-License-Identifier: MIT
-- Pass clamp_codes: act='relu6' of a layer whose codes end at 6 or below, as they do if the range was observed after
-- it, becomes act='relu': codes saturate there anyway, and a sum with relu is converted to codes without an
-- intermediate float. A relu of codes whose zero point is the smallest integer of their type is removed: the op
-- before it saturates there. A sum of codes that only a relu uses gets act='relu': its lowest code is the zero point.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'

-- Whether 6 is encoded as the largest code or saturates.
local function ends_below(spec)
	local scale, zero = codes.params(spec)
	local largest = (1 << (spec.dtype:sub(1, 1) == 'u' and spec.bits or spec.bits - 1)) - 1
	local steps = 6 / string.unpack('<f', string.pack('<f', scale))
	return steps >= 2.0 ^ 31 or math.floor(steps + 0.5) + zero >= largest
end

-- Whether no code decodes to a negative value.
local function is_non_negative(e, ref)
	local spec = type(ref) == 'string' and codes.are_codes(e, ref) and codes.spec_of(e, ref)
	if not spec or not codes.fixed(spec) or not spec.offset then return false end
	return select(2, codes.params(spec)) == (spec.dtype:sub(1, 1) == 'u' and 0 or -(1 << (spec.bits - 1)))
end

-- Whether the value is computed by an integer sum of codes.
local function is_sum(e, node)
	local function takes(spec) return spec and spec.affine and not spec.block end
	local out = node.op == 'add' and node.attrs.out
	if not out or node.attrs.act or not takes(out) or quant.dtype(out.dtype).kind == 'binary' then return false end
	for i = 1, 2 do
		local ref = node.inputs[i]
		if type(ref) ~= 'string' or not codes.are_codes(e, ref) or not takes(codes.spec_of(e, ref)) then return false end
	end
	return true
end

return {group = 'fuse', text = 'relu6 becomes relu, and relu is removed, where codes saturate there', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local out = node.attrs.act == 'relu6' and node.mode and node.mode ~= 'weight_only' and node.attrs.out
		if out and codes.fixed(out) and out.affine and ends_below(out) then
			e:set_attr(node, 'act', 'relu')
			say(name, 'relu6 becomes relu: the largest code decodes to 6 or less')
		end
		if node.op == 'relu' and is_non_negative(e, node.inputs[1]) then
			e:take_over(name, node.inputs[1])
			say(name, 'removed: the smallest code decodes to 0')
		elseif node.op == 'relu' and type(node.inputs[1]) == 'string' and e:only_user(node.inputs[1]) == node and is_sum(e, e.nodes[node.inputs[1]]) then
			local sum = e:set_attr(e.nodes[node.inputs[1]], 'act', 'relu')
			e:take_over(name, sum.name)
			say(name, 'fused into ' .. sum.name)
		end
	end
end}
