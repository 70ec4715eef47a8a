-- SPDX-License-Identifier: MIT
-- Normalisation layers.
local _, internal = ...
local module = internal.import 'module'

module.define(nn, {
	name = 'BatchNorm2d', word = 'batchnorm',
	usage = 'nn.BatchNorm2d(channels, {eps=1e-5, momentum=0.1})',
	text = [[Normalises each channel of (N, C, H, W): in training by the mean and variance of the batch, which running_mean and
running_var follow with the momentum (variance unbiased, as in PyTorch); in use by these. Then times weight plus bias.
m:fuse() folds it into the convolution before it.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'momentum', 'number', 'default 0.1'}},
	example = [[m = nn.BatchNorm2d(3)
print(m(tensor.randn(8, 3, 4, 4)):size())  --> 8 3 4 4]],
	init = function(self, options, channels)
		channels = module.size('BatchNorm2d', 'channels', channels)
		self.eps, self.momentum = options.eps or 1e-5, options.momentum or 0.1
		module.parameter(self, 'weight', tensor.ones(channels))
		module.parameter(self, 'bias', tensor.zeros(channels))
		module.buffer(self, 'running_mean', tensor.zeros(channels))
		module.buffer(self, 'running_var', tensor.ones(channels))
	end,
	forward = function(self, x)
		return nn.batchnorm(module.real(x), self.weight, self.bias, self.running_mean, self.running_var,
			{eps = self.eps, momentum = self.momentum, training = self.training})
	end,
	describe = function(self) return ('%d'):format(self.weight:nelem()) end,
})

module.define(nn, {
	name = 'LayerNorm', word = 'layernorm',
	usage = 'nn.LayerNorm(size, {eps=1e-5, bias=true})',
	text = [[x:layernorm(weight, bias): each row along the last axis is brought to mean 0 and variance 1, then times weight plus bias.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'bias', 'true or false', 'default true'}},
	example = 'print(nn.LayerNorm(4)(tensor.randn(2, 4)):size())  --> 2 4',
	init = function(self, options, size)
		size = module.size('LayerNorm', 'size', size)
		self.eps, self.bias = options.eps or 1e-5, false
		module.parameter(self, 'weight', tensor.ones(size))
		if options.bias ~= false then module.parameter(self, 'bias', tensor.zeros(size)) end
	end,
	forward = function(self, x)
		if self.bias then return module.real(x):layernorm(self.weight, self.bias, {eps = self.eps}) end
		return module.real(x):layernorm(self.weight, {eps = self.eps})
	end,
	describe = function(self) return ('%d'):format(self.weight:nelem()) end,
})

return module.define(nn, {
	name = 'RMSNorm', word = 'rmsnorm',
	usage = 'nn.RMSNorm(size, {eps=1e-5})',
	text = [[x:rmsnorm(weight): each row along the last axis divided by its root mean square, then times weight.]],
	options = {{'eps', 'number', 'added to the mean square (default 1e-5)'}},
	example = 'print(nn.RMSNorm(4)(tensor.randn(2, 4)):size())  --> 2 4',
	init = function(self, options, size)
		self.eps = options.eps or 1e-5
		module.parameter(self, 'weight', tensor.ones(module.size('RMSNorm', 'size', size)))
	end,
	forward = function(self, x) return module.real(x):rmsnorm(self.weight, {eps = self.eps}) end,
	describe = function(self) return ('%d'):format(self.weight:nelem()) end,
})
