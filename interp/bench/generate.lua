-- SPDX-License-Identifier: MIT
-- bench.generate: how fast a language model reads a prompt and generates, beside the tokens a second that reading its weights allows. The
-- steps are those of m:generate (nn/base/decoder.lua), with the likeliest token of each.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local decoder = internal.import 'nn/base/decoder'
local fit = internal.import 'nn/base/fit'
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'
local random_model = internal.import 'interp/bench/random_model'
local report = internal.import 'interp/prelude/report'
local fail, describe = base.fail, base.describe
local clock, tensor, sync = hw.clock, tensor, gpu.sync

local WARMUP = 2 -- steps: the first makes the program

-- Bytes of the weights that a step reads: those of all products.
local function bytes_read(m)
	local bytes, seen = 0, {}
	module.walk(m, function(_, inner)
		local weight = module.class_of(inner).name == 'Linear' and inner.weight
		if weight and not seen[weight] then
			seen[weight] = true
			bytes = bytes + weight:nbytes()
		end
	end)
	return bytes
end

-- Bytes of the caches: of a position of a row, and those that a step of a row reads after n positions.
local function cache_bytes(m, kv, n)
	local all, read, caches = 0, 0, m:cache(1, m.context, kv)
	for i, cache in ipairs(caches) do
		local bytes, window = kvcache.bytes(cache), m[i].attention.window
		all, read = all + bytes, read + bytes * (window and math.min(window, n) or n)
	end
	return all, read
end

local function kv_text(kv)
	if kv == nil then return 'float32' end
	if type(kv) ~= 'table' or getmetatable(kv) then return tostring(kv) end
	local recent = (kv.recent or 0) > 0 and ' recent=' .. kv.recent or ''
	return ('k=%s v=%s%s'):format(tostring(kv.k or 'float32'), tostring(kv.v or 'float32'), recent)
end

---------------------------------------------------------------- modes

local MODES = {dynamic = true, weight_only = true}

