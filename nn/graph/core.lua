-- SPDX-License-Identifier: MIT
-- The graph: named nodes in an executable order, edges by name. Nodes are immutable: an edit replaces them, so that
-- graphs share unchanged nodes and all tensors.
--
-- A node:
--   name, op       op is the name of a registered op, or 'input', 'const', 'assign'
--   inputs         operands: 'name' (its first result), 'name:2', or a number
--   attrs          attributes by name; integers may grow with the batch (nn/graph/size.lua)
--   results        list of {shape=, dtype=, spec=, alias=}: alias is the operand whose memory it shares
--   value          const: the tensor
--   module, kind   path and class of the module that made it
--   mode, spec     of a quantized node: static dynamic weight_only; {weight=, input=, output=}
-- A graph: nodes (by name), order, inputs and axes of the batch, input_trees, outputs (trees whose leaves are {ref=}), users
-- (name -> names of the nodes that use it), root (the module), observed (ref -> its name in calibration).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local ops = internal.import 'nn/graph/ops'
local size = internal.import 'nn/graph/size'
local fail = base.fail
local find = string.find

local core = {}
local methods, hidden = {}, {} -- hidden: methods for the files of nn/graph only
local meta = {__name = 'quoll.graph', methods = methods}
debug.getregistry()[meta.__name] = meta -- for help and completion

