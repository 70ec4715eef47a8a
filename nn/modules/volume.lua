-- SPDX-License-Identifier: MIT
-- Convolution and pooling of volumes (N, C, D, H, W) as modules.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- A number, {depth, height, width} or, with `sides`, {front, back, top, bottom, left, right}.
local function window(class, name, value, least, sides)
	if value == nil or type(value) == 'number' then return value and module.size(class, name, value, least) end
	if type(value) ~= 'table' or getmetatable(value) or #value ~= 3 and not (sides and #value == 6) then
		base.fail('%s: %s: wanted a number or {depth, height, width}, got %s', class, name, type(value) == 'table' and ('a table of %d'):format(#value) or base.describe(value))
	end
	local list = {}
	for i, n in ipairs(value) do list[i] = module.size(class, name, n, least) end
	return list
end

local function geometry(class, options)
	return {stride = window(class, 'stride', options.stride, 1), pad = window(class, 'pad', options.pad, 0, true),
		dilation = window(class, 'dilation', options.dilation, 1), ceilmode = options.ceilmode or nil}
end

local STRIDE, PAD = {'stride', 'any', 'step of the window'}, {'pad', 'any', 'border around the volume (default 0)'}
local CEIL = {'ceilmode', 'true or false', 'a last window that does not fit counts (default false)'}
local FIELDS = {'stride', 'pad', 'dilation', 'groups', 'ceilmode', 'countincludepad'}
local HOW = ' kernel, stride, pad and dilation are a number or {depth, height, width}.'

local function kernel_text(k) return type(k) == 'table' and '{' .. table.concat(k, ',') .. '}' or tostring(k) end

module.define(nn, {
	name = 'Conv3d', word = 'conv',
	usage = 'nn.Conv3d(inputs, outputs, kernel, {stride=1, pad=0, dilation=1, groups=1, bias=true})',
	text = [[A layer x:conv3d(weight, bias) for volumes (N, inputs, D, H, W): weight is (outputs, inputs / groups, kd, kh, kw), bias (outputs), both
initialized as in nn.Conv2d.]] .. HOW,
	options = {STRIDE, PAD, {'dilation', 'any', 'spacing of the weights (default 1)'}, {'groups', 'integer', 'independent groups of channels (default 1)'},
		{'bias', 'true or false', 'add a bias (default true)'}}, positional = {'stride', 'pad', 'dilation', 'groups', 'bias'},
	example = 'print(nn.Conv3d(2, 4, 3, {pad=1})(tensor.ones(1, 2, 4, 5, 6)):size())  --> 1 4 4 5 6',
	init = function(self, options, inputs, outputs, kernel)
		inputs, outputs = module.size('Conv3d', 'inputs', inputs), module.size('Conv3d', 'outputs', outputs)
		if kernel == nil then base.fail('Conv3d: kernel: wanted a number or {depth, height, width}, got nil') end
		kernel = window('Conv3d', 'kernel', kernel, 1)
		local k = type(kernel) == 'table' and kernel or {kernel, kernel, kernel}
		local groups = module.size('Conv3d', 'groups', options.groups or 1)
		if inputs % groups ~= 0 or outputs % groups ~= 0 then
			base.fail('Conv3d: groups: wanted a divisor of %d inputs and %d outputs, got %d', inputs, outputs, groups)
		end
		self.geometry = geometry('Conv3d', options)
		self.geometry.groups = options.groups and groups
		local bound = 1 / math.sqrt(inputs // groups * k[1] * k[2] * k[3])
		module.parameter(self, 'weight', tensor.rand(outputs, inputs // groups, k[1], k[2], k[3]):mul_(2 * bound):sub_(bound))
		self.bias, self.act, self.sizes = false, false, {self.weight:size()}
		if options.bias ~= false then module.parameter(self, 'bias', tensor.rand(outputs):mul_(2 * bound):sub_(bound)) end
	end,
	weights = {'weight'}, in_parts = true, takes_flat = true,
	-- shape: of a weight that is a matrix of codes
	compute = function(self, x, weight, out, shape)
		local o = {k = shape and {shape[3], shape[4], shape[5]}, act = self.act or nil, out = out}
		for name, value in next, self.geometry do o[name] = value end
		if self.bias then return x:conv3d(weight, self.bias, o) end
		return x:conv3d(weight, o)
	end,
	forward = function(self, x) return self:compute(module.real(x, self.weight), self.weight) end,
	describe = function(self)
		local s = self.sizes
		return ('%d, %d, {%d,%d,%d}%s%s%s'):format(s[2] * (self.geometry.groups or 1), s[1], s[3], s[4], s[5], module.fields_text(self.geometry, FIELDS),
			self.bias and '' or ', bias=false', self.act and ', act=' .. self.act or '')
	end,
})

module.define(nn, {
	name = 'MaxPool3d', word = 'maxpool',
	usage = 'nn.MaxPool3d(kernel, {stride=, pad=, dilation=, ceilmode=})',
	text = [[x:maxpool3d as a module: the largest element of each window of a volume.]] .. HOW,
	options = {STRIDE, PAD, {'dilation', 'any', 'distance of the elements of a window (default 1)'}, CEIL}, positional = {'stride', 'pad', 'dilation'},
	example = 'print(nn.MaxPool3d(2)(tensor.ones(1, 3, 4, 4, 8)):size())  --> 1 3 2 2 4',
	integer = true,
	init = function(self, options, kernel)
		if kernel == nil then base.fail('MaxPool3d: kernel: wanted a number or {depth, height, width}, got nil') end
		self.kernel, self.geometry = window('MaxPool3d', 'kernel', kernel, 1), geometry('MaxPool3d', options)
	end,
	forward = function(self, x) return module.input(self, x):maxpool3d(self.kernel, self.geometry) end,
	describe = function(self) return kernel_text(self.kernel) .. module.fields_text(self.geometry, FIELDS) end,
})

return module.define(nn, {
	name = 'AvgPool3d', word = 'avgpool',
	usage = 'nn.AvgPool3d(kernel, {stride=, pad=, ceilmode=, countincludepad=})  nn.AvgPool3d()',
	text = [[x:avgpool3d as a module: the mean of each window of a volume, without a kernel of the whole volume.]] .. HOW,
	options = {STRIDE, PAD, CEIL, {'countincludepad', 'true or false', 'padding is part of the mean (default true)'}},
	positional = {'stride', 'pad', 'ceilmode', 'countincludepad'},
	example = 'print(nn.AvgPool3d()(tensor.ones(1, 3, 4, 4, 8)):size())  --> 1 3 1 1 1',
	init = function(self, options, kernel)
		self.kernel, self.geometry = window('AvgPool3d', 'kernel', kernel, 1) or false, geometry('AvgPool3d', options)
		if options.countincludepad == false then self.geometry.countincludepad = false end
	end,
	forward = function(self, x) return module.real(x):avgpool3d(self.kernel or nil, self.geometry) end,
	describe = function(self) return (self.kernel and kernel_text(self.kernel) or 'all') .. module.fields_text(self.geometry, FIELDS) end,
})
