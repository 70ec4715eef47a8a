-- SPDX-License-Identifier: MIT
-- Records one run of a module: each op that Lua applies (interp/bind/record.c) becomes a raw node {op, operands, attrs, results,
-- scope}, whose operands are values {node, at}. nn/graph/trace.lua builds a graph from several such records.
--
-- An in-place write assigns a new value to the tensor's box; views of the same memory become stale and must not be read.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local expand = internal.import 'nn/graph/expand'
local fail, is_tensor = base.fail, base.is_tensor
local identity, storage = internal.identity, internal.storage

---------------------------------------------------------------- values

local record = {}
record.__index = record

function record.where(scope)
	return scope and scope.path ~= '' and ("module '%s'"):format(scope.path) or 'the model'
end

-- A value: a result of a raw node; stale if its memory has been written to since.
function record:new_value(tensor, node, at)
	local block = storage(tensor)
	local value = {node = node, at = at, storage = block, version = self.versions[block] or 0}
	self.values[identity(tensor)] = value
	self.alive[#self.alive + 1] = tensor
	return value
end

local NONE = {}

-- blocks: the storage of each operand that is a tensor.
local function result_of(tensor, blocks)
	local alias, block = false, blocks ~= NONE and storage(tensor)
	for i, of in next, blocks do
		if of == block and (not alias or i > alias) then alias = i end
	end
	return {shape = {tensor:size()}, dtype = tensor:dtype(), spec = tensor:quantized() and tensor:spec() or nil, alias = alias}
end

-- The value of a tensor; a tensor that no op has computed is a constant.
function record:value_of(tensor)
	local value = self.values[identity(tensor)]
	if not value then
		local node = {op = 'const', value = tensor, operands = {}, attrs = {}, scope = self.scope, results = {result_of(tensor, NONE)},
			known = self.known[identity(tensor)]}
		self.nodes[#self.nodes + 1] = node
		value = self:new_value(tensor, node, 1)
	end
	if value.version ~= (self.versions[value.storage] or 0) then
		fail('trace: %s: wanted values that are not written to through a view, got one that was changed in place; \z
			write x = x:op(…) instead', record.where(self.scope))
	end
	return value
end

-- Ops whose results have sizes that depend on values, as they are written.
local BY_VALUES = {maskedselect = 'x[mask]', nonzero = 'x:nonzero()', unique = 'x:unique()'}

function record:add(op, operands, attrs, results)
	local given, blocks, tainted, traced = {}, {}, false, nil
	for i, operand in ipairs(operands) do
		if is_tensor(operand) then
			local value = self:value_of(operand)
			given[i], blocks[i], tainted = value, storage(operand), tainted or value.node.tainted
			if operand:quantized() then traced = value.node.op ~= 'const' or traced or 'weights' end -- constant codes are weights: no integer op yet
		else
			given[i] = operand
		end
	end
	local node = {op = op, attrs = attrs, operands = given, results = {}, scope = self.scope, tainted = tainted, traced = traced, index = nil}
	if BY_VALUES[op] and tainted then
		fail('trace: %s: wanted sizes that depend on the sizes of the input only, got %s, whose size depends on values',
			record.where(self.scope), BY_VALUES[op])
	end
	self.nodes[#self.nodes + 1] = node
	if self.scope then table.insert(self.scope.nodes, node) end
	for i, tensor in ipairs(results) do
		node.results[i] = result_of(tensor, blocks)
		self:new_value(tensor, node, i)
	end
	return node
end

-- Writes that cast to the dtype of the destination; some have indices, too.
local CASTS = {assign = true, maskedassign = true, indexassign = true, scatter = true, scatternd = true}

-- In place: the tensor's box holds a new value from now on, and its views are stale.
function record:write(op, operands, attrs)
	local tensor = operands[1]
	local before = self:value_of(tensor)
	if before.node.op == 'const' or before.node.op == 'input' then
		fail('trace: %s: %s_: wanted a tensor that the module computes, got %s; a graph does not modify it', record.where(self.scope), op,
			before.node.op == 'input' and 'the input' or 'a tensor that existed before the call')
	end
	for i, operand in ipairs(operands) do
		local free = CASTS[op]
		if is_tensor(operand) and operand:dtype() ~= tensor:dtype() and not free or tensor:quantized() then
			fail('trace: %s: %s_: wanted operands of one float dtype, got %s; write x = x:%s(…)', record.where(self.scope), op,
				internal.describe(operands[i]), op)
		end
	end
	local given = {}
	for i, operand in ipairs(operands) do given[i] = is_tensor(operand) and self:value_of(operand) or operand end
	local block = storage(tensor)
	self.versions[block] = (self.versions[block] or 0) + 1
	local node = self:add(op, {}, attrs, {tensor})
	node.operands, node.results[1].alias = given, false
	for _, value in ipairs(given) do node.tainted = node.tainted or type(value) == 'table' and value.node.tainted end
end

-- The view of a slice: {axis, first, length}, {axis, index, 0} or {axis, first, last, step}.
local function slice_op(s)
	if s[4] then return 'slice', {axis = s[1], first = s[2], last = s[3], step = s[4]} end
	if s[3] == 0 then return 'select', {axis = s[1], index = s[2]} end
	return 'narrow', {axis = s[1], start = s[2], length = s[3]}
end

-- Applies the slices one by one: only the last result has a tensor; the others follow from the sizes.
function record:slices(x, slices, result)
	if #slices == 0 then
		self.values[identity(result)] = self:value_of(x)
		self.alive[#self.alive + 1] = result
		return
	end
	local value, shape = self:value_of(x), {x:size()}
	for i, s in ipairs(slices) do
		local op, attrs = slice_op(s)
		local node = {op = op, attrs = attrs, operands = {value}, scope = self.scope, tainted = value.node.tainted}
		if op == 'select' then table.remove(shape, s[1]) else shape[s[1]] = s[4] and math.max(0, (s[3] - s[2]) // s[4] + 1) or s[3] end
		node.results = {{shape = {table.unpack(shape)}, dtype = x:dtype(), spec = x:quantized() and x:spec() or nil,
			alias = not (s[4] and s[4] < 0) and 1}}
		self.nodes[#self.nodes + 1] = node
		if self.scope then table.insert(self.scope.nodes, node) end
		value = i == #slices and self:new_value(result, node, 1) or {node = node, at = 1, storage = value.storage, version = value.version}
	end
end

local events = {}

function events.op(self, op, operands, attrs, results, in_place)
	if in_place then return self:write(op, operands, attrs) end
	local steps = expand[op] and expand[op](operands, attrs, results)
	if not steps then return self:add(op, operands, attrs, results) end
	for _, step in ipairs(steps) do self:add(step.op, step.operands, step.attrs, step.results) end
end

function events.index(self, x, slices, result) self:slices(x, slices, result) end
function events.assign(self, x, slices, value) self:write('assign', {x, value}, {slices = slices}) end
function events.copy_(self, x, value) self:write('assign', {x, value}, {slices = {}}) end

function events.alias(self, x, result)
	self.values[identity(result)] = self:value_of(x)
	self.alive[#self.alive + 1] = result
end

function events.read(self, x, what)
	local value = self.values[identity(x)]
	if value and value.node.tainted then
		fail("trace: %s: x:%s() reads a value of '%s' that depends on the input; what the program makes of it cannot become part of \z
			a graph", record.where(self.scope), what, value.node.op)
	end
end

---------------------------------------------------------------- modules

-- Called when a module is entered: its ops belong to the scope. Notes the names under which calibration observes values.
function record:call(m, run, ...)
	local path = self.paths[m] or self.scope and self.scope.path or ''
	local outer, class = self.scope, module.class_of(m)
	self.calls[path] = (self.calls[path] or 0) + 1
	self.scope = {path = path, class = class, module = m, call = self.calls[path], nodes = {},
		leaf = #module.children(m) == 0}
	local first = ...
	if class.weights and not class.observed and not class.no_input and is_tensor(first) then self:note(m, 'input', first) end
	local results = table.pack(run(m, ...))
	self.scope = outer
	return table.unpack(results, 1, results.n)
end

function record:note(m, what, tensor)
	local path = self.paths[m]
	if not path or not is_tensor(tensor) then return end
	self.notes[#self.notes + 1] = {path = path, what = what, value = self:value_of(tensor)}
end

local function names_of(m)
	local paths, known = {}, {}
	module.walk(m, function(path, inner) paths[inner] = paths[inner] or path end)
	module.each_tensor(m, function(name, tensor) known[identity(tensor)] = name end)
	return paths, known
end

local function output_tree(self, value)
	if is_tensor(value) then return {value = self:value_of(value)} end
	if type(value) ~= 'table' then return {plain = value} end
	local tree = {items = {}}
	for key, inner in next, value do tree.items[key] = output_tree(self, inner) end
	return tree
end

-- The spec of codes with their own scale, under which quantizing the decoded values returns the same codes. nil for a plain tensor.
function record.spec_of(x)
	local p = x:quantized() and x:qparams()
	return p and like.spec(p, {scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item(),
		minimum = p.minimum and p.minimum:item()}) or nil
end

-- Runs m with the input tensors arranged as in the trees.
function record.run(m, inputs, trees)
	local self = setmetatable({nodes = {}, values = {}, versions = {}, alive = {}, notes = {}, calls = {}}, record)
	self.paths, self.known = names_of(m)
	for _, input in ipairs(inputs) do
		local node = {op = 'input', name = input.name, operands = {}, attrs = {}, results = {result_of(input.tensor, NONE)}, tainted = true}
		node.results[1].spec = record.spec_of(input.tensor)
		self.nodes[#self.nodes + 1] = node
		self:new_value(input.tensor, node, 1)
	end
	local by_name = {}
	for _, input in ipairs(inputs) do by_name[input.name] = input.tensor end
	local arguments = {}
	for i, tree in ipairs(trees) do arguments[i] = internal.import('nn/graph/run').build(tree, function(name) return by_name[name] end) end
	local before = internal.record(function(what, ...) return events[what](self, ...) end)
	module.tracer = self
	local _ <close> = setmetatable({}, {__close = function()
		internal.record(before)
		module.tracer = nil
	end})
	-- A coroutine that yields here and is never resumed would leave recording on.
	local results = table.pack(internal.unyieldable(m, table.unpack(arguments)))
	if is_tensor(results[1]) and results.n == 1 then self:note(m, 'output', results[1]) end
	self.outputs = {}
	for i = 1, results.n do self.outputs[i] = output_tree(self, results[i]) end
	return self
end

return record
