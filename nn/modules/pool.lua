-- SPDX-License-Identifier: MIT
-- Pooling of images (N, C, H, W) as modules.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- Pads are limited by the op as well: they are known to be too large here.
local function check_pad(class, pad, kernel)
	for i, value in ipairs(type(pad) == 'table' and pad or {pad, pad}) do
		local axis = type(pad) == 'table' and #pad == 4 and (i + 1) // 2 or i
		local most = (type(kernel) == 'table' and kernel[axis] or kernel) // 2
		if value > most then base.fail('%s: pad: wanted at most half of the kernel, %d, got %d', class, most, value) end
	end
	return pad
end

local function window(self, options, kernel)
	local class = module.class_of(self).name
	self.kernel = kernel == 'all' and kernel or module.window(class, 'kernel', kernel, 1)
	if kernel == 'all' and (options.stride or options.pad) then
		base.fail('%s: %s: wanted a kernel with it, got none', class, options.stride and 'stride' or 'pad')
	end
	self.geometry = {stride = options.stride and module.window(class, 'stride', options.stride, 1),
		pad = options.pad and check_pad(class, module.window(class, 'pad', options.pad, 0, true), self.kernel)}
end

local function text(self)
	local k = self.kernel
	return (type(k) == 'table' and ('{%d,%d}'):format(k[1], k[2]) or tostring(k)) .. module.fields_text(self.geometry, {'stride', 'pad'})
end

-- The geometry, with out= added.
local function with_out(geometry, out)
	return {stride = geometry.stride, pad = geometry.pad, out = out}
end

local options = {{'stride', 'any', 'step of the window (default: the kernel)'}, {'pad', 'any', 'border, at most half of the kernel (default 0)'}}
local HOW = ' kernel and stride are a number or {height, width}; pad may be {top, bottom, left, right}.'

module.define(nn, {
	name = 'MaxPool2d', word = 'maxpool',
	usage = 'nn.MaxPool2d(kernel, {stride=, pad=})  nn.MaxPool2d(kernel, stride, pad)',
	text = [[x:maxpool2d as a module: the largest element of each window.]] .. HOW,
	options = {table.unpack(options)}, positional = {'stride', 'pad'},
	example = 'print(nn.MaxPool2d(2)(tensor.ones(1, 3, 8, 8)):size())  --> 1 3 4 4',
	integer = true,
	init = function(self, given, kernel) window(self, given, module.window('MaxPool2d', 'kernel', kernel, 1)) end,
	forward = function(self, x) return module.input(self, x):maxpool2d(self.kernel, self.geometry) end,
	describe = text,
})

return module.define(nn, {
	name = 'AvgPool2d', word = 'avgpool',
	usage = 'nn.AvgPool2d(kernel, {stride=, pad=})  nn.AvgPool2d(kernel, stride, pad)  nn.AvgPool2d()',
	text = [[x:avgpool2d as a module: the mean of each window; without a kernel the mean of the whole image, (N, C, 1, 1).]] .. HOW,
	options = {table.unpack(options)}, positional = {'stride', 'pad'},
	example = 'print(nn.AvgPool2d()(tensor.ones(1, 3, 8, 8)):size())  --> 1 3 1 1',
	init = function(self, given, kernel) window(self, given, kernel == nil and 'all' or kernel) end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', module.input(self, given))
		if self.kernel == 'all' then return x:avgpool2d(out and {out = out}) end
		return x:avgpool2d(self.kernel, out and with_out(self.geometry, out) or self.geometry)
	end,
	describe = text,
})
