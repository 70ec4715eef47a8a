-- SPDX-License-Identifier: MIT
-- optim.adagrad: Adagrad.
local _, internal = ...

return {
	name = 'adagrad',
	usage = 'optim.adagrad(m, {lr=, lrdecay=, eps=, initial=, decay=, clip=, limit=})  optim.adagrad(m, lr, {…})',
	text = [[Adagrad for the parameters of a module or a list of tensors (Duchi et al. 2011), as in PyTorch: with the gradient d = grad + decay·x
and the sum v = v + d² of all steps, step t is x = x - lr / (1 + (t - 1)·lrdecay)·d / (sqrt(v) + eps). Default of lr: 0.01.]],
	options = {{'lrdecay', 'number', 'decay of the learning rate (default 0)'}, {'eps', 'number', 'added to the root (default 1e-10)'},
		{'initial', 'number', 'what the sums of squares begin with (default 0)'}},
	example = [[x = tensor{4, grad=true}
o = optim.adagrad({x}, {lr=1})
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
		self.lrdecay = number('adagrad', 'lrdecay', options.lrdecay or 0, 0, math.huge)
		self.eps = number('adagrad', 'eps', options.eps or 1e-10, 0, math.huge)
		self.first = number('adagrad', 'initial', options.initial or 0, 0, math.huge)
	end,
	states = function() return {'sum'} end,
	step = function(self, values, gradients, states, steps, scale, limit, lr)
		internal.adagrad_step(values, gradients, states[1], steps, scale, limit, lr, self.decay, self.lrdecay, self.eps)
	end,
}
