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
local method = internal.import 'nn/quantize/method'
local module = internal.import 'nn/base/module'
local progress = internal.import 'interp/prelude/progress'
local targets = internal.import 'nn/quantize/targets'
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

-- The codes that the chain of a target gives; rounding where it is better for the target's own outputs.
local function decide(t, block)
	local link = method.of_phase(t.chain, 'codes')[1]
	for _, one in ipairs(method.of_phase(t.chain, 'ranges')) do one.method.run(t, one.options, block) end
	for _, one in ipairs(method.of_phase(t.chain, 'block')) do
		if one.method.each then one.method.each(t, one.options, block) end
	end
	local plain = t.float:quantize(t.first_spec)
	local q, why = link.method.run(t, link.options, block)
	q = q or t.weight:quantize(t.spec)
	t:say(why)
	local before, after = t:error(plain), t:error(q)
	if after > before then
		t:say(('%s was worse than rounding: rounded'):format(link.name))
		q, after = plain, before
	end
	t.row.error = db(t:signal(), after)
	t:put(q)
	t.q = q
end

-- Codes of all targets by rounding alone: what the chain is measured by.
local function round(block)
	for _, t in ipairs(block.targets) do
		t.plain = t.float:quantize(t.first_spec)
		t:put(t.plain)
	end
	local noise = Block.difference(block.float, block.rounds and block:pass_rounded() or block:pass(block.values))
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

-- Takes the rounded weights, which were better.
local function give_up(block, why)
	for _, f in ipairs(block.folds) do f:undo() end
	block.folds = {}
	for _, t in ipairs(block.targets) do
		t:restore()
		t.q = t.plain
		t:put(t.q)
		t.row.error = t.row.rtn
		t:say(why)
	end
end

local function run_stage(block, stage)
	local started = clock()
	block:measure(stage, {'h'})
	for _, t in ipairs(stage) do
		t.row.rtn = db(t:signal(), t:plain_error())
		decide(t, block)
	end
	for _, t in ipairs(stage) do t.row.seconds = (clock() - started) / #stage end
end

local function run_block(run, b, plan)
	local block = Block.new(run, b, plan)
	local across, biases = links_of(block, 'block'), links_of(block, 'biases')
	block.values = run.floats
	for _, link in ipairs(biases) do link.method.before(block, link.options) end
	block.float, block.values = block:pass(run.floats), run.values
	for _, link in ipairs(across) do block.rounds = block.rounds or link.method.rounds_inputs end
	local rounded = round(block)
	for _, link in ipairs(across) do link.method.run(block, link.options, run) end
	for _, stage in ipairs(block.stages) do
		run_stage(block, stage)
		run.bar:update(b, function() return stage[1].name end)
	end
	for _, link in ipairs(biases) do link.method.run(block, link.options, run) end
	local quantized = block:pass(run.values)
	local noise, signal = Block.difference(block.float, block.rounds and block:pass_rounded() or quantized)
	if #across > 0 and noise > rounded then
		give_up(block, 'the block was worse than with rounding: rounded')
		quantized = block:pass(run.values)
		noise = rounded
	end
	for _, t in ipairs(block.targets) do t:keep() end
	for _, f in ipairs(block.folds) do f:keep(run.by_path[f.path]) end
	run.moved = run.moved or #block.folds > 0
	for _, t in ipairs(block.targets) do t:finish(db(signal, noise), db(signal, rounded)) end
	run.floats, run.values = block.float, run.sequential and quantized or block.float
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

-- Weights without data, which are judged by their own errors.
local function alone(plan)
	for name, list in next, plan do
		for _, item in ipairs(list) do
			local t = targets.new(name, item, {item.layer})
			t.put = function() end
			t.plain = t.float:quantize(t.first_spec)
			local started = clock()
			t.row.rtn = db(t:signal(), t:plain_error())
			decide(t, nil)
			t.row.seconds = clock() - started
			t:finish()
		end
	end
end

-- Decides the codes of a float model's weights, and changes what methods change beside them. plan: name of a layer -> list of {layer=, field=, spec=,
-- chain=, row=}, which get `codes`; the rows get rtn, error, block (dB), seconds, why. o: data, batches, sequential, log.
function learn.run(m, plan, names, o)
	local needs = false
	for _, name in ipairs(names) do
		for _, item in ipairs(plan[name] or {}) do
			targets.check(item)
			needs = needs or method.needs_data(item.chain)
		end
	end
	local _ <close> = internal.nograd()
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.ordered()
	if o.data == nil then
		if needs then fail("quantize: method: wanted data= for '%s', got none", method.text(method.chain(o.method or 'rtn'))) end
		local moved = change.run(m, plan, names)
		alone(plan)
		return {moved = moved}
	end
	local run = {model = m, inputs = read(m, o.data, o.batches or 32), sequential = o.sequential ~= false, by_path = {}, shared = module.shared(m)}
	module.walk(m, function(path, inner) run.by_path[path] = inner end)
	run.moved = change.run(m, plan, names, run.inputs)
	divide(run, names)
	run.floats, run.values = run.inputs, run.inputs
	local bar <close> = progress.start('quantize', run.count, o.log)
	run.bar = bar
	for b = 1, run.count do
		bar:update(b - 1, function() return run.parts[1][b].name end)
		run_block(run, b, plan)
	end
	return run
end

return learn
