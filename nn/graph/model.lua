-- SPDX-License-Identifier: MIT
-- nn.Graph: a graph as a module. A node that is what a kind of module computes (a class with `node` and `adopt`, nn/modules) becomes such
-- a module under the node's name, so that calibration, quantization and training find it; other nodes are ops between them. Constants
-- that are weights of these are parameters, others buffers.
--
-- class.node = {op=, attrs= (names of attributes that the module has), tensors= (its fields, for the constants among the operands in
-- their order), buffers= (those that are not trained), fits(attributes, names of the constants)= (whether the module does what they say),
-- input= (operand that is the module's, default 1), axes= (of the input)}; class.adopt(module, attributes, shape of the input)
local nn, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local run = internal.import 'nn/graph/run'
local sequences = internal.import 'nn/graph/sequences'
local size = internal.import 'nn/graph/size'

-- op -> classes of modules that compute it, for different numbers of axes
local function classes()
	local by_op = {}
	for _, class in next, module.classes do
		if class.node then
			local list = by_op[class.node.op] or {}
			by_op[class.node.op] = list
			list[#list + 1] = class
		end
	end
	return by_op
end

---------------------------------------------------------------- layers

-- The constants that would be the module's tensors; nil if the node is something else.
local function constants_of(g, node, class)
	local own, input = class.node, class.node.input or 1
	for key in next, node.attrs do
		if not own.attrs[key] then return end
	end
	if node.mode or #node.results ~= 1 or type(node.inputs[input]) ~= 'string' then return end
	if own.axes and #g:result_of(node.inputs[input]).shape ~= own.axes then return end
	local list = {}
	for at, ref in ipairs(node.inputs) do
		if at ~= input then
			local const = type(ref) == 'string' and g.nodes[ref]
			if not const or const.op ~= 'const' or const.value:quantized() then return end
			list[#list + 1] = ref
		end
	end
	if own.fits and not own.fits(node.attrs, list) then return end
	return list
end

-- A module of the class with these tensors.
local function layer_of(class, node, tensors, shape)
	local m = module.new(class)
	for i, field in ipairs(class.node.tensors) do
		local t = tensors[i]
		if not t then
			rawset(m, field, false)
		elseif class.node.buffers and class.node.buffers[field] then
			module.buffer(m, field, t)
		else
			module.parameter(m, field, t)
		end
	end
	class.adopt(m, node.attrs, shape)
	return m
end

local function is_number(value) return quant.dtype(value:dtype()).float and not value:quantized() end

-- The tensor of a constant: one for all nodes that have it.
local function tensor_of(self, g, ref)
	local t = self.tensors[ref]
	if not t then
		t = g.nodes[ref].value
		if is_number(t) then t = t:clone() end
		self.tensors[ref] = t
	end
	return t
end

-- Whether the constant is a weight of some op that is no layer of its own.
local function is_weight(g, ref)
	for _, name in ipairs(g.users[ref] or {}) do
		local node = g.nodes[name]
		local form = ops.form(node.op, node)
		for _, at in ipairs(form and form.weights or {}) do
			if node.inputs[at] == ref then return true end
		end
	end
	return false
end

local function field_of(self, ref)
	local name, n = ref:gsub('[^%w_]', '_'), 2
	local free = name
	while rawget(self, free) ~= nil do
		free = name .. '_' .. n
		n = n + 1
	end
	return free
end

local function add_constant(self, g, ref)
	if self.fields[ref] then return end
	local t, field = tensor_of(self, g, ref), field_of(self, ref)
	module[is_number(t) and is_weight(g, ref) and 'parameter' or 'buffer'](self, field, t)
	self.fields[ref] = field
end

local function add_node(self, g, node, by_op)
	local class, list
	for _, candidate in ipairs(by_op[node.op] or {}) do
		local found = constants_of(g, node, candidate)
		if found then class, list = candidate, found end
	end
	local step = {name = node.name, op = node.op, inputs = node.inputs, attrs = node.attrs, results = #node.results}
	if list then
		local tensors = {}
		for i, ref in ipairs(list) do tensors[i] = tensor_of(self, g, ref) end
		step.input = node.inputs[class.node.input or 1]
		module.child(self, layer_of(class, node, tensors, g:result_of(step.input).shape), node.name)
		step.child = #rawget(self, module.PARTS).children
	else
		for _, ref in ipairs(node.inputs) do
			local const = type(ref) == 'string' and g.nodes[ref]
			if const and const.op == 'const' then add_constant(self, g, ref) end
		end
	end
	self.steps[#self.steps + 1] = step
end

---------------------------------------------------------------- running

local function value_at(self, values, ref)
	if type(ref) ~= 'string' then return size.at(ref, values[0]) end
	local field = self.fields[ref]
	if field then return rawget(self, field) end
	return values[ref]
end

-- The results of an op; while a graph is traced, its node has the name that it had.
local function apply(self, step, values)
	local operands, tracer = {}, module.tracer
	for i, ref in ipairs(step.inputs) do operands[i] = value_at(self, values, ref) end
	local outer = tracer and tracer.scope
	if tracer then
		tracer.scope = {path = step.name, class = {name = step.op}, module = {}, call = 1, nodes = {}, leaf = true}
	end
	local results = ops.apply(step.op, operands, size.varies(step.attrs) and size.at(step.attrs, values[0]) or step.attrs)
	if tracer then tracer.scope = outer end
	local taps = rawget(self, 'taps')
	if taps and taps[step.name] then taps[step.name](operands, results) end
	return results
end

local function forward(self, ...)
	local most = #self.graph.input_trees
	if select('#', ...) > most then base.surplus('Graph', most, select(most + 1, ...)) end
	local values, b = run.read_inputs(self.graph, select('#', ...) == 1 and ... or {...})
	values[0] = b
	for _, step in ipairs(self.steps) do
		if step.child then
			values[step.name] = module.children(self)[step.child].module(value_at(self, values, step.input))
		else
			for i, result in ipairs(apply(self, step, values)) do values[core.ref(step.name, i)] = result end
		end
	end
	local results = {}
	for i, tree in ipairs(self.graph.outputs) do results[i] = run.build(tree, function(ref) return value_at(self, values, ref) end) end
	return table.unpack(results)
end

module.define(nn, {
	name = 'Graph', word = 'graph', usage = 'nn.Graph(g)',
	text = [[A graph as a module, as graph.load gives it: a layer for each node with weights (linear, conv2d, norms, embedding), under the node's
name, and the ops between them. m(x) is g:run(x); weights are parameters, so that m:fit, m:calibrate, m:quantize, quant.sensitivity and
m:export work as on any other module. It begins in eval mode. The tensors are copies: training does not change g.]],
	example = [[g = graph.trace(nn.Sequential{nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)}, tensor.ones(1, 3))
m = nn.Graph(g)
x = tensor.randn(5, 3)
print(m(x):sub(g:run(x)):abs():max():item(), #m:parameters())  --> 0.0 4]],
	init = function(self, _, g)
		core.expect(g, 'Graph')
		self.graph, self.steps, self.fields, self.tensors, self.ordered = g, {}, {}, {}, g.ordered
		self.taps = false -- name of an op that is no layer -> function(operands, results), called when it has run
		local by_op = classes()
		for _, name in ipairs(g.order) do
			local node = g.nodes[name]
			if node.op ~= 'input' and node.op ~= 'const' then add_node(self, g, node, by_op) end
		end
		core.each_output(g, function(leaf)
			if g.nodes[core.split(leaf.ref)].op == 'const' then add_constant(self, g, leaf.ref) end
		end)
		self.tensors = false
		self:eval()
	end,
	forward = forward,
	sequences = function(self)
		local layers, children = {}, module.children(self)
		for _, step in ipairs(self.steps) do layers[step.name] = step.child and children[step.child].module or nil end
		return sequences.of(self.graph, layers)
	end,
	describe = function(self) return ('%d nodes'):format(#self.graph.order) end,
})
