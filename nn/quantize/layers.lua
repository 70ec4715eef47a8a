-- SPDX-License-Identifier: MIT
-- Shared by quant.sensitivity and quant.search: the quantizable layers of a model, models with some of them
-- quantized, and the inputs and outputs of a layer.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local metrics = internal.import 'nn/base/metrics'
local module = internal.import 'nn/base/module'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor
local layers = {}

layers.pattern = internal.import 'nn/quantize/rules'.pattern

function layers.check_model(what, m)
	if not module.is_module(m) then fail('%s: wanted a model, got %s', what, describe(m)) end
	module.walk(m, function(name, inner)
		if rawget(inner, 'quantized') then
			fail('%s: wanted a float model, got one in which %s is quantized', what, name == '' and 'it' or name)
		end
	end)
end

-- Names of the layers with weights, in the order of the model.
function layers.names(what, m)
	local names = {}
	module.walk(m, function(name, inner)
		if module.weights(inner) then names[#names + 1] = name end
	end)
	if #names == 0 then fail('%s: wanted a model with layers that have weights, got none', what) end
	return names
end

function layers.by_name(m)
	local list = {}
	module.walk(m, function(name, inner) list[name] = inner end)
	return list
end

-- The model with choice[name] for each layer: a spec, {weight=, given=} (nn/quantize/given.lua), or false, float. `o`: mode, input.
function layers.quantized(m, names, choice, o)
	local rules = {}
	for i, name in ipairs(names) do
		local one = choice[name] or false
		if type(one) == 'table' and one.given then
			rules[i] = {layers.pattern(name), weight = one.weight, method = one.given}
		else
			rules[i] = {layers.pattern(name), one}
		end
	end
	return (m:quantize {mode = o.mode, input = o.input, rules = rules})
end

-- The metric of a model on the data, and the number of targets.
function layers.measure(m, data, metric, o)
	local sum, n = metrics.sum(metric), 0
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	fit.begin_pass(m, data)
	for x, y in fit.batches(o.what, data, module.device(m)) do
		fit.check_batch(o.what, x, y)
		sum.add(m(x), y, o.loss or nn.crossentropy)
		n = n + 1
		if n == o.batches then break end
	end
	if n == 0 then fail('%s: data: wanted at least one batch, got none', o.what) end
	local value = sum.value()
	if value ~= value then fail('%s: metric: wanted a number, got nan', o.what) end
	return value, sum.count()
end

layers.drop = metrics.drop

-- Runs a batch and returns the input and the first output tensor of each layer: {name = {x=, y=}}.
function layers.capture(m, names, x)
	local seen, wanted = {}, {}
	for _, name in ipairs(names) do wanted[name] = true end
	local _ <close> = module.hooks(m, function(name)
		return wanted[name] and function(self, given, ...)
			local results = table.pack(module.run(self, given, ...))
			seen[name] = seen[name] or {x = given, y = is_tensor(results[1]) and module.real(results[1]) or nil}
			return table.unpack(results, 1, results.n)
		end
	end)
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	m(x)
	return seen
end

-- The first batch of the data, where the model is.
function layers.first_batch(what, m, data)
	for x, y in fit.batches(what, data, module.device(m)) do return x, y end
	fail('%s: data: wanted at least one batch, got none', what)
end

-- Checks that the spec is one of codes.
function layers.check_spec(what, spec)
	local s = quant.spec(spec)
	if not s.scheme then fail("%s: wanted a spec of codes, such as 'int8/1', got '%s'; false leaves a layer float", what, tostring(s)) end
	return s
end

local MODES = {'weight_only', 'static', 'dynamic', 'auto'}

function layers.check_mode(what, mode)
	for _, known in ipairs(MODES) do
		if mode == nil or mode == known then return mode or MODES[1] end
	end
	fail('%s: mode: wanted %s, got %s%s', what, table.concat(MODES, ', '), describe(mode), base.near(mode, MODES))
end

function layers.check_data(what, o)
	if o.data == nil then fail('%s: data: wanted a loader or a list of batches {x, y}, got nothing', what) end
	return metrics.get(what, o.metric or 'accuracy')
end

return layers
