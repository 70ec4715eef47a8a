-- SPDX-License-Identifier: MIT
-- graph.trace: a module's forward is run with batches of 1, 2 and 3 rows while each op that Lua applies is recorded
-- (interp/bind/record.c), and the three records are merged to one graph: integers that differ must be linear in the
-- batch; any other difference is an error that names the node. The second and third input have other values, to
-- detect tensors that were computed from values outside of ops.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local record = internal.import 'nn/graph/record'
local size = internal.import 'nn/graph/size'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor

---------------------------------------------------------------- inputs

-- The tensors of nested lists in order, and a tree with their names.
local function flatten(value, name, list)
	if is_tensor(value) then
		list[#list + 1] = {name = name, tensor = value}
		return {ref = name}
	end
	if type(value) ~= 'table' or getmetatable(value) then
		fail('trace: %s: wanted a tensor or a list of tensors, got %s', name, describe(value))
	end
	local tree = {items = {}}
	for i, inner in ipairs(value) do tree.items[i] = flatten(inner, name .. '.' .. i, list) end
	return tree
end

---------------------------------------------------------------- batches

-- Rows 1 .. b, repeated from the first if x has fewer; the values are changed in the runs after the first.
local function rows(x, axis, b, change)
	if x:quantized() then return rows(x:dequantize(), axis, b, change):quantize(record.spec_of(x)) end
	if axis and x:size(axis) == 0 then -- no row to repeat
		local sizes = {x:size()}
		sizes[axis], sizes.dtype, sizes.device = b, x:dtype(), x:device()
		x = tensor.ones(sizes)
	elseif axis then
		local list = {}
		for i = 1, b do list[i] = x:narrow(axis, (i - 1) % x:size(axis) + 1, 1) end
		x = tensor.cat(list, {axis = axis})
	end
	if change == 1 or x:nelem() == 0 then return x:clone() end
	if x:dtype():find '^float' or x:dtype():find '^bfloat' then
		local other = (tensor.arange(1, x:nelem(), {device = x:device()}):to 'float32' * change):sin()
		return x + (x:dim() == 0 and other:sum() or other:view(x:size())):to(x:dtype())
	end
	return x:dim() > 0 and x:flip {axes = {x:dim()}} or x:clone()
end

local function variant(inputs, axes, i)
	local list = {}
	for k, input in ipairs(inputs) do
		list[k] = {name = input.name, tensor = rows(input.tensor, axes[input.name], size.batches[i], i)}
	end
	return list
end

---------------------------------------------------------------- merging three records

local function same_values(a, b)
	if rawequal(a, b) then return true end
	if a:dtype() ~= b:dtype() or a:dim() ~= b:dim() or a:quantized() ~= b:quantized() then return false end
	for i = 1, a:dim() do
		if a:size(i) ~= b:size(i) then return false end
	end
	if a:quantized() then a, b = a:codes(), b:codes() end
	if a:nelem() == 0 or a:eq(b):all():item() then return true end
	return quant.dtype(a:dtype()).float and (a:eq(b) | a:isnan() & b:isnan()):all():item()
end

local function label(node)
	return ("'%s' of %s"):format(node.op, record.where(node.scope))
end

local function check_same(nodes)
	for i = 2, #nodes do
		local a, b = nodes[1], nodes[i]
		if not b or a.op ~= b.op or #a.operands ~= #b.operands or #a.results ~= #b.results then
			fail('trace: wanted the same ops for every batch, got %s with %d row%s and %s with %d', label(a), size.batches[1],
				size.batches[1] == 1 and '' or 's', b and label(b) or 'nothing', size.batches[i])
		end
		if a.op == 'const' and not same_values(a.value, b.value) then
			fail('trace: %s: wanted tensors that are computed by ops or equal in every call, got one of %s that differs between calls',
				record.where(a.scope), internal.describe(a.value))
		end
	end
end

local function merged(nodes, what, values)
	local value = size.merge(values)
	if value == nil then
		local texts = {}
		for i, v in ipairs(values) do texts[i] = type(v) == 'table' and size.text(v) or tostring(v) end
		fail('trace: %s: %s: wanted a value that is the same for every batch or linear in it, got %s', label(nodes[1]), what,
			table.concat(texts, ' '))
	end
	return value
end

-- Those of the first record, with sizes for every batch.
local function merge_results(nodes)
	local results, shapes = nodes[1].results, {}
	for k, first in ipairs(results) do
		local alias = first.alias
		for i, node in ipairs(nodes) do
			local r = node.results[k]
			if r.dtype ~= first.dtype then merged(nodes, 'dtype', {first.dtype, r.dtype, r.dtype}) end
			shapes[i] = r.shape
			alias = alias == r.alias and alias
		end
		first.shape, first.alias = merged(nodes, 'shape', shapes), alias or nil
	end
	return results
end

-- Notes the position of each raw node in its record.
local function number(raw)
	for i, node in ipairs(raw.nodes) do node.index = i end
end

-- Numbers, and values of the first record.
local function merge_operands(nodes)
	local inputs = {}
	for k, first in ipairs(nodes[1].operands) do
		if type(first) ~= 'table' then
			local values = {}
			for i, node in ipairs(nodes) do values[i] = node.operands[k] end
			first = merged(nodes, 'operand ' .. k, values)
		else
			for i = 2, #nodes do
				local other = nodes[i].operands[k]
				if type(other) ~= 'table' or other.node.index ~= first.node.index or other.at ~= first.at then
					fail('trace: %s: operand %d: wanted the same value for every batch, got different ones', label(nodes[1]), k)
				end
			end
		end
		inputs[k] = first
	end
	return inputs
end

-- Whether a node is the main op of its layer: it uses a weight; in layers without weights every op counts.
local function is_main(node, scope)
	local form = scope.class.weights and ops.form(node.op, node)
	return not scope.class.weights or form and #(form.weights or {}) > 0
end

-- The raw nodes of all records as one; its inputs are still values of the first record.
local function merge_node(nodes, attrs)
	local first, scope = nodes[1], nodes[1].scope
	for k, node in ipairs(nodes) do attrs[k] = node.attrs end
	return {name = first.name, op = first.op, inputs = merge_operands(nodes), attrs = merged(nodes, 'attributes', attrs),
		results = merge_results(nodes), value = first.value, module = scope and scope.path or '', kind = scope and scope.class.name,
		traced = first.traced or nil, emit = scope and is_main(first, scope) and rawget(scope.module, 'emit') or nil}
end

-- The node of a raw node, where the only record is that of every batch.
local function single(first)
	local scope, inputs = first.scope, first.operands
	for _, result in ipairs(first.results) do result.alias = result.alias or nil end
	return {name = first.name, op = first.op, inputs = table.move(inputs, 1, #inputs, 1, {}), attrs = first.attrs, results = first.results,
		value = first.value, module = scope and scope.path or '', kind = scope and scope.class.name, traced = first.traced or nil,
		emit = scope and is_main(first, scope) and rawget(scope.module, 'emit') or nil}
end

-- Creates nodes from the raw nodes of the records.
local function merge(raws)
	local list, made, nodes, attrs = {}, {}, {}, {}
	for _, raw in ipairs(raws) do number(raw) end
	for i, first in ipairs(#raws == 1 and raws[1].nodes or {}) do
		list[i] = single(first)
		made[first] = list[i]
	end
	if #raws == 1 then return list, made end
	for i, first in ipairs(raws[1].nodes) do
		for k, raw in ipairs(raws) do nodes[k] = raw.nodes[i] or false end
		check_same(nodes)
		list[i] = merge_node(nodes, attrs)
		made[first] = list[i]
	end
	for k = 2, #raws do
		if #raws[k].nodes ~= #list then
			fail('trace: wanted the same ops for every batch, got %d with %d rows and %d with %d', #list, size.batches[1], #raws[k].nodes,
				size.batches[k])
		end
	end
	return list, made
end

---------------------------------------------------------------- names

-- The only main op of a module without submodules has the name of the module; others are named <module>.<op><n>.
local function scope_name(node, scope, counts)
	local path = scope.path
	if scope.leaf and path ~= '' then
		if not scope.mains then -- once, as a scope may have thousands of nodes
			scope.mains = 0
			for _, other in ipairs(scope.nodes) do scope.mains = scope.mains + (is_main(other, scope) and 1 or 0) end
		end
		if scope.mains == 1 and is_main(node, scope) then return scope.call > 1 and path .. '_' .. scope.call or path end
	end
	local key = (path == '' and '' or path .. '.') .. node.op
	counts[key] = (counts[key] or 0) + 1
	return key .. counts[key]
end

-- raws: the raw nodes of the list.
local function assign_names(list, raws)
	local taken, counts = {}, {}
	for _, node in ipairs(list) do taken[node.name or ''] = true end
	for i, node in ipairs(list) do
		local name = node.name or raws[i].known
		if not name then
			local scope = raws[i].scope
			if scope then
				name = scope_name(node, scope, counts)
			else
				counts[node.op] = (counts[node.op] or 0) + 1
				name = node.op .. counts[node.op]
			end
		end
		if not node.name then
			local base_name, n = name, 2
			while taken[name] do
				name = base_name .. '_' .. n
				n = n + 1
			end
			taken[name] = true
			node.name = name
		end
	end
end

---------------------------------------------------------------- outputs

local function shown(tree)
	if not tree then return 'none' end
	return tree.value and 'a tensor' or tree.items and 'a table' or describe(tree.plain)
end

local function union(trees)
	local keys = {}
	for _, tree in ipairs(trees) do
		for key in next, tree.items do keys[key] = true end
	end
	return keys
end

-- Checks that the tree is the same for every batch; returns whether it contains a tensor.
local function same_outputs(trees, where)
	local first, values = trees[1], {}
	for i = 1, #size.batches do
		local other = trees[i]
		if not first or not other or not first.value ~= not other.value or not first.items ~= not other.items then
			fail('trace: %s: wanted the same for every batch, got %s with %d row%s and %s with %d', where, shown(first), size.batches[1],
				size.batches[1] == 1 and '' or 's', shown(other), size.batches[i])
		end
		if first.value and (other.value.node.index ~= first.value.node.index or other.value.at ~= first.value.at) then
			fail('trace: %s: wanted the same value for every batch, got different ones', where)
		end
		values[i] = describe(other.plain)
	end
	if first.value then return true end
	for i = 2, first.items and 0 or #values do
		local one, other = first.plain, trees[i].plain
		if one ~= other and (one == one or other == other) then -- nan equals nan
			fail('trace: %s: wanted a value that is the same for every batch, got %s', where, table.concat(values, ' '))
		end
	end
	local found = false
	for key in next, first.items and union(trees) or {} do
		local inner = {}
		for i, tree in ipairs(trees) do inner[i] = tree.items[key] or false end
		found = same_outputs(inner, where .. '.' .. tostring(key)) or found
	end
	return found
end

local function check_outputs(raws)
	local most, found = 0, false
	for _, raw in ipairs(raws) do most = math.max(most, #raw.outputs) end
	for k = 1, most do
		local trees = {}
		for i, raw in ipairs(raws) do trees[i] = raw.outputs[k] or false end
		found = same_outputs(trees, 'output ' .. k) or found
	end
	if not found then
		local first = raws[1].outputs[1]
		fail('trace: the model: wanted a forward that returns a tensor, got %s', first and shown(first) or 'nothing')
	end
end

---------------------------------------------------------------- the whole

local function final_tree(tree, made)
	if tree.value then return {ref = core.ref(made[tree.value.node].name, tree.value.at)} end
	if not tree.items then return {value = tree.plain} end
	local items = {}
	for key, inner in next, tree.items do items[key] = final_tree(inner, made) end
	return {items = items}
end

local function assemble(m, raw, list, made, inputs, trees, axes)
	local fields = {nodes = {}, order = {}, inputs = {}, axes = axes, input_trees = trees, outputs = {}, root = m, observed = {},
		ordered = rawget(m, 'ordered')}
	assign_names(list, raw.nodes)
	for i, node in ipairs(list) do
		for k, edge in ipairs(node.inputs) do
			if type(edge) == 'table' and not size.is_affine(edge) then node.inputs[k] = core.ref(made[edge.node].name, edge.at) end
		end
		if node.value then node.value = node.value:detach() end
		fields.nodes[node.name], fields.order[i] = node, node.name
	end
	for i, input in ipairs(inputs) do fields.inputs[i] = input.name end
	for i, tree in ipairs(raw.outputs) do fields.outputs[i] = final_tree(tree, made) end
	for _, note in ipairs(raw.notes) do
		local ref = core.ref(made[note.value.node].name, note.value.at)
		fields.observed[ref] = fields.observed[ref] or {}
		table.insert(fields.observed[ref], {module = note.path, what = note.what})
	end
	return fields
end

local function axes_of(inputs, batch)
	local axes, most = {}, 0
	for _, input in ipairs(inputs) do most = math.max(most, input.tensor:dim()) end
	if type(batch) == 'table' and #batch ~= #inputs then
		fail('trace: batch: wanted one axis for each of %d inputs, got %d', #inputs, #batch)
	end
	for i, input in ipairs(inputs) do
		local axis = batch
		if type(batch) == 'table' then axis = batch[i] end
		if axis == nil then axis = 1 end
		if axis and (math.type(axis) ~= 'integer' or axis < 1) then
			fail('trace: batch: wanted an axis or false, got %s', describe(axis))
		end
		local dims = type(batch) == 'table' and input.tensor:dim() or batch and most or axis
		if axis and axis > dims then
			fail("trace: batch: wanted an axis of '%s', which has %d, got %d", input.name, input.tensor:dim(), axis)
		end
		axes[input.name] = axis and input.tensor:dim() >= axis and axis or false
		local x = input.tensor
		local p = x:quantized() and x:qparams()
		if p and (p.axis or p.block or not x:spec().affine or not x:spec().zero_code) then
			fail('trace: %s: wanted a plain tensor, or affine codes under one scale, got %s', input.name, internal.describe(x))
		end
	end
	return axes
end

-- variant_of(i): the input tensors for batch i, with their names; o.once: the first record is that of every batch.
local function run(m, inputs, trees, axes, variant_of, o)
	local _ <close> = internal.nograd()
	local _ <close> = fit.in_mode(m, false)
	local raws = {}
	for i = 1, #size.batches do
		fit.begin_pass(m, {})
		raws[i] = o.once and raws[1] or record.run(m, variant_of(i), trees)
	end
	local list, made = merge(o.once and {raws[1]} or raws)
	check_outputs(raws)
	return core.build(assemble(m, raws[1], list, made, inputs, trees, axes), o.dead, o.unchecked)
end

local options = base.doc {name = 'graph.trace', usage = 'graph.trace(m, x)  graph.trace(m, {x, y})',
	text = [[Returns the graph of a module: every op of its forward as a named node, with sizes for any batch (B). x is an example input, plain or
codes with one scale; several inputs, also nested, are given as a list.

The module runs in eval mode with batches of 1, 2 and 3 rows of x, along axis 1 of each input or along batch= (an axis, or a list with
one per input; false: fixed sizes). Sizes that differ must be linear in the batch; numbers and other values that the module returns
beside tensors must be the same for every batch. Errors that name the module: x:item() and x:totable() of values that depend on the
input, ops that differ between batches, and writing to the input or to a module's tensors.

The node of a layer has the layer's name (linear1, residual1.conv2, as in m:named()), other ops are named <module>.<op><number>; the
option {name=} of nn modules changes that. Parameters and other tensors are 'const' nodes. print(g) shows the graph; see g:run, g:plan, g:match, g:quantize.]],
	example = [[m = nn.Sequential{nn.Linear(3, 2), nn.ReLU()}
g = graph.trace(m, tensor.ones(1, 3))
print(g:node('linear1').shape, g:node('relu1').inputs[1])  --> (B, 2) linear1]],
	options = {{'batch', 'any', 'axis of the batch in each input (default 1), or false'},
		{'dead', 'true or false', 'keep nodes that no output needs (default false)'}}}

local function trace(m, x, o)
	if not module.is_module(m) then fail('trace: wanted a module, got %s', describe(m)) end
	o = base.options(options, o)
	if module.tracer then fail 'trace: wanted a call outside of a module that is being traced' end
	local given, inputs, trees = is_tensor(x) and {x} or x, {}, {}
	if type(given) ~= 'table' or #given == 0 then fail('trace: wanted an example of the input, got %s', describe(x)) end
	base.list('trace', given)
	for i, value in ipairs(given) do trees[i] = flatten(value, #given == 1 and 'input' or 'input' .. i, inputs) end
	local axes = axes_of(inputs, o.batch)
	return run(m, inputs, trees, axes, function(i) return variant(inputs, axes, i) end, {dead = o.dead})
end

-- The graph of m for inputs without values: a list of {name=, dtype=, shape=, axis= of the batch or false, spec= of codes}, the operands of m.
-- Nothing is computed but what is known without the inputs. unchecked: as in core.build.
local function abstract(m, inputs, unchecked)
	local axes, trees, once = {}, {}, true -- without a batch all runs are equal
	for i, input in ipairs(inputs) do
		axes[input.name], trees[i] = input.axis, {ref = input.name}
		once = once and not input.axis
	end
	return run(m, inputs, trees, axes, function(k)
		local list = {}
		for i, input in ipairs(inputs) do
			local sizes = table.move(input.shape, 1, #input.shape, 1, {})
			if input.axis then sizes[input.axis] = size.batches[k] end
			local x = internal.meta(input.spec and 'float32' or input.dtype, sizes)
			list[i] = {name = input.name, tensor = input.spec and x:quantize(input.spec) or x}
		end
		return list
	end, {once = once, unchecked = unchecked})
end

return {trace = trace, abstract = abstract}
