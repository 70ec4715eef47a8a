-- SPDX-License-Identifier: MIT
-- m:quantize: a new model whose layers run in integers, and a report of the result for each layer.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local fuse = internal.import('nn/quantize/fuse').fuse
local learned = internal.import 'nn/quantize/learned'
local like = internal.import 'quant/like'
local qat = internal.import 'nn/quantize/qat'
local report = internal.import 'interp/prelude/report'
local observed = internal.import 'nn/quantize/ranges'
local rules = internal.import 'nn/quantize/rules'
local sites = internal.import 'nn/quantize/sites'
internal.import 'nn/quantize/equalize'
internal.import 'nn/base/modes'
internal.import 'nn/quantize/streams'
local fail, describe = base.fail, base.describe
local methods, method = module.methods, module.method

local MODES = {'auto', 'static', 'dynamic', 'weight_only', 'qat', 'train'}
local TRAINED = {qat = true, train = true} -- keep float weights

local function check_mode(mode)
	for _, known in ipairs(MODES) do
		if mode == known then return mode end
	end
	fail("quantize: mode: wanted %s, got %s%s", table.concat(MODES, ', '), describe(mode), base.near(mode, MODES))
end

---------------------------------------------------------------- one layer

-- The scale of a static spec: the given one, else that of the calibrated range; nil if there is neither.
local function calibrated(layer, what, wanted)
	wanted = wanted and quant.spec(wanted)
	if wanted and wanted.scale then return wanted end
	local o = rawget(layer, 'input_observers')
	o = o and o[what]
	if not o or o.count == 0 then return end
	local s = quant.spec(o.spec)
	local p
	if not wanted or like.fits(wanted, s) then
		p = o:params()
		p = {scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item()}
	else
		s = wanted
		local lo, hi = o:range()
		p = quant.params(lo, hi, s)
	end
	if s.shift then fail("quantize: input: wanted codes without a minimum, got '%s'", tostring(s)) end
	return like.spec(s, {scale = p.scale, zero_point = p.zero_point})
end

-- The names of a layer's observed inputs.
local function inputs_of(layer)
	local class = module.class_of(layer)
	return class.observed and class.observed(layer) or class.no_input and {} or {'input'}
end

local trained = setmetatable({}, {__mode = 'k'}) -- layers that were in mode train

local function mode_of(name, layer, wanted, spec)
	local input = inputs_of(layer)[1]
	if wanted == 'auto' then return module.class_of(layer).no_input and 'weight_only' or
		calibrated(layer, input, spec) and 'static' or 'dynamic' end
	if module.class_of(layer).no_input and not TRAINED[wanted] then return 'weight_only' end
	if wanted == 'static' and not calibrated(layer, input, spec) then
		if trained[layer] then
			fail("quantize: %s: mode 'static' wanted a calibrated layer, got one of mode 'train', which stores no ranges; calibrate and quantize m:dequantize()", name)
		end
		fail("quantize: %s: mode 'static' wanted a calibrated layer, got one without data; call m:calibrate(data) first", name)
	end
	return wanted
end

