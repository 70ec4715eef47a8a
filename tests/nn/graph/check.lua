-- SPDX-License-Identifier: MIT
-- The invariant checker finds what a broken pass would leave: each breach is made by hand.
local internal = debug.getregistry()['quoll.internal']
local check = internal.import 'nn/graph/check'.check
local core = internal.import 'nn/graph/core'
tensor.seed(11)
local m = nn.Sequential{nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)}
local x = tensor.randn(8, 4)
m:calibrate({{x, x}}, {log=false})

-- A graph whose nodes may be written into.
local function own(g)
	local copy = setmetatable({}, getmetatable(g))
	for key, value in next, g do rawset(copy, key, value) end
	copy.order = table.move(g.order, 1, #g.order, 1, {})
	copy.nodes, copy.users = {}, {}
	for name, node in next, g.nodes do
		local made = {}
		for key, value in next, node do made[key] = value end
		made.inputs = table.move(node.inputs, 1, #node.inputs, 1, {})
		made.results = {}
		for i, result in ipairs(node.results) do
			made.results[i] = {shape = result.shape, dtype = result.dtype, spec = result.spec}
		end
		copy.nodes[name] = made
		copy.users[name] = table.move(g.users[name], 1, #g.users[name], 1, {})
	end
	return copy
end

local function broken(pattern, g, change)
	g = own(g)
	change(g)
	local good, message = pcall(check, g)
	assert(not good, 'not found: ' .. pattern)
	assert(message:find(pattern), message)
end

it('edges, order, users, orphans', function()
	local g = graph.trace(m, x)
	check(own(g))
	broken("'linear2' %(linear%): input 1: wanted a node, got 'relu9'", g, function(h) h.nodes.linear2.inputs[1], h.users.relu1 = 'relu9', {} end)
	broken("wanted one of 1 results, got 'relu1:2'", g, function(h) h.nodes.linear2.inputs[1] = 'relu1:2' end)
	broken("'relu1' does not list it as a user", g, function(h) h.users.relu1 = {} end)
	broken("'relu1' %(relu%): 'input' is listed as a user but does not use it", g, function(h) table.insert(h.users.relu1, 'input') end)
	broken('a node that runs before', g, function(h) table.insert(h.order, 1, table.remove(h.order)) end)
	broken('an orphan', g, function(h)
		h.nodes.dead = {name = 'dead', op = 'relu', inputs = {'relu1'}, attrs = {}, results = h.nodes.relu1.results}
		h.users.dead = {}
		table.insert(h.users.relu1, 'dead')
		table.insert(h.order, 'dead')
	end)
	broken('is missing from the order', g, function(h) h.nodes.lost = {name = 'lost'} end)
	broken('appears twice in the order', g, function(h) table.insert(h.order, 'linear2') end)
	broken('wanted an edge or a number, got true', g, function(h) table.insert(h.nodes.relu1.inputs, true) end)
	broken("output: wanted a node, got 'nothing'", g, function(h) h.outputs = {{ref = 'nothing'}} end)
end)

it('types: codes where codes are taken, dtypes as recorded', function()
	local g = graph.trace(m, x):quantize{mode='static'}
	check(own(g))
	broken("'linear1' %(linear%): input 1: wanted codes, got float32 from 'input'", g, function(h)
		h.nodes.linear1.inputs[1], h.users['linear1.quantize'] = 'input', {}
		table.insert(h.users.input, 'linear1')
	end)
	broken("'linear2' %(linear%): input 1: wanted floats, got codes of uint8", g, function(h) h.nodes.linear2.mode = nil end)
	broken('recorded as float32, its inputs give uint8 codes', g, function(h)
		h.nodes.linear1.results[1].dtype, h.nodes.linear1.results[1].spec = 'float32', nil
	end)
end)

it('of several passes the one that breaks the graph is named', function()
	local entry = internal.import 'nn/graph/passes/recognize'
	local run = entry.run
	for _, change in ipairs {{1, 'nowhere', "an input that exists, got 'nowhere'"}, {2, true, 'wanted an edge or a number, got true'}} do
		function entry.run(e) e:set_input(e.nodes.linear2, change[1], change[2]) end
		local good, message = pcall(internal.import 'nn/graph/pass'.run, graph.trace(m, x), {'fold', 'layers', 'fuse'}, {})
		entry.run = run
		assert(not good and message:find("pass: 'recognize' broke the graph", 1, true) and message:find(change[3], 1, true), message)
	end
end)

it('a pass that breaks the graph is named', function()
	local g = graph.trace(m, x)
	local e = core.edit(g)
	e:set_input(e.nodes.linear2, 1, 'nowhere')
	print(pcall(e.finish, e))  --> false ...node 'linear2': wanted an input that exists, got 'nowhere'
	e = core.edit(g)
	e:set_input(e.nodes.relu1, 1, 'linear2')
	print(pcall(e.finish, e))  --> false ...depends on itself
	print(g:run(x):error(m(x)).max)  --> 0.0
	print(pcall(g.pass, g, 'fues'))  --> false ...did you mean 'fuse'?
	print(pcall(g.pass, g))  --> false ...wanted the name of a pass or a list of them, got nil
end)
