-- SPDX-License-Identifier: MIT
-- Recorded runs of graphs: the bits of plain runs, one launch, no bytes but those that the caller moves; the ledger counts them as
-- what they run. What must not be recorded is not, what has changed ends a recording, and errors name their op.
local D = dofile 'tests/tools/gpu_tested.lua'
local nets = dofile 'tests/tools/gpu_nets.lua'

local function same(got, want, what)
	assert(got:dtype() == want:dtype() and got:device() == want:device(), what)
	local a, b = got:to 'cpu', want:to 'cpu'
	if a:quantized() then
		assert(a:quantized() == b:quantized(), what)
		a, b = a:dequantize(), b:dequantize()
	end
	assert(table.concat({a:size()}, ' ') == table.concat({b:size()}, ' '), what .. ': sizes')
	assert(a:eq(b):all():item(), what .. ': other values')
end

-- Counts of the ledger by row since the last call.
local function rows()
	local found = {}
	for _, r in ipairs(quant.ledger(true)) do found[('%s %s %s %s'):format(r.op, r.operands, r.path, r.kernel)] = r.count end
	return found
end

local REPLAY = 'graph  replay recording'
local function replays()
	local n = 0
	for _, r in ipairs(quant.ledger()) do n = n + (r.path == 'replay' and r.count or 0) end
	return n
end

local function reason()
	for _, r in ipairs(quant.ledger()) do
		if r.path == 'unrecorded' then return r.reason, r.count end
	end
end

-- Frees what nobody has any more.
local function settle()
	for _ = 1, 3 do collectgarbage() end
	tensor.memory() -- releases what was found
	gpu.sync()
end

local function small()
	tensor.seed(1)
	return nn.Sequential {nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)}:to(D)
end

local function write(x, change)
	tensor.nograd(function() change(x) end)
end

local function data(n, seed)
	tensor.seed(seed)
	return tensor.randn(n, 6):to(D)
end

local function recorded(n)
	local m = small()
	local g = graph.trace(m, data(3, 1))
	for i = 1, n or 2 do g:run(data(3, i)) end
	quant.log 'reset'
	return g, m
end

for _, net in ipairs(nets) do
	for _, mode in ipairs {'float', 'dynamic', 'static', 'weight_only'} do
		it(net.name .. ' ' .. mode .. ': the bits and the ledger of plain runs', function()
			local m = mode == 'float' and net.make():eval() or nets.quantized(net, mode)
			local want, all, first = {}, net.batches(4), nil
			m = m:to(D)
			for i, batch in ipairs(all) do all[i] = batch[1]:to(D) end
			local g = graph.trace(m, all[1])
			for i, x in ipairs(all) do want[i] = g:run(x, {replay=false}) end
			gpu.sync()
			for i, x in ipairs(all) do
				quant.log 'reset'
				gpu.memory 'reset'
				local y = g:run(x)
				local moved, counted = gpu.memory(), rows()
				assert(counted[REPLAY] == (i > 1 and 1 or nil), i .. ': replays')
				counted[REPLAY] = nil
				if i == 1 then first = counted end
				for row, n in next, first do assert(counted[row] == n, ('run %d: %s: %s, wanted %d'):format(i, row, counted[row], n)) end
				for row in next, counted do assert(first[row], ('run %d: a row more: %s'):format(i, row)) end
				assert(moved.read == 0 and (i < 3 or moved.written == 0), ('run %d reads %d, writes %d bytes'):format(i, moved.read, moved.written))
				same(y, want[i], 'run ' .. i)
			end
		end)
	end
end

it('two results do not share memory, and are not those of later runs', function()
	local g = recorded()
	local a, b = data(3, 7), data(3, 8)
	local first, again = g:run(a), g:run(a)
	local copy = first:to('cpu'):clone()
	again:mul_(0)
	g:run(b)
	same(first:to 'cpu', copy, 'the first result')
	assert(replays() == 3)
end)

it('one result that is a view of another is one still', function()
	local m = nn.module(function(self, x)
		local y = self.fc(x)
		return y, y:narrow(2, 2, 3), {y:transpose(1, 2)}
	end, {fc=nn.Linear(6, 5)}):to(D)
	local g = graph.trace(m, data(3, 1))
	for i = 1, 3 do
		local y, part, list = g:run(data(3, i))
		local w, wpart, wlist = g:run(data(3, i), {replay=false})
		same(y, w, 'y')
		same(part, wpart, 'columns')
		same(list[1], wlist[1], 'transposed')
		assert(list[1]:stride(1) == wlist[1]:stride(1), 'strides')
		y:mul_(0)
		assert(part:abs():sum():item() == 0, 'a view of the result')
	end
	assert(replays() > 0)
end)

