-- SPDX-License-Identifier: MIT
-- Pooling of (N, C, L) as modules: that of images of one row.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

local function window(self, options, kernel)
	local class = module.class_of(self).name
	self.kernel = kernel == 'all' and kernel or module.size(class, 'kernel', kernel)
	for name, value in next, kernel == 'all' and options or {} do
		if name ~= 'name' and value then base.fail('%s: %s: wanted a kernel with it, got none', class, name) end
	end
	self.geometry = module.along(class, options)
	self.geometry.ceilmode, self.geometry.indices = options.ceilmode or nil, options.indices or nil
	if options.countincludepad == false then self.geometry.countincludepad = false end
end

local function text(self)
	return tostring(self.kernel) ..
		module.fields_text(self.geometry, {'stride', 'pad', 'autopad', 'dilation', 'ceilmode', 'indices', 'countincludepad'})
end

local STRIDE = {'stride', 'integer', 'step of the window (default: the kernel)'}
local PAD = {'pad', 'any', "a number, {left, right}, 'same', 'same_lower' or 'valid' (default 0)"}
local CEIL = {'ceilmode', 'true or false', 'a last window that does not fit counts (default false)'}

module.define(nn, {
	name = 'MaxPool1d', word = 'maxpool',
	usage = 'nn.MaxPool1d(kernel, {stride=, pad=, dilation=, indices=, ceilmode=})  nn.MaxPool1d(kernel, stride, pad)',
	text = [[x:maxpool1d as a module: the largest element of each window of x (N, C, L), with indices=true also its place.]],
	options = {STRIDE, PAD, {'dilation', 'integer', 'distance of the elements of a window (default 1)'},
		{'indices', 'true or false', 'a second result: the places of the largest elements (default false)'}, CEIL},
	positional = {'stride', 'pad', 'dilation', 'indices', 'ceilmode'},
	example = 'print(nn.MaxPool1d(2)(tensor.ones(1, 3, 8)):size())  --> 1 3 4',
	integer = true,
	init = function(self, given, kernel) window(self, given, kernel) end,
	forward = function(self, x) return module.input(self, x):maxpool1d(self.kernel, self.geometry) end,
	describe = text,
})

return module.define(nn, {
	name = 'AvgPool1d', word = 'avgpool',
	usage = 'nn.AvgPool1d(kernel, {stride=, pad=, ceilmode=, countincludepad=})  nn.AvgPool1d(kernel, stride, pad)  nn.AvgPool1d()',
	text = [[x:avgpool1d as a module: the mean of each window of x (N, C, L); without a kernel that of the whole axis, (N, C, 1).]],
	options = {STRIDE, PAD, CEIL, {'countincludepad', 'true or false', 'padding is part of the mean (default true)'}},
	positional = {'stride', 'pad', 'ceilmode', 'countincludepad'},
	example = 'print(nn.AvgPool1d(2)(tensor.ones(1, 3, 8)):size())  --> 1 3 4',
	init = function(self, given, kernel) window(self, given, kernel == nil and 'all' or kernel) end,
	sites = {avgpool2d1 = {'input'}},
	-- x:avgpool1d in its parts: the op that may run on codes takes images.
	forward = function(self, given)
		given = module.input(self, given)
		if given:dim() ~= 3 then base.fail('AvgPool1d: wanted x (n, c, l), got %s', base.describe(given)) end
		local out, x = module.site(self, 'avgpool2d1', given:unsqueeze(3))
		if self.kernel == 'all' then return x:avgpool2d(out and {out = out}):squeeze(3) end
		local g = self.geometry
		return x:avgpool2d({1, self.kernel}, {stride = g.stride and {1, g.stride}, autopad = g.autopad, ceilmode = g.ceilmode, out = out,
			pad = type(g.pad) == 'table' and {0, 0, g.pad[1], g.pad[2]} or g.pad and {0, g.pad}, countincludepad = g.countincludepad}):squeeze(3)
	end,
	describe = text,
})
