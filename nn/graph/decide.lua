-- SPDX-License-Identifier: MIT
-- Decides how rules quantize each node: g:match shows the decisions, g:quantize applies them.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local calibrated = internal.import('nn/quantize/quantize').calibrated
local codes = internal.import 'nn/graph/codes'
local core = internal.import 'nn/graph/core'
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local rules = internal.import 'nn/quantize/rules'
local fail, describe = base.fail, base.describe
local decide = {}

local MODES = {'auto', 'static', 'dynamic', 'weight_only'}

local function check_mode(mode)
	for _, known in ipairs(MODES) do
		if mode == known then return mode end
	end
	fail('quantize: mode: wanted %s, got %s%s', table.concat(MODES, ', '), describe(mode), base.near(mode, MODES))
end

---------------------------------------------------------------- ranges

-- The layers of the module by name; they hold the observers.
function decide.layers_of(g)
	local list = {}
	if g.root then module.walk(g.root, function(name, inner) list[name] = inner end) end
	return list
end

-- The value of which a node's own module has made the operand by moving elements; nil: it has not.
local function moved_from(d, node, ref)
	local producer = type(ref) == 'string' and d.g.nodes[core.split(ref)]
	local form = producer and producer.module == node.module and ops.form(producer.op, producer)
	return form and form.moves and producer.inputs[1] or nil
end

