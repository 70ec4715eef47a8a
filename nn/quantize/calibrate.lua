-- SPDX-License-Identifier: MIT
-- m:calibrate and m:observers. Observers record the inputs of layers that can be quantized and of ops that can run on
-- codes (nn/quantize/sites.lua); the model's output does not change.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local progress = internal.import 'interp/prelude/progress'
local report = internal.import 'interp/prelude/report'
local fail = base.fail
local methods, method = module.methods, module.method

-- The observed values of a module: 'input' of layers with weights, both operands of a sum.
local function observed(m)
	local class = module.class_of(m)
	if class.observed then return class.observed(m) end
	if class.weights and not class.no_input then return {'input'} end
	local names, keys = {}, {}
	for key in next, class.sites or {} do keys[#keys + 1] = key end
	table.sort(keys)
	for _, key in ipairs(keys) do
		for _, what in ipairs(class.sites[key]) do names[#names + 1] = what end
	end
	return names
end

local function watch(m, what, value)
	local o = rawget(m, 'input_observers')
	if o and o[what] and base.is_tensor(value) then o[what]:update(module.real(value)) end
end

local function hook(self, x, ...)
	watch(self, 'input', x)
	return module.run(self, x, ...)
end

-- Returns the number of observers, and the fields that are set during observation.
local function attach(m, spec)
	local n, fields = 0, {}
	module.walk(m, function(name, inner)
		local names = observed(inner)
		if #names == 0 or rawget(inner, 'quantized') then return end
		local o = {}
		for _, what in ipairs(names) do o[what] = quant.observer(spec):label((name == '' and '' or name .. '.') .. what) end
		rawset(inner, 'input_observers', o)
		n = n + #names
		table.move({inner, 'watch', watch}, 1, 3, #fields + 1, fields)
		if o.input and not module.class_of(inner).sites then
			table.move({inner, module.HOOK, hook}, 1, 3, #fields + 1, fields)
		end
	end)
	return n, fields
end

-- Saves a row of the input, with which m:quantize traces the model.
local function keep_example(m, x)
	local row = base.is_tensor(x) and x:dim() > 0 and x:size(1) > 0 and x:narrow(1, 1, 1):clone() or nil
	rawset(m, 'example', row)
end

local calibrate = method('calibrate', "m:calibrate(data, {input='uint8', batches=32})",
	[[Runs batches of data through the model in eval mode while observers record the inputs of every layer with weights, and of the sums,
pooling, activations, norms and attention of nn modules, for m:quantize and g:quantize. input= is the spec of the activations, with the
observer that chooses their range ('uint8@entropy'). The outputs of the model do not change. A second call starts over. Afterwards
m:quantize{mode='static'} can be used; m:observers() shows the ranges. Returns m.]],
	[[m = nn.Sequential{nn.Linear(2, 2)}
m:calibrate({{tensor.ones(4, 2), tensor.ones(4)}})
print(#m:observers())  --> 1]],
	{{'input', 'spec', "spec of the activations (default 'uint8')"}, {'batches', 'positive integer', 'how many (default 32)'},
		{'log', 'true or false', 'draw a bar (default true)'}})
function methods.calibrate(m, data, options)
	module.parts_of(m, 'calibrate')
	options = base.options(calibrate, options)
	local spec, wanted = quant.spec(options.input or 'uint8'), options.batches or 32
	if spec.block or spec.axis then
		fail("calibrate: input: wanted one scale for the whole tensor, got '%s'", tostring(spec))
	end
	local n_observers, fields = attach(m, options.input or 'uint8')
	if n_observers == 0 then
		fail('calibrate: wanted a model with float layers that can be quantized, got none; q:dequantize() gives a float model')
	end
	local _ <close> = internal.fields(fields)
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local bar <close> = progress.start('calibrate', wanted, options.log)
	local n, result = 0, quant.observer(options.input or 'uint8')
	fit.begin_pass(m, data)
	for x in fit.batches('calibrate', data, module.device(m)) do
		if n == 0 then keep_example(m, x) end
		local y = m(x)
		if base.is_tensor(y) and y:dtype():find 'float' then result:update(module.real(y)) end
		n = n + 1
		bar:update(n, function() return '' end)
		if n >= wanted then break end
	end
	if n == 0 then fail('calibrate: data: wanted at least one batch, got none') end
	rawset(m, 'output_observer', result) -- of the whole model, for results that become codes
	return m
end

method('observers', 'm:observers()', [[Returns a report with a row for each observer of the calibration: its name, spec and range.]],
	[[m = nn.Sequential{nn.Linear(2, 2)}
m:calibrate({{tensor.ones(4, 2), tensor.ones(4)}})
print(m:observers().name)  --> linear1]])
function methods.observers(m)
	module.parts_of(m, 'observers')
	local rows = {columns = {'name', 'value', 'spec', 'lo', 'hi', 'scale', 'zero_point', 'count', 'nonfinite'}}
	module.walk(m, function(name, inner)
		local list = rawget(inner, 'input_observers')
		for _, what in ipairs(list and observed(inner) or {}) do
			local o = list[what]
			local p, s = o:params(), o:stats()
			local lo, hi = o:range()
			rows[#rows + 1] = {name, what, o.spec.name, lo, hi, p.scale:item(), p.zero_point and p.zero_point:item() or 0,
				s.count, s.nonfinite}
		end
	end)
	return report(rows)
end

return {observed = observed}
