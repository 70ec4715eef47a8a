-- SPDX-License-Identifier: MIT
-- g:match: the effect of rules on each node, without applying them; milliseconds are measured on this machine, once
-- per op, sizes and specs.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local decide = internal.import 'nn/graph/decide'
local ops = internal.import 'nn/graph/ops'
local quantize = internal.import 'nn/graph/quantize'
local report = internal.import 'interp/prelude/report'
local rules_of = internal.import 'nn/quantize/rules'
local size = internal.import 'nn/graph/size'
local methods, method = core.methods, core.method

local RUNS = 5
local measured = {} -- op, sizes and specs -> ms

-- A substitute for a value: random floats or small positive integers.
local function sample(g, result, b)
	local shape = size.at(result.shape, b)
	local sizes = {device = core.device(g), table.unpack(shape)}
	if result.dtype:find 'float' then return tensor.randn(sizes):to(result.dtype) end
	return tensor.ones {dtype = result.dtype, device = sizes.device, table.unpack(sizes)}
end

-- The operands in the form that the decision requires.
local function operands_of(g, row, b)
	local list, weights = {}, {}
	for _, at in ipairs(row.weights) do weights[at] = true end
	for at, ref in ipairs(row.node.inputs) do
		if type(ref) ~= 'string' then
			list[at] = size.at(ref, b)
		else
			local node = g.nodes[core.split(ref)]
			local x = node.op == 'const' and node.value or sample(g, g:result_of(ref), b)
			if row.mode and weights[at] then
				local shape = {x:size()}
				if row.weight.block and #shape > 2 then x = x:view(shape[1], x:nelem() // shape[1]) end
				x = x:quantized() and x or x:quantize(row.weight)
				if row.mode == 'weight_only' and not row.form.decodes then x = x:dequantize():view(table.unpack(shape)) end
			elseif row.inputs[at] then
				x = x:quantize(row.inputs[at])
			end
			list[at] = x
		end
	end
	return list
end

-- The time does not depend on the scale.
local function name_of(spec) return spec and spec.name or 'float' end

local function key_of(g, row, b)
	local parts = {row.node.op, row.mode or 'float', name_of(row.weight), name_of(row.output), tensor.threads()}
	for at, ref in ipairs(row.node.inputs) do
		parts[#parts + 1] = type(ref) == 'string' and size.text(size.at(g:result_of(ref).shape, b)) or tostring(ref)
		parts[#parts + 1] = name_of(row.inputs[at])
	end
	for name, value in next, row.node.attrs do parts[#parts + 1] = name .. '=' .. internal.import('nn/graph/text').value(value) end
	table.sort(parts, function(x, y) return tostring(x) < tostring(y) end)
	for i, part in ipairs(parts) do parts[i] = tostring(part) end
	return table.concat(parts, '|')
end

local function median_ms(g, row, b)
	local attrs = {}
	for key, value in next, size.at(row.node.attrs, b) do attrs[key] = value end
	if row.mode and row.mode ~= 'weight_only' and row.form.attrs then
		for key, value in next, row.form.attrs(row.node, row.weight) do attrs[key] = value end
	end
	attrs.out = row.output or attrs.out
	local operands, times = operands_of(g, row, b), {}
	for i = 0, RUNS do
		local start = hw.clock()
		ops.apply(row.node.op, operands, attrs)
		times[i] = (hw.clock() - start) * 1e3 -- the first one, at 0, warms up
	end
	table.sort(times)
	return times[(RUNS + 1) // 2]
end

local function ms_of(g, row, b)
	local key = key_of(g, row, b)
	measured[key] = measured[key] or median_ms(g, row, b)
	return measured[key]
end

local options = method('match', "g:match(rules)  g:match(rules, {mode='static', ms=true})",
	[[Shows what g:quantize{rules=rules} would do, without doing it: a report with a row for each node that can be quantized or that a
rule names. Columns: index of the rule ('-': none), mode, specs, bits per weight, bytes of the weights, and why the node would stay
float or why g:quantize would refuse it ("error: …"). The note has the total of the bytes (shared weights count once) and names rules
that match nothing, or nothing that earlier rules leave.

mode=, weight=, input= and output= are the defaults, as in g:quantize, which makes the same decisions. ms=true adds the milliseconds of
each node for batch= rows (default 1), measured on this machine with random values, once per op, sizes and specs.]],
	[[m = nn.Sequential{nn.Linear(8, 16, {name='fc1'}), nn.ReLU(), nn.Linear(16, 4)}
r = graph.trace(m, tensor.ones(1, 8)):match{{'fc.*', 'int4/1'}, {'linear.*', false}}
print(r[1].node, r[1].rule, r[1].weight, r[2].rule, r[2].mode)  --> fc1 1 int4/1 2 float]],
	{{'mode', 'text', 'auto static dynamic weight_only (default auto)'}, {'weight', 'spec', "default 'int8/1'"},
		{'input', 'spec', "(default 'uint8')"}, {'output', 'spec', 'with scale='}, {'fuse', 'true or false', 'as in g:quantize (default true)'},
		{'ms', 'true or false', 'measure (default false)'}, {'batch', 'integer', 'rows for ms= (default 1)'}})
function methods.match(g, rules, o)
	core.expect(g, 'match')
	o = base.options(options, rules_of.options(o))
	local rows = {columns = {'node', 'op', 'rule', 'mode', 'weight', 'input', 'output', 'bits', 'bytes', 'float_bytes', 'why'}}
	if o.ms then table.insert(rows.columns, 10, 'ms') end
	local _ <close> = internal.nograd()
	local _, list, reader, start = quantize.plan(g, {rules = rules or {}, mode = o.mode, weight = o.weight, input = o.input, output = o.output,
		fuse = o.fuse}, function(row, why) row.why = 'error: ' .. why end)
	local shown = {}
	for _, row in ipairs(list) do
		if row.mode or row.rule or row.form and row.form.gives then
			local cells = decide.row(start, row)
			if o.ms then cells.ms = ms_of(start, row, math.tointeger(o.batch or 1)) end
			rows[#rows + 1], shown[#shown + 1] = cells, row
		end
	end
	rows.note = ('weights %d bytes, before %d'):format(decide.bytes(start, shown)) .. reader.unused()
	return report(rows)
end

return {}
