-- SPDX-License-Identifier: MIT
-- Pass fuse_requantize: dequantize followed by quantize. With the same parameters both are removed: codes of up to 16
-- bits survive the round trip through float32. With others one requantize replaces both, bit for bit.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'

return {group = 'fuse', needs = {'quantize', 'requantize'}, text = 'dequantize followed by quantize', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local ref = node.inputs[1]
		local before = node.op == 'quantize' and e.nodes[ref]
		if node.op == 'quantize' and codes.are_codes(e, ref) then -- of an integer op with out=
			node = e:change(node, {op = 'requantize'})
			say(name, 'takes codes')
		end
		if before and node.op == 'quantize' and before.op == 'dequantize' then
			local source = before.inputs[1]
			if codes.same_params(e, source, node.attrs.spec) then
				e:redirect(name, source)
				say(name, ('removed with %s: the same parameters'):format(before.name))
			else
				e:change(node, {op = 'requantize', inputs = {source}})
				say(name, ('one requantize with %s'):format(before.name))
			end
		elseif node.op == 'requantize' and codes.same_params(e, ref, node.attrs.spec) then
			e:redirect(name, ref)
			say(name, 'removed: the same parameters')
		end
	end
end}
