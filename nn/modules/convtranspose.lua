-- SPDX-License-Identifier: MIT
-- nn.ConvTranspose2d and nn.ConvTranspose1d: transposed convolutions with a weight (in, out / groups, kernel).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- Makes weight and bias; sizes: those of the kernel.
local function layer(self, options, inputs, outputs, sizes)
	local class = module.class_of(self).name
	local groups = module.size(class, 'groups', options.groups or 1)
	if inputs % groups ~= 0 or outputs % groups ~= 0 then
		base.fail('%s: groups: wanted a divisor of %d inputs and %d outputs, got %d', class, inputs, outputs, groups)
	end
	self.geometry.groups = options.groups and groups
	local taps = 1
	for _, n in ipairs(sizes) do taps = taps * n end
	local bound = 1 / math.sqrt(outputs // groups * taps)
	module.parameter(self, 'weight', tensor.rand(inputs, outputs // groups, table.unpack(sizes)):mul_(2 * bound):sub_(bound))
	self.act, self.bias, self.sizes = false, false, {self.weight:size()}
	if options.bias ~= false then module.parameter(self, 'bias', tensor.rand(outputs):mul_(2 * bound):sub_(bound)) end
end

local function computes(op)
	return function(self, x, weight, out)
		local o = {act = self.act or nil, out = out}
		for name, value in next, self.geometry do o[name] = value end
		if self.bias then return x[op](x, weight, self.bias, o) end
		return x[op](x, weight, o)
	end
end

local function text(self)
	local inputs, outputs = self.sizes[1], self.sizes[2] * (self.geometry.groups or 1)
	local kernel = self.sizes[4] and ('{%d,%d}'):format(self.sizes[3], self.sizes[4]) or tostring(self.sizes[3])
	return ('%d, %d, %s%s%s%s'):format(inputs, outputs, kernel,
		module.fields_text(self.geometry, {'stride', 'pad', 'autopad', 'outputpad', 'groups', 'dilation'}),
		self.bias and '' or ', bias=false', self.act and ', act=' .. self.act or '')
end

local function forward(self, x) return self:compute(module.real(x, self.weight), self.weight) end

local function options(kind)
	return {{'stride', kind, 'distance of the copies of the kernel (default 1)'},
		{'pad', 'any', "cut off at the edges of the result, or 'same': a result of size * stride (default 0)"},
		{'outputpad', kind, 'added at the end of the result (default 0)'}, {'groups', 'integer', 'independent groups of channels (default 1)'},
		{'bias', 'true or false', 'add a bias (default true)'}, {'dilation', kind, 'spacing of the weights (default 1)'}}
end
local POSITIONAL = {'stride', 'pad', 'outputpad', 'groups', 'bias', 'dilation'}

module.define(nn, {
	name = 'ConvTranspose1d', word = 'conv',
	usage = 'nn.ConvTranspose1d(inputs, outputs, kernel, {stride=1, pad=0, outputpad=0, groups=1, bias=true, dilation=1})',
	text = [[A layer x:convtranspose1d(weight, bias) for x (N, inputs, L): weight is (inputs, outputs / groups, kernel), bias (outputs). Both are
initialized with uniform random numbers within 1/sqrt(outputs / groups * kernel), as in PyTorch.]],
	options = options 'integer', positional = POSITIONAL,
	example = [[m = nn.ConvTranspose1d(3, 8, 4, {stride=2, pad=1})
print(m(tensor.ones(2, 3, 16)):size())  --> 2 8 32]],
	init = function(self, given, inputs, outputs, kernel)
		inputs, outputs = module.size('ConvTranspose1d', 'inputs', inputs), module.size('ConvTranspose1d', 'outputs', outputs)
		kernel = module.size('ConvTranspose1d', 'kernel', kernel)
		self.geometry = module.along('ConvTranspose1d', given)
		self.geometry.outputpad = given.outputpad and module.size('ConvTranspose1d', 'outputpad', given.outputpad, 0)
		layer(self, given, inputs, outputs, {kernel})
	end,
	weights = {'weight'}, per = 2, compute = computes 'convtranspose1d', forward = forward, describe = text,
})

return module.define(nn, {
	name = 'ConvTranspose2d', word = 'conv',
	usage = 'nn.ConvTranspose2d(inputs, outputs, kernel, {stride=1, pad=0, outputpad=0, groups=1, bias=true, dilation=1})',
	text = [[A layer x:convtranspose2d(weight, bias) for images (N, inputs, H, W): weight is (inputs, outputs / groups, kh, kw), bias (outputs).
kernel, stride, pad, outputpad and dilation are a number or {height, width}; pad may be {top, bottom, left, right} or 'same', which gives a
result of the size of x times the stride. Both are initialized with uniform random numbers within 1/sqrt(outputs / groups * kh * kw), as in
PyTorch.]],
	options = options 'any', positional = POSITIONAL,
	example = [[m = nn.ConvTranspose2d(3, 8, 4, {stride=2, pad=1})
print(m(tensor.ones(2, 3, 16, 16)):size())  --> 2 8 32 32]],
	init = function(self, given, inputs, outputs, kernel)
		local class = 'ConvTranspose2d'
		inputs, outputs = module.size(class, 'inputs', inputs), module.size(class, 'outputs', outputs)
		kernel = module.window(class, 'kernel', kernel, 1)
		local pad, autopad = module.pad(class, given.pad)
		self.geometry = {stride = given.stride and module.window(class, 'stride', given.stride, 1), pad = pad, autopad = autopad,
			outputpad = given.outputpad and module.window(class, 'outputpad', given.outputpad, 0),
			dilation = given.dilation and module.window(class, 'dilation', given.dilation, 1)}
		layer(self, given, inputs, outputs, type(kernel) == 'number' and {kernel, kernel} or kernel)
	end,
	weights = {'weight'}, per = 2, compute = computes 'convtranspose2d', forward = forward, describe = text,
})
