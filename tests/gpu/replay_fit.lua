-- SPDX-License-Identifier: MIT
-- Steps of m:fit that are recorded: the bits of plain steps in losses, weights and running statistics, one launch, no bytes but the
-- batch and the loss. What must not be recorded is not, and nothing is left behind.
local D = dofile 'tests/tools/gpu_tested.lua'
local nets = dofile 'tests/tools/gpu_nets.lua'

local function same(got, want, what)
	assert(got:to('cpu'):eq(want:to 'cpu'):all():item(), what .. ': other values')
end

local function replays()
	local n, why = 0, nil
	for _, r in ipairs(quant.ledger()) do
		if r.path == 'replay' then n = n + r.count end
		if r.path == 'unrecorded' then why = r.reason end
	end
	return n, why
end

-- Counts of the ledger by row, but those of recordings.
local function rows()
	local found = {}
	for _, r in ipairs(quant.ledger()) do
		if r.op ~= 'graph' then found[('%s %s %s %s'):format(r.op, r.operands, r.path, r.kernel)] = r.count end
	end
	return found
end

-- Frees what nobody has any more.
local function settle()
	for _ = 1, 3 do collectgarbage() end
	tensor.memory()
	gpu.sync()
end

local function small()
	tensor.seed(1)
	return nn.Sequential {nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)}:to(D)
end

local function batches(n, sizes)
	tensor.seed(2)
	local list = {}
	for i = 1, n do
		local b = sizes and sizes[i] or 3
		list[i] = {tensor.randn(b, 6), tensor.randint {b, low=1, high=4}}
	end
	return list
end

-- The same training with and without recordings: replays of the former, their reason, the models.
local function both(make, data, options)
	local models, losses, counts, n, why = {}, {}, {}, nil, nil
	for k, replay in ipairs {false, true} do
		local m = make()
		local o = {}
		for key, value in pairs(options(m)) do o[key] = value end
		o.replay, o.log = replay, false
		quant.log 'reset'
		local r = m:fit(data(), o)
		models[k], losses[k], counts[k] = m, {}, rows()
		for i, row in ipairs(r) do losses[k][i] = row.loss end
		n, why = replays()
		assert(replay or n == 0)
	end
	for i, loss in ipairs(losses[1]) do assert(loss == losses[2][i], ('epoch %d: loss %.17g, wanted %.17g'):format(i, losses[2][i], loss)) end
	local state = models[2]:state()
	for name, want in pairs(models[1]:state()) do same(state[name], want, name) end
	for row, count in pairs(counts[1]) do
		assert(counts[2][row] == count, ('%s: %s, wanted %d'):format(row, counts[2][row], count))
	end
	return n, why, models[2], models[1]
end

for _, net in ipairs(nets) do
	it(net.name .. ': the numbers of plain steps', function()
		local n, why = both(function() return net.make():to(D) end, function() return net.batches(5) end,
			function(m) return {opt=net.opt(m), epochs=2} end)
		local kept = {mlp=true, resnet9=true}
		assert(n == (kept[net.name] and 8 or 0), n)
		assert(net.name ~= 'transformer' or why:find 'random', why)
	end)
end

it('optimizers with schedules, clipping and limits', function()
	for _, name in ipairs {'sgd', 'adam', 'adamw'} do
		local n = both(small, function() return batches(6) end, function(m)
			local o = {lr=optim.cosine {lr=0.1, steps=12}, clip=0.5, limit=0.2, decay=0.01}
			if name == 'sgd' then o.momentum = 0.9 end
			return {opt=optim[name](m, o), epochs=2}
		end)
		assert(n == 10, name)
	end
end)

it('batches of other sizes are plain steps between', function()
	local n = both(small, function() return batches(8, {3, 3, 3, 2, 3, 3, 1, 3}) end, function(m) return {opt=optim.adam(m)} end)
	assert(n == 5, n)
end)

it('a step moves its batch and its loss', function()
	local m, data = small(), batches(6)
	local at, moved = 0, nil
	local opt = optim.adam(m)
	local list = setmetatable({}, {__index=function(_, i)
		at = i
		if i == 5 then gpu.memory 'reset' end
		if i == 6 then moved = gpu.memory() end
		return data[i]
	end, __len=function() return 6 end})
	m:fit(list, {opt=opt, log=false})
	assert(at >= 6 and moved.read == 4 and moved.written == data[5][1]:nbytes() + data[5][2]:nbytes(),
		('reads %d, writes %d bytes'):format(moved.read, moved.written))
end)

