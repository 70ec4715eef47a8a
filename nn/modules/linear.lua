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
		self.outliers, self.kept, self.floats = false, false, false
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
	-- Columns of the weight that stay float beside codes of the others (LLM.int8, arXiv 2208.07339): at has their numbers (from 1), floats is (outputs,
	-- columns). Inputs of these columns are 0 for the codes.
	apart = {outliers = true, kept = true, floats = true},
	set_apart = function(self, at, floats)
		local row = {device = 'cpu'}
		for i = 1, self.weight:size(2) do row[i] = 1 end
		for _, i in ipairs(at) do row[i] = 0 end
		local device = floats:device()
		module.buffer(self, 'outliers', tensor {at, dtype = 'int32'}:view(#at):to(device))
		module.buffer(self, 'kept', tensor(row):to(device))
		module.buffer(self, 'floats', floats)
	end,
	-- What the codes get, and the product of the float columns; x and nil without these.
	divide = function(self, x)
		if not self.outliers then return x end
		x = module.real(x)
		local function cast(t) return t:dtype() == x:dtype() and t or t:to(x:dtype()) end
		return x * cast(self.kept), x:indexselect(-1, self.outliers):linear(cast(self.floats))
	end,
	-- The float columns of a float weight in their places.
	join = function(self)
		if not self.outliers then return end
		local w = self.weight:detach() * self.kept
		local at, one = self.outliers:to 'cpu':totable(), self.floats:detach()
		for i, column in ipairs(at) do w:narrow(2, column, 1):copy_(one:narrow(2, i, 1)) end
		module.set_tensor(self, 'weight', w)
		for _, field in ipairs {'outliers', 'kept', 'floats'} do
			module.forget(self, field)
			self[field] = false
		end
	end,
	-- of a node of a graph
	node = {op = 'linear', attrs = {act = true}, tensors = {'weight', 'bias'}},
	adopt = function(self, attrs)
		self.act, self.order = attrs.act or false, false
		self.outliers, self.kept, self.floats = false, false, false
	end,
	describe = function(self)
		return ('%d, %d%s%s%s%s'):format(self.weight:size(2), self.weight:size(1), self.bias and '' or ', bias=false',
			self.act and ', act=' .. self.act or '', self.order and ', order' or '', self.outliers and (', %d float columns'):format(self.outliers:size(1)) or '')
	end,
})
