-- SPDX-License-Identifier: MIT
-- Normalisation layers.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- What is added to a variance is no less than 0: its square root is taken.
local function check_eps(class, options) return module.number(class, 'eps', options.eps or 1e-5, 0, math.huge, true) end

local function describe(self)
	local shown = {}
	if self.eps ~= 1e-5 then shown.eps = ('%g'):format(self.eps) end
	if rawget(self, 'momentum') and self.momentum ~= 0.1 then shown.momentum = ('%g'):format(self.momentum) end
	if rawget(self, 'bias') == false then shown.bias = false end
	if rawget(self, 'unbiased') == false then shown.unbiased = false end
	if self.weight:dim() > 1 then return ('{%s}'):format(table.concat({self.weight:size()}, ', ')) .. module.fields_text(shown, {'eps', 'bias'}) end
	return self.weight:nelem() .. module.fields_text(shown, {'eps', 'momentum', 'unbiased', 'bias'})
end

-- weight and bias of a norm of channels, or neither.
local function channel_vectors(self, channels, affine)
	self.weight, self.bias = false, false
	if not affine then return end
	module.parameter(self, 'weight', tensor.ones(channels))
	module.parameter(self, 'bias', tensor.zeros(channels))
end

local function channel_options(self, affine)
	local shown = {}
	if self.eps ~= 1e-5 then shown.eps = ('%g'):format(self.eps) end
	if (self.weight and true or false) ~= affine then shown.affine = not affine end
	return module.fields_text(shown, {'eps', 'affine'})
end

-- Whether a norm of these tensors is a module: with weight and bias, or without.
local function has_both_or_none(_, tensors) return #tensors ~= 1 end

-- A size, or a list of them.
local function sizes_of(class, size)
	if type(size) ~= 'table' then return {module.size(class, 'size', size)} end
	if #size == 0 then base.fail('%s: size: wanted an integer or a list of them, got an empty list', class) end
	local sizes = {}
	for i = 1, #size do sizes[i] = module.size(class, 'size', size[i]) end
	return sizes
end

module.define(nn, {
	name = 'BatchNorm2d', word = 'batchnorm',
	usage = 'nn.BatchNorm2d(channels, {eps=1e-5, momentum=0.1, unbiased=true})  nn.BatchNorm2d(channels, eps, momentum)',
	text = [[Normalizes each channel of (N, C, H, W): in training mode with the mean and variance of the batch, which update running_mean and
running_var with the momentum (unbiased variance, as in PyTorch); in eval mode with these. The result is multiplied by weight, and bias is added.
m:fuse() folds it into the convolution before it.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'momentum', 'number', 'default 0.1'},
		{'unbiased', 'true or false', 'running_var is of the variance over n - 1 (default), or over n'}},
	positional = {'eps', 'momentum'},
	example = [[m = nn.BatchNorm2d(3)
print(m(tensor.randn(8, 3, 4, 4)):size())  --> 8 3 4 4]],
	init = function(self, options, channels)
		channels = module.size('BatchNorm2d', 'channels', channels)
		self.eps = check_eps('BatchNorm2d', options)
		self.momentum = module.number('BatchNorm2d', 'momentum', options.momentum or 0.1, 0, 1)
		self.unbiased = options.unbiased ~= false
		module.parameter(self, 'weight', tensor.ones(channels))
		module.parameter(self, 'bias', tensor.zeros(channels))
		module.buffer(self, 'running_mean', tensor.zeros(channels))
		module.buffer(self, 'running_var', tensor.ones(channels))
	end,
	forward = function(self, x)
		local o = {eps = self.eps, momentum = self.momentum, training = self.training}
		if self.unbiased == false then o.unbiased = false end
		return nn.batchnorm(module.real(x), self.weight, self.bias, self.running_mean, self.running_var, o)
	end,
	scaled = {'weight', 'bias'},
	node = {op = 'batchnorm', attrs = {eps = true, momentum = true, training = true, unbiased = true}, fits = function(attrs) return not attrs.training end, tensors = {'weight', 'bias', 'running_mean', 'running_var'},
		buffers = {running_mean = true, running_var = true}, axes = 4},
	adopt = function(self, attrs)
		self.eps, self.momentum, self.unbiased = attrs.eps or 1e-5, attrs.momentum or 0.1, attrs.unbiased ~= false
	end,
	describe = describe,
})

