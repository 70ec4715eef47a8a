-- SPDX-License-Identifier: MIT
-- nn.Flatten: merges all axes from a given one on. A view, also of codes.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'Flatten',
	usage = 'nn.Flatten()  nn.Flatten(axis)',
	text = [[(N, …) to (N, n): merges all axes from `axis` on into one. Axes count from 1: nn.Flatten(2) is the default and keeps the first;
nn.Flatten(1) merges all axes. Quantized tensors keep their parameters.]],
	example = 'print(nn.Flatten()(tensor.zeros(2, 1, 28, 28)):size())  --> 2 784',
	options = {{'axis', 'positive integer', 'the first of the axes that become one (default 2)'}}, positional = {'axis'},
	integer = true,
	view = true,
	init = function(self, options) self.axis = module.size('Flatten', 'axis', options.axis or 2) end,
	forward = function(self, x)
		local axis, rank = self.axis, module.input(self, x):dim()
		if rank < axis then base.fail('Flatten: wanted a tensor of at least %d axes, got %s', axis, internal.describe(x)) end
		if rank == axis then return x end
		local shape, n = {x:size()}, 1
		for i = axis, rank do n, shape[i] = n * shape[i], nil end
		shape[axis] = n
		return x:reshape(table.unpack(shape))
	end,
	describe = function(self) return self.axis ~= 2 and tostring(self.axis) or '' end,
})