function meta.__index(_, key)
	local value = methods[key] or hidden[key]
	if value or type(key) ~= 'string' then return value end
	local names = {}
	for name in next, methods do names[#names + 1] = name end
	fail("graph: no field or method '%.40s'%s", key, base.near(key, names))
end
core.methods, core.meta = methods, meta
core.writers = {} -- other files that g:export writes: name of the option -> function(g, options)

function core.is_graph(value) return getmetatable(value) == meta end

function core.expect(g, name)
	if not core.is_graph(g) then fail('%s: wanted a graph, as in g:%s(…), got %s', name, name, base.describe(g)) end
	return g
end

function core.method(name, usage, text, example, options)
	return base.doc {name = 'graph:' .. name, usage = usage, text = text, example = example, options = options}
end

---------------------------------------------------------------- edges

-- 'conv1:2' -> 'conv1', 2
function core.split(ref)
	if not find(ref, ':', 1, true) then return ref, 1 end
	local name, at = ref:match '^([^:]+):?(%d*)$'
	return name, tonumber(at) or 1
end

function core.ref(name, at) return at and at > 1 and name .. ':' .. at or name end

-- The device of its constants (of the first one), or nil.
function core.device(g)
	for _, name in ipairs(g.order) do
		local value = g.nodes[name].value
		if value then return value:device() end
	end
end

-- The result of an edge: {shape=, dtype=, spec=}.
function hidden.result_of(g, ref)
	local node = g.nodes[ref]
	if node then return node.results[1] end
	local name, at = core.split(ref)
	return g.nodes[name].results[at]
end

-- Positions in ascending order, then names in alphabetical order.
local function sorted_keys(items)
	local keys = {}
	for key in next, items do keys[#keys + 1] = key end
	table.sort(keys, function(a, b)
		if type(a) == type(b) then return a < b end
		return type(a) == 'number'
	end)
	return keys
end

local function each_leaf(tree, each, value, path)
	if tree.ref then each(tree, value, path) end
	for _, key in ipairs(tree.items and sorted_keys(tree.items) or {}) do
		each_leaf(tree.items[key], each, value and value[key], path and path .. '.' .. key or tostring(key))
	end
end

-- Calls each(leaf, value, path) for every leaf of the output trees, in a fixed order. values: the results of g:run, or nil;
-- path: the keys of the leaf, such as '2.name'; nil if the only output is a tensor.
function core.each_output(g, each, values)
	for i, tree in ipairs(g.outputs) do each_leaf(tree, each, values and values[i], #g.outputs > 1 and tostring(i) or nil) end
end

local function copy_tree(tree)
	local made = {}
	for key, value in next, tree do made[key] = value end
	if tree.items then
		made.items = {}
		for key, inner in next, tree.items do made.items[key] = copy_tree(inner) end
	end
	return made
end

---------------------------------------------------------------- types

local function of_spec(result, spec)
	return {shape = result.shape, dtype = spec.dtype, spec = spec.scheme and spec or nil, alias = nil}
end

local function infer_first(g, node)
	local first = type(node.inputs[1]) == 'string' and g:result_of(node.inputs[1]) or nil
	local form, was = ops.form(node.op, node), node.results[1]
	if node.op == 'quantize' or node.op == 'requantize' then return {of_spec(was, node.attrs.spec)} end
	if node.op == 'dequantize' then -- plain tensors are unchanged
		return {{shape = was.shape, dtype = first.spec and 'float32' or first.dtype, alias = not first.spec and was.alias or nil}}
	end
	if node.attrs.out then return {of_spec(was, node.attrs.out)} end
	if form and form.gives == 'same' and first and (first.spec or was.spec) then
		if first.spec and form.keeps and not form.keeps(first.spec, node) then return {{shape = was.shape, dtype = 'float32'}} end
		local spec = first.spec and first.spec.axis and was.spec or first.spec
		return {{shape = was.shape, dtype = first.spec and first.dtype or 'float32', spec = spec, alias = was.alias}}
	end
	if was.spec and not first.spec then return {{shape = was.shape, dtype = 'float32'}} end
	return node.results
end

-- The result types of a node, derived from its inputs. A type is the dtype and, for codes, the spec. Further results are no codes.
local CODES = {quantize = true, requantize = true, dequantize = true}

function core.infer(g, node)
	if node.op == 'input' or node.op == 'const' then return node.results end
	local ref = node.inputs[1]
	local first = type(ref) == 'string' and g:result_of(ref)
	if not (first and first.spec) and not node.results[1].spec and not node.attrs.out and not CODES[node.op] then return node.results end
	local list = infer_first(g, node)
	for i = #list + 1, #node.results do list[i] = node.results[i] end
	return list
end

---------------------------------------------------------------- edits

local edits = {}
edits.__index = edits

-- An editable copy of g; finish() returns the new graph.
function core.edit(g)
	local e = {nodes = {}, order = table.move(g.order, 1, #g.order, 1, {}), outputs = {}, changes = 0}
	for key, value in next, g do
		if e[key] == nil then e[key] = value end
	end
	for name, node in next, g.nodes do e.nodes[name] = node end
	for i, tree in ipairs(g.outputs) do e.outputs[i] = copy_tree(tree) end
	e.users = nil
	return setmetatable(e, edits)
end

edits.result_of = hidden.result_of

---------------------------------------------------------------- users, kept up to date

-- ref -> list of {name=, at=} of the nodes that use it, and {output=true} for each output.
local function link(users, name, inputs)
	for at, ref in ipairs(inputs) do
		if type(ref) == 'string' then
			users[ref] = users[ref] or {}
			table.insert(users[ref], {name = name, at = at})
		end
	end
end

local function unlink(users, name, inputs)
	for _, ref in ipairs(inputs) do
		local list = type(ref) == 'string' and users[ref] or {}
		for i = #list, 1, -1 do
			if list[i].name == name then table.remove(list, i) end
		end
	end
end

local function find_users(e)
	local users = {}
	for _, name in ipairs(e.order) do link(users, name, e.nodes[name].inputs) end
	core.each_output(e, function(leaf)
		users[leaf.ref] = users[leaf.ref] or {}
		table.insert(users[leaf.ref], {output = true})
	end)
	return users
end

-- The users of this result: a list of {name=, at=} and {output=true}.
function edits:users_of(ref)
	self.users = self.users or find_users(self)
	return self.users[ref] or {}
end

-- The node that is the only user; nil if there are others or the user is an output.
function edits:only_user(ref)
	local users = self:users_of(ref)
	return #users == 1 and users[1].name and self.nodes[users[1].name] or nil
end

function edits:fresh(name)
	local n, free = 2, name
	while self.nodes[free] do
		free = name .. '_' .. n
		n = n + 1
	end
	return free
end

-- Inserts a new node before the node called `before` (nil: at the front).
function edits:add(node, before)
	local at = 1
	for i, name in ipairs(self.order) do
		if name == before then at = i end
	end
	table.insert(self.order, at, node.name)
	self.nodes[node.name] = node
	if self.users then link(self.users, node.name, node.inputs) end
	self.changes = self.changes + 1
	return node
end

-- Replaces the node by a copy with these fields changed, and returns the copy.
function edits:change(node, fields)
	local made = {}
	for key, value in next, node do made[key] = value end
	for key, value in next, fields do made[key] = value end
	made.inputs = table.move(made.inputs, 1, #made.inputs, 1, {})
	if self.users and fields.inputs then
		unlink(self.users, node.name, node.inputs)
		link(self.users, node.name, made.inputs)
	end
	self.nodes[node.name] = made
	self.changes = self.changes + 1
	return made
end

function edits:set_attr(node, key, value)
	local attrs = {}
	for name, inner in next, node.attrs do attrs[name] = inner end
	attrs[key] = value
	return self:change(node, {attrs = attrs})
end

function edits:set_input(node, at, ref)
	local inputs = table.move(node.inputs, 1, math.max(at, #node.inputs), 1, {})
	inputs[at] = ref
	return self:change(node, {inputs = inputs})
end

local function move_outputs(users, from, to, count)
	local left = {}
	for _, user in ipairs(users[from] or {}) do left[#left + 1] = not user.output and user or nil end
	users[from], users[to] = left, users[to] or {}
	for _ = 1, count do table.insert(users[to], {output = true}) end
end

-- Makes all users of `from` use `to` instead, except the node called `but`.
function edits:redirect(from, to, but)
	local list = self:users_of(from)
	for _, user in ipairs(table.move(list, 1, #list, 1, {})) do
		if user.name and user.name ~= but then self:set_input(self.nodes[user.name], user.at, to) end
	end
	local outputs = 0
	core.each_output(self, function(leaf)
		if leaf.ref == from then leaf.ref, outputs = to, outputs + 1 end
	end)
	if outputs > 0 then move_outputs(self.users, from, to, outputs) end
	self.changes = self.changes + 1
end

local function moved(map, from, to)
	local made = {}
	for ref, value in next, map or {} do made[ref] = value end
	made[to] = made[from]
	return made
end

-- `to` replaces `from`: takes over its users and its observed ranges.
function edits:take_over(from, to)
	self:redirect(from, to)
	self.observed, self.observers = moved(self.observed, from, to), moved(self.observers, from, to)
end

-- Nodes that an output needs, and inputs, from the last to the first of the edit's order. A node may come after its user there: such
-- nodes are missed, and reached from their users.
local function needed_of(e)
	local needed, list, nodes = {}, {}, e.nodes
	for _, name in ipairs(e.inputs) do needed[name] = true end
	core.each_output(e, function(leaf) needed[core.split(leaf.ref)] = true end)
	for i = #e.order, 1, -1 do
		local name = e.order[i]
		if needed[name] then
			list[#list + 1] = name
			for _, ref in ipairs(nodes[name].inputs) do
				if type(ref) == 'string' then needed[nodes[ref] and ref or core.split(ref)] = true end
			end
		end
	end
	return list
end

-- The nodes from last to first in order; nil if one comes before what it uses.
local function in_order(e, list)
	local order, seen, nodes = {}, {}, e.nodes
	for i = #list, 1, -1 do
		local name = list[i]
		for _, ref in ipairs(nodes[name].inputs) do
			if type(ref) == 'string' and not seen[nodes[ref] and ref or core.split(ref)] then return nil end
		end
		seen[name], order[#order + 1] = true, name
	end
	return order
end

-- The same where nodes are to be moved before their users.
local function moved_in_order(e, list)
	local order, state = {}, {}
	local function visit(name)
		local stack = {{name, 1}}
		while #stack > 0 do
			local top = stack[#stack]
			local node = e.nodes[top[1]]
			local ref = node.inputs[top[2]]
			if state[top[1]] == 'done' then
				stack[#stack] = nil
			elseif ref == nil then
				state[top[1]] = 'done'
				order[#order + 1] = top[1]
				stack[#stack] = nil
			else
				top[2] = top[2] + 1
				local producer = type(ref) == 'string' and core.split(ref)
				if producer and not e.nodes[producer] then
					fail("graph: node '%s': wanted an input that exists, got '%s'", top[1], ref)
				end
				if producer and state[producer] == 'open' then fail("graph: node '%s' depends on itself", producer) end
				if producer and not state[producer] then
					state[producer] = 'open'
					stack[#stack + 1] = {producer, 1}
				end
			end
		end
	end
	for i = #list, 1, -1 do visit(list[i]) end
	return order
end

-- Names in an executable order, without nodes that no output needs (inputs stay).
local function sorted(e)
	local list = needed_of(e)
	return in_order(e, list) or moved_in_order(e, list)
end

-- The node with results that follow from its inputs: itself if they are the same.
local function with_types(g, node)
	local results = core.infer(g, node)
	if results == node.results then return node end
	local made = {}
	for key, value in next, node do made[key] = value end
	made.results = results
	return made
end

-- Builds a graph from the fields; users and types are derived from nodes and edges. unchecked: passes follow, whose result is checked.
function core.build(fields, keep_dead, unchecked)
	local g = {}
	for _, key in ipairs {'inputs', 'axes', 'input_trees', 'outputs', 'root', 'observed', 'observers', 'ordered'} do
		g[key] = fields[key] or false
	end
	setmetatable(g, meta)
	local old = fields.nodes
	g.order = keep_dead and fields.order or sorted(fields)
	local nodes, users = {}, {}
	g.nodes, g.users = nodes, users
	for _, name in ipairs(g.order) do
		local node = old[name]
		nodes[name], users[name] = node, {}
		nodes[name] = with_types(g, node)
		for _, ref in ipairs(node.inputs) do
			local list = type(ref) == 'string' and users[nodes[ref] and ref or core.split(ref)]
			if list and list[#list] ~= name then list[#list + 1] = name end
		end
	end
	if not unchecked then internal.import('nn/graph/check').check(g, keep_dead, true) end
	return g
end

-- Removes nodes that no output needs.
function edits:sweep()
	self.order = sorted(self)
	local nodes = {}
	for _, name in ipairs(self.order) do nodes[name] = self.nodes[name] end
	for name, node in next, self.users and self.nodes or {} do
		if not nodes[name] then unlink(self.users, name, node.inputs) end
	end
	self.nodes = nodes
end

-- Between two passes: as finish, but nothing is checked.
function edits:settle()
	self:sweep()
	for _, name in ipairs(self.order) do self.nodes[name] = with_types(self, self.nodes[name]) end
end

function edits:finish() return core.build(self) end

-- Bytes of the constants that a node uses.
function core.const_bytes(g, node)
	local bytes = 0
	for _, ref in ipairs(node.inputs) do
		local producer = type(ref) == 'string' and g.nodes[core.split(ref)]
		if producer and producer.op == 'const' then bytes = bytes + producer.value:nbytes() end
	end
	return bytes
end

core.size = size
return core
