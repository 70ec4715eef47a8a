-- SPDX-License-Identifier: MIT
-- Quantized form of elementwise functions of one tensor: a table of the result for every code that comes in, where the spec of the
-- result is known. Numbers beside the tensor are part of the function (quant/paths/table_int.c).
local function one_tensor(node)
	local tensors = 0
	for _, ref in ipairs(node.inputs) do tensors = tensors + (type(ref) == 'string' and 1 or 0) end
	return tensors == 1, 'one tensor beside numbers'
end

return {
	{ops = {'relu6', 'tanh', 'sigmoid', 'silu', 'hardswish', 'softplus', 'gelu', 'leakyrelu', 'exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p',
		'sqrt', 'rsqrt', 'square', 'reciprocal', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'erf', 'abs', 'neg', 'round', 'floor', 'ceil', 'trunc',
		'sign', 'clamp'}, inputs = {1}, weights = {}, gives = 'codes', needs = true},
	{ops = {'div', 'pow', 'maximum', 'minimum'}, inputs = {1, 2}, weights = {}, numbers = true, fits = one_tensor, gives = 'codes', needs = true},
}