module.define(nn, {
	name = 'LayerNorm', word = 'layernorm',
	usage = 'nn.LayerNorm(size, {eps=1e-5, bias=true})  nn.LayerNorm(size, eps)  nn.LayerNorm({h, w})',
	text = [[x:layernorm(weight, bias): each row along the last axis is normalized to mean 0 and variance 1, multiplied by weight,
and bias is added. A list of sizes is that of the last axes, which are one row.]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'bias', 'true or false', 'default true'}},
	positional = {'eps'},
	example = 'print(nn.LayerNorm(4)(tensor.randn(2, 4)):size())  --> 2 4',
	init = function(self, options, size)
		local sizes = sizes_of('LayerNorm', size)
		self.eps, self.bias = check_eps('LayerNorm', options), false
		self.axes = #sizes > 1 and #sizes
		module.parameter(self, 'weight', tensor.ones(table.unpack(sizes)))
		if options.bias ~= false then module.parameter(self, 'bias', tensor.zeros(table.unpack(sizes))) end
	end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', given)
		if self.bias then return x:layernorm(self.weight, self.bias, {eps = self.eps, axes = self.axes or nil, out = out}) end
		return x:layernorm(self.weight, {eps = self.eps, axes = self.axes or nil, out = out})
	end,
	scaled = {'weight', 'bias'},
	turns = function(self) return not self.axes and 'mean' end,
	node = {op = 'layernorm', attrs = {eps = true, axes = true}, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs)
		self.eps, self.axes = attrs.eps or 1e-5, (attrs.axes or 1) > 1 and attrs.axes
	end,
	describe = describe,
})

module.define(nn, {
	name = 'GroupNorm', word = 'groupnorm',
	usage = 'nn.GroupNorm(groups, channels, {eps=1e-5, affine=true})  nn.GroupNorm(groups, channels, eps)',
	text = [[nn.groupnorm of x (N, channels, …): groups of neighbouring channels are normalized together; the result is multiplied by weight, and
bias is added, one number per channel (affine=false: neither).]],
	options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'affine', 'true or false', 'weight and bias (default true)'}},
	positional = {'eps', 'affine'},
	example = 'print(nn.GroupNorm(2, 6)(tensor.randn(4, 6, 5, 5)):size())  --> 4 6 5 5',
	init = function(self, options, groups, channels)
		self.groups, self.channels = module.size('GroupNorm', 'groups', groups), module.size('GroupNorm', 'channels', channels)
		if channels % groups ~= 0 then base.fail('GroupNorm: groups: wanted a divisor of %d, got %d', channels, groups) end
		self.eps = check_eps('GroupNorm', options)
		channel_vectors(self, channels, options.affine ~= false)
	end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', given)
		if not self.weight then return nn.groupnorm(x, self.groups, {eps = self.eps, out = out}) end
		return nn.groupnorm(x, self.groups, self.weight, self.bias, {eps = self.eps, out = out})
	end,
	scaled = {'weight', 'bias'},
	node = {op = 'groupnorm', attrs = {groups = true, eps = true}, fits = has_both_or_none, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs, shape)
		self.groups, self.channels, self.eps = attrs.groups, shape[2], attrs.eps or 1e-5
	end,
	describe = function(self)
		return ('%d, %d'):format(self.groups, self.channels) .. channel_options(self, true)
	end,
})

