-- SPDX-License-Identifier: MIT
-- Methods that learn from data: the calibration data goes through the model block by block (nn/quantize/blocks.lua), and each block's
-- weights are decided with what arrives there. Only the values between two blocks are kept: those of the float model and those behind
-- quantized blocks.
--
-- What one weight decides is judged by the squared error in its outputs, which its inputs' second moments give; what changes several, by
-- the block's result beside that of the float block. What is worse than rounding is not taken.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local Block = internal.import 'nn/quantize/block'
local blocks = internal.import 'nn/quantize/blocks'
local fit = internal.import 'nn/base/fit'
local learn_store = internal.import 'nn/quantize/learn_store'
local method = internal.import 'nn/quantize/method'
local module = internal.import 'nn/base/module'
local watch_peak = internal.import 'interp/prelude/peak'
local progress = internal.import 'interp/prelude/progress'
local targets = internal.import 'nn/quantize/targets'
local values = internal.import 'nn/quantize/values'
local change = internal.import 'nn/quantize/change'
local fail, is_tensor = base.fail, base.is_tensor
local clock = hw.clock
local learn = {}

---------------------------------------------------------------- the model in blocks

local function shape_of(x)
	if is_tensor(x) then return x:dtype() .. ' ' .. table.concat({x:size()}, ' ', 2) end
	local list = {}
	for i, inner in ipairs(x) do list[i] = shape_of(inner) end
	return table.concat(list, ', ')
end

-- The model as its only block, where it cannot be traced.
local function whole(m, names)
	local nodes = {}
	for _, name in ipairs(names) do nodes[name] = {name} end
	return {{name = 'model', layers = names, nodes = nodes, whole = true, make = function() return m:clone() end}}
end

-- Sets run.parts, the blocks of each batch: batches of other shapes have blocks of their own, with the same layers. run.why: why there is only one.
local function divide(run, names)
	local by_shape = {}
	run.parts = {}
	for i, x in ipairs(run.inputs) do
		local key = shape_of(x)
		if not by_shape[key] then
			local list, why = blocks.cut(run.model, x)
			run.why = why
			if not list then break end
			by_shape[key] = list
		end
		run.parts[i] = by_shape[key]
		run.count = run.count or #run.parts[i]
		if run.count ~= #run.parts[i] then run.why = 'batches of different shapes have different blocks' end
	end
	if not run.why then return end
	local one = whole(run.model, names)
	for i in ipairs(run.inputs) do run.parts[i] = one end
	run.count = 1
end

---------------------------------------------------------------- a block

local function db(signal, noise)
	if noise == 0 then return math.huge end
	return 10 * math.log(signal / noise, 10)
end

local function codes_link(t) return method.of_phase(t.chain, 'codes')[1] end

-- What the chain of a target decides before its codes.
local function prepare(t, block)
	for _, one in ipairs(method.of_phase(t.chain, 'ranges')) do one.method.run(t, one.options, block) end
	for _, one in ipairs(block and block.without and {} or method.of_phase(t.chain, 'block')) do
		if one.method.each then one.method.each(t, one.options, block) end
	end
end

-- The codes that the chain of a target gives; rounding where it is better for the target's own outputs.
local function decide(t, block)
	local link = codes_link(t)
	local plain = t.float:quantize(t.first_spec)
	local before = t:error(plain)
	prepare(t, block)
	local q, why = link.method.run(t, link.options, block)
	q = q or t.weight:quantize(t.spec)
	t:say(why)
	local after = t:error(q)
	if after > before then
		t:say(('%s was worse than rounding: rounded'):format(method.text(t.chain)))
		t:unbias()
		q, after, t.apart = plain, before, nil
	end
	t.row.noise, t.row.error = after, db(t.row.signal, after)
	t:put(q)
	t.q = q
end

-- Codes of all targets by rounding alone: what the chain is measured by.
local function round(block)
	for _, t in ipairs(block.targets) do
		t.plain = t.float:quantize(t.first_spec)
		t:put(t.plain)
	end
	local noise = block:noise()
	for _, t in ipairs(block.targets) do t:put(t.float) end
	return noise
end

