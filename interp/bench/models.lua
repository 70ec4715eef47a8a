-- SPDX-License-Identifier: MIT
-- bench.models: models side by side on the same data: the metric, the time of a batch, and bytes of weights, of activations
-- and at the peak.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local metrics = internal.import 'nn/base/metrics'
local module = internal.import 'nn/base/module'
local devices = internal.import 'interp/bench/devices'
local progress = internal.import 'interp/prelude/progress'
local report = internal.import 'interp/prelude/report'
local fail, doc, describe = base.fail, base.doc, base.describe
local clock, features, tensor = hw.clock, hw.features, tensor
local sync = gpu.sync

---------------------------------------------------------------- which models

-- {name=, model=, fields=} of each, float32 first, then by name.
local function list_of(models)
	if type(models) ~= 'table' or getmetatable(models) then
		fail('models: wanted a table {name=model, …}, got %s', describe(models))
	end
	local list = {}
	for name, value in next, models do
		local model, fields = value, {}
		if type(value) == 'table' and not module.is_module(value) then
			model = value[1]
			for key, inner in next, value do
				if type(key) == 'string' then fields[key] = inner end -- m:quantize gives its report after the model
			end
		end
		if type(name) ~= 'string' or not module.is_module(model) then
			fail('models: %s: wanted a model or {model, column=value}, got %s', tostring(name), describe(value))
		end
		list[#list + 1] = {name = name, model = model, fields = fields}
	end
	table.sort(list, function(a, b)
		if (a.name == 'float32') ~= (b.name == 'float32') then return a.name == 'float32' end
		return a.name < b.name
	end)
	if #list == 0 then fail('models: wanted at least one model, got none') end
	return list
end

---------------------------------------------------------------- bytes

local function weight_bytes(m)
	local bytes, seen = 0, {}
	module.walk(m, function(_, inner)
		for _, field in ipairs(module.weights(inner) or {}) do
			local weight = rawget(inner, field)
			if weight and not seen[weight] then
				seen[weight] = true
				bytes = bytes + weight:nbytes()
			end
		end
	end)
	return bytes
end

-- What the modules without children give out for a batch, summed; what is only another view is not counted.
local function activation_bytes(m, x)
	local bytes, known = 0, {}
	local function count(value, given)
		if not base.is_tensor(value) or value == given or known[value] then return end
		known[value] = true
		bytes = bytes + value:nbytes()
	end
	local function hook(self, given, ...)
		local value = module.run(self, given, ...)
		if not module.class_of(self).view then count(value, given) end
		return value
	end
	local _ <close> = module.hooks(m, function(_, inner)
		return (#module.children(inner) == 0 or module.class_of(inner).name == 'Residual') and hook
	end)
	m(x)
	return bytes
end

local function peak_of(m, x)
	collectgarbage()
	local before = internal.peak(0)
	local start, peak_of_devices = tensor.memory().now, devices.watch()
	m(x)
	local peak = tensor.memory().peak - start
	internal.peak(math.max(before, tensor.memory().peak))
	return peak, peak_of_devices()
end

---------------------------------------------------------------- one model

local function median(times)
	table.sort(times)
	local n = #times
	return n % 2 == 1 and times[n // 2 + 1] or (times[n // 2] + times[n // 2 + 1]) / 2
end

local function measure(entry, data, metric, o)
	local m, sum, times = entry.model, metrics.sum(metric), {}
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local bar <close> = progress.start(entry.name, o.batches or fit.length(data), o.log)
	local row = {model = entry.name, metric = metric.name}
	fit.begin_pass(m, data)
	for x, y in fit.batches('models', data, module.device(m)) do
		if #times == 0 then
			m(x) -- the first call allocates
			row.activation_bytes = activation_bytes(m, x)
			row.peak, row.device_peak = peak_of(m, x)
			sync()
			fit.begin_pass(m, data)
		end
		local start = clock()
		local output = m(x)
		sync()
		times[#times + 1] = clock() - start
		sum.add(output, y, o.loss or nn.crossentropy)
		bar:update(#times, function() return ('%s %.4g'):format(metric.name, sum.value()) end)
		if #times == o.batches then break end
	end
	if #times == 0 then fail('models: data: wanted at least one batch, got none') end
	row.value, row.batches = sum.value(), #times
	row.ms, row.bytes, row.weight_bytes = median(times) * 1e3, m:nbytes(), weight_bytes(m)
	for name, value in next, entry.fields do row[name] = value end
	return row
end

local function columns_of(list, metric)
	local columns, extra, seen = {'model'}, {}, {}
	for _, entry in ipairs(list) do
		for name in next, entry.fields do
			if not seen[name] then extra[#extra + 1] = name end
			seen[name] = true
		end
	end
	table.sort(extra)
	table.move(extra, 1, #extra, 2, columns)
	local rest = {'metric', 'value', 'ms', 'speedup', 'bytes', 'weight_bytes', 'activation_bytes', 'peak', 'batches', 'threads',
		'level', 'load', 'machine'}
	if metric.name ~= 'metric' then table.insert(rest, 1, metric.name) end
	return table.move(rest, 1, #rest, #columns + 1, columns)
end

local models = doc {name = 'bench.models', usage = "bench.models({float32=m, int8=q}, {data=test, metric='accuracy'})",
	text = [[Runs each model over the same data: a report with the metric (under its name and as value), the median time of a batch in
ms (forward only, measured on every batch), speedup over float32 (or the first), bytes of all parameters, weight_bytes of the
layers' weights with their scales, activation_bytes (what the layers give out for a batch, summed; views do not count), and
peak, the most that one batch takes above what was in use (on devices: device_peak, and columns device and gpu, its name). Batches go to the device of each model. An entry may be {model, bits=2, method='lsq'}: these become columns.]],
	options = {{'data', 'any', 'a loader, or a list of batches {x, y}'}, {'metric', 'any', 'as in m:evaluate (default accuracy)'},
		{'loss', 'function', 'for the metric loss'}, {'batches', 'positive integer', 'use so many (default: all)'},
		{'device', 'text', "where: 'cuda', …; copies of the models are moved there (default: where they are)"},
		{'log', 'true or false', 'draw a bar (default true)'}},
	example = [[m = nn.Sequential{nn.Linear(8, 3)}
data = {{tensor.randn(4, 8), tensor{1, 2, 3, 1, dtype='int64'}}}
r = bench.models({float32=m, int8=m:quantize{mode='dynamic'}}, {data=data, metric='accuracy'})
print(#r, r[1].model, r[2].weight_bytes, r[1].speedup)  --> 2 float32 36 1.0]]}

-- A load average has no more digits than one that mean anything; so rounded it is mostly the same for all rows.
local function load_now()
	local load = internal.load()
	return load and math.floor(load * 10 + 0.5) / 10
end

return function(given, options)
	options = base.options(models, options)
	if options.data == nil then fail('models: data: wanted a loader or a list of batches {x, y}, got nothing') end
	local list, metric = list_of(given), metrics.get('models', options.metric or 'accuracy')
	local rows = {columns = columns_of(list, metric), note = 'ms: median time of a batch; activation_bytes: of one batch; peak: bytes'}
	local f, there = features(), false
	for i, entry in ipairs(list) do
		if options.device and entry.model:device() ~= options.device then entry.model = entry.model:clone():to(options.device) end
		local row = measure(entry, options.data, metric, options)
		if metric.name ~= 'metric' then row[metric.name] = row.value end
		row.speedup = (rows[1] or row).ms / row.ms
		row.threads, row.level, row.load, row.machine = tensor.threads(), f.level, load_now(), f.name
		row.device = entry.model:device()
		rows[i], there = row, there or row.device ~= 'cpu'
	end
	if there then
		table.insert(rows.columns, 2, 'device')
	else
		for _, row in ipairs(rows) do row.device = nil end
	end
	devices.show(rows)
	return report(rows)
end
