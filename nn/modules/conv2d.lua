-- SPDX-License-Identifier: MIT
-- nn.Conv2d: a convolution of images (N, C, H, W) with a weight (out, C / groups, kh, kw).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

local function window(options, name)
	return options[name] and module.window('Conv2d', name, options[name], 1)
end

-- The patches of x that the kernel is multiplied with: (images * pixels, inputs / groups * kh * kw), with groups as a first axis where there
-- are several. They are what a kernel with a single 1 at each of its places gives.
local function columns(self, x)
	local _, inputs, kh, kw = table.unpack(self.sizes)
	local g, channels = self.geometry, x:size(2)
	local taps = tensor.eye(kh * kw):to(x:device()):view(1, kh * kw, 1, kh, kw):expand(channels, kh * kw, 1, kh, kw):reshape(channels * kh * kw, 1, kh, kw)
	local y = x:conv2d(taps, {stride = g.stride, pad = g.pad, autopad = g.autopad, dilation = g.dilation, groups = channels})
	local pixels = y:size(1) * y:size(3) * y:size(4)
	local groups = channels // inputs
	y = y:permute(1, 3, 4, 2)
	if groups == 1 then return y:reshape(pixels, channels * kh * kw) end
	return y:reshape(pixels, groups, inputs * kh * kw):transpose(1, 2)
end

return module.define(nn, {
	name = 'Conv2d', word = 'conv',
	usage = 'nn.Conv2d(inputs, outputs, kernel, {stride=1, pad=0, dilation=1, groups=1, bias=true})  nn.Conv2d(inputs, outputs, kernel, stride, pad)',
	text = [[A layer x:conv2d(weight, bias) for images (N, inputs, H, W): weight is (outputs, inputs / groups, kh, kw), bias (outputs).
kernel, stride, pad and dilation are a number or {height, width}; pad may be {top, bottom, left, right}, or a word: 'same' gives a
result of the size of x (divided by the stride and rounded up) and adds an odd row or column last, 'same_lower' first; 'valid' adds none. Both are initialized with uniform
random numbers within 1/sqrt(inputs / groups * kh * kw), as in PyTorch.]],
	options = {{'stride', 'any', 'step of the window (default 1)'}, {'pad', 'any', 'zeros around the image (default 0)'},
		{'dilation', 'any', 'spacing of the weights (default 1)'}, {'groups', 'integer', 'independent groups of channels (default 1)'},
		{'bias', 'true or false', 'add a bias (default true)'}}, positional = {'stride', 'pad', 'dilation', 'groups', 'bias'},
	example = [[m = nn.Conv2d(3, 8, 3, {pad=1})
print(m(tensor.ones(2, 3, 16, 16)):size())  --> 2 8 16 16]],
	init = function(self, options, inputs, outputs, kernel)
		inputs = module.size('Conv2d', 'inputs', inputs)
		outputs = module.size('Conv2d', 'outputs', outputs)
		kernel = module.window('Conv2d', 'kernel', kernel, 1)
		if type(kernel) == 'number' then kernel = {kernel, kernel} end
		local groups = module.size('Conv2d', 'groups', options.groups or 1)
		if inputs % groups ~= 0 or outputs % groups ~= 0 then
			base.fail('Conv2d: groups: wanted a divisor of %d inputs and %d outputs, got %d', inputs, outputs, groups)
		end
		local pad, autopad = module.pad('Conv2d', options.pad)
		self.geometry = {stride = window(options, 'stride'), pad = pad, autopad = autopad, dilation = window(options, 'dilation'),
			groups = options.groups and groups}
		self.act = false
		local bound = 1 / math.sqrt(inputs // groups * kernel[1] * kernel[2])
		module.parameter(self, 'weight', tensor.rand(outputs, inputs // groups, kernel[1], kernel[2]):mul_(2 * bound):sub_(bound))
		self.bias, self.sizes = false, {self.weight:size()}
		if options.bias ~= false then module.parameter(self, 'bias', tensor.rand(outputs):mul_(2 * bound):sub_(bound)) end
	end,
	weights = {'weight'}, in_parts = true, takes_flat = true,
	resized = function(self) self.sizes = {self.weight:size()} end,
	scaled = {'weight', 'bias'},
	columns = columns, column_groups = function(self) return self.geometry.groups or 1 end,
	-- shape: of a weight that is a matrix of codes
	compute = function(self, x, weight, out, shape)
		local o = {stride = self.geometry.stride, pad = self.geometry.pad, autopad = self.geometry.autopad, dilation = self.geometry.dilation,
			groups = self.geometry.groups, k = shape and {shape[3], shape[4]}, act = self.act or nil, out = out}
		if self.bias then return x:conv2d(weight, self.bias, o) end
		return x:conv2d(weight, o)
	end,
	forward = function(self, x) return self:compute(module.real(x, self.weight), self.weight) end,
	node = {op = 'conv2d', attrs = {act = true, stride = true, pad = true, dilation = true, groups = true}, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs)
		local function short(list) return type(list) == 'table' and #list == 1 and list[1] or list end
		self.geometry = {stride = short(attrs.stride), pad = short(attrs.pad), dilation = short(attrs.dilation), groups = attrs.groups}
		self.act, self.sizes = attrs.act or false, {self.weight:size()}
	end,
	describe = function(self)
		local outputs, inputs, kh, kw = table.unpack(self.sizes)
		return ('%d, %d, {%d,%d}%s%s%s'):format(inputs * (self.geometry.groups or 1), outputs, kh, kw,
			module.fields_text(self.geometry, {'stride', 'pad', 'autopad', 'dilation', 'groups'}),
			self.bias and '' or ', bias=false', self.act and ', act=' .. self.act or '')
	end,
})
