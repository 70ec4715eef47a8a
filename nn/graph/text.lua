-- SPDX-License-Identifier: MIT
-- Text forms of a graph: print(g), g:node(name), g:dot(file).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local report = internal.import 'interp/prelude/report'
local size = internal.import 'nn/graph/size'
local fail = base.fail
local methods, method = core.methods, core.method

local function spec_text(result) return result.spec and result.spec.name or '' end

local function inputs_text(node)
	local parts = {}
	for i, ref in ipairs(node.inputs) do parts[i] = tostring(ref) end
	return table.concat(parts, ' ')
end

local function value_text(value)
	if type(value) ~= 'table' or size.is_affine(value) then return tostring(value) end
	local parts = {}
	for i, inner in ipairs(value) do parts[i] = value_text(inner) end
	return '{' .. table.concat(parts, ',') .. '}'
end

local function attrs_text(node)
	local names, parts = {}, {}
	for name in next, node.attrs do names[#names + 1] = name end
	table.sort(names)
	for i, name in ipairs(names) do parts[i] = name .. '=' .. value_text(node.attrs[name]) end
	return table.concat(parts, ' ')
end

local function bytes_of(node)
	local bytes = 0
	for _, result in ipairs(node.results) do bytes = bytes + ops.bytes(result, 1) end
	return bytes
end

-- The report of g:print; constants have rows only on request.
local function rows_of(g, constants, attributes)
	local rows = {columns = {'node', 'op', 'inputs', 'shape', 'dtype', 'spec', 'mode', 'weights', 'bytes', 'macs'}}
	if attributes then table.insert(rows.columns, 'attributes') end
	local weights, macs, count, consts = 0, 0, 0, 0
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		local const = node.op == 'const'
		consts, count = consts + (const and 1 or 0), count + (const and 0 or 1)
		weights = weights + (const and node.value:nbytes() or 0)
		if not const or constants then
			local result, n = node.results[1], ops.macs(g, node, 1)
			macs = macs + n
			rows[#rows + 1] = {node = name, op = node.op, inputs = inputs_text(node), shape = size.text(result.shape), dtype = result.dtype,
				spec = spec_text(result), mode = node.mode or '', weights = core.const_bytes(g, node), bytes = bytes_of(node), macs = n,
				attributes = attributes and attrs_text(node) or nil}
		end
	end
	local outputs = {}
	core.each_output(g, function(leaf) outputs[#outputs + 1] = leaf.ref end)
	rows.note = ('%d nodes, %d constants of %d bytes; output: %s; bytes and macs (%d) for one row'):format(count, consts, weights,
		table.concat(outputs, ' '), macs)
	return report(rows)
end

local print_options = method('print', 'g:print()  g:print{constants=true}',
	[[Prints the graph, as print(g) does: a row for each node with its op, inputs, shape (B: the batch), dtype, spec of codes, mode of
quantized nodes, bytes of its constants (weights), bytes of its results and multiplications for one row. attributes=true: a column with
the attributes of the op; constants=true: also a row for each constant. Returns the report.]],
	[[g = graph.trace(nn.Sequential{nn.Linear(3, 2)}, tensor.ones(1, 3))
g:print()  --> node...macs
--> ...
--> input...
--> linear1...6
--> all rows...
--> 2 nodes...
--> row]],
	{{'constants', 'true or false', 'rows for constants, too (default false)'},
		{'attributes', 'true or false', 'a column of attributes (default false)'}})
function methods.print(g, o)
	core.expect(g, 'print')
	o = base.options(print_options, o)
	local r = rows_of(g, o.constants, o.attributes)
	print(r)
	return r
end

core.meta.__tostring = function(g) return tostring(rows_of(g)) end

---------------------------------------------------------------- one node

local SHAPE = {__tostring = size.text}

method('node', "g:node 'conv1'", [[Returns a node as a table: name, op, module, kind, inputs and users (names), attrs, shape, dtype, bytes, macs, results
(a list of {shape, dtype, spec}), value (of a constant), mode and spec = {weight, input, output} (of a quantized node). 'lstm1:2' is the
second result of lstm1. The table is a copy: writing to it does not change the graph.]],
	[[g = graph.trace(nn.Sequential{nn.Linear(3, 2)}, tensor.ones(1, 3))
n = g:node 'linear1'
print(n.op, n.shape, n.inputs[2], n.users[1])  --> linear (B, 2) linear1.weight nil]])
function methods.node(g, ref)
	core.expect(g, 'node')
	local name, at = core.split(tostring(ref))
	local node = name and g.nodes[name]
	if not node or not node.results[at] then fail("node: wanted the name of a node, got '%.60s'%s", tostring(ref), base.near(ref, g.order)) end
	local made = {}
	for key, value in next, node do made[key] = value end
	local result = node.results[at]
	made.inputs = table.move(node.inputs, 1, #node.inputs, 1, {})
	made.users = table.move(g.users[name], 1, #g.users[name], 1, {})
	made.shape = setmetatable(table.move(result.shape, 1, #result.shape, 1, {}), SHAPE)
	made.dtype, made.bytes, made.macs = result.dtype, bytes_of(node), ops.macs(g, node, 1)
	made.spec = node.spec or result.spec and {output = result.spec} or {}
	made.traced = nil
	return made
end

---------------------------------------------------------------- dot

local function quoted(text) return '"' .. text:gsub('[\\"]', '\\%0') .. '"' end

-- A name that no node uses.
local function fresh_output(g, name)
	while g.nodes[name] do name = name .. '_' end
	return name
end

local function dot_lines(g)
	local lines = {'digraph graph_ {', '\trankdir=TB;', '\tnode [shape=box, fontname="Helvetica"];'}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		local result = node.results[1]
		if node.op ~= 'const' then
			local text = ('%s\\n%s %s%s'):format(name:gsub('[\\"]', '\\%0'), node.op, result.dtype, size.text(result.shape))
			lines[#lines + 1] = ('\t%s [label="%s"%s];'):format(quoted(name), text, node.mode and ', style=filled' or '')
		end
		for _, ref in ipairs(node.inputs) do
			local producer = type(ref) == 'string' and core.split(ref)
			if producer and g.nodes[producer].op ~= 'const' then
				lines[#lines + 1] = ('\t%s -> %s;'):format(quoted(producer), quoted(name))
			end
		end
	end
	local refs = {}
	core.each_output(g, function(leaf) refs[#refs + 1] = leaf.ref end)
	for i, ref in ipairs(refs) do
		local name, at = core.split(ref)
		local output = fresh_output(g, #refs > 1 and 'output' .. i or 'output')
		lines[#lines + 1] = ('\t%s [shape=plaintext];\n\t%s -> %s%s;'):format(quoted(output), quoted(name), quoted(output),
			at > 1 and (' [label="%d"]'):format(at) or '')
	end
	lines[#lines + 1] = '}\n'
	return table.concat(lines, '\n')
end

method('dot', "g:dot 'net.dot'", [[Writes the graph in the DOT language of Graphviz (dot -Tsvg net.dot -o net.svg) and returns the text. Quantized nodes
are filled, constants are omitted, several outputs are named output1, output2 and so on. Without a file it only returns the text.]],
	[[g = graph.trace(nn.Sequential{nn.Linear(3, 2)}, tensor.ones(1, 3))
print(g:dot():find('"input" -> "linear1"', 1, true) ~= nil)  --> true]])
function methods.dot(g, file)
	core.expect(g, 'dot')
	if file ~= nil and type(file) ~= 'string' then fail('dot: wanted the name of a file, got %s', base.describe(file)) end
	local text = dot_lines(g)
	if file then internal.write_file(file, text) end
	return text
end

return {rows = rows_of, value = value_text}
