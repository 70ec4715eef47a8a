-- SPDX-License-Identifier: MIT
-- m:fit and m:evaluate: the usual loops, readable with source(nn.Linear(1, 1).fit).
--
-- After an interrupt or an error: only the optimizer's step changes parameters, and it always completes, so the model
-- is that of the last complete step; the file of save= is that of the last complete epoch.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local files = internal.import 'nn/base/files'
local dataset = internal.import 'nn/base/dataset'
local metrics = internal.import 'nn/base/metrics'
local recorded = internal.import 'nn/base/recorded'
local progress = internal.import 'interp/prelude/progress'
local report = internal.import 'interp/prelude/report'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor
local methods, method = module.methods, module.method
local clock = hw.clock

---------------------------------------------------------------- batches

local function is_callable(value) return type(value) == 'function' or (debug.getmetatable(value) or {}).__call ~= nil end

-- The iterator that a loader or a function gives, checked as it goes: x is a tensor or a list of them.
local function checked(what, iterate, state, control, close)
	if not is_callable(iterate) then
		fail('%s: data: wanted a loader, a list of batches or a function that gives an iterator, got a function that gives %s', what, describe(iterate))
	end
	return function()
		local x, y = iterate(state, control)
		control = x
		if x ~= nil and not is_tensor(x) and type(x) ~= 'table' then
			fail('%s: data: wanted batches of tensors, got %s', what, describe(x))
		end
		return x, y
	end, nil, nil, close
end

local function pair_of(what, i, batch)
	if type(batch) ~= 'table' then fail('%s: data: item %d: wanted a batch {x, y}, got %s', what, i, describe(batch)) end
	if batch[1] == nil then fail('%s: data: item %d: wanted a batch {x, y}, got one without x', what, i) end
	for key in next, batch do
		if key ~= 1 and key ~= 2 then fail('%s: data: item %d: wanted a batch {x, y}, got one with a field %s', what, i, describe(key)) end
	end
	return batch[1], batch[2]
end

-- An iterator over the batches x, y of one pass as the data has them.
local function given_batches(what, data)
	if module.is_module(data) then fail('%s: data: wanted a loader or a list of batches {x, y}, got a model', what) end
	if dataset.is(data) then fail('%s: data: wanted a loader, as in data.loader(ds, {batch=32}), got a data set', what) end
	if is_callable(data) then return checked(what, data()) end
	if type(data) ~= 'table' or type(data[1]) ~= 'table' then
		fail('%s: data: wanted a loader or a list of batches {x, y}, got %s', what, describe(data))
	end
	local i = 0
	return checked(what, function()
		i = i + 1
		local batch = data[i]
		if batch ~= nil or i <= #data then return pair_of(what, i, batch) end
	end)
end

-- An iterator over the batches x, y of one pass: a loader, a function that gives an iterator, or a list of pairs {x, y}. They are
-- moved to the device; nil: they stay where they are.
local function batches(what, data, device)
	local iterate, state, control, close = given_batches(what, data)
	if not device then return iterate, state, control, close end
	return function()
		local x, y = iterate()
		return module.moved(x, device), module.moved(y, device)
	end, nil, nil, close
end

