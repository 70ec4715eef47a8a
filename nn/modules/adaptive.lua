-- SPDX-License-Identifier: MIT
-- Pooling of images (N, C, H, W) to a given size as modules.
local _, internal = ...
local module = internal.import 'nn/base/module'

local function size(self, _, value)
	self.size = module.window(module.class_of(self).name, 'size', value, 1)
end

local function text(self)
	return type(self.size) == 'table' and ('{%d,%d}'):format(self.size[1], self.size[2]) or tostring(self.size)
end

module.define(nn, {
	name = 'AdaptiveMaxPool2d', word = 'maxpool',
	usage = 'nn.AdaptiveMaxPool2d(size)  nn.AdaptiveMaxPool2d{h, w}',
	text = [[x:adaptivemaxpool2d as a module: the largest elements of as many windows as size says, a number or {height, width}.]],
	example = 'print(nn.AdaptiveMaxPool2d(2)(tensor.ones(1, 3, 7, 8)):size())  --> 1 3 2 2',
	integer = true, init = size,
	forward = function(self, x) return module.input(self, x):adaptivemaxpool2d(self.size) end,
	describe = text,
})

return module.define(nn, {
	name = 'AdaptiveAvgPool2d', word = 'avgpool',
	usage = 'nn.AdaptiveAvgPool2d(size)  nn.AdaptiveAvgPool2d{h, w}',
	text = [[x:adaptiveavgpool2d as a module: the means of as many windows as size says, a number or {height, width}.]],
	example = 'print(nn.AdaptiveAvgPool2d(2)(tensor.ones(1, 3, 7, 8)):size())  --> 1 3 2 2',
	init = size, sites = {main = {'input'}},
	-- Equal windows may run on codes: x:avgpool2d with the spec of the result.
	forward = function(self, given)
		local out, x = module.site(self, 'main', module.input(self, given))
		if not out then return x:adaptiveavgpool2d(self.size) end
		local h, w = table.unpack(type(self.size) == 'table' and self.size or {self.size, self.size})
		return x:avgpool2d({x:size(3) // h, x:size(4) // w}, {out = out})
	end,
	describe = text,
})