-- Instance norm of x with that many axes.
local function instance_norm(name, axes, shape)
	return module.define(nn, {
		name = name, word = 'instancenorm',
		usage = ('nn.%s(channels, {eps=1e-5, affine=false})'):format(name),
		text = ([[nn.instancenorm of x %s: each channel of each row of the batch is normalized, in training and in use; with affine=true
it is multiplied by weight, and bias is added.]]):format(shape),
		options = {{'eps', 'number', 'added to the variance (default 1e-5)'}, {'affine', 'true or false', 'weight and bias (default false)'}},
		example = ('print(nn.%s(3)(tensor.randn(2, 3%s)):size())  --> 2 3%s'):format(name, (', 4'):rep(axes - 2), (' 4'):rep(axes - 2)),
		init = function(self, options, channels)
			self.channels, self.eps = module.size(name, 'channels', channels), check_eps(name, options)
			channel_vectors(self, channels, options.affine or false)
		end,
		sites = {main = {'input'}},
		forward = function(self, x)
			if x:dim() ~= axes or x:size(2) ~= self.channels then
				base.fail('%s: wanted x %s with %d channels, got %s', name, shape, self.channels, base.describe(x))
			end
			local out
			out, x = module.site(self, 'main', x)
			if not self.weight then return nn.instancenorm(x, {eps = self.eps, out = out}) end
			return nn.instancenorm(x, self.weight, self.bias, {eps = self.eps, out = out})
		end,
		node = {op = 'instancenorm', attrs = {eps = true}, fits = has_both_or_none, tensors = {'weight', 'bias'}, axes = axes},
		adopt = function(self, attrs, sizes) self.channels, self.eps = sizes[2], attrs.eps or 1e-5 end,
		describe = function(self) return self.channels .. channel_options(self, false) end,
	})
end

instance_norm('InstanceNorm1d', 3, '(N, C, L)')
instance_norm('InstanceNorm2d', 4, '(N, C, H, W)')
instance_norm('InstanceNorm3d', 5, '(N, C, D, H, W)')

module.define(nn, {
	name = 'LocalResponseNorm', word = 'localresponsenorm',
	usage = 'nn.LocalResponseNorm(size, {alpha=1e-4, beta=0.75, k=1})  nn.LocalResponseNorm(size, alpha, beta, k)',
	text = [[nn.localresponsenorm of x (N, C, …): each number is divided by (k + alpha * m)^beta, where m is the mean square of the numbers of `size`
neighbouring channels.]],
	options = {{'alpha', 'number', 'default 1e-4'}, {'beta', 'number', 'default 0.75'}, {'k', 'number', 'default 1'}}, positional = {'alpha', 'beta', 'k'},
	example = 'print(nn.LocalResponseNorm(5)(tensor.randn(2, 8, 4, 4)):size())  --> 2 8 4 4',
	init = function(self, options, size)
		self.size = module.size('LocalResponseNorm', 'size', size)
		for _, field in ipairs {'alpha', 'beta', 'k'} do self[field] = options[field] or false end
	end,
	forward = function(self, x)
		return nn.localresponsenorm(module.real(x), self.size, {alpha = self.alpha or nil, beta = self.beta or nil, k = self.k or nil})
	end,
	node = {op = 'localresponsenorm', attrs = {size = true, alpha = true, beta = true, k = true}, tensors = {}},
	adopt = function(self, attrs)
		self.size, self.alpha, self.beta, self.k = attrs.size, attrs.alpha or false, attrs.beta or false, attrs.k or false
	end,
	describe = function(self)
		local shown = {}
		for _, field in ipairs {'alpha', 'beta', 'k'} do shown[field] = self[field] and ('%g'):format(self[field]) or nil end
		return self.size .. module.fields_text(shown, {'alpha', 'beta', 'k'})
	end,
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
	scaled = {'weight'},
	turns = function() return 'length' end,
	node = {op = 'rmsnorm', attrs = {eps = true}, tensors = {'weight'}},
	adopt = function(self, attrs) self.eps = attrs.eps or 1e-5 end,
	describe = describe,
})
