-- SPDX-License-Identifier: MIT
-- g:run: runs the nodes in order, each by its op, so that the values are bit-equal to the module's. Where floats become codes, the
-- last bit of a sum may decide between two codes: such graphs run with ordered products (tensor/kernels/kernels.h), like quantized
-- modules and exported C. A value is released after its last user. `execute` runs node by node, for all options and graphs. Where only
-- outputs are asked for and no function of the user is involved, the steps are a program, which is made once (program_of): arguments
-- are read then, and a convolution, the sum of its result with another value and a relu of floats become one call.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local in_parts = internal.import 'nn/graph/in_parts'
local ops = internal.import 'nn/graph/ops'
local replay = internal.import 'nn/graph/replay'
local size = internal.import 'nn/graph/size'
local slices = internal.import 'nn/graph/slices'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor
local methods, method = core.methods, core.method
local gethook = debug.gethook
local run = {}
local NONE = {}

---------------------------------------------------------------- trees of inputs and outputs

-- Refuses a key for which the graph has no input.
local function refuse_other(what, items, value)
	for key in next, value do
		if items[key] == nil then fail("run: %s: wanted only inputs of the graph, got another at %s", what, describe(key)) end
	end
end

-- Calls each(tensor, leaf) for the leaves of a value with the structure of the tree.
local function match_tree(what, tree, value, each)
	if tree.ref then
		if not is_tensor(value) then fail('run: %s: wanted a tensor, got %s', tree.ref, describe(value)) end
		return each(value, tree.ref)
	end
	if type(value) ~= 'table' then fail('run: %s: wanted a list of tensors, got %s', what, describe(value)) end
	refuse_other(what, tree.items, value)
	for key, inner in next, tree.items do match_tree(what .. '.' .. key, inner, value[key], each) end
end

-- The value of a tree of references.
function run.build(tree, get)
	if tree.ref then return get(tree.ref) end
	if not tree.items then return tree.value end
	local made = {}
	for key, inner in next, tree.items do made[key] = run.build(inner, get) end
	return made
end

---------------------------------------------------------------- the batch

local function check_input(g, name, x, b)
	local result = g.nodes[name].results[1]
	if not internal.fits(x, result.dtype, result.shape, b) then
		fail('run: %s: wanted %s%s, got %s', name, result.dtype, size.text(result.shape), internal.describe(x))
	end
end

-- An input of codes also takes floats, which are quantized, and plain integers of its dtype, which are its codes.
local function as_codes(spec, x)
	if x:quantized() then return x end
	if quant.dtype(x:dtype()).float then return x:quantize(spec) end
	if x:dtype() ~= spec.dtype then return x end
	local codes = not internal.recorded() and x:device() == 'cpu' and internal.coded(x, spec)
	if codes then return codes end -- else some are out of range, and saturate
	local scale, zero = internal.spec_params(spec)
	return ((x:to 'float32' - (zero or 0)) * scale):quantize(spec)
end