-- The spec of a value, with scale: from g:calibrate, or from an observer of m:calibrate (that of the node's own module first), which has
-- seen what the module was given; nil if neither has observed the value and the spec gives no scale.
local function spec_for(d, node, ref, wanted)
	local s = wanted and quant.spec(wanted)
	if s and codes.params(s) then return s end
	local key = ('%s|%s|%s'):format(ref, node.module, s and codes.key(s) or '')
	if d.found[key] ~= nil then return d.found[key] or nil end
	local observer = d.g.observers and d.g.observers[ref]
	local found = observer and calibrated({input_observers = {value = observer}}, 'value', wanted)
	local list = d.g.observed and d.g.observed[ref] or {}
	for _, own in ipairs {true, false} do
		for _, entry in ipairs(list) do
			local layer = d.layers[entry.module]
			if entry.what == 'output' then layer = layer and {input_observers = {output = rawget(layer, 'output_observer')}} end
			if not found and layer and (entry.module == node.module) == own then found = calibrated(layer, entry.what, wanted) end
		end
	end
	local source = not found and moved_from(d, node, ref)
	if source then found = decide.spec_for(d, node, source, wanted) end
	d.found[key] = found or false
	return found or nil
end
decide.spec_for = spec_for

---------------------------------------------------------------- one node

-- The operands that are constant weights, and the operands that are activations.
local function operands_of(g, node, form)
	local weights, inputs = {}, {}
	for _, at in ipairs(form.weights) do
		local ref = node.inputs[at]
		local producer = type(ref) == 'string' and g.nodes[core.split(ref)]
		if producer and producer.op == 'const' then
			weights[#weights + 1] = at
		elseif form.either then
			inputs[#inputs + 1] = at
		else
			return nil, 'its weight is computed'
		end
	end
	for at, ref in ipairs(node.inputs) do
		local wanted = form.all
		for _, other in ipairs(form.inputs) do wanted = wanted or other == at end
		if wanted and type(ref) ~= 'string' and (not form.numbers or type(ref) ~= 'number') then return nil, 'an operand is a number' end
		if wanted and type(ref) == 'string' then table.insert(inputs, at) end
	end
	table.sort(inputs)
	return weights, inputs
end

-- Calls each(ref) for a value and for the values from which it is derived by moving or comparing elements only; returns the node
-- that computes the first of them.
local function chain(g, ref, each)
	local node = g.nodes[core.split(ref)]
	each(ref)
	local form = ops.form(node.op, node)
	while form and form.gives == 'same' and type(node.inputs[1]) == 'string' do
		ref = node.inputs[1]
		each(ref)
		node = g.nodes[core.split(ref)]
		form = ops.form(node.op, node)
	end
	return node
end

-- Bytes of a weight under the spec, and of the original weight.
local function value_bytes(value, spec)
	local shape = {value:size()}
	if spec and spec.block and #shape > 2 then shape = {shape[1], value:nelem() // shape[1]} end
	return spec and quant.bytes(shape, spec) or value:nbytes(), value:nbytes()
end

-- The same for all weights of a node, and their number of elements.
local function weight_bytes(g, node, weights, spec)
	local after, before, count = 0, 0, 0
	for _, at in ipairs(weights) do
		local value = g.nodes[node.inputs[at]].value
		local a, b = value_bytes(value, spec)
		after, before, count = after + a, before + b, count + value:nelem()
	end
	return after, before, count
end

local function mode_for(d, node, row, inputs, chosen)
	if chosen.mode then check_mode(chosen.mode) end
	local form = row.form
	if form.only then return form.only end
	local wanted, why = rules.mode(chosen, d, row.weight)
	if not wanted then return nil, why end
	if wanted == 'weight_only' then return wanted end
	local specs, missing = {}, nil
	for _, at in ipairs(inputs) do
		specs[at] = spec_for(d, node, node.inputs[at], chosen.input or d.input)
		missing = missing or not specs[at] and at
	end
	if wanted == 'auto' then wanted = missing and 'dynamic' or 'static' end
	if wanted == 'static' and missing then
		return nil, ("mode 'static' wanted a calibrated input, got one ('%s') that saw no data; call m:calibrate(data) or \z
			g:calibrate(data) before, or give input={dtype=, scale=}"):format(node.inputs[missing])
	end
	if wanted == 'dynamic' then
		local spec = quant.spec(chosen.input or d.input or 'uint8')
		for _, at in ipairs(inputs) do specs[at] = spec end
	end
	return wanted, specs
end

-- The error in the specs, or nil.
local function wrong_specs(node, row)
	for _, spec in next, row.inputs do
		local decoded = row.mode == 'dynamic' and not spec.affine -- codes without integer products: computed with decoded floats
		if (spec.axis or spec.block) and not decoded then
			return ("input: wanted one scale for the whole tensor, got '%s'"):format(tostring(spec))
		end
	end
	local output = row.output
	if not output then return end
	if row.mode ~= 'static' then return ("output: wanted mode 'static', got '%s', which returns floats"):format(row.mode) end
	if not codes.fixed(output) then
		return ("output: wanted a spec with scale=, got '%s'; without output= codes pass to the next node automatically"):format(
			tostring(output))
	end
	if row.form.gives ~= 'codes' then
		return ('output: wanted a node that returns codes, got %s, which returns floats'):format(node.op)
	end
end

-- The spec of a value whose node can return codes: the spec of the layer that uses it, else one from its range.
local function join_spec(d, node, ref, chosen)
	local wanted
	local from = d.by_name[chain(d.g, ref, function(inner) wanted = wanted or d.wanted[inner] end).name]
	local gives = from and from.form and from.form.gives == 'codes' and not from.floats and (from.mode == 'static' or from.mode and from.form.decodes)
	return gives and (wanted or spec_for(d, node, ref, chosen.input)) or nil
end

-- A constant operand that is combined with codes is quantized in the same way, with its own range.
local function constant_spec(value, taken)
	local p = value:quantize(like.fields(taken, {})):qparams()
	return like.spec(taken, {scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item()})
end

-- Decides about a sum, product, join or function. Operands must have known ranges and come from quantized nodes. A value that a
-- layer also uses gets the codes of that layer; the defaults are those of layers, as in m:quantize.
local function decide_join(d, node, row, inputs, chosen)
	local mode = chosen.mode and check_mode(chosen.mode) or d.mode
	if mode ~= 'static' and mode ~= 'auto' then return "it has an integer version in mode 'static' only" end
	local asked = chosen.input and quant.spec(chosen.input)
	if asked and not asked.scheme or rules.output(chosen, d) == false then return 'a rule says so' end
	asked = asked and chosen.mode == 'static' and codes.fixed(asked) and asked or nil
	local constants, taken = {}, nil
	row.inputs = {}
	for _, at in ipairs(inputs) do
		local producer = d.g.nodes[core.split(node.inputs[at])]
		if producer.op == 'const' and not producer.value:quantized() and producer.value:dtype() == 'float32' then
			constants[at] = producer.value
		else
			row.inputs[at] = asked or join_spec(d, node, node.inputs[at], chosen)
			taken = taken or row.inputs[at]
		end
	end
	if not taken then return 'its operands are not codes, or their range was not observed' end
	for at, value in next, constants do row.inputs[at] = constant_spec(value, taken) end
	row.mode = 'static'
	row.output = chosen.output and quant.spec(chosen.output)
	local wrong = wrong_specs(node, row)
	if wrong then return wrong, 'always' end
	if row.output then
		for _, at in ipairs(inputs) do
			if not row.inputs[at] and type(node.inputs[at]) == 'string' and not d.g:result_of(node.inputs[at]).spec then
				return ("output: wanted operands that are codes or whose range is known, got '%s'; call g:calibrate(data) before, or \z
					give mode='static' and input={dtype=, scale=}"):format(node.inputs[at]), 'always'
			end
		end
	end
end

-- The default is one scale per output, whose axis the form knows; the spec of a rule is used literally.
local function along_outputs(spec, node)
	local per = ops.form(node.op, node).per
	if not per or spec.axis ~= 1 or spec.block or spec.scale then return spec end
	return like.spec(spec, {axis = per, observer = spec.observer, p = spec.p, momentum = spec.momentum})
end

-- Weights that are codes already are not changed.
local function weight_spec(d, node, weights, chosen)
	for _, at in ipairs(weights) do
		local value = d.g.nodes[node.inputs[at]].value
		if value:quantized() then return value:spec() end
	end
	if chosen.weight then return quant.spec(chosen.weight) end
	return along_outputs(quant.spec(d.weight or 'int8/1'), node)
end

local function decide_layer(d, node, row, weights, inputs, chosen)
	row.weights, row.weight = weights, #weights > 0 and weight_spec(d, node, weights, chosen) or nil
	if rules.is_float(row.weight) then return "the spec of its weight is 'float32'" end
	local mode, specs = mode_for(d, node, row, inputs, chosen)
	if not mode then return specs, 'always' end
	row.mode = mode
	row.inputs = mode ~= 'weight_only' and specs or {}
	local output = rules.output(chosen, d)
	row.output, row.floats = output and quant.spec(output) or nil, output == false
	if #weights == 0 and mode == 'weight_only' then
		row.mode = nil
		return 'no weights'
	end
	if mode ~= 'weight_only' and row.form.fits then
		local good, able = row.form.fits(node, row.weight, select(2, next(row.inputs)), #weights > 0 and d.g.nodes[node.inputs[weights[1]]].value or nil)
		if not good then
			row.mode = nil
			return ('%s has integer versions for %s only; weight_only decodes any'):format(node.op, able), 'always'
		end
	end
	local wrong = wrong_specs(node, row)
	if wrong then return wrong, 'always' end
	for at, spec in next, mode == 'static' and row.inputs or {} do
		chain(d.g, node.inputs[at], function(ref) d.wanted[ref] = d.wanted[ref] or spec end)
	end
end

-- Whether the weight is codes that the graph decodes: mode weight_only, in which the node itself is a float op.
local function is_decoded(g, ref)
	local node = type(ref) == 'string' and g.nodes[core.split(ref)]
	while node and (node.op == 'view' or node.op == 'dequantize' or node.op == 'to') do
		local before = g.nodes[core.split(node.inputs[1])]
		if before.op == 'const' then return before.value:quantized() or before.value:dtype() ~= 'float32' end
		node = before
	end
	return false
end

local function is_done(g, node, form)
	if node.traced == true or node.mode then return true end
	for _, at in ipairs(form and form.weights or {}) do
		if is_decoded(g, node.inputs[at]) then return true end
	end
	return false
end

-- The name of a node with weights that is quantized already, or nil.
function decide.done(g)
	for _, name in ipairs(g.order) do
		local form = ops.form(g.nodes[name].op, g.nodes[name])
		if form and #(form.weights or {}) > 0 and is_done(g, g.nodes[name], form) then return name end
	end
end

-- The reason why a node cannot be quantized at all, or nil.
local function why_float(g, node, form)
	if is_done(g, node, form) then return 'quantized already', true end
	if not form or not form.gives then
		return ("'%s' has no integer version; those that have: %s"):format(node.op, table.concat(ops.quantizable(), ' '))
	end
end

-- Returns the row; for a node that stays float also the reason, and when that is an error: 'always', or 'matched' (by a rule).
local function decide_node(d, node, matched, chosen)
	local form = ops.form(node.op, node)
	local row = {node = node, form = form, rule = matched, weights = {}, inputs = {}, why = ''}
	local why, done = why_float(d.g, node, form)
	if why then
		row.done = done
		return row, why, not row.done and 'matched'
	end
	local weights, inputs = operands_of(d.g, node, form)
	if not weights then return row, inputs, 'matched' end
	if form.needs then
		local good, able = true, nil
		if form.fits then good, able = form.fits(node) end
		if not good then return row, ('%s has an integer version for %s only'):format(node.op, able), 'matched' end
		return row, decide_join(d, node, row, inputs, chosen)
	end
	return row, decide_layer(d, node, row, weights, inputs, chosen)
end

---------------------------------------------------------------- all

-- Rules do not apply to conversions and to nodes that only pass codes on.
local function is_asked(node)
	local form, info = ops.form(node.op, node), ops.info(node.op)
	if node.op == 'input' or node.op == 'const' or node.op == 'assign' or codes.CONVERSIONS[node.op] then return false end
	if form then return form.gives ~= 'same' end
	return not (info.view or info.native or #node.inputs == 0)
end

local function left_float(row, why)
	row.mode, row.weight, row.output, row.inputs, row.why = nil, nil, nil, {}, why
	return row
end

-- Returns a list of {node, rule, mode, weight, inputs (operand -> spec), output, weights (operands), why} in the order of the graph,
-- and the reader of the rules. `trouble(row, message)` is called for a node that cannot be what a rule or mode requests; `float` has
-- the names of joins that have to stay float ops; `found` caches the specs of ranges between calls.
function decide.all(g, o, trouble, float, found)
	local d = {g = g, mode = check_mode(o.mode or 'auto'), weight = o.weight, input = o.input, output = o.output, by_name = {}, wanted = {},
		layers = decide.layers_of(g), found = found or {}}
	local reader, list = rules.reader(o.rules, function(_, node) return node end), {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if is_asked(node) then
			local form = ops.form(node.op, node)
			local layer = form and #(form.weights or {}) > 0 and node.module ~= '' and node.module or nil
			local chosen, rule = reader.find(name, g:node(name), layer) -- rules also match the layer's name, for layers with several nodes
			local row, why, bad
			if chosen == false or chosen.float then
				row = left_float({node = node, rule = rule, weights = {}, emit = chosen and chosen.emit}, 'a rule says so')
			elseif float and float[name] then
				row = left_float({node = node, rule = rule, weights = {}}, 'its result or an operand is needed as floats')
			else
				row, why, bad = decide_node(d, node, rule, chosen)
				row.optional, row.emit = chosen.optional, chosen.emit
				if why then
					local asked = not chosen.emit or chosen.mode or chosen.weight or chosen.input or chosen.output
					row.refused = asked and not chosen.optional and (bad == 'always' or bad == 'matched' and rule) or nil
					left_float(row, why)
					if row.refused then trouble(row, why) end
				end
			end
			list[#list + 1] = row
			d.by_name[name] = row
		end
	end
	return list, reader
end

-- The weight operands of a row, also of a row that stays float.
local function weights_of(g, row)
	local form = row.form or ops.form(row.node.op, row.node)
	if form and #row.weights == 0 and form.weights and not row.mode then return operands_of(g, row.node, form) or {} end
	return row.weights
end

-- Bytes of the weights of all rows, and of the original weights; shared weights count once.
function decide.bytes(g, list)
	local after, before, seen = 0, 0, {}
	for _, row in ipairs(list) do
		local spec = row.mode and row.weight
		for _, at in ipairs(weights_of(g, row)) do
			local ref = row.node.inputs[at]
			local key = ref .. '|' .. (spec and codes.key(spec) or '')
			local a, b = value_bytes(g.nodes[ref].value, spec)
			after, before = after + (seen[key] and 0 or a), before + (seen[ref] and 0 or b)
			seen[key], seen[ref] = true, true
		end
	end
	return after, before
end

-- The columns of the reports of g:match and g:quantize.
function decide.row(g, row)
	local function text(spec, otherwise) return spec and spec.name or otherwise end
	local node, inputs = row.node, {}
	for at in next, row.inputs do inputs[#inputs + 1] = at end
	table.sort(inputs)
	local after, before, count = weight_bytes(g, node, weights_of(g, row), row.mode and row.weight)
	return {node = node.name, op = node.op, rule = row.rule or '-', mode = row.mode or 'float', weight = text(row.weight, '-'),
		input = text(row.inputs[inputs[1]], '-'), output = text(row.output, '-'), bits = count > 0 and 8 * after / count or '-', bytes = after,
		float_bytes = before, why = row.why}
end

return decide
