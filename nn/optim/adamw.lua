-- SPDX-License-Identifier: MIT
-- optim.adamw: Adam with decoupled weight decay.
local _, internal = ...
local adam = internal.import 'nn/optim/adam'

return {
	name = 'adamw',
	usage = 'optim.adamw(m, {lr=, beta1=, beta2=, eps=, decay=, clip=, limit=})  optim.adamw(m, lr, {…})',
	text = [[Adam with decoupled weight decay (Loshchilov and Hutter 2017): each step first multiplies the parameters by 1 - lr·decay, and
decay is not added to the gradient. Otherwise it is optim.adam; default of lr: 0.001.]],
	options = {{'beta1', 'number', 'decay of the running mean of gradients (default 0.9)'},
		{'beta2', 'number', 'decay of the running mean of squares (default 0.999)'}, {'eps', 'number', 'added to the root (default 1e-8)'}},
	example = [[x = tensor{4, grad=true}
o = optim.adamw({x}, {lr=0.1, decay=0.5})
y = (x * x):sum()
y:backward()
o:step()
print(x:item())  --> 3.7000]],
	lr = 0.001,
	decay = 0.01,
	check = function(self, options, number)
		adam.check(self, options, function(_, ...) return number('adamw', ...) end)
	end,
	states = adam.states,
	step = function(self, values, gradients, states, steps, scale, limit, lr)
		internal.adam_step(values, gradients, states[1], states[2], steps, scale, limit, lr, self.decay, self.beta1, self.beta2,
			self.eps, true)
	end,
}