-- name -> tensor of the inputs, their batch, and the list of those that were converted (nil: none).
function run.read_inputs(g, x)
	local trees, values, made, b = g.input_trees, {}, nil, nil
	local function take(value, name)
		local spec = g.nodes[name].results[1].spec
		local codes = spec and as_codes(spec, value) or value
		values[name] = codes
		if not rawequal(codes, value) then
			made = made or {}
			made[#made + 1] = codes
		end
	end
	if #trees == 1 and trees[1].ref and is_tensor(x) then
		take(x, trees[1].ref)
	else
		local given = #trees == 1 and is_tensor(x) and {x} or x
		if type(given) ~= 'table' then fail('run: wanted a tensor or a list of tensors, got %s', describe(x)) end
		refuse_other('inputs', trees, given)
		for i, tree in ipairs(trees) do match_tree('input ' .. i, tree, given[i], take) end
	end
	for _, name in ipairs(g.inputs) do
		local axis = g.axes[name]
		if axis and values[name]:dim() >= axis then b = b or values[name]:size(axis) end
	end
	b = b or 1
	for _, name in ipairs(g.inputs) do check_input(g, name, values[name], b) end
	return values, b, made
end

---------------------------------------------------------------- running

-- ref -> number of its uses.
local function count_uses(g)
	local left = {}
	for _, name in ipairs(g.order) do
		for _, ref in ipairs(g.nodes[name].inputs) do
			if type(ref) == 'string' then left[ref] = (left[ref] or 0) + 1 end
		end
	end
	core.each_output(g, function(leaf) left[leaf.ref] = (left[leaf.ref] or 0) + 1 end)
	return left
end

local function operands_of(node, values, b)
	local operands = {}
	for i, ref in ipairs(node.inputs) do operands[i] = type(ref) == 'string' and values[ref] or size.at(ref, b) end
	return operands
end

-- Applies one node. Error messages name the node.
local function apply(node, operands, b)
	local good, results = pcall(ops.apply, node.op, operands, size.varies(node.attrs) and size.at(node.attrs, b) or node.attrs)
	if not good then fail("run: node '%s': %s", node.name, tostring(results):gsub('^[^:]*:%d+: ', '')) end
	return results
end

local function check_results(node, results, b)
	for i, recorded in ipairs(node.results) do
		local x = results[i]
		local good = x:dtype() == recorded.dtype and x:quantized() == (recorded.spec ~= nil) and x:dim() == #recorded.shape
		for d, n in ipairs(recorded.shape) do good = good and x:size(d) == size.at(n, b) end
		if not good then
			fail("run: node '%s': recorded as %s%s%s, got %s", node.name, recorded.dtype, size.text(recorded.shape),
				recorded.spec and ' codes' or '', internal.describe(x))
		end
	end
end

local function release(x)
	local _ <close> = x
end

local function in_order(g, o)
	if o.ordered == nil then return g.ordered end
	return o.ordered
end

-- Runs the nodes on `values` (by name, of the inputs), to which it adds; see run.execute. o.release: values without users are freed
-- at once, not by the collector.
local function execute(g, values, b, o)
	local _ <close> = internal.nograd()
	local _ <close> = in_order(g, o) and internal.ordered() or nil
	local _ <close> = not o.store and internal.deferring() or nil -- chains of elementwise nodes take one pass over memory
	local left, copies, made = count_uses(g), {}, {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if name == o.stop then break end
		if node.op == 'const' then
			values[name] = node.value
		elseif node.op ~= 'input' then
			local operands = operands_of(node, values, b)
			local results = apply(node, operands, b)
			if o.check then check_results(node, results, b) end
			if o.store then results = o.store(node, results) end
			for i, result in ipairs(results) do
				local ref = core.ref(name, i)
				if left[ref] or o.keep and o.keep[ref] then
					values[ref], made[ref] = result, true
				elseif o.release then
					release(result)
				end
				if o.store and o.keep and o.keep[ref] then copies[ref] = result:clone() end
			end
			for _, ref in ipairs(node.inputs) do
				if type(ref) == 'string' then
					left[ref] = left[ref] - 1
					if left[ref] == 0 and not (o.keep and o.keep[ref]) then
						if o.release and made[ref] then release(values[ref]) end
						values[ref] = nil
					end
				end
			end
		end
	end
	for _, value in next, values do internal.settled(value) end
	return function(ref) return values[ref] end, copies
end

---------------------------------------------------------------- running for the outputs alone

-- g -> its program (interp/bind/program.c), {program, refs of the outputs that it gives}; by batch where its steps depend on that;
-- false: it needs `execute`.
local programs = setmetatable({}, {__mode = 'k'})
local MOST = 8 -- batches

-- Programs release values as soon as they have no users, so that the next result takes over memory that is in the caches. Functions of the
-- user and ops that write into an operand run by `execute`.
local function is_simple(node)
	return node.op ~= 'assign' and ops.built_in(node.op) and not ops.user(node.op) and not node.op:find '_$'
end

-- The arguments behind the operands: a spec, and other attributes by name.
local function arguments_of(attrs, b)
	local list, rest = {n = 0}, nil
	for key, value in next, size.varies(attrs) and size.at(attrs, b) or attrs do
		if key == 'spec' then
			list[1], list.n = value, 1
		else
			rest = rest or {}
			rest[key] = value
		end
	end
	if rest then
		list.n = list.n + 1
		list[list.n] = rest
	end
	return list
end

local function step_of(node, places, b)
	local step = {op = node.op, name = node.name, node = node, free = {}, results = {}, arguments = arguments_of(node.attrs, b)}
	for i, ref in ipairs(node.inputs) do step[i] = type(ref) == 'string' and places[ref] or {size.at(ref, b)} end
	for i = 1, #node.results do step.results[i] = places[core.ref(node.name, i)] end
	return step
end

-- A convolution whose only user adds its result to another value runs with that sum, in one call: what is between them needs no
-- memory. Both give codes, or both float32, and the convolution then has no activation. Which value the step of the sum leaves out:
-- 1 or 2.
local function joins(step, by_place, uses)
	if step.op ~= 'add' or #step ~= 2 or step[1] == step[2] or type(step[1]) == 'table' or type(step[2]) == 'table' then return end
	local codes = step.node.attrs.out ~= nil
	for at = 2, 1, -1 do
		local conv = by_place[step[at]]
		if conv and conv.op == 'conv2d' and (conv.node.attrs.out ~= nil) == codes and (codes or not conv.node.attrs.act) and
			uses[step[at]] == 1 then
			return at, conv
		end
	end
end

-- The relu that is the only user of a sum of floats.
local function relu_of(sum, user, uses)
	local place = sum.results[1]
	local step = user[place]
	if step and step.op == 'relu' and step.arguments.n == 0 and uses[place] == 1 and not sum.node.attrs.out then return step end
end

-- The steps in order, with those together that run as one.
local function join_sums(g, steps, places)
	local by_place, user, uses, gone, joined = {}, {}, {}, {}, {}
	for _, step in ipairs(steps) do
		by_place[step.results[1]] = step
		for _, place in ipairs(step) do uses[place], user[place] = (uses[place] or 0) + 1, step end
	end
	core.each_output(g, function(leaf) uses[places[leaf.ref]] = 2 end)
	for _, step in ipairs(steps) do
		local at, conv = joins(step, by_place, uses)
		if at then
			by_place[step.results[1]], by_place[conv.results[1]] = nil, nil
			step.before, step.behind = conv, relu_of(step, user, uses)
			conv.at, conv.joins, gone[conv] = at, step.behind and 2 or 1, true
			if step.behind then gone[step.behind] = true end
		end
	end
	for _, step in ipairs(steps) do
		if not gone[step] then
			if step.before then joined[#joined + 1] = step.before end
			joined[#joined + 1] = step
			if step.behind then joined[#joined + 1] = step.behind end
		end
	end
	return joined
end

-- Each value is freed after the last step that has it; given ones and outputs never are.
local function mark_last(g, steps, places, given)
	local last = {}
	for _, step in ipairs(steps) do
		for _, list in ipairs {step, step.results} do
			for _, place in ipairs(list) do last[place] = step end
		end
	end
	core.each_output(g, function(leaf) last[places[leaf.ref]] = nil end)
	for place, step in next, last do
		if type(place) == 'number' and place > given then table.insert(step.free, place) end
	end
end

-- The description of a program, and the refs of its outputs: those that are results.
local function describe_program(g, b)
	local places, constants, steps, n = {}, {}, {}, #g.inputs
	for i, name in ipairs(g.inputs) do places[name] = i end
	for _, name in ipairs(g.order) do
		if g.nodes[name].op == 'const' then
			n = n + 1
			places[name], constants[#constants + 1] = n, g.nodes[name].value
		end
	end
	local given, refs, outputs, seen = n, {}, {}, {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if node.op ~= 'const' and node.op ~= 'input' then
			if not is_simple(node) then return nil end
			for i = 1, #node.results do
				n = n + 1
				places[core.ref(name, i)] = n
			end
			steps[#steps + 1] = step_of(node, places, b)
		end
	end
	steps = join_sums(g, in_parts.join(g, steps, places), places)
	mark_last(g, steps, places, given)
	core.each_output(g, function(leaf)
		local place = places[leaf.ref]
		if place > given and not seen[place] then
			seen[place], refs[#refs + 1], outputs[#outputs + 1] = true, leaf.ref, place
		end
	end)
	return {inputs = #g.inputs, constants = constants, values = n, outputs = outputs, steps = steps}, refs
end

local function varies(g)
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if size.varies(node.attrs) or size.varies(node.inputs) then return true end
	end
	return false
end

-- Whether the results of a program are the outputs of the graph, one by one.
local function is_direct(g, refs)
	for i, tree in ipairs(g.outputs) do
		if not tree.ref or tree.ref ~= refs[i] then return false end
	end
	return refs ~= nil and #refs == #g.outputs
end

-- The program of a graph for a batch, or false.
local function program_of(g, b)
	local known = programs[g]
	if not known then
		known = {varies = varies(g), n = 0}
		programs[g] = known
	end
	local key = known.varies and b or 0
	if known[key] == nil then
		if known.n >= MOST then
			known = {varies = true, n = 0}
			programs[g] = known
		end
		local description, refs = describe_program(g, b)
		local good, program = pcall(internal.program, description) -- what is wrong in a node is told by its op
		known[key], known.n = good and {program, refs, direct = is_direct(g, refs)} or false, known.n + 1
	end
	return known[key]
end

-- Runs the graph for its outputs: a function ref -> tensor; nil: it needs `execute`.
local function run_program(g, values, inputs, b, o)
	local entry = type(gethook()) ~= 'function' and program_of(g, b) -- a hook of the user sees every call
	if not entry then return nil end
	local results = table.pack(internal.run_program(entry[1], inputs, in_order(g, o)))
	if results.n < #entry[2] then return nil end -- operations are recorded
	for i, ref in ipairs(entry[2]) do values[ref] = results[i] end
	return function(ref) return values[ref] or g.nodes[ref].value end
end

-- Runs the graph; returns a function ref -> tensor for values that are still live (outputs and those named by `keep`), and the
-- copies made. `o`:
--   keep    set of refs;  check  compare dtypes and shapes with those recorded
--   stop    name of the node before which to stop
--   ordered add products in a fixed order (nil: g.ordered, which g:quantize and tracing a quantized module set)
--   store(node, results)   may return replacements (in an arena); kept values are then copied
function run.execute(g, x, o)
	local values, b = run.read_inputs(g, x)
	return execute(g, values, b, o)
end

local function once(g, values, inputs, b, o)
	return run_program(g, values, inputs, b, o) or (execute(g, values, b, o))
end

-- The program whose results are those of this run, if there is one.
local function direct_program(g, values, inputs, b)
	if internal.recorded() or type(gethook()) == 'function' or internal.recordable(inputs) or slices.count(g, values, b) > 1 then return nil end
	local entry = program_of(g, b)
	return entry and entry.direct and entry[1]
end

local function closing(list, ...)
	for _, x in ipairs(list) do release(x) end
	return ...
end

-- The same from a recording where there is one (nn/graph/replay.lua), or some rows at a time (nn/graph/slices.lua).
local function replayed(g, values, inputs, b, o)
	local get = replay.run(g, inputs, in_order(g, o), function(own)
		local given = {}
		for i, name in ipairs(g.inputs) do given[name] = own[i] end
		return execute(g, given, b, {ordered = o.ordered, release = true})
	end)
	if get then return get end
	local n = slices.count(g, values, b)
	if n == 1 then return once(g, values, inputs, b, o) end
	return slices.run(g, values, b, n, function(given, rows)
		local list = {}
		for i, name in ipairs(g.inputs) do list[i] = given[name] end
		return once(g, given, list, rows, o)
	end)
end

local function outputs_of(g, get)
	local list = {}
	for i, tree in ipairs(g.outputs) do list[i] = run.build(tree, get) end
	return list, #g.outputs
end

-- Runs for the outputs alone, and returns them.
local function run_outputs(g, x, o)
	local values, b, made = run.read_inputs(g, x)
	local inputs = {}
	for i, name in ipairs(g.inputs) do inputs[i] = values[name] end
	local program = direct_program(g, values, inputs, b)
	if program then return closing(made or NONE, internal.run_program(program, inputs, in_order(g, o))) end
	local list, n = outputs_of(g, replayed(g, values, inputs, b, o))
	return table.unpack(list, 1, n)
end

local function kept(g, keep)
	local set, list = {}, type(keep) == 'string' and {keep} or keep
	for _, ref in ipairs(list) do
		if type(ref) ~= 'string' then fail('run: keep: wanted names of nodes, got %s', describe(ref)) end
		local name = core.split(ref)
		if not g.nodes[name or ''] then fail("run: keep: wanted the name of a node, got '%.60s'%s", ref, base.near(ref, g.order)) end
		set[ref] = true
	end
	return set, list
end

local options = method('run', "g:run(x)  g:run({x, y})  g:run(x, {keep='conv1'})",
	[[Runs the graph on x, for any batch size: the same ops in the same order as the traced module, so the results are bit-identical.
Weights that are codes and that only products read are decoded by these in
parts, never as a whole, unless keep=, check= or arena= ask for every value. Several inputs are given as a list. keep= names intermediate values ('conv1', a second result 'lstm1:2', or a list); they are returned
after the outputs in a table by name. check=true compares dtypes and shapes with those of the graph.

The graph of a quantized model (modes static and dynamic, by m:quantize or g:quantize) adds float products in a fixed order, that of
exported C, as the model itself does: the same bits on every processor. Other graphs are faster, and have the bits of their exported C
with ordered=true.

On a device the second run on inputs of some shapes and dtypes is recorded, and later ones are one launch of the recording, with the same
results; what changes with each run (random numbers), needs the host, writes into constants or calls Lua is not recorded, and
QUOLL_GPU_SYNC=1 records nothing. Writing to a weight ends a recording. A graph keeps 4 of them, for different inputs, with memory for
its values (gpu.memory().recorded). quant.log counts the ops of each replay, and the replays: op graph, path replay.]],
	[[m = nn.Sequential{nn.Linear(3, 2), nn.ReLU()}
g = graph.trace(m, tensor.ones(1, 3))
x = tensor.randn(5, 3)
y, inner = g:run(x, {keep='linear1'})
print(y:error(m(x)).max, inner.linear1:size())  --> 0.0 5 2]],
	{{'keep', 'text or list', 'names of values to return'}, {'check', 'true or false', 'compare dtypes and shapes (default false)'},
		{'arena', 'true or false', "keep all values in one block as g:plan lays them out (default false)"},
		{'replay', 'true or false', 'on a device, record runs and replay them (default true)'},
		{'ordered', 'true or false', 'add products of floats in the order of exported C (default: in graphs of quantized models)'}})
function methods.run(g, x, o)
	core.expect(g, 'run')
	if o == nil then return run_outputs(g, x, NONE) end
	o = base.options(options, o)
	local keep, names = NONE, NONE
	if o.keep ~= nil then keep, names = kept(g, o.keep) end
	local store
	if o.arena then store = internal.import('nn/graph/plan').arena(g, x, run.read_inputs) end
	local options_of_run = {keep = keep, check = o.check, store = store, ordered = o.ordered}
	if #names == 0 and not (o.check or store or o.replay == false) then return run_outputs(g, x, options_of_run) end
	local get, copies = run.execute(g, x, options_of_run)
	local list, n = outputs_of(g, get)
	if #names == 0 then return table.unpack(list, 1, n) end
	local inner = {}
	for _, name in ipairs(names) do inner[name] = copies[name] or get(name) end
	list[n + 1] = inner
	return table.unpack(list, 1, n + 1)
end

return run
