-- SPDX-License-Identifier: MIT
-- optim.rmsprop: RMSprop, with a momentum and centered if wanted.
local _, internal = ...

return {
	name = 'rmsprop',
	usage = 'optim.rmsprop(m, {lr=, alpha=, eps=, momentum=, centered=, decay=, clip=, limit=})  optim.rmsprop(m, lr, {…})',
	text = [[RMSprop for the parameters of a module or a list of tensors (Hinton 2012), as in PyTorch: with the gradient d = grad + decay·x and
v = alpha·v + (1 - alpha)·d², the step is x = x - lr·d / (sqrt(v) + eps). With momentum, b = momentum·b + d / (sqrt(v) + eps) and x = x -
lr·b. Centered: v less the square of a moving mean of d, so that gradients are divided by their deviation. Default of lr: 0.01.]],
	options = {{'alpha', 'number', 'fraction of the mean square that is kept (default 0.99)'}, {'eps', 'number', 'added to the root (default 1e-8)'},
		{'momentum', 'number', 'fraction of the previous step that is kept (default 0)'},
		{'centered', 'true or false', 'divides by the deviation of the gradients (default false)'}},
	example = [[x = tensor{4, grad=true}
o = optim.rmsprop({x}, {lr=0.05})
for i = 1, 200 do
	o:zero()
	y = (x * x):sum()
	y:backward()
	o:step()
end
print(x:detach():abs():item() < 0.1)  --> true]],
	lr = 0.01,
	decay = 0,
	check = function(self, options, number)
		self.alpha = number('rmsprop', 'alpha', options.alpha or 0.99, 0, 1)
		self.eps = number('rmsprop', 'eps', options.eps or 1e-8, 0, math.huge)
		self.momentum = number('rmsprop', 'momentum', options.momentum or 0, 0, 1)
		self.centered = options.centered or false
	end,
	states = function(self)
		local names = {'square'}
		if self.momentum ~= 0 then names[#names + 1] = 'momentum' end
		if self.centered then names[#names + 1] = 'mean' end
		return names
	end,
	step = function(self, values, gradients, states, _, scale, limit, lr)
		local momenta = self.momentum ~= 0 and states[2] or nil
		internal.rmsprop_step(values, gradients, states[1], momenta, self.centered and states[#states] or nil, scale, limit, lr, self.decay,
			self.alpha, self.eps, self.momentum)
	end,
}
