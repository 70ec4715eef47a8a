-- SPDX-License-Identifier: MIT
-- Cuts a traced model into blocks (nn/quantize/blocks.lua): at the nodes after which only one value is needed of all that depend on a
-- weight. What follows from the inputs alone, such as masks, is computed again in each block that needs it.
local _, internal = ...
local blocks = internal.import 'nn/quantize/blocks'
local core = internal.import 'nn/graph/core'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local size = internal.import 'nn/graph/size'

---------------------------------------------------------------- where a graph can be cut

local function is_layer(node)
	local form = ops.form(node.op, node)
	return form and #(form.weights or {}) > 0
end

local function producers(g, node)
	local list = {}
	for _, ref in ipairs(node.inputs) do
		if type(ref) == 'string' then list[#list + 1] = g.nodes[core.split(ref)] end
	end
	return list
end

-- The set of nodes that depend on a layer, layers included.
local function weighted(g)
	local set = {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		set[name] = is_layer(node) or nil
		for _, from in ipairs(producers(g, node)) do set[name] = set[name] or set[from.name] end
	end
	return set
end

-- The last position in the order at which a value of each node is used; outputs are used behind the end.
local function last_uses(g)
	local last = {}
	for i, name in ipairs(g.order) do
		for _, from in ipairs(producers(g, g.nodes[name])) do last[from.name] = i end
	end
	core.each_output(g, function(leaf) last[core.split(leaf.ref)] = #g.order + 1 end)
	return last
end

-- The axis of the rows in a value that has one row for each of the batch.
local function batch_axis(result)
	if not result.dtype:find 'float' or result.spec then return end
	for d, n in ipairs(result.shape) do
		if size.is_affine(n) then return n.per == 1 and n.plus == 0 and d or nil end
	end
end

-- Positions in the order after which one value is needed, with the node's name.
local function cuts_of(g)
	local set, last, live, list = weighted(g), last_uses(g), {}, {}
	local count = 0
	for i, name in ipairs(g.order) do
		for _, from in ipairs(producers(g, g.nodes[name])) do
			if live[from.name] and last[from.name] == i then live[from.name], count = nil, count - 1 end
		end
		if set[name] and last[name] then live[name], count = true, count + 1 end
		if count == 1 and live[name] and #g.nodes[name].results == 1 and batch_axis(g.nodes[name].results[1]) and last[name] <= #g.order then
			list[#list + 1] = {at = i, name = name}
		end
	end
	list[#list + 1] = {at = #g.order}
	return list
end

---------------------------------------------------------------- pieces

-- Names of the layers between two positions.
local function layers_between(g, first, last)
	local list = {}
	for i = first, last do
		local node = g.nodes[g.order[i]]
		if is_layer(node) then list[#list + 1] = node end
	end
	return list
end

-- The path of the layer that a node is of; a model that is a layer itself has the empty one.
local function path_of(node, root) return (node.module ~= '' or root) and node.module or node.name end

-- What the paths of all layers begin with.
local function common(nodes)
	local prefix
	for _, node in ipairs(nodes) do
		local path = path_of(node)
		prefix = prefix or path:match '^(.*%.)' or ''
		while path:sub(1, #prefix) ~= prefix do prefix = prefix:gsub('[^.]*%.$', '') end
	end
	return prefix or ''
end

-- The pieces between cuts: those without layers join the next one, and those whose layers are in one part of the model join each other.
local function pieces_of(g)
	local list, prefix = {}, common(layers_between(g, 1, #g.order))
	local from, start = nil, 1
	for _, cut in ipairs(cuts_of(g)) do
		local layers = layers_between(g, start, cut.at)
		if #layers > 0 or not cut.name then
			local before = list[#list]
			local key = #layers > 0 and path_of(layers[1]):sub(#prefix + 1):match '^[^.]*' or before and before.key
			if before and before.key == key and path_of(layers[1] or before.layers[1]) ~= prefix .. key then
				table.move(layers, 1, #layers, #before.layers + 1, before.layers)
				before.to = cut.name
			elseif before and #layers == 0 then
				before.to = cut.name
			else
				list[#list + 1] = {key = key, name = prefix .. key, layers = layers, from = from, to = cut.name}
			end
			from, start = cut.name, cut.at + 1
		end
	end
	return list
end

---------------------------------------------------------------- a block as a module

-- The nodes that a value needs, up to the one called `from`.
local function collect(g, refs, from)
	local needed = {}
	local stack = {}
	for _, ref in ipairs(refs) do stack[#stack + 1] = core.split(ref) end
	while #stack > 0 do
		local name = table.remove(stack)
		if not needed[name] then
			needed[name] = true
			for _, before in ipairs(name ~= from and producers(g, g.nodes[name]) or {}) do stack[#stack + 1] = before.name end
		end
	end
	return needed
end

local function outputs_of(g, piece)
	if piece.to then return {{ref = piece.to}}, {piece.to} end
	local refs = {}
	core.each_output(g, function(leaf) refs[#refs + 1] = leaf.ref end)
	return g.outputs, refs
end

-- The graph of a piece: its inputs are the value before it and those of the whole graph.
local function graph_of(g, piece)
	local outputs, refs = outputs_of(g, piece)
	local needed = collect(g, refs, piece.from)
	local fields = {nodes = {}, order = {}, inputs = {}, axes = {}, input_trees = {}, outputs = outputs, ordered = true}
	local function input(name, axis)
		local result = g.nodes[name].results[1]
		fields.nodes[name] = {name = name, op = 'input', inputs = {}, attrs = {}, module = '', results = {{shape = result.shape, dtype = result.dtype, spec = result.spec}}}
		fields.inputs[#fields.inputs + 1], fields.axes[name] = name, axis
		return {ref = name}
	end
	if piece.from then fields.input_trees[1] = input(piece.from, batch_axis(g.nodes[piece.from].results[1])) end
	local more = false
	for _, name in ipairs(g.inputs) do more = more or needed[name] end
	for _, tree in ipairs(more and g.input_trees or {}) do fields.input_trees[#fields.input_trees + 1] = tree end
	for _, name in ipairs(more and g.inputs or {}) do input(name, g.axes[name]) end
	for _, name in ipairs(g.order) do
		if needed[name] and not fields.nodes[name] then fields.nodes[name] = g.nodes[name] end
		if fields.nodes[name] then fields.order[#fields.order + 1] = name end
	end
	return core.build(fields), more
end

-- The weights of a node: {node=, ref=, field= of the layer, columns(operands, results)= what it is multiplied with, or nil}.
local function weights_of(g, node)
	local form, list = ops.form(node.op, node), {}
	for _, at in ipairs(form.weights) do
		local ref = node.inputs[at]
		local const = type(ref) == 'string' and g.nodes[ref]
		if const and const.op == 'const' then
			list[#list + 1] = {node = node.name, ref = ref, field = ref:match '[^.]*$',
				columns = form.columns and function(operands, results) return form.columns(at, operands, results, node.attrs) end}
		end
	end
	return list
end

-- The layers of m that the nodes are of, each once, the names of their nodes, and their weights.
local function layers_of(g, nodes, root)
	local list, nodes_of, weights = {}, {}, {}
	for _, node in ipairs(nodes) do
		local path = path_of(node, root)
		if not nodes_of[path] then
			nodes_of[path], weights[path] = {}, {}
			list[#list + 1] = path
		end
		table.insert(nodes_of[path], node.name)
		for _, weight in ipairs(weights_of(g, node)) do table.insert(weights[path], weight) end
	end
	return list, nodes_of, weights
end

-- The nodes before a value of which all other users follow from it alone, the nearest first: what they give can take a factor that what
-- reads the value then takes back.
local function behind(g, ref)
	local list, seen, queue = {}, {}, {(core.split(ref))}
	while #queue > 0 do
		local name = table.remove(queue, 1)
		local node = g.nodes[name]
		if not seen[name] and node.op ~= 'input' and node.op ~= 'const' then
			seen[name] = true
			list[#list + 1] = {name = name, path = path_of(node)}
			for _, from in ipairs(producers(g, node)) do
				if #g.users[from.name] == 1 then queue[#queue + 1] = from.name end
			end
		end
	end
	return list
end

-- {name=, path=} of each node behind the value that the layers of these names read; nil and the name of what else reads it.
local function sources_of(g, nodes, names)
	local mine, ref = {}, nil
	for _, name in ipairs(names) do
		for _, node in ipairs(nodes[name]) do mine[node], ref = true, ref or g.nodes[node].inputs[1] end
	end
	local from = core.split(ref)
	for _, user in ipairs(g.users[from]) do
		if not mine[user] then return nil, user end
	end
	return behind(g, ref)
end

-- The axis of the rows in what a piece gives, if that is one tensor.
local function rows_of(g, piece)
	local ref = piece.to or #g.outputs == 1 and g.outputs[1].ref
	if not ref then return end
	local name, at = core.split(ref)
	return batch_axis(g.nodes[name].results[at or 1])
end

-- What follows a layer where that is a function of each of its results alone: it, or nil.
local function follows(g, names)
	local users = #names == 1 and g.users[names[1]] or {}
	local node = #users == 1 and g.nodes[users[1]]
	local info = node and #node.inputs == 1 and not ops.user(node.op) and ops.info(node.op)
	if not info or not info.elementwise or node.attrs.spec or node.attrs.out then return end
	return function(y) return ops.apply(node.op, {y}, node.attrs)[1] end
end

function blocks.cut(m, x)
	local good, g = pcall(internal.import('nn/graph/trace').trace, m, x)
	if not good then return nil, (tostring(g):gsub('^[^:]*:%d+: ', ''):gsub('\n.*', '')) end
	local list = {}
	for i, piece in ipairs(pieces_of(g)) do
		local own, takes = graph_of(g, piece)
		local names, nodes, weights = layers_of(g, piece.layers, module.weights(m) ~= nil)
		list[i] = {name = piece.name, layers = names, nodes = nodes, weights = weights, graph = own, from = piece.from, takes = takes, rows = rows_of(g, piece),
			make = function() return nn.Graph(own) end, sources = function(of) return sources_of(own, nodes, of) end,
			follows = function(path) return follows(own, nodes[path]) end}
	end
	return list
end

return true
