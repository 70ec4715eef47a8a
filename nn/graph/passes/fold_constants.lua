-- SPDX-License-Identifier: MIT
-- Pass fold_constants: evaluates nodes whose inputs are all constant. Not folded: decoding of codes (it would undo
-- the memory savings), random numbers, and results that take more than a MiB beyond their inputs.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local size = internal.import 'nn/graph/size'

local RANDOM = {rand = true, randn = true, randint = true, dropout = true, empty = true}
local LIMIT = 1 << 20

-- Whether all inputs are constants or numbers: cheap to know, and false of most nodes.
local function all_constant(e, node)
	for _, ref in ipairs(node.inputs) do
		local producer = e.nodes[ref]
		if type(ref) ~= 'number' and not (producer and producer.op == 'const') then return false end
	end
	return true
end

local function operands_of(e, node)
	local operands, bytes = {}, 0
	for i, ref in ipairs(node.inputs) do
		local producer = type(ref) == 'string' and e.nodes[core.split(ref)]
		if type(ref) == 'number' then
			operands[i] = ref
		elseif producer and producer.op == 'const' and not producer.value:quantized() then
			operands[i], bytes = producer.value, bytes + producer.value:nbytes()
		else
			return
		end
	end
	return operands, bytes
end

local function foldable(node)
	return node.op ~= 'input' and node.op ~= 'const' and not RANDOM[node.op] and #node.results == 1 and not size.varies(node.attrs) and
		not size.varies(node.results[1].shape) and not node.mode and not ops.info(node.op).list_out
end

return {group = 'fold', text = 'nodes whose inputs are all constant', run = function(e, say)
	local _ <close> = internal.nograd()
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local operands, bytes = nil, 0
		if all_constant(e, node) and foldable(node) then operands, bytes = operands_of(e, node) end
		if operands and ops.bytes(node.results[1], 1) <= LIMIT + bytes then
			local value = ops.apply(node.op, operands, node.attrs)[1]
			e:change(node, {op = 'const', inputs = {}, attrs = {}, value = value:clone(),
				results = {{shape = node.results[1].shape, dtype = node.results[1].dtype, spec = node.results[1].spec}}})
			say(name, node.op .. ' computed')
		end
	end
end}