it('gradients are there, and stay', function()
	local _, _, m, plain = both(small, function() return batches(5) end, function(m) return {opt=optim.sgd(m)} end)
	local kept, want = m.linear1.weight:grad(), plain.linear1.weight:grad()
	same(kept, want, 'the gradient')
	assert(not kept:requires_grad())
	m:fit(batches(9), {log=false})
	same(kept, want, 'after more steps')
end)

it('nothing is left', function()
	local m = small()
	local opt = optim.sgd(m)
	local function bytes()
		opt:zero()
		settle()
		return gpu.memory()
	end
	m:fit(batches(2), {opt=opt, log=false})
	local before = bytes()
	m:fit(batches(6), {opt=opt, log=false})
	local after = bytes()
	assert(after.recordings == before.recordings and after.now == before.now, after.now - before.now)
end)

it('a loss that is not finite ends it before the step', function()
	settle()
	local recordings = gpu.memory().recordings
	for _, replay in ipairs {false, true} do
		local m, data = small(), batches(6)
		data[5][1][1][1] = 0 / 0
		local ok, text = pcall(m.fit, m, data, {opt=optim.sgd(m), log=false, replay=replay})
		assert(not ok and tostring(text):find('batch 5', 1, true), tostring(text))
		local before = m.linear1.weight:detach():to 'cpu'
		assert(before:isfinite():all():item() and gpu.memory().recordings == recordings)
		m:fit(batches(4), {opt=optim.sgd(m), log=false, replay=replay})
	end
end)

it('a bad class is an error of its op', function()
	local m, data = small(), batches(6)
	data[5][2][2] = 9
	local ok, text = pcall(m.fit, m, data, {opt=optim.sgd(m), log=false})
	assert(not ok and tostring(text):find 'crossentropy' and tostring(text):find '9', tostring(text))
	m:fit(batches(4), {opt=optim.sgd(m), log=false})
end)

---------------------------------------------------------------- what is not recorded

local function never(what, make, options)
	local n = both(make or small, function() return batches(5) end, options or function(m) return {opt=optim.sgd(m)} end)
	assert(n == 0, what)
end

it('functions of the user are called for each batch', function()
	local calls = 0
	never('a loss', nil, function(m)
		return {opt=optim.sgd(m), loss=function(y, t)
			calls = calls + 1
			return nn.crossentropy(y, t)
		end}
	end)
	assert(calls == 10)
	never('a module', function()
		tensor.seed(1)
		return nn.module(function(self, x) return self.fc(x) end, {fc=nn.Linear(6, 4)}):to(D)
	end)
	never('a forward', function()
		local m = small()
		m.linear1.forward = function(self, x) return x:linear(self.weight, self.bias) end
		return m
	end)
	never('an optimizer', nil, function(m)
		local inner = optim.sgd(m)
		return {opt={lr=function() return inner:lr() end, zero=function() return inner:zero() end, step=function() return inner:step() end}}
	end)
end)

it('quantized training, which observes', function()
	for _, mode in ipairs {'train', 'qat'} do
		never(mode, function() return (small():quantize {mode=mode}) end)
	end
end)

it('a parameter that nobody sets to zero', function()
	local n = both(small, function() return batches(5) end, function(m) return {opt=optim.sgd {m.linear1.weight, m.linear1.bias}} end)
	assert(n == 0)
end)

it('a parameter that is frozen on the way', function()
	local n = both(small, function() return batches(3) end, function(m)
		return {opt=optim.sgd(m), epochs=3, log=false}
	end)
	assert(n == 6)
	local results = {}
	for k, replay in ipairs {false, true} do
		local m, data = small(), batches(8)
		local list = setmetatable({}, {__index=function(_, i)
			if i == 5 then
				m.linear1.weight:zero_grad()
				m.linear1.weight:requires_grad_(false)
			end
			return data[i]
		end, __len=function() return 8 end})
		m:fit(list, {opt=optim.sgd(m), log=false, replay=replay})
		results[k] = m:state()
	end
	for name, want in pairs(results[1]) do same(results[2][name], want, name) end
end)
