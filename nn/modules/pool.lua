-- SPDX-License-Identifier: MIT
-- Pooling of images (N, C, H, W) as modules.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

local function window(self, options, kernel)
	local class = module.class_of(self).name
	self.kernel = kernel == 'all' and kernel or module.window(class, 'kernel', kernel, 1)
	for name, value in next, kernel == 'all' and options or {} do
		if name ~= 'name' and value then base.fail('%s: %s: wanted a kernel with it, got none', class, name) end
	end
	local pad, autopad = module.pad(class, options.pad)
	self.geometry = {stride = options.stride and module.window(class, 'stride', options.stride, 1), pad = pad, autopad = autopad,
		dilation = options.dilation and module.window(class, 'dilation', options.dilation, 1), ceilmode = options.ceilmode or nil,
		indices = options.indices or nil}
	if options.countincludepad == false then self.geometry.countincludepad = false end
end

local function text(self)
	local k = self.kernel
	return (type(k) == 'table' and ('{%d,%d}'):format(k[1], k[2]) or tostring(k)) ..
		module.fields_text(self.geometry, {'stride', 'pad', 'autopad', 'dilation', 'ceilmode', 'indices', 'countincludepad'})
end

-- The geometry, with out= added.
local function with_out(geometry, out)
	local made = {out = out}
	for name, value in next, geometry do made[name] = value end
	return made
end

local STRIDE = {'stride', 'any', 'step of the window (default: the kernel)'}
local PAD = {'pad', 'any', "border, or 'same', 'same_lower' or 'valid' (default 0)"}
local CEIL = {'ceilmode', 'true or false', 'a last window that does not fit counts (default false)'}
local HOW = " kernel and stride are a number or {height, width}; pad may be {top, bottom, left, right} or a word, as in nn.Conv2d."

module.define(nn, {
	name = 'MaxPool2d', word = 'maxpool',
	usage = 'nn.MaxPool2d(kernel, {stride=, pad=, dilation=, indices=, ceilmode=})  nn.MaxPool2d(kernel, stride, pad)',
	text = [[x:maxpool2d as a module: the largest element of each window, with indices=true also its place.]] .. HOW,
	options = {STRIDE, PAD, {'dilation', 'any', 'distance of the elements of a window (default 1)'},
		{'indices', 'true or false', 'a second result: the places of the largest elements (default false)'}, CEIL},
	positional = {'stride', 'pad', 'dilation', 'indices', 'ceilmode'},
	example = 'print(nn.MaxPool2d(2)(tensor.ones(1, 3, 8, 8)):size())  --> 1 3 4 4',
	integer = true,
	init = function(self, given, kernel) window(self, given, module.window('MaxPool2d', 'kernel', kernel, 1)) end,
	forward = function(self, x) return module.input(self, x):maxpool2d(self.kernel, self.geometry) end,
	describe = text,
})

return module.define(nn, {
	name = 'AvgPool2d', word = 'avgpool',
	usage = 'nn.AvgPool2d(kernel, {stride=, pad=, ceilmode=, countincludepad=})  nn.AvgPool2d(kernel, stride, pad)  nn.AvgPool2d()',
	text = [[x:avgpool2d as a module: the mean of each window; without a kernel the mean of the whole image, (N, C, 1, 1).]] .. HOW,
	options = {STRIDE, PAD, CEIL, {'countincludepad', 'true or false', 'padding is part of the mean (default true)'}},
	positional = {'stride', 'pad', 'ceilmode', 'countincludepad'},
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
