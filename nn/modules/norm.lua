-- SPDX-License-Identifier: MIT
-- Normalisation layers.
local _, internal = ...
local module = internal.import 'nn/base/module'

-- What is added to a variance is no less than 0: its square root is taken.
local function check_eps(class, options) return module.number(class, 'eps', options.eps or 1e-5, 0, math.huge, true) end

local function describe(self)
	local shown = {}
	if self.eps ~= 1e-5 then shown.eps = ('%g'):format(self.eps) end
	if rawget(self, 'momentum') and self.momentum ~= 0.1 then shown.momentum = ('%g'):format(self.momentum) end
	if rawget(self, 'bias') == false then shown.bias = false end
	return self.weight:nelem() .. module.fields_text(shown, {'eps', 'momentum', 'bias'})
end

module.define(nn, {
	name = 'BatchNorm2d', word = 'batchnorm',
	usage = 'nn.BatchNorm2d(channels, {eps=1e-5, momentum=0.1})  nn.BatchNorm2d(channels, eps, momentum)',
	text = [[Normalizes each channel of (N, C, H, W): in training mode with the mean and variance of the batch, which update running_mean and
running_var with the momentum (unbiased variance, as in PyTorch); in eval mode with these. The result is multiplied by weight, and bias is added.
m:fuse() folds it into the convolution before it.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'momentum', 'number', 'default 0.1'}},
	positional = {'eps', 'momentum'},
	example = [[m = nn.BatchNorm2d(3)
print(m(tensor.randn(8, 3, 4, 4)):size())  --> 8 3 4 4]],
	init = function(self, options, channels)
		channels = module.size('BatchNorm2d', 'channels', channels)
		self.eps = check_eps('BatchNorm2d', options)
		self.momentum = module.number('BatchNorm2d', 'momentum', options.momentum or 0.1, 0, 1)
		module.parameter(self, 'weight', tensor.ones(channels))
		module.parameter(self, 'bias', tensor.zeros(channels))
		module.buffer(self, 'running_mean', tensor.zeros(channels))
		module.buffer(self, 'running_var', tensor.ones(channels))
	end,
	forward = function(self, x)
		return nn.batchnorm(module.real(x), self.weight, self.bias, self.running_mean, self.running_var,
			{eps = self.eps, momentum = self.momentum, training = self.training})
	end,
	node = {op = 'batchnorm', attrs = {eps = true, momentum = true, training = true}, fits = function(attrs) return not attrs.training end, tensors = {'weight', 'bias', 'running_mean', 'running_var'},
		buffers = {running_mean = true, running_var = true}, axes = 4},
	adopt = function(self, attrs) self.eps, self.momentum = attrs.eps or 1e-5, attrs.momentum or 0.1 end,
	describe = describe,
})

module.define(nn, {
	name = 'LayerNorm', word = 'layernorm',
	usage = 'nn.LayerNorm(size, {eps=1e-5, bias=true})  nn.LayerNorm(size, eps)',
	text = [[x:layernorm(weight, bias): each row along the last axis is normalized to mean 0 and variance 1, multiplied by weight, and bias is added.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'bias', 'true or false', 'default true'}},
	positional = {'eps'},
	example = 'print(nn.LayerNorm(4)(tensor.randn(2, 4)):size())  --> 2 4',
	init = function(self, options, size)
		size = module.size('LayerNorm', 'size', size)
		self.eps, self.bias = check_eps('LayerNorm', options), false
		module.parameter(self, 'weight', tensor.ones(size))
		if options.bias ~= false then module.parameter(self, 'bias', tensor.zeros(size)) end
	end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', given)
		if self.bias then return x:layernorm(self.weight, self.bias, {eps = self.eps, out = out}) end
		return x:layernorm(self.weight, {eps = self.eps, out = out})
	end,
	node = {op = 'layernorm', attrs = {eps = true}, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs) self.eps = attrs.eps or 1e-5 end,
	describe = describe,
})

return module.define(nn, {
	name = 'RMSNorm', word = 'rmsnorm',
	usage = 'nn.RMSNorm(size, {eps=1e-5})  nn.RMSNorm(size, eps)',
	text = [[x:rmsnorm(weight): each row along the last axis is divided by its root mean square and multiplied by weight.]],
	options = {{'eps', 'number', 'added to the mean square (default 1e-5)'}}, positional = {'eps'},
	example = 'print(nn.RMSNorm(4)(tensor.randn(2, 4)):size())  --> 2 4',
	init = function(self, options, size)
		self.eps = check_eps('RMSNorm', options)
		module.parameter(self, 'weight', tensor.ones(module.size('RMSNorm', 'size', size)))
	end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', given)
		return x:rmsnorm(self.weight, {eps = self.eps, out = out})
	end,
	node = {op = 'rmsnorm', attrs = {eps = true}, tensors = {'weight'}},
	adopt = function(self, attrs) self.eps = attrs.eps or 1e-5 end,
	describe = describe,
})
