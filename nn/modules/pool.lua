-- SPDX-License-Identifier: MIT
-- Pooling of images (N, C, H, W) as modules.
local _, internal = ...
local base = internal.import 'base'
local module = internal.import 'module'

local function window(self, options, kernel)
	if kernel ~= nil and kernel ~= 'all' and type(kernel) ~= 'number' and type(kernel) ~= 'table' then
		base.fail('%s: kernel: wanted a number or {height, width}, got %s', module.class_of(self).name, base.describe(kernel))
	end
	self.kernel = kernel or 'all'
	self.geometry = {stride = options.stride, pad = options.pad}
end

local function text(self)
	local k = self.kernel
	return type(k) == 'table' and ('{%d,%d}'):format(k[1], k[2]) or tostring(k)
end

local options = {{'stride', 'any', 'step of the window (default: the kernel)'}, {'pad', 'any', 'border (default 0)'}}

module.define(nn, {
	name = 'MaxPool2d', word = 'maxpool',
	usage = 'nn.MaxPool2d(kernel, {stride=, pad=})',
	text = [[x:maxpool2d as a module: the largest element of each window.]],
	options = {table.unpack(options)},
	example = 'print(nn.MaxPool2d(2)(tensor.ones(1, 3, 8, 8)):size())  --> 1 3 4 4',
	integer = true,
	init = function(self, given, kernel)
		if not kernel then base.fail('MaxPool2d: kernel: wanted a number or {height, width}, got nothing') end
		window(self, given, kernel)
	end,
	forward = function(self, x) return x:maxpool2d(self.kernel, self.geometry) end,
	describe = text,
})

return module.define(nn, {
	name = 'AvgPool2d', word = 'avgpool',
	usage = 'nn.AvgPool2d(kernel, {stride=, pad=})  nn.AvgPool2d()',
	text = [[x:avgpool2d as a module: the mean of each window; without a kernel the mean of the whole image, (N, C, 1, 1).]],
	options = {table.unpack(options)},
	example = 'print(nn.AvgPool2d()(tensor.ones(1, 3, 8, 8)):size())  --> 1 3 1 1',
	init = window,
	forward = function(self, x)
		if self.kernel == 'all' then return x:avgpool2d() end
		return x:avgpool2d(self.kernel, self.geometry)
	end,
	describe = text,
})
