-- SPDX-License-Identifier: MIT
-- Quantized form of elementwise functions of one tensor: a table of the result for every input code, if the spec of
-- the result is known. Scalar operands are part of the function (quant/paths/table_int.c).
local function one_tensor(node)
	local tensors = 0
	for _, ref in ipairs(node.inputs) do tensors = tensors + (type(ref) == 'string' and 1 or 0) end
	return tensors == 1, 'one tensor beside numbers'
end

-- Every elementwise op, except those with a form in an earlier file.
local unary, other = {}, {}
for _, list in ipairs {tensor.ops(), nn.ops()} do
	for _, op in ipairs(list) do
		if op.table then table.insert(op.arity_max == 1 and unary or other, op.name) end
	end
end

return {
	{ops = unary, inputs = {1}, weights = {}, gives = 'codes', needs = true},
	{ops = other, inputs = {1, 2}, weights = {}, numbers = true, fits = one_tensor, gives = 'codes', needs = true},
}
