-- SPDX-License-Identifier: MIT
-- Pass fuse_requantize: dequantize followed by quantize. Under the parameters that the codes have already both go: codes of up to
-- 16 bits come back from float32 as they were. Under others one requantize does both, bit for bit.
local _, internal = ...
local codes = internal.import 'graph_codes'

return {group = 'fuse', text = 'dequantize and quantize behind each other', run = function(e, say)
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