-- Blocks are formed over all weights of an output, so the weights of a convolution are flattened.
local function flat(weight, q)
	if not q.weight.block or weight:dim() <= 2 then return weight end
	q.shape = {weight:size()}
	return weight:view(q.shape[1], weight:nelem() // q.shape[1])
end

-- Bytes and number of the parameters of a layer that stay float.
local function float_bytes(layer)
	local bytes, count = 0, 0
	for _, field in ipairs(module.tensors(layer)) do
		local value = rawget(layer, field)
		if value and not module.is_buffer(layer, field) then bytes, count = bytes + value:nbytes(), count + value:nelem() end
	end
	return bytes, count
end

-- made: codes of shared weights, by weight and spec. Codes of a file (nn.load) stay as they are.
local function codes_of(name, weight, q, made, chosen)
	if chosen then
		if q.weight.block and weight:dim() > 2 then flat(weight:detach(), q) end
		return chosen
	end
	if weight:quantized() then
		if tostring(weight:spec()) ~= tostring(q.weight) then
			fail("quantize: %s: weight: wanted that of its codes, '%s', got '%s'; m:dequantize() gives floats", name, tostring(weight:spec()), tostring(q.weight))
		end
		return weight
	end
	local value, key = flat(weight:detach(), q), tostring(q.weight) .. tostring(q.weight.observer)
	if q.weight.scale then return module.weight_codes(value, q.weight) end
	made[weight] = made[weight] or {}
	made[weight][key] = made[weight][key] or module.weight_codes(value, q.weight)
	return made[weight][key]
end

local function quantize_weights(name, layer, q, made, chosen)
	local before, after, count = 0, 0, 0
	for _, field in ipairs(module.weights(layer)) do
		local weight = rawget(layer, field)
		local codes = codes_of(name, weight, q, made, chosen and chosen[field])
		before, after, count = before + weight:nbytes(), after + codes:nbytes(), count + weight:nelem()
		rawset(layer, field, codes)
	end
	local floats = module.class_of(layer).set_apart and rawget(layer, 'floats') -- columns beside the codes
	return before, after + (floats and floats:nbytes() + layer.outliers:nbytes() or 0), count
end

-- {lo=, hi=} of each calibrated input, false for others.
local function ranges_of(layer)
	local observers, ranges = rawget(layer, 'input_observers') or {}, {}
	for i, what in ipairs(inputs_of(layer)) do
		local o = observers[what]
		ranges[i] = false
		if o and o.count > 0 then
			local lo, hi = o:range()
			ranges[i] = {lo = lo, hi = hi}
		end
	end
	return ranges
end

local function train_layer(name, layer, o, mode)
	local q = mode == 'qat' and qat.prepare(layer, o, ranges_of(layer)) or
		{mode = mode, weight = quant.spec(o.weight), input = not module.class_of(layer).no_input and quant.spec(o.input) or nil}
	local bytes, count = float_bytes(layer)
	rawset(layer, 'quantized', q)
	rawset(layer, 'input_observers', nil)
	return {name = name, kind = module.class_of(layer).name, mode = mode, weight = q.weight.name,
		input = q.input and q.input.name or 'float', output = 'float', bits = 8 * bytes / math.max(1, count), bytes = bytes,
		float_bytes = bytes, why = 'weights stay float during training'}
end

-- A layer that was trained in mode qat keeps its scales.
local function convert_layer(name, layer)
	local old = rawget(layer, 'quantized')
	local q = {mode = 'static', weight = old.weight, inputs = {}}
	for i, input in ipairs(old.inputs) do q.inputs[i] = qat.frozen_input(layer, input) end
	q.input = q.inputs[1]
	local before, after, count = 0, 0, 0
	for _, field in ipairs(module.weights(layer)) do
		local weight, codes = layer[field], qat.codes(layer, old, field)
		before, after, count = before + weight:nbytes(), after + codes:nbytes(), count + weight:nelem()
		rawset(layer, field, codes)
	end
	for _, field in ipairs(qat.parameters(old)) do module.forget(layer, field) end
	if module.class_of(layer).no_input then q.mode = 'weight_only' end
	rawset(layer, 'quantized', q)
	rawset(layer, 'frozen', q.mode)
	return {name = name, kind = module.class_of(layer).name, mode = q.mode, weight = q.weight.name,
		input = q.input and q.input.name or 'float', output = 'float', bits = 8 * after / math.max(1, count), bytes = after,
		float_bytes = before, why = 'scales of the training'}
end

-- A spec for the output of a static layer, with its scale, because outputs are not observed.
local function check_output(name, layer, mode, output)
	local spec = quant.spec(output)
	if mode ~= 'static' then
		fail("quantize: %s: output: wanted mode 'static', got '%s', which returns floats", name, mode)
	end
	if not spec.scale then
		fail("quantize: %s: output: wanted a spec with scale=, got '%s'; without output= a calibrated layer gives the next one \z
			its codes by itself", name, tostring(spec))
	end
	if module.class_of(layer).observed then
		fail('quantize: %s: output: wanted a layer that returns codes, got %s, which returns floats', name, module.class_of(layer).name)
	end
	return spec
end

local function check_input(name, spec)
	local s = spec and quant.spec(spec)
	if s and (s.axis or s.block) then
		fail("quantize: %s: input: wanted one scale for the whole tensor, got '%s'", name, tostring(s))
	end
end

-- The spec of the input if its codes have no integer product, so that the layer decodes them and the weight; else nil.
local function decodes(layer, weight, input)
	local class = module.class_of(layer)
	if not input or input.affine or class.observed or class.no_input then return end
	return not (weight.block and layer.weight:dim() > 2) and input or nil
end

-- The default is one scale for each output, whose axis the class knows.
local function along_outputs(layer, spec)
	local per = module.class_of(layer).per
	if not per or spec.axis ~= 1 or spec.block or spec.scale then return spec end
	return like.spec(spec, {axis = per, observer = spec.observer, p = spec.p, momentum = spec.momentum})
end

local function quantize_layer(name, layer, o, made, chosen)
	if o.mode == 'static' or o.mode == 'auto' then check_input(name, o.asked) end
	local mode = mode_of(name, layer, o.mode, o.asked)
	if TRAINED[mode] then return train_layer(name, layer, o, mode) end
	local q = {mode = mode, weight = along_outputs(layer, quant.spec(o.weight))}
	local why = ''
	local varies = q.weight.block or q.weight.axis and q.weight.axis ~= (module.class_of(layer).per or 1)
	local input = mode == 'static' and calibrated(layer, inputs_of(layer)[1], o.asked) or mode == 'dynamic' and quant.spec(o.input) or nil
	local decoded = decodes(layer, q.weight, input)
	local blocks = module.class_of(layer).reads_codes and rules.sums_blocks(q.weight, layer.weight:size(2), input)
	if decoded then
		why = ("codes of '%s' have no integer product: computed with decoded floats"):format(decoded.name)
	elseif not blocks and (varies or not q.weight.affine) and mode ~= 'weight_only' then
		if not o.optional then
			fail("quantize: %s: weight: wanted affine codes with one scale per output in mode '%s', got '%s'%s; use \z
				mode='weight_only', or optional=true in a rule", name, mode, tostring(q.weight), q.weight.values and ', whose values are not small integers times a power of two' or
				varies and ', whose scales change along the sum' or '')
		end
		mode, q.mode, why = 'weight_only', 'weight_only', varies and not q.weight.values and 'scales that change along the sum have no integer product' or
			("codes of '%s' have no integer product"):format(q.weight.name)
	end
	if mode == 'static' then
		q.inputs = {}
		for i, what in ipairs(inputs_of(layer)) do q.inputs[i] = calibrated(layer, what, o.asked) end
		q.input = q.inputs[1]
	end
	if o.output then q.output = check_output(name, layer, mode, o.output) end
	q.given_output = o.output ~= nil or nil
	if mode == 'dynamic' then q.input = not module.class_of(layer).no_input and quant.spec(o.input) or nil end
	local before, after, count = quantize_weights(name, layer, q, made, chosen)
	rawset(layer, 'frozen', mode)
	rawset(layer, 'quantized', q)
	return {name = name, kind = module.class_of(layer).name, mode = mode, weight = q.weight.name,
		input = q.input and q.input.name or 'float', output = 'float', bits = 8 * after / math.max(1, count), bytes = after,
		float_bytes = before, why = why}
end

---------------------------------------------------------------- before and after

local function prepare(new, options, mode)
	if TRAINED[mode] then return end
	new:eval()
	if options.fuse ~= false then fuse(new) end
end

---------------------------------------------------------------- the model

local function skipped(name, layer, why)
	local bytes, count = float_bytes(layer)
	return {name = name, kind = module.class_of(layer).name, mode = 'float', weight = 'float', input = 'float', output = 'float',
		bits = 8 * bytes / math.max(1, count), bytes = bytes, float_bytes = bytes, why = why}
end

local function why_not(layer)
	local class = module.class_of(layer)
	if class.name == 'BatchNorm2d' then return 'no layer with weights before it into which to fold it' end
	return 'no integer version'
end

local function has_static(rows)
	for _, row in ipairs(rows) do
		if row.mode == 'static' then return true end
	end
	return false
end

-- Shared weights: lists of {name, layer, field, weight}.
local function ties_of(m)
	local holders, ties = {}, {}
	module.walk(m, function(name, layer)
		for _, field in ipairs(module.weights(layer) or {}) do
			local weight = layer[field]
			holders[weight] = holders[weight] or {}
			table.insert(holders[weight], {name = name, layer = layer, field = field, weight = weight})
			if #holders[weight] == 2 then ties[#ties + 1] = holders[weight] end
		end
	end)
	return ties
end

local CUT = "its weight was that of '%s', which has another spec or stays float: now there are two; the same weight= for both keeps one"
local APART = "its weight was that of '%s': each has codes of its own; shared='once' keeps one"

-- Notes in the rows which weights are no longer shared, and how to keep them shared. Returns the bytes that rows count twice, now and
-- in the float model.
local function tell_ties(rows, ties)
	local by_name, now, before, cut = {}, 0, 0, {}
	for _, row in ipairs(rows) do by_name[row.name] = row end
	for _, tie in ipairs(ties) do
		local first = tie[1]
		for i = 2, #tie do
			local value = tie[i].layer[tie[i].field]
			before = before + 4 * tie[i].weight:nelem()
			if rawequal(value, first.layer[first.field]) then
				now = now + value:nbytes()
			else
				cut[#cut + 1] = ("'%s' and '%s'"):format(first.name, tie[i].name)
				for at, other in pairs {[i] = first.name, [1] = tie[i].name} do
					local row = by_name[tie[at].name]
					row.why = ((row.why or '') ~= '' and row.why .. '; ' or '') .. (row.method and by_name[other].method and APART or CUT):format(other)
				end
			end
		end
	end
	return now, before, #cut > 0 and '; weights are no longer shared in ' .. table.concat(cut, ', ') or ''
end

local function totals(rows, ties)
	local twice, twice_before, cut = tell_ties(rows, ties)
	local bytes, before, n = -twice, -twice_before, 0
	for _, row in ipairs(rows) do
		bytes, before = bytes + row.bytes, before + row.float_bytes
		n = n + (row.mode ~= 'float' and 1 or 0)
	end
	return ('%d of %d layers quantized; weights %d bytes, %.3f of the float model\'s'):format(n, #rows, bytes, bytes / math.max(1, before)) .. cut .. (bytes > before and '; the float model is smaller' or '')
end

-- The options that a layer's rule requests; or nil and why it stays float.
local function wanted_of(name, layer, chosen, options, mode)
	local own = rawget(layer, 'weight')
	own = own and own:quantized() and own:spec() or nil -- of a file: nn.load
	local weight = chosen.weight or options.weight or own or 'int8/1'
	local wanted = {mode = check_mode(chosen.mode or mode), weight = weight, optional = chosen.optional or own ~= nil, output = rules.output(chosen, options),
		asked = chosen.input or options.input, input = chosen.input or options.input or (mode == 'train' and 'int8' or 'uint8')}
	if TRAINED[wanted.mode] then return wanted end
	if rules.is_float(quant.spec(weight)) then return nil, "the spec of its weight is 'float32'" end
	if module.class_of(layer).no_input then return wanted end
	local found, why = rules.mode(chosen, {mode = mode, input = options.input}, quant.spec(weight))
	if not found then fail('quantize: %s: %s', name, why) end
	wanted.mode = found
	return wanted
end

local function add_details(rows, by_name)
	for _, row in ipairs(rows) do
		local layer = by_name[row.name]
		local q = layer and rawget(layer, 'quantized')
		if q then
			if q.output then row.output = q.output.name end
			rawset(layer, 'said', ('%s, weight %s, input %s'):format(row.mode, row.weight, row.input) ..
				(q.output and ', output ' .. row.output or ''))
		end
	end
end

-- Whether a weight is quantized, as those of files are, and cannot be taken so: modes dynamic and weight_only take them, if no order of
-- the inputs belongs to them.
local KEEPS = {dynamic = true, weight_only = true}
local function has_codes(layer, mode)
	if KEEPS[mode] and not rawget(layer, 'order') then return false end
	for _, field in ipairs(module.weights(layer)) do
		if rawget(layer, field):quantized() then return true end
	end
	return false
end

-- Layers of mode train have float weights, so the trained model is quantized like a float model.
local function trained_as_float(m)
	module.walk(m, function(_, layer)
		local q = rawget(layer, 'quantized')
		if not q or q.mode ~= 'train' then return end
		trained[layer] = true
		rawset(layer, 'quantized', nil)
		rawset(layer, 'frozen', nil)
	end)
	module.mark_codes(m)
	return m
end

-- What is to become of a layer: {row=} of a function(), or {wanted=, emit=}; nil: it has neither weights nor parameters.
local function choose(name, layer, reader, options, mode)
	if not module.class_of(layer).weights then
		return module.parameter_count(layer) > 0 and {why = why_not(layer)} or nil
	end
	local before = rawget(layer, 'quantized')
	if before and before.mode == 'qat' and (mode == 'static' or mode == 'auto') then return {convert = true} end
	if before or has_codes(layer, mode) then fail('quantize: %s: wanted a float layer, got one that is quantized already; q:dequantize() gives a float model', name) end
	local chosen = reader.find(name, layer)
	rawset(layer, 'emit', chosen and chosen.emit or nil)
	if chosen == false or chosen.float then return {why = 'a rule says so'} end
	local wanted, why = wanted_of(name, layer, chosen, options, mode)
	return wanted and {wanted = wanted, method = chosen.method} or {why = why}
end

local function row_of(name, layer, chosen, made, by_methods)
	if not chosen then return end
	if chosen.convert then return convert_layer(name, layer) end
	if not chosen.wanted then return skipped(name, layer, chosen.why) end
	return quantize_layer(name, layer, chosen.wanted, made, by_methods and by_methods.codes[name])
end

-- What methods get to know of a layer about whose weights they decide.
local function learned_fields(name, layer, chosen)
	local wanted = chosen.wanted
	if not wanted or TRAINED[wanted.mode] then return end
	return {spec = along_outputs(layer, quant.spec(wanted.weight)), mode = mode_of(name, layer, wanted.mode, wanted.asked), input = observed.input_of(layer, wanted)}
end

local quantize = method('quantize', "m:quantize{mode='static', weight='int8/1', input='uint8', rules=}",
	[[Returns a new model whose layers with weights run in integers, and a report with a row for each layer: mode, specs, bits per weight,
bytes, and why a layer stayed float. m is not modified.

Modes:

static: input ranges are fixed by m:calibrate, which is required. The model is traced with a row that m:calibrate has saved, and each op
is quantized as by g:quantize: codes pass between layers without conversion to float, and sums, pooling, activations, norms, softmax and
attention of nn modules run in integers if their ranges are known and their result is used as codes. The report has rows for these ops,
too. An op that is called by a Lua function stays float, as its row says; graph.trace(m, x):quantize can quantize it. Otherwise bits and
coverage are those of g:quantize.

dynamic: input ranges are found at each call. weight_only: integer weights, float arithmetic. auto (default): static for calibrated
layers, else dynamic. In modes static and dynamic weights of linear layers may have scales in blocks of 8, 16, … inputs, with minimums
or not ('int4:32', 'q4_k'), and tables of values that are integers of 8 bits times a power of two (FP4, FP6 E2M3, MXFP4, NVFP4, IQ4_NL):
beside inputs of 8 bits the integer sums of blocks are scaled in float32; devices decode tables. Other tables (nf4, FP8, FP6 E3M2) have no such
integers and are refused; weight_only takes them.

train: float weights that are quantized at each step, an integer forward pass, gradients with decoded codes, so the model can be trained.

qat: float weights and inputs are rounded at each step by their specs (x:fake), with straight-through gradients; learn=true in a spec
makes its scale a parameter (x:lsq). Create the optimizer afterwards. m:quantize{mode='static'} of the trained model keeps the scales;
m:verify(x) compares both.

Results have the dtype of the input; float16 results are rounded once, after scales and bias in float32. In all modes except qat and
train batch norm is folded first (fuse=false: not).

method= (help 'methods') chooses how codes are chosen, with data=. The report then has for each layer the signal to noise ratios of its outputs on
the data in dB by rounding alone (rtn) and by the method (error), those of its block's result (block_rtn, block), seconds, and the peak of the
bytes of tensors above those before the call; r:plot() draws rtn and error by layer.

file= keeps each block on disk when it is finished (names that begin with it), so that the same call goes on behind the last of them after an
interrupt or a crash, and gives the same bits. A file of another model, other data or options is an error. With an interrupt and without
file= nothing is kept.

Values between two blocks are kept for all batches: those of the float model, and those behind quantized blocks. What of them is beyond memory=
bytes goes to temporary files. Second moments of a layer's inputs (inputs x inputs numbers of float64) that are larger than memory=, or than
what the machine has left, are an error before anything is computed.

weight=, input= and output= are specs; weights that nn.load has read as codes stay as they are, in their own format. In mode static a spec with scale= (and zero_point=) needs no calibration; others get the
calibrated range. output=, which always needs a scale, makes a layer return codes.

rules= is a list of {pattern, spec} or {pattern, mode=, weight=, input=, output=, emit=}; the first match applies. A spec of false or
'float32' leaves a layer float, input=false or 'float32' its inputs (mode weight_only), output=false or 'float32' its result, which the
next layer then quantizes itself. weight=false, input=false and output=false of the call do the same for all layers without a rule.
Patterns are POSIX extended regular expressions, anchored at the start of the name (no lazy quantifiers, no \d or \w). emit= is a
user-defined emitter of C for g:export, see graph.op.]],
	[[m = nn.Sequential{nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)}
q, coverage = m:quantize{mode='dynamic'}
print(q(tensor.ones(2, 64)):size())  --> 2 4
print(#coverage, coverage[1].mode, coverage[1].weight)  --> 2 dynamic int8/1]],
	{{'mode', 'text', 'auto static dynamic weight_only qat train (default auto)'}, {'weight', 'spec', "default 'int8/1'"},
		{'input', 'spec', "(default 'uint8'; train: 'int8')"}, {'output', 'spec', 'spec of the results of static layers, with scale='},
		{'rules', 'list', 'exceptions by name'},
		{'fuse', 'true or false', 'fold batch norm (default true)'},
		{'method', 'any', "how codes are chosen: a name of help 'methods', {name, option=} or a list of them (default 'rtn': rounding)"},
		{'data', 'any', 'batches of inputs for method='}, {'batches', 'positive integer', 'how many of them (default 32)'},
		{'sequential', 'true or false', 'a block gets what quantized blocks before it give, not floats (default true)'},
		{'shared', 'text', "a weight that several layers share is coded 'apart' for each (default) or 'once'"},
		{'file', 'text', 'keeps the blocks that method= has finished, so that the same call goes on behind them'},
		{'memory', 'positive integer', 'bytes that values between blocks may take; the others are in temporary files (default: no limit)'},
		{'log', 'true or false', 'draw a bar (default true)'}})
function methods.quantize(m, options)
	module.parts_of(m, 'quantize')
	rules.refuse_former(options, 'm:quantize')
	options = base.options(quantize, rules.options(options))
	local mode = check_mode(options.mode or 'auto')
	local new, reader = trained_as_float(m:clone()), rules.reader(options.rules)
	prepare(new, options, mode)
	local rows, names, by_name, made, ties, chosen_of = {}, {}, {}, {}, ties_of(new), {}
	rows.columns = {'name', 'kind', 'mode', 'weight', 'input', 'output', 'bits', 'bytes', 'float_bytes', 'why'}
	module.walk(new, function(name, layer)
		by_name[name] = layer
		if module.class_of(layer).weights then names[#names + 1] = name end
		chosen_of[name] = choose(name, layer, reader, options, mode)
	end)
	local made_by_methods = learned.run(new, names, by_name, chosen_of, options, learned_fields, TRAINED[mode] and mode)
	local traced, untraced
	if mode == 'static' or mode == 'auto' then traced, untraced = sites.trace(new) end
	module.walk(new, function(name, layer)
		rows[#rows + 1] = row_of(name, layer, chosen_of[name], made, made_by_methods)
	end)
	if made_by_methods then learned.join(rows, made_by_methods) end
	reader.finish(names)
	if #names == 0 then fail('quantize: wanted a model with layers that have weights, got none') end
	if traced then sites.adopt(new, traced, rows, options) end
	local left = false -- layers that may still be quantized with their ranges
	for _, name in ipairs(names) do
		local layer = by_name[name]
		local q = rawget(layer, 'quantized')
		if q and not TRAINED[q.mode] then rawset(layer, 'input_observers', nil) end
		left = left or rawget(layer, 'input_observers')
	end
	if not left then rawset(new, 'example', nil) end -- nothing will be traced with it
	module.mark_codes(new)
	add_details(rows, by_name)
	rows.note = totals(rows, ties) .. reader.unused()
	if untraced and has_static(rows) then rows.note = ('%s; layers take floats from each other: %s'):format(rows.note, untraced) end
	return new, report(rows)
end

method('verify', 'q:verify(x)', [[Compares a model of mode qat with its integer conversion, for the input x: a report of one row
with the largest difference of the outputs (max), their largest absolute value, the signal to noise ratio (sqnr, dB) and the
share of rows in which both have their largest output at the same place (agree, percent). Both round by the same rule: what
differs is the order of float sums, and codes on the edge between two.]],
	[[m = nn.Sequential{nn.Linear(8, 4)}
x = tensor.randn(16, 8)
m:calibrate({{x, x}}, {log=false})
q = m:quantize{mode='qat'}
print(q:verify(x).max < 1e-4)  --> true]])
function methods.verify(m, x)
	module.parts_of(m, 'verify')
	local integer = m:clone():eval():quantize {mode = 'static'}
	local _ <close> = internal.nograd()
	local float = m:clone():eval()
	local a, b = module.real(float(x)), module.real(integer(x))
	local e = a:error(b)
	local agree = 100 * a:argmax(-1):eq(b:argmax(-1)):to('float32'):mean():item()
	return report {{e.max, a:abs():max():item(), e.sqnr, agree}, columns = {'max', 'largest', 'sqnr', 'agree'}}
end

return {calibrated = calibrated, along_outputs = along_outputs}