local function links_of(block, phase)
	local list, seen = {}, {}
	for _, t in ipairs(block.targets) do
		for _, link in ipairs(method.of_phase(t.chain, phase)) do
			if not seen[link] then list[#list + 1], seen[link] = link, true end
		end
	end
	return list
end

-- The targets whose chain has a link.
local function with(block, link)
	local list = {}
	for _, t in ipairs(block.targets) do
		for _, own in ipairs(t.chain) do
			if own == link then list[#list + 1] = t end
		end
	end
	return list
end

-- The block as it was before any method.
local function reset(block, why)
	for _, f in ipairs(block.folds) do f:undo() end
	block.folds = {}
	for _, t in ipairs(block.targets) do
		t:restore()
		t:unbias()
		t:put(t.float)
		t:say(why)
	end
end

-- Takes the rounded weights, which were better.
local function give_up(block, why)
	reset(block, why)
	for _, t in ipairs(block.targets) do
		t.q = t.plain
		t:put(t.q)
		t.row.noise, t.row.error = t.row.plain, t.row.rtn
	end
end

-- The errors of rounding alone, as numbers and in dB.
local function judge_rounding(t)
	t.row.signal, t.row.plain = t:signal(), t:plain_error()
	t.row.rtn = db(t.row.signal, t.row.plain)
end

local function run_stage(block, stage)
	local started, peak <close> = clock(), watch_peak(block.run.start)
	block:measure(stage, {'h'})
	for _, t in ipairs(stage) do
		judge_rounding(t)
		decide(t, block)
	end
	for _, t in ipairs(stage) do t.row.seconds, t.row.peak = (clock() - started) / #stage, peak:bytes() end
end

-- Adds to the seconds of the layers what their block took beside: each the same share.
local function share_seconds(block, started)
	local rest = clock() - started
	for _, t in ipairs(block.targets) do rest = rest - t.row.seconds end
	for _, t in ipairs(block.targets) do t.row.seconds = t.row.seconds + rest / #block.targets end
end

-- The targets of a stage that `link` decides; of those that are decided one by one, if it is nil.
local function members(stage, link)
	local list = {}
	for _, t in ipairs(stage) do
		local own = codes_link(t)
		if own == link or not link and not own.method.run_block then list[#list + 1] = t end
	end
	return list
end

-- Codes of all targets of a link that decides them together. They are judged by the block.
local function run_together(block, link)
	local started, peak <close>, list = clock(), watch_peak(block.run.start), {}
	for _, stage in ipairs(block.stages) do
		local part = members(stage, link)
		block:measure(part, {'h'})
		for _, t in ipairs(part) do
			judge_rounding(t)
			prepare(t, block)
			list[#list + 1] = t
		end
	end
	local codes, why = link.method.run_block(block, link.options, list)
	for i, t in ipairs(list) do
		t.q = codes[i]
		t:put(t.q)
		t:say(why)
		t.row.noise = t:error(t.q)
		t.row.error, t.row.seconds, t.row.peak = db(t.row.signal, t.row.noise), (clock() - started) / #list, peak:bytes()
	end
end

-- The error and the size of the block's results, and what the next block gets: these take the place of what came before.
local function leave(block)
	local run, list = block.run, {}
	if not run.sequential then list = block.float end
	local rounded = block.rounds and block:noise()
	local noise, signal = block:difference(run.sequential and function(i, y)
		values.drop(run.pool, block.values, i)
		values.put(run.pool, list, i, y)
	end or nil)
	values.release(run.pool, block.values)
	return rounded or noise, signal, list
end

-- Codes and biases of all weights.
local function decide_all(block, codes, biases)
	local run = block.run
	for _, stage in ipairs(block.stages) do
		local part = members(stage)
		if #part > 0 then
			run_stage(block, part)
			run.bar:update(block.number, function() return part[1].name end)
		end
	end
	for _, link in ipairs(codes) do
		if link.method.run_block then run_together(block, link) end
	end
	for _, link in ipairs(biases) do link.method.run(block, link.options, run) end
end

local function run_block(run, b, plan)
	local started, block = clock(), Block.new(run, b, plan)
	local across, codes, biases, judged = links_of(block, 'block'), links_of(block, 'codes'), links_of(block, 'biases'), false
	block.values = run.floats
	for _, list in ipairs {codes, biases} do
		for _, link in ipairs(list) do
			if link.method.before then link.method.before(block, link.options) end
			judged = judged or link.method.run_block ~= nil
		end
	end
	block.float, block.values = block:pass(run.floats), run.values
	if not rawequal(run.floats, run.values) then values.release(run.pool, run.floats) end
	run.floats = block.float
	for _, link in ipairs(across) do block.rounds = block.rounds or link.method.rounds_inputs end
	local rounded = round(block)
	for _, link in ipairs(across) do link.method.run(block, link.options, run, with(block, link)) end
	decide_all(block, codes, biases)
	local worse = (#across > 0 or judged) and block:noise() > rounded
	if worse and #across > 0 then
		reset(block, 'the block was worse than with rounding: without what changes it as a whole')
		block.without = true
		decide_all(block, codes, biases)
		worse = block:noise() > rounded
	end
	if worse then give_up(block, 'the block was worse than with rounding: rounded') end
	local noise, signal, quantized = leave(block)
	for _, t in ipairs(block.targets) do t:keep() end
	for _, f in ipairs(block.folds) do f:keep(run.by_path[f.path]) end
	run.moved = run.moved or #block.folds > 0
	for _, t in ipairs(block.targets) do t:finish(db(signal, noise), db(signal, rounded)) end
	share_seconds(block, started)
	run.values = quantized
end

---------------------------------------------------------------- the whole

-- The inputs of the data, on the model's device.
local function read(m, data, wanted)
	local list = {}
	fit.begin_pass(m, data)
	for x in fit.batches('quantize', data, module.device(m)) do
		list[#list + 1] = x
		if #list >= wanted then break end
	end
	if #list == 0 then fail('quantize: data: wanted at least one batch, got none') end
	return list
end

-- A weight without data, which is judged by its own errors.
local function decide_alone(name, item)
	local t = targets.new(name, item, {item.layer}, item.field)
	t.put = function() end
	t.plain = t.float:quantize(t.first_spec)
	local started, peak <close> = clock(), watch_peak()
	judge_rounding(t)
	decide(t, nil)
	t.row.seconds, t.row.peak = clock() - started, peak:bytes()
	t:finish()
end

local function alone(plan)
	for name, list in next, plan do
		for _, item in ipairs(list) do decide_alone(name, item) end
	end
end

-- Weights that are in no block: rounded, if their methods need data.
local function round_rest(plan)
	for name, list in next, plan do
		for _, item in ipairs(list) do
			if not item.codes then
				item.row.why = 'no block of the model has its weight'
				if method.needs_data(item.chain) then
					item.chain, item.row.why = method.chain 'rtn', item.row.why .. ', so it is rounded'
					item.row.method = method.text(item.chain)
				end
				decide_alone(name, item)
			end
		end
	end
end

-- Refuses second moments that do not fit, before anything is computed.
local function check_moments(item, limit)
	local bytes, k, groups = targets.moments(item)
	if bytes > limit then
		fail("quantize: memory: %s: wanted at most %d bytes for the second moments of its inputs, got %s%d x %d of float64, %d bytes", item.name, limit,
			groups > 1 and groups .. ' times ' or '', k, k, bytes)
	end
end

-- Takes the blocks that a file has. Returns how many these are.
local function resume(run, kept, plan)
	local done, floats, quantized = kept:resume(plan, run.parts[1])
	if floats then run.floats, run.values = floats, quantized end
	return done
end

-- Decides the codes of a float model's weights, and changes what methods change beside them. plan: name of a layer -> list of {layer=, field=, spec=,
-- chain=, row=}, which get `codes`; the rows get signal, plain, noise (squares), rtn, error, block, block_rtn (dB), seconds, peak, why.
-- o: data, batches, sequential, file, memory, log.
function learn.run(m, plan, names, o)
	local needs, limit = false, o.memory or values.available() or math.huge
	for _, name in ipairs(names) do
		for _, item in ipairs(plan[name] or {}) do
			targets.check(item)
			if o.data ~= nil then check_moments(item, limit) end
			needs = needs or method.needs_data(item.chain)
		end
	end
	change.check(m, plan, names)
	local _ <close> = internal.nograd()
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.ordered()
	if o.data == nil then
		if needs then fail("quantize: method: wanted data= for '%s', got none", method.text(method.chain(o.method or 'rtn'))) end
		local moved = change.run(m, plan, names)
		alone(plan)
		return {moved = moved}
	end
	local run = {start = tensor.memory().now, model = m, inputs = read(m, o.data, o.batches or 32), sequential = o.sequential ~= false, by_path = {}, shared = module.shared(m),
		device = module.device(m), pool = values.pool(o.memory)}
	module.walk(m, function(path, inner) run.by_path[path] = inner end)
	run.moved = change.run(m, plan, names, run.inputs)
	divide(run, names)
	run.floats, run.values = run.inputs, run.inputs
	local kept, done = o.file and learn_store.open(o.file, run, plan), 0
	if kept then done = resume(run, kept, plan) end
	local bar <close> = progress.start('quantize', run.count, o.log)
	run.bar = bar
	for b = done + 1, run.count do
		bar:update(b - 1, function() return run.parts[1][b].name end)
		if kept then kept:watch() end
		run_block(run, b, plan)
		if kept then kept:finish(b, plan, run.parts[1][b].layers, b < run.count and run.floats, run.values) end
	end
	round_rest(plan)
	return run
end

return learn
