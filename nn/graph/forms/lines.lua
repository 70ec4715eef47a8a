-- SPDX-License-Identifier: MIT
-- Quantized form of softmax, layernorm, rmsnorm and rope: integer sums of codes, if the spec of the result is known;
-- weight and bias of a norm remain floats.
local function plain(node)
	return #node.inputs == 1 and not node.attrs.style and not node.attrs.dims, 'calls without style, dims and tables'
end

return {
	{ops = {'softmax'}, inputs = {1}, weights = {}, gives = 'codes', needs = true},
	{ops = {'layernorm', 'rmsnorm'}, inputs = {1}, weights = {}, gives = 'codes', needs = true,
		fits = function(node) return (node.attrs.axes or 1) == 1, 'rows along one axis' end},
	{ops = {'rope'}, inputs = {1}, weights = {}, gives = 'codes', needs = true, fits = plain},
}