-- Layers of codes in one of these modes.
local function coded_layers(m)
	local list = {}
	module.walk(m, function(_, inner)
		local q = rawget(inner, 'quantized')
		if q and MODES[q.mode] then list[#list + 1] = {layer = inner, q = q} end
	end)
	return list
end

-- The mode of the model, as rows name it.
local function mode_of(m)
	local list = coded_layers(m)
	local found = #list > 0 and 'weight_only' or nil
	for _, one in ipairs(list) do
		if one.q.mode == 'dynamic' and not module.class_of(one.layer).no_input then found = 'dynamic' end
	end
	return found
end

-- Layers compute in the mode until it is closed: the codes are the same.
local function in_mode(m, mode, input)
	local before = {}
	for i, one in ipairs(mode and coded_layers(m) or {}) do
		before[i] = {q = one.q, mode = one.q.mode, input = one.q.input}
		local spec = not module.class_of(one.layer).no_input and quant.spec(input or 'uint8') or nil
		one.q.input = mode == 'dynamic' and (not input and one.q.input or spec) or nil
		one.q.mode = mode
	end
	return setmetatable({}, {__close = function()
		for _, old in ipairs(before) do old.q.mode, old.q.input = old.mode, old.input end
	end})
end

---------------------------------------------------------------- measuring

local function rows_of(m, count, length)
	local rows = {}
	for r = 1, count do
		rows[r] = {}
		for i = 1, length do rows[r][i] = (i * 7919 + r * 104729) % m.vocab + 1 end
	end
	return rows
end

local function median(list)
	table.sort(list)
	local n = #list
	return n % 2 == 1 and list[n // 2 + 1] or (list[n // 2] + list[n // 2 + 1]) / 2
end

-- Seconds of a prompt, the best of the runs: whatever else ran can only have made one slower.
local function prompt_seconds(m, batch, o)
	local best = math.huge
	for _ = 1, (o.runs or 3) do
		local d <close> = decoder.new(m, rows_of(m, batch, o.prompt or 512), 1, {kv = o.kv})
		local start = clock()
		d:begin():select(1, 1):argmax():item()
		best = math.min(best, clock() - start)
	end
	return best
end

-- Seconds of each step.
local function step_seconds(m, batch, o)
	local steps, times = o.steps or 64, {}
	local d <close> = decoder.new(m, rows_of(m, batch, o.context or 128), math.max(steps + WARMUP, decoder.WORTH + 1), {kv = o.kv})
	local tokens = d:begin():argmax(-1):totable()
	for i = 1, steps + WARMUP do
		local start = clock()
		tokens = d:step(tokens):argmax(-1):totable()
		sync()
		if i > WARMUP then times[#times + 1] = clock() - start end
	end
	return times
end

local function measure(m, bytes, threads, batch, o)
	tensor.threads(threads)
	local cache, read = cache_bytes(m, o.kv, (o.context or 128) + WARMUP + (o.steps or 64) // 2)
	local step = bytes + batch * read
	local kind = step < hw.features().l3 * 0.8 and 'l3' or 'read'
	local most = internal.limit(kind, 0.1)
	local prompt, times = prompt_seconds(m, batch, o), step_seconds(m, batch, o)
	most = math.max(most or 0, internal.limit(kind, 0.1) or 0)
	local middle = median(times)
	local row = {threads = threads, batch = batch, prompt = o.prompt or 512, prompt_rate = batch * (o.prompt or 512) / prompt, context = o.context or 128,
		steps = #times, ms = middle * 1e3, min = times[1] * 1e3, rate = batch / middle, bytes = bytes, kv = kv_text(o.kv), cache = cache, read = step / batch, mode = mode_of(m)}
	if most > 0 then row.limit, row.most, row.share = kind, most * 1e9 / step * batch, middle > 0 and step / middle / (most * 1e9) or nil end
	return row
end

---------------------------------------------------------------- the function

local entry = base.doc {name = 'bench.generate', usage = "bench.generate(m)  bench.generate({vocab=32000, d=288, heads=6, layers=6, ff=768}, {weight='int4:32'})",
	text = [[How fast a language model is: a report with prompt_rate, the tokens a second of a prompt of prompt= tokens (the fastest of runs=), and rate, the
tokens a second that are generated (of all rows of the batch, by the median of steps= steps; ms, and min of the fastest one) after context= tokens.
bytes are those of the weights that a step reads, cache those that a position of a row takes in the caches of all layers (with scales), read those that a
generated token reads of both, on the average of the steps. most is the rate that reading them allows by what this machine read beside the run, from memory
(limit 'read') or, if they fit there, from the last cache ('l3'); share is rate / most. A row for each number of threads= and batch=, and each mode=.

mode={'dynamic', 'weight_only'} measures the codes of a quantized model in both modes, one beside the other: with inputs of 8 bits and exact sums of
blocks, and with decoded weights and floats. The model is as before afterwards.

Instead of a model: the shapes of an nn.Transformer, a Llama unless they say otherwise, with random weights, in the format weight= (default: float32) and
mode= of m:quantize (default dynamic).]],
	options = {{'weight', 'spec', 'of random weights'}, {'mode', 'any', "'dynamic', 'weight_only', or a list (default: that of the model; for shapes dynamic)"}, {'input', 'spec', 'of dynamic inputs'},
		{'prompt', 'positive integer', 'tokens of the prompt (default 512)'}, {'context', 'positive integer', 'tokens before generation (default 128)'},
		{'steps', 'positive integer', 'measured (default 64)'}, {'runs', 'positive integer', 'of the prompt (default 3)'},
		{'batch', 'any', 'rows, or a list of such numbers (default 1)'}, {'threads', 'any', 'or a list (default: those in force)'},
		{'kv', 'any', 'format of the cache, as in m:generate'}},
	example = [[r = bench.generate({vocab=32, d=32, heads=2, layers=1, ff=64}, {weight='int8:32', prompt=8, context=4, steps=3})
print(#r, r[1].rate > 0, r[1].prompt_rate > 0)  --> 1 true true]]}

local function counts(name, given, default)
	local list = type(given) == 'table' and not getmetatable(given) and base.list('generate: ' .. name, given) or {given or default}
	for i, n in ipairs(list) do
		if math.type(n) ~= 'integer' or n < 1 or n > 256 then fail('generate: %s: item %d: wanted an integer from 1 to 256, got %s', name, i, describe(n)) end
	end
	return list
end

-- Positions that a run needs.
local function context_of(o) return math.max((o.context or 128) + (o.steps or 64) + WARMUP, o.prompt or 512) end

-- The modes to measure; {false}: that of the model.
local function modes_of(o)
	if o.mode == nil then return {false} end
	local list = type(o.mode) == 'table' and not getmetatable(o.mode) and base.list('generate: mode', o.mode) or {o.mode}
	if #list == 0 then fail 'generate: mode: wanted dynamic or weight_only, got an empty list' end
	for i, mode in ipairs(list) do
		if not MODES[mode] then fail('generate: mode: item %d: wanted dynamic or weight_only, got %s', i, describe(mode)) end
	end
	return list
end

local function model_of(given, o, mode)
	if module.is_module(given) then
		if o.weight then fail 'generate: weight: wanted shapes with it, got a model' end
		if o.input and not o.mode then fail 'generate: input: wanted mode= with it for a model, got none' end
		if not module.class_of(given).cache or not module.class_of(given).list then fail('generate: wanted an nn.Transformer or its shapes, got %s', describe(given)) end
		if o.mode and #coded_layers(given) == 0 then fail 'generate: mode: wanted a model quantized in mode weight_only or dynamic, got another' end
		return given
	end
	if type(given) ~= 'table' or getmetatable(given) then fail('generate: wanted a model, or a table of shapes {vocab=, d=, …}, got %s', describe(given)) end
	if o.mode and not o.weight then fail 'generate: mode: wanted weight= with it, got none' end
	return random_model(given, {weight = o.weight, mode = mode or nil, input = o.input}, context_of(o))
end

return function(given, options)
	local o = base.options(entry, options)
	local threads, batches, before = counts('threads', o.threads, tensor.threads()), counts('batch', o.batch, 1), tensor.threads()
	local seed, position = internal.rng(20240229, 0)
	local _ <close> = setmetatable({}, {__close = function()
		internal.rng(seed, position)
		tensor.threads(before)
	end})
	local modes = modes_of(o)
	local m = model_of(given, o, modes[1])
	if m.context < context_of(o) then fail('generate: wanted a prompt and steps within the context of %d tokens, got %d', m.context, context_of(o)) end
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local bytes, rows = bytes_read(m), {columns = {'mode', 'threads', 'batch', 'kv', 'prompt', 'prompt_rate', 'context', 'steps', 'ms', 'min', 'rate', 'bytes', 'cache', 'read', 'limit', 'most', 'share',
		'level', 'load', 'machine'}, note = 'tokens a second: prompt_rate, rate, most'}
	local f = hw.features()
	for _, n in ipairs(threads) do
		for _, batch in ipairs(batches) do
			for _, mode in ipairs(modes) do
				local _ <close> = in_mode(m, mode, o.input)
				local row = measure(m, bytes, n, batch, o)
				row.level, row.load, row.machine = f.level, internal.load(), f.name
				rows[#rows + 1] = row
			end
		end
	end
	return report(rows)
end
