-- SPDX-License-Identifier: MIT
-- optim.sgd: gradient descent with momentum or Nesterov momentum.
local _, internal = ...

return {
	name = 'sgd',
	usage = 'optim.sgd(m, {lr=, momentum=, decay=, nesterov=, clip=, limit=})  optim.sgd(m, lr, {…})',
	text = [[Stochastic gradient descent for the parameters of a module or a list of tensors: with the gradient d = grad + decay·x,
v = momentum·v + d, the step is x = x - lr·v, with nesterov x = x - lr·(d + momentum·v). Default of lr: 0.001. 16-bit parameters are
computed in float32 and rounded once a step, so steps below half a unit in the last place are lost.]],
	options = {{'momentum', 'number', 'fraction of the previous step that is kept (default 0)'},
		{'nesterov', 'true or false', 'Nesterov momentum (default false)'}},
	example = [[x = tensor{4, grad=true}
o = optim.sgd({x}, {lr=0.1, momentum=0.9})
for i = 1, 100 do
	o:zero()
	y = (x * x):sum()
	y:backward()
	o:step()
end
print(x:detach():abs():item() < 0.1)  --> true]],
	lr = 0.001,
	decay = 0,
	check = function(self, options, number)
		self.momentum = number('sgd', 'momentum', options.momentum or 0, 0, 1)
		self.nesterov = options.nesterov or false
		if self.nesterov and self.momentum == 0 then number('sgd', 'momentum with nesterov', 0, 1e-300, 1) end
	end,
	states = function(self) return self.momentum ~= 0 and {'momentum'} or {} end,
	step = function(self, values, gradients, states, _, scale, limit, lr)
		internal.sgd_step(values, gradients, states[1], scale, limit, lr, self.decay, self.momentum, self.nesterov)
	end,
}