-- The number of batches of a pass, if the data knows it.
local function length(data)
	local ok, n = pcall(function() return #data end)
	return ok and math.type(n) == 'integer' and n > 0 and n or nil
end

local function check_batch(what, x, y)
	if not is_tensor(x) or not is_tensor(y) then
		fail('%s: data: wanted batches of two tensors x, y, got %s and %s', what, describe(x), describe(y))
	end
end

-- Recurrent layers keep their state from batch to batch if the data is one text; each pass resets it.
local function begin_pass(m, data)
	local stream = type(data) == 'table' and not module.is_module(data) and data.stream or false
	module.walk(m, function(_, inner)
		local class = module.class_of(inner)
		if class.carry then class.carry(inner, stream) end
	end)
end

-- Sets the mode until it is closed.
local function in_mode(m, training) return internal.fields(module.mode_fields(m, training)) end

---------------------------------------------------------------- evaluate

local evaluate = method('evaluate', "m:evaluate(data, {metric='accuracy'})",
	[[Runs the model over all batches of a loader (or a list of {x, y}) in eval mode, without recording gradients, and
returns a report of one row: the metric under its name and as value, the number of counted positions and of batches,
milliseconds per batch. Metrics: accuracy (percent), perplexity, loss, mse, or a function(y, target) that gives a number.

kv= evaluates a language model with a cache of keys and values in this format, as if each position were generated (`m:generate`): what attention sees of
the past is what such a cache has then.]],
	[[m = nn.Linear(2, 2)
m.weight:detach():copy_(tensor.eye(2))
m.bias:detach():fill_(0)
r = m:evaluate({{tensor{{3, 1}, {0, 2}}, tensor{1, 2, dtype='int64'}}}, {metric='accuracy'})
print(r.accuracy, r.count)  --> 100.0 2]],
	{{'metric', 'any', 'name or function (default loss)'}, {'loss', 'function', 'for the metric loss (default nn.crossentropy)'},
		{'batches', 'positive integer', 'stop after so many (default: all)'}, {'kv', 'any', "format of the cache, as in m:generate: 'int8', {k=, v=, recent=} (default: no cache)"},
		{'log', 'true or false', 'draw a bar (default true)'}})

-- m(x), or with a cache of the format.
local function outputs(m, x, kv)
	if kv == nil then return m(x) end
	if not is_tensor(x) or x:dim() < 2 then fail('evaluate: kv: wanted batches (rows, positions), got %s', describe(x)) end
	return m(x, m:cache(x:size(1), x:size(2), kv))
end

function methods.evaluate(m, data, options)
	module.parts_of(m, 'evaluate')
	options = base.options(evaluate, options)
	local metric = metrics.get('evaluate', options.metric or 'loss')
	if options.kv ~= nil and not module.class_of(m).cache then
		fail('evaluate: kv: wanted a model with a cache of keys and values, as nn.Transformer, got %s', module.class_of(m).name)
	end
	local sum, n, start = metrics.sum(metric), 0, clock()
	local _ <close> = in_mode(m, false)
	local _ <close> = internal.nograd()
	local bar <close> = progress.start('evaluate', options.batches or length(data), options.log)
	begin_pass(m, data)
	for x, y in batches('evaluate', data, module.device(m)) do
		check_batch('evaluate', x, y)
		sum.add(outputs(m, x, options.kv), y, options.loss or nn.crossentropy)
		n = n + 1
		bar:update(n, function() return ('%s %.4g'):format(metric.name, sum.value()) end)
		if n == options.batches then break end
	end
	if n == 0 then fail('evaluate: data: wanted at least one batch, got none') end
	local value = sum.value()
	return report {{metric.name, value, value, sum.count(), n, (clock() - start) / n * 1e3},
		columns = {'metric', metric.name == 'metric' and 'result' or metric.name, 'value', 'count', 'batches', 'ms'}}
end

---------------------------------------------------------------- fit

local FIT = {{'opt', 'any', 'optimizer (default optim.adam(m))'}, {'loss', 'function', 'default nn.crossentropy'},
	{'epochs', 'integer', 'passes over the data (default 1)'}, {'validate', 'any', 'loader that is evaluated after each epoch'},
	{'metric', 'any', 'metric of validate (default loss)'},
	{'decay', 'number', 'after an epoch that validate found no better (without validate: after each) lr is multiplied by this'},
	{'minutes', 'number', 'stop after the epoch in which this time has passed'},
	{'save', 'text', 'file (.safetensors) that is written after each epoch: the model and the state of the training'},
	{'resume', 'true or false', 'go on from the file of save=, if there is one (default false)'},
	{'replay', 'true or false', 'on a device, record a step and replay it (default true)'},
	{'log', 'any', 'false: silent; a function is called with each epoch\'s row (default: lines on stderr)'}}
local fit = method('fit', 'm:fit(data, {opt=, loss=, epochs=, validate=, save=})',
	[[Trains the model on the batches x, y of a loader and returns a report with a row for each epoch: mean loss, what validate=
measured, learning rate, seconds. A loss that is nan or inf ends it with an error before the step is made. After Ctrl-C the
model is that of the last whole step and the file of save= that of the last whole epoch; the same call with resume=true goes
on from there.

On a device a step of an epoch is recorded up to its gradients, and later batches of its size are one launch of the recording, with the
same numbers: where the model is made of kinds of nn alone, the loss is one of nn, nothing is random (dropout) and nothing is quantized
(help 'gpu', g:run).]],
	[[tensor.seed(1)
m = nn.Linear(1, 1)
x = tensor.linspace(-1, 1, 20):view(20, 1)
r = m:fit({{x, x * 3 + 1}}, {loss=nn.mse, opt=optim.sgd(m, {lr=0.5}), epochs=60, log=false})
print(#r, r[60].loss < 1e-4)  --> 60 true]], FIT)

-- An optimizer, also one that a user has written.
local function check_optimizer(o)
	local kind = type(o)
	for _, name in ipairs {'lr', 'zero', 'step'} do
		if kind ~= 'table' or not is_callable(o[name]) then
			fail('fit: opt: wanted an optimizer, as in optim.sgd(m, {lr=0.1}), got %s', kind == 'table' and 'a table without ' .. name or describe(o))
		end
	end
end

local function check_options(m, options)
	options = base.options(fit, options)
	if options.opt ~= nil then check_optimizer(options.opt) end
	if (options.epochs or 1) < 1 then fail('fit: epochs: wanted 1 or more, got %d', options.epochs) end
	if options.resume and not options.save then fail('fit: resume: wanted a file in save=, got none') end
	if #m:parameters() == 0 then fail('fit: wanted a model with parameters, got none') end
	options.opt = options.opt or optim.adam(m)
	options.loss = options.loss or nn.crossentropy
	return options
end

-- One step up to the gradients; gives the loss.
local function gradients(m, o, x, y)
	local loss = o.loss(m(x), y)
	if not is_tensor(loss) or loss:nelem() ~= 1 then fail('fit: loss: wanted a tensor of one element, got %s', describe(loss)) end
	o.opt:zero()
	loss:backward()
	return loss
end

-- One step; gives the loss. It is read behind backward, so that a device is at work meanwhile, and before the step.
local function step(m, o, x, y, where, steps)
	local value = (steps:run(x, y) or gradients(m, o, x, y)):item()
	if value ~= value or value == math.huge or value == -math.huge then
		fail('fit: loss: wanted a finite number, got %s in %s; the parameters are those before it', value, where)
	end
	o.opt:step()
	return value
end

local function train_epoch(m, data, o, epoch)
	local _ <close> = in_mode(m, true)
	local total, n, last = 0, 0, length(data)
	local bar <close> = progress.start(('epoch %d/%d'):format(epoch, o.epochs or 1), last, o.log)
	begin_pass(m, data)
	local steps <close> = recorded.steps(m, o, function(x, y) return gradients(m, o, x, y) end)
	for x, y in batches('fit', data, module.device(m)) do
		check_batch('fit', x, y)
		n = n + 1
		total = total + step(m, o, x, y, ('epoch %d, batch %d'):format(epoch, n), steps)
		bar:update(n, function() return ('loss %.4f'):format(total / n) end)
	end
	if n == 0 then fail('fit: data: wanted at least one batch, got none') end
	return total / n
end

---------------------------------------------------------------- checkpoints

local function number_of(value) return tensor {value, dtype = 'float64'} end

-- Passes that a loader has begun: it shuffles and augments by their number. Nil: the data are no loader.
local function passes(data)
	return type(data) == 'table' and math.type(data.epoch) == 'integer' and data.epoch or nil
end

-- The model, the optimizer's state and where the training is, in one file.
local function save(m, data, o, rows, best)
	local all = {}
	for name, value in pairs(m:state()) do all[name] = value end
	for name, value in pairs(o.opt:state()) do
		all[files.PREFIX .. 'opt.' .. name] = is_tensor(value) and value or number_of(value)
	end
	local losses = {}
	for i, row in ipairs(rows) do losses[i] = row.loss end
	local seed, position = internal.rng(0, 0)
	internal.rng(seed, position)
	all[files.PREFIX .. 'loss'] = tensor(losses):to 'float64'
	all[files.PREFIX .. 'best'] = number_of(best)
	all[files.PREFIX .. 'random'] = tensor {seed, position, dtype = 'int64'}
	if passes(data) then all[files.PREFIX .. 'passes'] = tensor {passes(data), dtype = 'int64'} end
	tensor.save(o.save, all)
end

local function resume(m, data, o)
	local given = tensor.load(o.save)
	local where = given[files.PREFIX .. 'loss']
	if not where then fail('fit: resume: %s: wanted a file that fit has saved, got one without its state', o.save) end
	m:load(o.save)
	local state, prefix = {}, files.PREFIX .. 'opt.'
	for name, value in pairs(given) do
		if name:sub(1, #prefix) == prefix then
			state[name:sub(#prefix + 1)] = value:dtype() == 'float64' and value:nelem() == 1 and value:item() or value
		end
	end
	o.opt:load(state)
	local random = given[files.PREFIX .. 'random']:totable()
	internal.rng(random[1], random[2])
	local begun = given[files.PREFIX .. 'passes']
	if begun and passes(data) then data.epoch = begun:item() end
	local rows = {}
	for i, loss in ipairs(where:totable()) do rows[i] = {epoch = i, loss = loss, resumed = true} end
	return rows, given[files.PREFIX .. 'best']:item()
end

-- Before the first epoch: an hour of training is not lost to a folder that is absent. The file itself stays as it is.
local function check_save(path)
	local probe = path .. '.probe'
	local f, why = io.open(probe, 'wb')
	if not f then fail('fit: save: wanted a file that can be written, got %s', why:gsub('%.probe', '', 1)) end
	f:close()
	os.remove(probe)
end

---------------------------------------------------------------- the loop

local function columns_of(o)
	local columns = {'epoch', 'loss'}
	if o.validate then columns[3] = 'valid' end
	return table.move({'lr', 'seconds'}, 1, 2, #columns + 1, columns)
end

local function line_of(row, o, metric)
	local text = ('epoch %d/%d  loss %.4f'):format(row.epoch, o.epochs or 1, row.loss)
	if row.valid then text = text .. ('  %s %.4g'):format(metric.name, row.valid) end
	return text .. ('  %.1f s'):format(row.seconds)
end

-- Whether this epoch is the best so far; without validate every epoch counts as no better, so that decay always acts.
local function is_better(row, metric, best)
	if not row.valid then return false end
	if metric.higher then return row.valid > best end
	return row.valid < best
end

function methods.fit(m, data, options)
	module.parts_of(m, 'fit')
	local o = check_options(m, options)
	local metric = metrics.get('fit', o.metric or 'loss')
	local rows, best = {}, metric.higher and -math.huge or math.huge
	local start = clock()
	if o.save then check_save(o.save) end
	if o.resume and internal.exists(o.save) then rows, best = resume(m, data, o) end
	for epoch = #rows + 1, o.epochs or 1 do
		local began = clock()
		local row = {epoch = epoch, lr = o.opt:lr(), loss = train_epoch(m, data, o, epoch)}
		if o.validate then
			row.valid = m:evaluate(o.validate, {metric = o.metric or 'loss', loss = o.loss, log = o.log ~= false}).value
		end
		row.seconds = clock() - began
		rows[epoch] = row
		local better = is_better(row, metric, best)
		if better then best = row.valid end
		if o.decay and not better then o.opt:lr(o.opt:lr() * o.decay) end
		if o.save then save(m, data, o, rows, best) end
		if type(o.log) == 'function' then o.log(row) end
		progress.start('', nil, o.log ~= false and type(o.log) ~= 'function'):done(line_of(row, o, metric))
		if o.minutes and clock() - start > 60 * o.minutes then break end
	end
	local list = {columns = columns_of(o)}
	for i, row in ipairs(rows) do
		row.resumed = nil
		list[i] = row
	end
	return report(list)
end

return {check_batch = check_batch, batches = batches, begin_pass = begin_pass, in_mode = in_mode, length = length}
