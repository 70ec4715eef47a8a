-- SPDX-License-Identifier: MIT
-- quant.sensitivity: the effect of quantizing each layer, alone and with the others, and its causes.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local given = internal.import 'nn/quantize/given'

local BULK = 1 / 3        -- of the codes' range that 99 % of the weights must exceed, else outliers are the cause
local SHARE = 0.3         -- of the error's power that a cause must explain
local CLIPPED = 0.1       -- percent of the inputs

local sensitivity = base.doc {name = 'quant.sensitivity', usage = "quant.sensitivity(m, {data=valid, metric='accuracy', spec='int4/1'})",
	text = [[Measures how sensitive each layer is to quantization by spec. Returns a report, most sensitive layer first, and a list of rules for
m:quantize{rules=} that leaves the most sensitive layers float (together four fifths of the drop).

Columns: weight (signal-to-noise ratio of the weights, dB), local (of the layer's output for the input of the float model), accumulated
(of its output in the fully quantized model), only (the metric with this layer alone quantized) and only_drop, but (with all layers
except this one quantized) and gain (the improvement by leaving it float), bytes, cause and why.

Causes: outliers (99 % of the weights use less than a third of the codes), saturation (inputs outside of the calibrated range), bias
shift (the error has a nonzero mean per channel), dead channel (all weights of an output become 0), else resolution (the step is coarse).

With method= the codes of all layers are learned in one pass of the inputs of calibration= through the float model.

mode= and input= are those of m:quantize; the default mode is weight_only, and mode='static' requires calibration. The effect of folding
batch norm is not counted: the reference is the folded float model.]],
	options = {{'data', 'any', 'a loader, or a list of batches {x, y}: not the test data'}, {'metric', 'any', 'as in m:evaluate (default accuracy)'},
		{'spec', 'spec', "of the weights (default 'int8/1')"}, {'method', 'any', "how codes are chosen (help 'methods'), by methods that decide about one weight (default: rounding)"},
		{'calibration', 'any', 'batches of inputs for method= (default: data)'},
		{'mode', 'text', 'weight_only static dynamic auto (default weight_only)'},
		{'input', 'spec', "of activations (default 'uint8')"}, {'loss', 'function', 'for the metric loss'},
		{'batches', 'positive integer', 'number of batches (default: all)'}, {'log', 'true or false', 'draw a bar (default true)'}},
	example = [[tensor.seed(1)
m = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)}
data = {{tensor.randn(32, 8), tensor.randint{32, low=1, high=3}}}
r, rules = quant.sensitivity(m, {data=data, spec='int4', log=false})
print(#r, r[1].cause ~= nil, type(rules))  --> 2 true table]]}

---------------------------------------------------------------- errors

local function power(x) return (x * x):mean():item() end

local function decibels(signal, noise)
	if noise <= 0 then return math.huge end
	return 10 * math.log(math.max(signal, 1e-300) / noise, 10)
end

-- Weights, codes and spec of the layer's weight field with the largest error.
local function weights_of(module, float, quantized)
	local worst
	for _, field in ipairs(module.weights(float)) do
		local w, q = rawget(float, field):detach(), rawget(quantized, field)
		local plain = q:dequantize():view(w:size())
		local noise = power(w - plain)
		if not worst or noise / math.max(power(w), 1e-300) > worst.share then
			worst = {w = w, q = q, plain = plain, noise = noise, share = noise / math.max(power(w), 1e-300)}
		end
	end
	return worst
end

---------------------------------------------------------------- causes

-- Channels of the output (axis 1 of the weights) with weights that all became 0.
local function dead_channels(w)
	local rows = w.w:size(1)
	local before = w.w:contiguous():view(rows, w.w:nelem() // rows):abs():max {axis = 2}
	local after = w.plain:contiguous():view(rows, w.w:nelem() // rows):abs():max {axis = 2}
	return (before:gt(0):to 'int64' * after:eq(0):to 'int64'):sum():item(), rows
end

-- The fraction of the range of codes that 99 % of the weights use.
local function used_range(q)
	local p, codes = q:qparams(), q:codes():to 'float32'
	if p.zero_point or not q:spec().affine then codes = q:dequantize() end
	return codes:abs():quantile(0.99):item() / math.max(codes:abs():max():item(), 1e-300)
end

-- The fraction of the error's power that is due to its mean per channel.
local function shift_of(error)
	local axis = error:dim() == 4 and 2 or error:dim()
	local axes = {}
	for i = 1, error:dim() do
		if i ~= axis then axes[#axes + 1] = i end
	end
	if #axes == 0 then return 0 end
	local mean = error:mean {axis = axes}
	return power(mean) / math.max(power(error), 1e-300)
end

-- For the inputs of a static layer: the percentage outside the range of the codes, and their share of the error's
-- power.
local function saturation_of(x, spec)
	local plain = x:quantized() and x:dequantize() or x
	local q = plain:quantize(spec)
	local error = plain - q:dequantize()
	local outside = error:abs():gt(0.5001 * q:qparams().scale:item()):to 'float32'
	return 100 * outside:mean():item(), power(error * outside) / math.max(power(error), 1e-300)
end

local function cause_of(fact)
	if fact.dead > 0 then return 'dead channel', ('%d of %d outputs have weights that all became 0'):format(fact.dead, fact.rows) end
	if fact.clipped > CLIPPED and fact.clipped_share > SHARE then
		return 'saturation', ('%.2g %% of the inputs are out of range and cause %.0f %% of the error'):format(fact.clipped, 100 * fact.clipped_share)
	end
	if fact.used < BULK then
		return 'outliers', ('99 %% of the weights use %.2g of the range, the largest is %.1f times the rms'):format(fact.used, fact.crest)
	end
	if fact.shift > SHARE then
		return 'bias shift', ('the mean per channel is %.0f %% of the error'):format(100 * fact.shift)
	end
	return 'resolution', ('a step is %.2g of the rms of the weights'):format(fact.step)
end

local function real_scales(q)
	local scale = q:qparams().scale
	return scale:quantized() and scale:dequantize() or scale:to 'float32'
end

-- Statistics of one layer's weights and outputs.
local function look(module, float, quantized, seen)
	local w = weights_of(module, float, quantized)
	local row, fact = {weight = decibels(power(w.w), w.noise), bytes = 0}, {clipped = 0, clipped_share = 0, shift = 0}
	for _, field in ipairs(module.weights(quantized)) do row.bytes = row.bytes + rawget(quantized, field):nbytes() end
	local rms = math.sqrt(power(w.w))
	fact.crest, fact.used = w.w:abs():max():item() / math.max(rms, 1e-300), used_range(w.q)
	-- for steps that differ: the uniform step with the same error
	local step = w.q:spec().affine and real_scales(w.q):mean():item() or math.sqrt(12 * w.noise)
	fact.step = step / math.max(rms, 1e-300)
	fact.dead, fact.rows = dead_channels(w)
	if seen and seen.y then
		local q = rawget(quantized, 'quantized')
		local y = module.real((quantized(seen.x)))
		local error = y - seen.y
		row['local'], fact.shift = decibels(power(seen.y), power(error)), shift_of(error)
		if q.mode == 'static' and q.input and seen.x:dtype() == 'float32' then fact.clipped, fact.clipped_share = saturation_of(seen.x, q.input) end
	end
	row.cause, row.why = cause_of(fact)
	return row
end

---------------------------------------------------------------- the report

local COLUMNS = {'layer', 'kind', 'spec', 'weight', 'local', 'accumulated', 'only', 'only_drop', 'but', 'gain', 'bytes', 'cause', 'why', 'rule'}

-- Rules that leave the most sensitive layers float, which together have four fifths of the drop.
local function rules_of(layers, rows)
	local total, spared, list = 0, 0, {}
	for _, row in ipairs(rows) do total = total + math.max(0, row.only_drop) end
	for _, row in ipairs(rows) do
		if row.only_drop <= 0 or spared >= 0.8 * total then break end
		spared = spared + row.only_drop
		list[#list + 1] = {layers.pattern(row.layer), false}
	end
	return list
end

-- The name of the data set if it is known as training data, such as 'CIFAR-10 train'.
local function training_set(source)
	local set = type(source) == 'table' and rawget(source, 'data')
	local name = type(set) == 'table' and rawget(set, 'name')
	return type(name) == 'string' and (name:find ' train%f[^%w]' or name:find ' all%f[^%w]') and name or nil
end

function quant.sensitivity(m, options)
	local layers, module, progress = internal.import 'nn/quantize/layers', internal.import 'nn/base/module', internal.import 'interp/prelude/progress'
	local o = base.options(sensitivity, options)
	layers.check_model('sensitivity', m)
	local metric = layers.check_data('sensitivity', o)
	local names, spec = layers.names('sensitivity', m), o.spec or 'int8/1'
	local how = {what = 'sensitivity', mode = layers.check_mode('sensitivity', o.mode), input = o.input, batches = o.batches, loss = o.loss}
	layers.check_spec('sensitivity: spec', spec)
	local all, none, choice, found = {}, {}, spec, nil
	for _, name in ipairs(names) do none[name] = false end
	if o.method ~= nil then
		choice = given.of('sensitivity', spec, o.method)
		found = given.learn(layers.quantized(m, names, none, how), names, {choice}, o)
	elseif o.calibration ~= nil then
		base.fail 'sensitivity: calibration: wanted method= with it, got none'
	end
	for _, name in ipairs(names) do all[name] = given.pick(found, name, choice) end
	local float, full = layers.quantized(m, names, none, how), layers.quantized(m, names, all, how)
	local bar <close> = progress.start('sensitivity', 2 * #names + 2, o.log)
	local step = 0
	local function measured(model, what)
		local value, count = layers.measure(model, o.data, metric, how)
		step = step + 1
		bar:update(step, function() return what end)
		return value, count
	end
	local reference, count = measured(float, 'float32')
	local worst = measured(full, 'all')
	local _ <close> = internal.nograd()
	local x = layers.first_batch('sensitivity', float, o.data)
	local inside, through = layers.capture(float, names, x), layers.capture(full, names, x)
	local floats, fulls = layers.by_name(float), layers.by_name(full)
	local rows = {columns = COLUMNS}
	for i, name in ipairs(names) do
		local row = look(module, floats[name], fulls[name], inside[name])
		row.layer, row.kind, row.spec = name, module.class_of(floats[name]).name, o.method ~= nil and choice.text or tostring(quant.spec(spec))
		if inside[name] and inside[name].y then
			row.accumulated = decibels(power(inside[name].y), power(through[name].y - inside[name].y))
		end
		local one = setmetatable({[name] = all[name]}, {__index = none})
		local rest = setmetatable({[name] = false}, {__index = all})
		row.only = measured(layers.quantized(m, names, one, how), name)
		row.but = measured(layers.quantized(m, names, rest, how), name)
		row.only_drop, row.gain = layers.drop(metric, reference, row.only, count), layers.drop(metric, row.but, worst, count)
		row.rule = ("{'%s', false}"):format(layers.pattern(name))
		rows[i] = row
	end
	table.sort(rows, function(a, b)
		if a.only_drop ~= b.only_drop then return a.only_drop > b.only_drop end
		if a.gain ~= b.gain then return a.gain > b.gain end
		return a.layer < b.layer
	end)
	rows.note = ('%s: float32 %.4g, all layers %s %.4g; %d targets; errors in dB'):format(metric.name, reference,
		o.method ~= nil and choice.text or tostring(quant.spec(spec)), worst, count)
	local trained = training_set(o.data)
	if trained then
		rows.note = ("%s\n%s: weights that were trained on these images look less sensitive than they are; split='validation' gives others"):format(
			rows.note, trained)
	end
	return internal.import 'interp/prelude/report'(rows), rules_of(layers, rows)
end

return true
