-- SPDX-License-Identifier: MIT
-- g:quantize and g:calibrate. First every input of a quantized node gets a quantize node and every weight its codes;
-- then passes merge, raise and fuse these (nn/graph/passes) and insert a dequantize before ops that do not accept
-- codes.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
internal.import 'nn/base/modes'
local codes = internal.import 'nn/graph/codes'
local core = internal.import 'nn/graph/core'
local decide = internal.import 'nn/graph/decide'
local fit = internal.import 'nn/base/fit'
local ops = internal.import 'nn/graph/ops'
local pass = internal.import 'nn/graph/pass'
local progress = internal.import 'interp/prelude/progress'
local report = internal.import 'interp/prelude/report'
local rounding = internal.import 'nn/graph/rounding'
local rules = internal.import 'nn/quantize/rules'
local run = internal.import 'nn/graph/run'
local fail = base.fail
local methods, method = core.methods, core.method

---------------------------------------------------------------- rewriting

local function result_of(value)
	return {{shape = {value:size()}, dtype = value:dtype(), spec = value:quantized() and value:spec() or nil}}
end

-- The constant with the codes of a weight; nodes with the same weight and spec share it.
local function quantized_weight(e, node, at, spec, made)
	local ref = node.inputs[at]
	local key = ref .. '|' .. codes.key(spec)
	if made[key] then return made[key] end
	local old = e.nodes[ref]
	local value = old.value
	if value:quantized() then return ref end
	if spec.block and value:dim() > 2 then value = value:view(value:size(1), value:nelem() // value:size(1)) end
	made.values[key] = made.values[key] or module.weight_codes(value, spec) -- as m:quantize
	value = made.values[key]
	local name = #e:users_of(ref) == 1 and ref or e:fresh(ref .. '.codes')
	if name == ref then
		e:change(old, {value = value, results = result_of(value)})
	else
		e:add({name = name, op = 'const', inputs = {}, attrs = {}, results = result_of(value), value = value, module = old.module,
			kind = old.kind}, node.name)
	end
	made[key] = name
	return name
end

local function add_op(e, name, op, ref, attrs, node, shape)
	return e:add({name = e:fresh(name), op = op, inputs = {ref}, attrs = attrs, module = node.module, kind = node.kind,
		results = {{shape = shape, dtype = 'float32'}}}, node.name).name
end

-- Inserts a dequantize before a float op; weights that were flattened for blocks get their shape back.
local function decoded(e, ref, node, shape)
	local name = add_op(e, ref .. '.dequantize', 'dequantize', ref, {}, node, e.nodes[ref].results[1].shape)
	if #e.nodes[ref].results[1].shape == #shape then return name end
	return add_op(e, ref .. '.view', 'view', name, {size = shape}, node, shape)
end

local function rewrite_weights(e, row, made)
	for _, at in ipairs(row.weights) do
		local node = e.nodes[row.node.name]
		local shape = e.nodes[node.inputs[at]].results[1].shape
		local ref = quantized_weight(e, node, at, row.weight, made)
		if row.mode == 'weight_only' and not row.form.decodes then ref = decoded(e, ref, node, shape) end
		e:set_input(e.nodes[node.name], at, ref)
	end
end

local function rewrite_inputs(e, row, made)
	for at, ref in ipairs(e.nodes[row.node.name].inputs) do
		local spec = row.inputs[at]
		if spec and e.nodes[core.split(ref)].op == 'const' then
			e:set_input(e.nodes[row.node.name], at, quantized_weight(e, e.nodes[row.node.name], at, spec, made))
		elseif spec then
			local name = add_op(e, row.node.name .. '.quantize' .. (at > 1 and at or ''), 'quantize', ref, {spec = spec}, row.node,
				e:result_of(ref).shape)
			e:set_input(e.nodes[row.node.name], at, name)
		end
	end
end

local function rewrite(e, row, made)
	rewrite_weights(e, row, made)
	rewrite_inputs(e, row, made)
	local node, attrs = e.nodes[row.node.name], {}
	for key, value in next, node.attrs do attrs[key] = value end
	for key, value in next, row.form.attrs and row.mode ~= 'weight_only' and row.form.attrs(node, row.weight) or {} do
		attrs[key] = value
	end
	if row.output then attrs.out = row.output end
	local first = select(2, next(row.inputs))
	local decodes = row.mode == 'weight_only' and not row.form.decodes
	e:change(node, {attrs = attrs, traced = false, mode = not decodes and row.mode or nil, spec = {mode = row.mode, weight = row.weight, input = first,
		output = row.output}})
end

-- Joins whose result no user accepts as codes become float ops: adds their names to `float`.
local function settle(e, float)
	for _, name in ipairs(e.order) do
		local node = e.nodes[name]
		local form = ops.form(node.op, node)
		if node.mode and form and form.needs and form.gives ~= 'places' and not node.attrs.out then
			e:change(node, {mode = false, spec = false})
			float[#float + 1] = name
		end
	end
	for name, node in next, e.nodes do
		if node.mode == false then
			local made = {}
			for key, value in next, node do made[key] = value end
			made.mode, made.spec = nil, nil
			e.nodes[name] = made
		end
	end
end

---------------------------------------------------------------- quantize

-- Returns the edit after quantizing the chosen nodes and running all passes but the last; the list of decisions; and the names of
-- nodes that have to stay float ops. `values`: weights that are quantized already, `found`: ranges.
local function attempt(start, o, trouble, float, values, found)
	local list, reader = decide.all(start, o, trouble, float, found)
	local e, made, more = core.edit(start), {values = values}, {}
	for _, row in ipairs(list) do
		if row.mode then rewrite(e, row, made) end
		if row.emit then e:change(e.nodes[row.node.name], {emit = row.emit}) end
		if row.floats then e:change(e.nodes[row.node.name], {floats = true}) end
	end
	return pass.loose(e, {'merge_equal', 'fuse_requantize', 'raise_quantize'}, function(edit) settle(edit, more) end, {'insert_borders'}), list, more,
		reader
end

-- Whether the activations of a node have no other users, so that they can stay floats.
local function takes_alone(g, node)
	for _, at in ipairs(ops.form(node.op, node).inputs) do
		local ref = node.inputs[at]
		while type(ref) == 'string' do
			local producer = g.nodes[core.split(ref)]
			if #g.users[producer.name] > 1 then return false end
			local form = ops.form(producer.op, producer)
			ref = form and form.gives == 'same' and producer.inputs[1] or nil
		end
	end
	return true
end

-- A function that has to be a float op uses floats directly if no other node needs its operand as codes: everything is decided again
-- without it. Sums and joins use the codes of the layers that share their operands.
local function attempts(start, o, trouble, float)
	local values, found = {}, {}
	while true do
		local edited, list, more, reader = attempt(start, o, trouble, float, values, found)
		local again = false
		for _, name in ipairs(more) do
			local node = start.nodes[name]
			if not float[name] and not ops.form(node.op, node).all and takes_alone(start, node) then float[name], again = true, true end
		end
		if not again then return edited, list, reader end
	end
end

local function totals(g, made, rows)
	local before, after, n = 0, 0, 0
	for _, name in ipairs(g.order) do before = before + (g.nodes[name].op == 'const' and g.nodes[name].value:nbytes() or 0) end
	local counts = {}
	for _, name in ipairs(made.order) do
		local node = made.nodes[name]
		after = after + (node.op == 'const' and node.value:nbytes() or 0)
		counts[node.op] = (counts[node.op] or 0) + 1
	end
	for _, row in ipairs(rows) do n = n + (row.mode ~= 'float' and 1 or 0) end
	return ('%d of %d nodes quantized; constants %d bytes, before %d; %d quantize, %d requantize, %d dequantize'):format(n, #rows, after,
		before, counts.quantize or 0, counts.requantize or 0, counts.dequantize or 0)
end

-- Updates the rows after the passes: specs of results, joins that stayed float.
local function settle_rows(made, list)
	for _, row in ipairs(list) do
		local node = made.nodes[row.node.name]
		if row.mode and node and row.form.needs and not node.mode then
			row.mode, row.inputs, row.output, row.why = nil, {}, nil, 'its result or an operand is needed as floats'
		end
		if row.mode and node and node.attrs.out then row.output = node.attrs.out end
	end
end

-- A rule that matches only sums and functions, all of which stay float, is an error.
local function check_vain(list, wanted, trouble)
	local first, served = {}, {}
	for _, row in ipairs(list) do
		local rule = row.rule
		if rule and type(wanted[rule]) == 'table' then
			first[rule] = first[rule] or row
			served[rule] = served[rule] or row.mode or row.optional or row.refused or row.done or not row.form or not row.form.needs
		end
	end
	for rule, row in next, first do
		if not served[rule] then
			trouble(row, ("%s; to be an integer op it wants operands with known ranges and a result that is taken as codes: call \z
				g:calibrate(data) before, or give mode='static', input= and output= with scale=; {pattern, false} leaves it float"):format(row.why))
		end
	end
end

-- Shared by g:quantize and g:match: returns the graph, the decision about each node, and the reader of the rules.
-- `trouble(row, why)` is called for a node that cannot be what a rule or mode requests. `float`: names of nodes that stay float ops,
-- or nil.
local function plan(g, o, trouble, float)
	local function told(row, why)
		if row.rule then why = ('%s (rule %d)'):format(why, row.rule) end
		trouble(row, why)
	end
	local start = o.fuse == false and g or pass.run(g, {'fold', 'fuse_activation'}, {})
	local edited, list, reader = attempts(start, o, told, float or {})
	local final = pass.run(edited, {'fuse'}, {})
	settle_rows(final, list)
	check_vain(list, o.rules or {}, told)
	return final, list, reader, start
end

-- Refuses rules that match nothing, and a graph without nodes to quantize.
local function check_done(list, reader, o)
	local names, count = {}, 0
	for i, row in ipairs(list) do
		names[i] = row.node.name
		count = count + ((row.mode or row.done) and 1 or 0)
	end
	reader.finish(names)
	if count == 0 and not o.rules and o.weight ~= 'float32' then fail('quantize: wanted a graph with nodes that can be quantized, got none') end
end

-- Whether any computed value becomes codes (weights do not count).
local function has_codes(g)
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if node.attrs and node.attrs.states then return true end
		for _, result in ipairs(node.op ~= 'const' and node.results or {}) do
			if result.spec then return true end
		end
	end
	return false
end

local options = method('quantize', "g:quantize{mode='static', weight='int8/1', input='uint8', rules=}",
	[[Returns a new graph in which nodes with weights run in integers, and a report with a row for each node that could: rule, mode, specs,
bits per weight, bytes, and why it stayed float. g is not modified. Modes, specs and rules are those of m:quantize; rules match the names
of nodes (also the name of a layer with several nodes), and a function in rules gets the node (g:node).

Conversions are nodes: quantize where floats become codes, requantize where codes change their parameters, dequantize before an op
without an integer version. Between quantized nodes the values stay codes (out=), also through ops that only move or compare elements.

These ops run in integers, too, if calibration has observed their ranges (m:calibrate: those of nn modules, g:calibrate: all) and their
result is needed as codes: sums, differences, products and joins; functions of one tensor (gelu, sigmoid, x * 2, …), by table; softmax,
layernorm, rmsnorm, attention, rope, embedding, mean. argmax and argmin compare codes if the range of their operand is known. A rule
with output={dtype=, scale=} makes the last node return codes.

static: ranges come from m:calibrate of the traced module, from g:calibrate, or from specs with scale= (and zero_point=).

A rule is an error if it matches an op without an integer version (optional=true: the op stays float, and the report says so), if it
matches no node or only nodes that earlier rules match (optional=true: the note of the report says so), or if it matches only sums and
functions, none of which can run in integers: these need known ranges (g:calibrate, or mode='static' with input= including its scale) and
a result that is used as codes (by a following layer, or output=).

weight=false (or 'float32') leaves a node float, input=false makes its mode weight_only, output=false makes its result float. Before
quantization batch norm is folded and activations are fused (fuse=false: not).

rounding= is the rule that rounds integer results to codes: 'float', 'exact', or in fixed point 'single' or 'double' (help 'requantization').
Results that are computed in float are divided by the scale under every rule.]],
	[[m = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)}
x = tensor.randn(32, 8)
m:calibrate({{x, x}}, {log=false})
g = graph.trace(m, x)
q, r = g:quantize{mode='static'}
print(q:run(x):error(m:quantize{mode='static'}(x)).max, q:node('linear1').attrs.out.dtype)  --> 0.0 uint8]],
	{{'mode', 'text', 'auto static dynamic weight_only (default auto)'}, {'weight', 'spec', "default 'int8/1'"},
		{'input', 'spec', "(default 'uint8')"}, {'output', 'spec', 'spec of the results of static nodes, with scale='},
		{'rules', 'list', 'exceptions by name'}, {'fuse', 'true or false', 'fold and fuse first (default true)'},
		{'rounding', 'text', 'float single double (default float)'}})
function methods.quantize(g, o)
	core.expect(g, 'quantize')
	rules.refuse_former(o, 'nn.Graph(g):quantize')
	o = base.options(options, rules.options(o))
	local _ <close> = internal.nograd()
	local rule = rounding.check('quantize', o.rounding or 'float')
	local final, list, reader, start = plan(g, o, function(row, why) fail('quantize: %s: %s', row.node.name, why) end)
	check_done(list, reader, o)
	if o.rounding then final = rounding.apply(final, rule) end
	local rows = {columns = {'node', 'op', 'rule', 'mode', 'weight', 'input', 'output', 'bits', 'bytes', 'float_bytes', 'why'}}
	for i, row in ipairs(list) do rows[i] = decide.row(start, row) end
	rows.note = totals(g, final, rows) .. reader.unused()
	final.ordered = has_codes(final)
	return final, report(rows)
end

---------------------------------------------------------------- calibrate

-- The operands of nodes that can be quantized: the values to observe.
local function wanted_values(g)
	local refs = {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		local form = ops.form(node.op, node)
		if form and form.gives and form.gives ~= 'same' then
			for at, ref in ipairs(node.inputs) do
				local wanted = form.all or form.either
				for _, other in ipairs(form.inputs) do wanted = wanted or other == at end
				local producer = wanted and type(ref) == 'string' and g.nodes[core.split(ref)]
				if producer and producer.op ~= 'const' and g:result_of(ref).dtype:find 'float' then refs[ref] = true end
			end
		end
	end
	if next(refs) then -- the results may be needed as codes
		core.each_output(g, function(leaf) refs[leaf.ref] = g:result_of(leaf.ref).dtype == 'float32' or nil end)
	end
	return refs
end

local calibrate = method('calibrate', "g:calibrate(data, {input='uint8', batches=32})",
	[[Runs batches of data through the graph while observers record every operand of a node that can be quantized, including the operands
of sums, products and joins in models written in Lua, of which m:calibrate observes the layers only. g:quantize{mode='static'} then uses
these ranges. input= is the spec with the observer, batches= the number of batches. The values are not changed. data: a loader or a list
of {x, y}, of which x is used; x may be a list if the graph has several inputs. Returns g.]],
	[[m = nn.module(function(self, x) return self.a(x) + self.b(x) end, {a=nn.Linear(4, 4), b=nn.Linear(4, 4)})
x = tensor.randn(16, 4)
g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
q, r = g:quantize{mode='static'}
print(r[1].mode, r[3].op, r[3].mode)  --> static add float]],
	{{'input', 'spec', "spec of the activations (default 'uint8')"}, {'batches', 'positive integer', 'how many (default 32)'},
		{'log', 'true or false', 'draw a bar (default true)'}})
function methods.calibrate(g, data, o)
	core.expect(g, 'calibrate')
	o = base.options(calibrate, o)
	local spec, wanted, refs = quant.spec(o.input or 'uint8'), o.batches or 32, wanted_values(g)
	if spec.block or spec.axis then fail("calibrate: input: wanted one scale for the whole tensor, got '%s'", tostring(spec)) end
	if next(refs) == nil then fail('calibrate: wanted a graph with nodes that can be quantized, got none') end
	local observers, n = {}, 0
	for ref in next, refs do observers[ref] = quant.observer(o.input or 'uint8') end
	local bar <close> = progress.start('calibrate', wanted, o.log)
	for x in fit.batches('calibrate', data, core.device(g)) do
		local get = run.execute(g, x, {keep = refs})
		for ref, observer in next, observers do observer:update(get(ref)) end
		n = n + 1
		bar:update(n, function() return '' end)
		if n >= wanted then break end
	end
	if n == 0 then fail('calibrate: data: wanted at least one batch, got none') end
	g.observers = observers
	return g
end

-- A graph whose ops take the codes that their operands decode, and give codes where they are quantized; exact: and their biases are int32.
local function integers(g, rows, exact)
	local decodes = false
	for _, node in next, g.nodes do decodes = decodes or node.op == 'dequantize' end
	if not decodes then return g end
	local e = core.edit(g)
	local function apply(name)
		internal.import('nn/graph/passes/' .. name).run(e, function(node, what) rows[#rows + 1] = {pass = name, node = node, what = what} end)
	end
	apply 'take_codes'
	if e.changes == 0 then return g end
	if exact then apply 'exact_bias' end
	local made = pass.loose(e, {'merge_equal', 'fuse_requantize', 'raise_quantize'}, function(edit) settle(edit, {}) end, {'insert_borders'})
	return pass.run(made, {'fuse'}, rows)
end

return {plan = plan, integers = integers, options = options.options}
