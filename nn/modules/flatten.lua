-- SPDX-License-Identifier: MIT
-- nn.Flatten: all axes behind the first as one. A view, for codes as well.
local _, internal = ...
local module = internal.import 'module'

return module.define(nn, {
	name = 'Flatten',
	usage = 'nn.Flatten()',
	text = [[(N, …) to (N, n): all axes behind the first become one. Quantized tensors keep their parameters.]],
	example = 'print(nn.Flatten()(tensor.zeros(2, 1, 28, 28)):size())  --> 2 784',
	integer = true,
	view = true,
	init = function() end,
	forward = function(_, x)
		if x:dim() == 2 then return x end
		return x:reshape(x:size(1), x:nelem() // math.max(1, x:size(1)))
	end,
})
