-- SPDX-License-Identifier: MIT
-- Pass insert_borders: inserts a dequantize between codes and an op that has no integer version for them.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'
local ops = internal.import 'nn/graph/ops'

local function takes_codes(node)
	if node.mode or node.traced or codes.CONVERSIONS[node.op] then return true end
	local form, info = ops.form(node.op, node), ops.info(node.op)
	if form and form.gives == 'same' then return not form.fits or (form.fits(node)) == true end
	return info.native or info.view
end

return {text = 'dequantize between codes and float ops', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		for at, ref in ipairs(takes_codes(node) and {} or node.inputs) do
			if type(ref) == 'string' and codes.are_codes(e, ref) then
				local decoded = ref:gsub(':', '_') .. '.dequantize'
				if not e.nodes[decoded] or e.nodes[decoded].inputs[1] ~= ref then
					decoded = e:fresh(decoded)
					e:add({name = decoded, op = 'dequantize', inputs = {ref}, attrs = {}, module = node.module, kind = node.kind,
						results = {{shape = e:result_of(ref).shape, dtype = 'float32'}}}, name)
				end
				e:set_input(e.nodes[name], at, decoded)
				say(decoded, 'before ' .. name)
			end
		end
	end
end}
