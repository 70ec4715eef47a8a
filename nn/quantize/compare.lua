-- SPDX-License-Identifier: MIT
-- quant.methods: tries chains of post-training quantization on one model and ranks what they give.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe

local methods = base.doc {name = 'quant.methods', usage = "quant.methods(m, {'rtn', 'gptq', {'mse', {'gptq', act=true}}}, {data=calib, test=valid, metric='perplexity'})",
	text = [[Quantizes m by each chain of methods (help 'methods') and ranks the results: a report of a row for each, the best first. An item is what
method= of m:quantize takes, or {'int4:32', method=…} with a spec of its own. All get the same batches of data=, which are read once.

Columns: method, weight (the spec), batches (of the calibration data), the metric on the batches {x, y} of test= under its name and drop (how
much worse than float), error (the signal to noise ratio of the model's results on the calibration data, dB), bytes of the weights,
seconds and peak (bytes of tensors above those before). With metric= and without test= the batches of data= are the test, too, which flatters
what has learned from them. Without both the error ranks.

sizes={2, 8, 32} repeats all with so many batches of data=: how much is enough. A chain that cannot be done has a row with the
reason in `why`. r.layers is a report of the error of each layer by each chain; r:plot() draws the ranking, r.layers:plot() those errors.]],
	options = {{'data', 'any', 'batches of inputs that the methods learn from'}, {'test', 'any', 'a loader, or a list of batches {x, y}: what the metric is measured on'},
		{'metric', 'any', 'as in m:evaluate (default with test=: accuracy)'}, {'loss', 'function', 'for the metric loss'},
		{'weight', 'spec', "of chains without one of their own (default 'int4:32')"}, {'mode', 'text', 'weight_only static dynamic auto (default weight_only)'},
		{'input', 'spec', "of activations (default 'uint8')"}, {'rules', 'list', 'as in m:quantize'},
		{'sizes', 'list', 'numbers of batches of data='}, {'batches', 'positive integer', 'how many batches of data= without sizes= (default 32)'},
		{'sequential', 'true or false', 'as in m:quantize'}, {'shared', 'text', 'as in m:quantize'}, {'memory', 'positive integer', 'as in m:quantize'},
		{'log', 'true or false', 'draw a bar (default true)'}},
	example = [[tensor.seed(1)
m = nn.Sequential{nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)}
x = tensor.randn(256, 4):matmul(tensor.randn(4, 16))
r = quant.methods(m, {'rtn', 'mse', {'mse', 'gptq'}}, {data={{x}}, weight='int3:16', log=false})
print(r[1].method, r[1].error > r[3].error)  --> mse, gptq true]]}

---------------------------------------------------------------- options

-- What is asked for: a list of {text=, method=, weight=}.
local function trials_of(layers, list, o)
	local method = internal.import 'nn/quantize/method'
	if type(list) ~= 'table' or #list == 0 then fail("methods: wanted a list of methods, such as {'rtn', 'gptq'}, got %s", type(list) == 'table' and 'an empty one' or describe(list)) end
	base.list('methods: list', list)
	local trials = {}
	for i, one in ipairs(list) do
		local asked, weight, own = one, o.weight or 'int4:32', ''
		if type(one) == 'table' and one.method ~= nil then
			asked, weight, own = one.method, one[1] or one.weight or weight, (one[1] or one.weight) and ' ' .. tostring(quant.spec(one[1] or one.weight)) or ''
			for key in next, one do
				if key ~= 1 and key ~= 'method' and key ~= 'weight' then fail("methods: item %d: unknown field '%s'; known: method weight", i, base.word(key)) end
			end
		end
		trials[i] = {text = method.label(method.chain(asked)) .. own, method = asked, weight = layers.check_spec(('methods: item %d'):format(i), weight)}
	end
	return trials
end

local function sizes_of(o)
	if not o.sizes then return {o.batches or 32} end
	if o.batches then fail 'methods: batches: wanted it or sizes=, got both' end
	base.list('methods: sizes', o.sizes)
	local most = 0
	for i, n in ipairs(o.sizes) do
		if math.type(n) ~= 'integer' or n < 1 then fail('methods: sizes: item %d: wanted a positive integer, got %s', i, describe(n)) end
		most = math.max(most, n)
	end
	if most == 0 then fail 'methods: sizes: wanted a list of numbers of batches, got an empty one' end
	return o.sizes, most
end

