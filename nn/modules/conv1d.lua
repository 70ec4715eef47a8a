-- SPDX-License-Identifier: MIT
-- nn.Conv1d: a convolution of (N, C, L) with a weight (out, C / groups, k): nn.Conv2d of images of one row.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'Conv1d', word = 'conv',
	usage = 'nn.Conv1d(inputs, outputs, kernel, {stride=1, pad=0, dilation=1, groups=1, bias=true})  nn.Conv1d(inputs, outputs, kernel, stride, pad)',
	text = [[A layer x:conv1d(weight, bias) for x (N, inputs, L): weight is (outputs, inputs / groups, kernel), bias (outputs). pad is a number,
{left, right} or a word: 'same' gives a result of the length of x (divided by the stride and rounded up) and adds an odd zero last,
'same_lower' first; 'valid' adds none. Both are initialized with uniform random numbers within 1/sqrt(inputs / groups * kernel), as in PyTorch.]],
	options = {{'stride', 'integer', 'step of the window (default 1)'}, {'pad', 'any', 'zeros at both ends (default 0)'},
		{'dilation', 'integer', 'spacing of the weights (default 1)'}, {'groups', 'integer', 'independent groups of channels (default 1)'},
		{'bias', 'true or false', 'add a bias (default true)'}}, positional = {'stride', 'pad', 'dilation', 'groups', 'bias'},
	example = [[m = nn.Conv1d(3, 8, 5, {pad=2})
print(m(tensor.ones(2, 3, 16)):size())  --> 2 8 16]],
	init = function(self, options, inputs, outputs, kernel)
		inputs, outputs = module.size('Conv1d', 'inputs', inputs), module.size('Conv1d', 'outputs', outputs)
		kernel = module.size('Conv1d', 'kernel', kernel)
		local groups = module.size('Conv1d', 'groups', options.groups or 1)
		if inputs % groups ~= 0 or outputs % groups ~= 0 then
			base.fail('Conv1d: groups: wanted a divisor of %d inputs and %d outputs, got %d', inputs, outputs, groups)
		end
		self.geometry = module.along('Conv1d', options)
		self.geometry.groups = options.groups and groups
		self.act = false
		local bound = 1 / math.sqrt(inputs // groups * kernel)
		module.parameter(self, 'weight', tensor.rand(outputs, inputs // groups, kernel):mul_(2 * bound):sub_(bound))
		self.bias, self.sizes = false, {self.weight:size()}
		if options.bias ~= false then module.parameter(self, 'bias', tensor.rand(outputs):mul_(2 * bound):sub_(bound)) end
	end,
	weights = {'weight'}, in_parts = true, takes_flat = true,
	-- shape: of a weight that is a matrix of codes
	compute = function(self, x, weight, out, shape)
		local o = {k = shape and shape[3], act = self.act or nil, out = out}
		for name, value in next, self.geometry do o[name] = value end
		if self.bias then return x:conv1d(weight, self.bias, o) end
		return x:conv1d(weight, o)
	end,
	forward = function(self, x) return self:compute(module.real(x, self.weight), self.weight) end,
	describe = function(self)
		local outputs, inputs, kernel = table.unpack(self.sizes)
		return ('%d, %d, %d%s%s%s'):format(inputs * (self.geometry.groups or 1), outputs, kernel,
			module.fields_text(self.geometry, {'stride', 'pad', 'autopad', 'dilation', 'groups'}),
			self.bias and '' or ', bias=false', self.act and ', act=' .. self.act or '')
	end,
})