it('results may be codes whose scales were found', function()
	local m = nn.module(function(self, x) return self.fc(x):quantize 'int8' end, {fc=nn.Linear(6, 5)}):to(D)
	local g = graph.trace(m, data(3, 1))
	quant.log 'reset'
	local kept = {}
	for i = 1, 4 do kept[i] = g:run(data(3, i) * i) end
	for i = 1, 4 do same(kept[i], g:run(data(3, i) * i, {replay=false}), 'run ' .. i) end
	assert(replays() == 3)
end)

it('each shape and dtype has its recording, four of them at most', function()
	local g = graph.trace(small(), data(3, 1))
	settle()
	local before = gpu.memory().recordings
	for round = 1, 3 do
		for n = 1, 4 do same(g:run(data(n, n)), g:run(data(n, n), {replay=false}), n .. ' rows') end
		assert(gpu.memory().recordings == before + (round > 1 and 4 or 0))
	end
	assert(gpu.memory().recorded > 0)
	for n = 5, 9 do
		for _ = 1, 2 do same(g:run(data(n, n)), g:run(data(n, n), {replay=false}), n .. ' rows') end
		assert(gpu.memory().recordings == before + 4, n)
	end
end)

it('a graph that is gone leaves nothing', function()
	settle()
	local before = gpu.memory()
	local function inside()
		local g = recorded(4)
		assert(g and gpu.memory().recordings == before.recordings + 1)
	end
	inside()
	settle()
	local after = gpu.memory()
	assert(after.recordings == before.recordings and after.now == before.now,
		('%d recordings, %d bytes'):format(after.recordings, after.now - before.now))
end)

---------------------------------------------------------------- what has changed

it('a weight that is written to ends the recording', function()
	local g, m = recorded()
	local x = data(3, 5)
	write(m.linear1.weight, function(w) w:mul_(2) end)
	local y = g:run(x)
	same(y, g:run(x, {replay=false}), 'the new weight')
	assert(replays() == 0)
	for _ = 1, 4 do same(g:run(x), y, 'again') end
	assert(replays() > 0, 'it is recorded again')
end)

it('weights that change with each run are not recorded each time', function()
	local g, m = recorded(0)
	for i = 1, 40 do
		write(m.linear2.bias, function(b) b:add_(1) end)
		same(g:run(data(3, 5)), g:run(data(3, 5), {replay=false}), 'run ' .. i)
	end
	assert(replays() < 8, replays())
end)

it('loaded weights count', function()
	local g, m = recorded()
	local other, file, x = small(), os.tmpname() .. '.safetensors', data(3, 5)
	write(other.linear1.weight, function(w) w:add_(1) end)
	other:save(file)
	m:load(file)
	os.remove(file)
	same(g:run(x), other(x), 'loaded')
	assert(replays() == 0)
end)

it('other kernels and ordered products have their own', function()
	local g = recorded()
	local x = data(3, 5)
	g:run(x)
	assert(replays() == 1)
	g:run(x, {ordered=true})
	assert(replays() == 1, 'ordered')
	local before = hw.force 'simt'
	g:run(x)
	hw.force 'native'
	hw.force(before)
	assert(replays() == 1, 'hw.force')
end)

---------------------------------------------------------------- what is not recorded

local function never(what, g, x, ...)
	for _ = 1, 4 do g:run(x, ...) end
	assert(replays() == 0, what)
end

it('options that look inside run plainly', function()
	local g = recorded()
	local x = data(3, 5)
	never('replay', g, x, {replay=false})
	never('keep', g, x, {keep='linear1'})
	never('check', g, x, {check=true})
	never('arena', g, x, {arena=true})
end)

it('random numbers are drawn anew, and as many as in plain runs', function()
	local m = nn.module(function(self, x)
		local y = self.fc(x)
		return y + tensor.randn {y:size(1), y:size(2), device=D}
	end, {fc=nn.Linear(6, 5)}):to(D)
	local g, x = graph.trace(m, data(3, 1)), data(3, 2)
	local want = {}
	tensor.seed(9)
	for i = 1, 4 do want[i] = g:run(x, {replay=false}) end
	quant.log 'reset'
	tensor.seed(9)
	for i = 1, 4 do same(g:run(x), want[i], 'run ' .. i) end
	local why, times = reason()
	assert(why:find 'random' and times == 1 and replays() == 0)
end)

it('an op on the host, and a wait for a value', function()
	local sorts = graph.trace(nn.module(function(self, x) return (self.fc(x):sort(2)) end, {fc=nn.Linear(6, 5)}):to(D), data(3, 1))
	quant.log 'reset'
	for i = 1, 4 do same(sorts:run(data(3, i)), sorts:run(data(3, i), {replay=false}), 'run ' .. i) end
	assert(replays() == 0 and reason():find 'wait', reason())
end)

