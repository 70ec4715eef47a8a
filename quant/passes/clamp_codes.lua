-- SPDX-License-Identifier: MIT
-- Pass clamp_codes: act='relu6' of a layer whose codes end at 6 or below, which they do where their range was found behind it,
-- becomes act='relu': codes saturate there anyway, and a sum with relu becomes codes without being a float before. A relu of codes whose
-- zero point is the smallest integer of their type does nothing: the op before it saturates there.
local _, internal = ...
local codes = internal.import 'graph_codes'

-- Whether 6 has the largest code, or one beyond it.
local function ends_below(spec)
	local scale, zero = codes.params(spec)
	local largest = (1 << (spec.dtype:sub(1, 1) == 'u' and spec.bits or spec.bits - 1)) - 1
	local steps = 6 / string.unpack('<f', string.pack('<f', scale))
	return steps >= 2.0 ^ 31 or math.floor(steps + 0.5) + zero >= largest
end

-- Whether no code stands for a negative value.
local function is_non_negative(e, ref)
	local spec = type(ref) == 'string' and codes.are_codes(e, ref) and codes.spec_of(e, ref)
	if not spec or not codes.fixed(spec) or spec.scheme ~= 'asymmetric' then return false end
	return select(2, codes.params(spec)) == (spec.dtype:sub(1, 1) == 'u' and 0 or -(1 << (spec.bits - 1)))
end

return {group = 'fuse', text = 'relu6 into relu, and relu into nothing, where the codes end there', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local out = node.attrs.act == 'relu6' and node.mode and node.mode ~= 'weight_only' and node.attrs.out
		if out and codes.fixed(out) and out.scheme ~= 'log' and ends_below(out) then
			e:set_attr(node, 'act', 'relu')
			say(name, 'relu6 is relu: the codes end at 6 or below')
		end
		if node.op == 'relu' and is_non_negative(e, node.inputs[1]) then
			e:take_over(name, node.inputs[1])
			say(name, 'removed: the codes begin at 0')
		end
	end
end}
