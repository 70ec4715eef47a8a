-- SPDX-License-Identifier: MIT
-- Pass merge_equal: merges quantize, dequantize or requantize nodes with the same input and spec.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'

return {group = 'fuse', needs = {'quantize', 'dequantize', 'requantize'}, text = 'two equal quantize or dequantize of one value', run = function(e, say)
	local seen = {}
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		if codes.CONVERSIONS[node.op] then
			local key = ('%s|%s|%s'):format(node.op, node.inputs[1], node.attrs.spec and codes.key(node.attrs.spec) or '')
			if seen[key] then
				e:redirect(name, seen[key])
				say(name, 'equal to ' .. seen[key])
			else
				seen[key] = name
			end
		end
	end
end}