it('a result that is an input', function()
	local g = graph.trace(nn.module(function(self, x) return self.fc(x), x:t() end, {fc=nn.Linear(6, 5)}):to(D), data(3, 1))
	quant.log 'reset'
	never('an input', g, data(3, 1))
	assert(reason():find 'a result is an input', reason())
	local x = data(3, 1)
	local _, y = g:run(x)
	y:mul_(0)
	assert(x:abs():sum():item() == 0, 'it is the input itself')
end)

it('views are copied where they are contiguous, and run plainly where not', function()
	local g = recorded()
	local block = data(8, 5)
	for i = 1, 4 do
		local rows = block:narrow(1, i, 3)
		same(g:run(rows), g:run(rows, {replay=false}), 'rows ' .. i)
	end
	assert(replays() == 4)
	local wide = tensor.randn(6, 3):to(D):t()
	for _ = 1, 3 do same(g:run(wide), g:run(wide, {replay=false}), 'transposed') end
	assert(replays() == 4)
end)

it('user ops, recorders and hooks see their calls', function()
	local calls = 0
	local double = graph.op {name='replay_double', replace=true, infer=function(x) return {shape=x.shape, dtype=x.dtype} end,
		run=function(x)
			calls = calls + 1
			return x * 2
		end}
	local g = graph.trace(nn.module(function(self, x) return double(self.fc(x)) end, {fc=nn.Linear(6, 5)}):to(D), data(3, 1))
	calls = 0
	quant.log 'reset'
	never('a user op', g, data(3, 1))
	assert(calls == 4)
	local h, lines = recorded(), 0
	debug.sethook(function() lines = lines + 1 end, 'l')
	h:run(data(3, 5))
	debug.sethook()
	assert(replays() == 0 and lines > 0)
	local inner = graph.trace(nn.module(function(_, x) return h:run(x) end, {}), data(3, 1))
	assert(inner:node 'linear1' or inner:node 'linear', 'a graph in a traced module is its ops')
end)

it('gradients are as in plain runs', function()
	local g = recorded()
	local x = data(3, 5):requires_grad_()
	local y = g:run(x)
	assert(replays() == 1 and not y:requires_grad())
end)

it('warnings of fallbacks come with each run', function()
	local g = recorded()
	local before = gpu.fallback 'warn'
	g:run(data(3, 5))
	gpu.fallback(before)
	assert(replays() == 0)
	before = gpu.fallback 'error'
	g:run(data(3, 5))
	gpu.fallback(before)
	assert(replays() == 1)
end)

---------------------------------------------------------------- errors and turns

it('a bad index is an error of its op at the next wait', function()
	local m = nn.Sequential {nn.Embedding(10, 4), nn.Linear(4, 3)}:to(D)
	local good, bad = tensor {1, 2, 10, dtype='int64'}:to(D), tensor {1, 11, 3, dtype='int64'}:to(D)
	local g = graph.trace(m, tensor.ones {1, dtype='int64', device=D})
	for _ = 1, 3 do g:run(good) end
	gpu.sync()
	local y = g:run(bad)
	local ok, text = pcall(function() return y:to 'cpu' end)
	assert(not ok and tostring(text):find 'embedding' and tostring(text):find '11', tostring(text))
	for i = 1, 100 do -- more calls than are remembered
		if i == 2 then y = g:run(bad) end
		m[1](good)
	end
	ok, text = pcall(gpu.sync)
	assert(not ok and tostring(text):find 'embedding' and tostring(text):find '11', tostring(text))
	same(g:run(good), m(good), 'afterwards')
end)

it('two coroutines take turns with one graph', function()
	local g, want, out = recorded(0), {}, {}
	for i = 1, 6 do want[i] = g:run(data(3, i), {replay=false}) end
	local function worker(first)
		return coroutine.create(function()
			for i = first, 6, 2 do
				out[i] = g:run(data(3, i))
				coroutine.yield()
			end
		end)
	end
	local a, b = worker(1), worker(2)
	while coroutine.status(a) ~= 'dead' or coroutine.status(b) ~= 'dead' do
		for _, c in ipairs {a, b} do
			if coroutine.status(c) ~= 'dead' then assert(coroutine.resume(c)) end
		end
	end
	for i = 1, 6 do same(out[i], want[i], 'run ' .. i) end
	assert(replays() == 5)
end)

it('wrong inputs are the errors that they always were', function()
	local g = recorded()
	local function fails(x, words, o)
		local ok, text = pcall(g.run, g, x, o)
		assert(not ok and tostring(text):find(words, 1, true), tostring(text))
	end
	fails(data(3, 1):to 'cpu', D)
	fails(tensor.ones(3, 7):to(D), 'wanted float32')
	fails(data(3, 1), 'true or false', {replay=1})
	same(g:run(data(3, 1)), g:run(data(3, 1), {replay=false}), 'afterwards')
end)
