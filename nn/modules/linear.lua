-- SPDX-License-Identifier: MIT
-- nn.Linear: x times the transpose of the weight (out, in), plus bias.
local _, internal = ...
local initial = internal.import 'nn/base/initial'
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'Linear',
	usage = 'nn.Linear(inputs, outputs, {bias=true})  nn.Linear(inputs, outputs, bias)',
	text = [[A layer x:linear(weight, bias) for x (…, inputs): weight is (outputs, inputs), bias (outputs). Both are initialized with uniform random
numbers within 1/sqrt(inputs) (Kaiming's uniform rule with a = sqrt(5), as in PyTorch).]],
	options = {{'bias', 'true or false', 'add a bias (default true)'}}, positional = {'bias'},
	example = [[m = nn.Linear(3, 2)
print(m(tensor.ones(4, 3)):size())  --> 4 2]],
	init = function(self, options, inputs, outputs)
		inputs = module.size('Linear', 'inputs', inputs)
		outputs = module.size('Linear', 'outputs', outputs)
		local bound = 1 / math.sqrt(inputs)
		local function uniform(...) return tensor.rand(...):mul_(2 * bound):sub_(bound) end
		module.parameter(self, 'weight', initial.of(uniform, outputs, inputs))
		self.act, self.bias, self.order = false, false, false
		if options.bias ~= false then module.parameter(self, 'bias', initial.of(uniform, outputs)) end
	end,
	weights = {'weight'}, in_parts = true, reads_codes = true,
	compute = function(self, x, weight, out)
		local o = {act = self.act or nil, out = out}
		if self.order then x = x:indexselect(-1, self.order) end
		if self.bias then return x:linear(weight, self.bias, o) end
		return x:linear(weight, o)
	end,
	forward = function(self, x) return self:compute(module.real(x, self.weight), self.weight) end,
	scaled = {'weight', 'bias'}, -- their first axis is that of the outputs: each is as large as they are
	columns = function(self, x)
		if self.order then x = x:indexselect(-1, self.order) end
		return x:reshape(x:nelem() // x:size(-1), x:size(-1))
	end,
	-- A checkpoint's weight may have its columns in another order (a buffer: the inputs, counted from 1), so that scales of groups are neighbours.
	reorder = function(self, order) module.buffer(self, 'order', order) end,
	-- The columns of a float weight in the order of the inputs.
	in_order = function(self)
		if not self.order then return end
		local at = {dtype = 'int32', device = 'cpu'}
		for column, input in ipairs(self.order:totable()) do at[input] = column end
		module.set_tensor(self, 'weight', self.weight:detach():indexselect(2, tensor(at):to(self.weight:device())))
		module.forget(self, 'order')
		self.order = false
	end,
	-- of a node of a graph
	node = {op = 'linear', attrs = {act = true}, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs) self.act, self.order = attrs.act or false, false end,
	describe = function(self)
		return ('%d, %d%s%s%s'):format(self.weight:size(2), self.weight:size(1), self.bias and '' or ', bias=false',
			self.act and ', act=' .. self.act or '', self.order and ', order' or '')
	end,
})
