-- SPDX-License-Identifier: MIT
-- optim.adam: steps divided by a running root mean square of the gradient.
local _, internal = ...

return {
	name = 'adam',
	usage = 'optim.adam(m, {lr=, beta1=, beta2=, eps=, decay=, clip=, limit=})  optim.adam(m, lr, {…})',
	text = [[Adam (Kingma and Ba 2014) for the parameters of a module or a list of tensors: with the gradient d = grad + decay·x, running means
first of d and second of d², x = x - lr·first' / (sqrt(second') + eps), where ' divides by 1 - beta^step. Default of lr: 0.001.
decay adds to the gradient; optim.adamw shrinks the parameters instead.]],
	options = {{'beta1', 'number', 'decay of the running mean of gradients (default 0.9)'},
		{'beta2', 'number', 'decay of the running mean of squares (default 0.999)'}, {'eps', 'number', 'added to the root (default 1e-8)'}},
	example = [[x = tensor{4, grad=true}
o = optim.adam({x}, {lr=0.1})
y = (x * x):sum()
y:backward()
o:step()
print(x:item())  --> 3.9000]],
	lr = 0.001,
	decay = 0,
	check = function(self, options, number)
		self.beta1 = number('adam', 'beta1', options.beta1 or 0.9, 0, 1 - 2^-53)
		self.beta2 = number('adam', 'beta2', options.beta2 or 0.999, 0, 1 - 2^-53)
		self.eps = number('adam', 'eps', options.eps or 1e-8, 0, math.huge)
	end,
	states = function() return {'first', 'second'} end,
	step = function(self, values, gradients, states, steps, scale, limit, lr)
		internal.adam_step(values, gradients, states[1], states[2], steps, scale, limit, lr, self.decay, self.beta1, self.beta2,
			self.eps, false)
	end,
}