-- The first `most` batches, read once.
local function read(m, data, most)
	local fit, module = internal.import 'nn/base/fit', internal.import 'nn/base/module'
	if data == nil then fail 'methods: data: wanted a loader or a list of batches {x}, got nothing' end
	local list = {}
	fit.begin_pass(m, data)
	for x, y in fit.batches('methods', data, module.device(m)) do
		list[#list + 1] = {x, y}
		if #list == most then break end
	end
	if #list == 0 then fail 'methods: data: wanted at least one batch, got none' end
	return list
end

---------------------------------------------------------------- one trial

-- What the layers' rows say of the whole model, and the rows of r.layers.
local function add_layers(into, row, r)
	for _, layer in ipairs(r) do
		if layer.error then
			row.error = layer.block or row.error
			into[#into + 1] = {name = layer.name, method = into.several and ('%s, %d batches'):format(row.method, row.batches) or row.method, weight = row.weight,
				rtn = layer.rtn, error = layer.error}
		end
	end
end

local function run(m, trial, batches, o)
	local watch_peak = internal.import 'interp/prelude/peak'
	local given = {mode = o.mode, input = o.input, weight = trial.weight, method = trial.method, rules = o.rules, data = batches, batches = #batches,
		sequential = o.sequential, shared = o.shared, memory = o.memory, log = false}
	local start, peak <close> = hw.clock(), watch_peak()
	local q, r = m:quantize(given)
	return q, r, {bytes = q:nbytes(), seconds = math.floor(1000 * (hw.clock() - start) + 0.5) / 1000, peak = peak:bytes()}
end

-- The row of a trial; what cannot be done has a reason in place of numbers.
local function row_of(m, trial, batches, o, measure, into)
	local good, q, r, row = pcall(run, m, trial, batches, o)
	if not good then
		if type(q) ~= 'string' or q:find 'interrupted' then error(q, 0) end
		row = {why = (tostring(q):gsub('^%S+:%d+: ', ''):gsub('\n.*', ''))}
	end
	row.method, row.weight, row.batches = trial.text, tostring(trial.weight), #batches
	if good then
		add_layers(into, row, r)
		if measure then measure(q, row) end
	end
	return row
end

-- The best first: by the metric's drop, else by the error; then the smaller one. Those without numbers last.
local function rank(rows, by)
	local at = {}
	for i, row in ipairs(rows) do at[row] = i end
	local function value(row)
		local x = row[by]
		if x == nil or x ~= x then return math.huge end
		return by == 'error' and -x or x
	end
	table.sort(rows, function(a, b)
		local x, y = value(a), value(b)
		if x ~= y then return x < y end
		if (a.bytes or 0) ~= (b.bytes or 0) then return (a.bytes or math.huge) < (b.bytes or math.huge) end
		return at[a] < at[b]
	end)
end

---------------------------------------------------------------- all

local function columns_of(called, any_why, o)
	local list = {'method', 'weight'}
	if o.sizes then list[3] = 'batches' end
	if called then table.move({called, 'drop'}, 1, 2, #list + 1, list) end
	table.move({'error', 'bytes', 'seconds', 'peak'}, 1, 4, #list + 1, list)
	if any_why then list[#list + 1] = 'why' end
	return list
end

-- If nothing could be done, the first reason is an error.
local function check_any(rows)
	for _, row in ipairs(rows) do
		if not row.why then return end
	end
	fail('methods: %s', rows[1].why)
end

local function measure_with(layers, m, batches, o)
	if o.test == nil and o.metric == nil then return end
	local metrics = internal.import 'nn/base/metrics'
	local test, metric = o.test == nil and batches or o.test, metrics.get('methods', o.metric or 'accuracy')
	local how = {what = 'methods', loss = o.loss}
	local called = metric.name == 'metric' and 'value' or metric.name
	local reference, count = layers.measure(m, test, metric, how)
	return function(q, row)
		local value = layers.measure(q, test, metric, how)
		row[called], row.drop = value, layers.drop(metric, reference, value, count)
	end, called, ('%s: float32 %.4g; drop: how much worse'):format(metric.name, reference)
end

function quant.methods(m, list, options)
	local layers, progress, report = internal.import 'nn/quantize/layers', internal.import 'interp/prelude/progress', internal.import 'interp/prelude/report'
	local o = base.options(methods, options)
	layers.check_model('methods', m)
	o.mode = layers.check_mode('methods', o.mode)
	local trials, sizes, most = trials_of(layers, list, o), sizes_of(o)
	local batches = read(m, o.data, most or sizes[1])
	if o.sizes and #batches < most then fail('methods: sizes: wanted at most %d batches, as data= gives, got %d', #batches, most) end
	local measure, called, note = measure_with(layers, m, batches, o)
	local rows, by_layer, step, any_why = {}, {columns = {'name', 'method', 'weight', 'rtn', 'error'}}, 0, false
	by_layer.several = #sizes > 1 or nil
	local bar <close> = progress.start('methods', #trials * #sizes, o.log)
	for _, n in ipairs(sizes) do
		local some = table.move(batches, 1, math.min(n, #batches), 1, {})
		for _, trial in ipairs(trials) do
			bar:update(step, function() return trial.text end)
			rows[#rows + 1] = row_of(m, trial, some, o, measure, by_layer)
			any_why, step = any_why or rows[#rows].why ~= nil, step + 1
		end
	end
	if any_why then check_any(rows) end
	by_layer.several = nil
	rank(rows, called and 'drop' or 'error')
	local y = called and 'drop' or 'error'
	by_layer.figure = {x = 'name', y = 'error', group = 'method', kind = 'line', ylabel = 'signal to noise of the outputs, dB', xlabel = 'layer'}
	rows.columns, rows.note, rows.facts = columns_of(called, any_why, o), note, {layers = report(by_layer)}
	rows.figure = o.sizes and {x = 'batches', y = y, group = 'method', kind = 'line'} or {x = 'method', y = y, kind = 'bar'}
	for _, row in ipairs(rows) do
		if not o.sizes then row.batches = nil end
	end
	return report(rows)
end

return true
