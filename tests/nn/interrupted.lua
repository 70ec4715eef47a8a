-- SPDX-License-Identifier: MIT
-- m:fit that is ended from outside, by kill -9 and by Ctrl-C, at chosen steps and at any moment: the file of the last whole epoch is
-- there, and the run that goes on from it has the bits of one that nobody disturbed. An LSTM, a GRU and a Transformer, with dropout,
-- a shuffling loader and optimizers that have a state. What such networks refuse.
-- labels: once
local scratch = dofile 'tests/tools/scratch.lua'
local read, program = scratch.output, scratch.program

-- The program that is disturbed: it trains arg[1], saves to arg[2], sends itself the signal arg[3] in step arg[4], and at the end
-- writes the parameters to arg[5].
local script = os.tmpname()
local handle = assert(io.open(script, 'w'))
handle:write [[
local kind, file, signal, at, final = table.unpack(arg)
tensor.seed(4)
local models = {
	lstm = function() return nn.Sequential{nn.Embedding(7, 12), nn.LSTM(12, 16, {layers = 2, dropout = 0.3}), nn.Linear(16, 7)} end,
	gru = function() return nn.Sequential{nn.Embedding(7, 12), nn.GRU(12, 16), nn.Dropout(0.2), nn.Linear(16, 7)} end,
	transformer = function() return nn.Transformer{vocab = 7, d = 16, heads = 2, layers = 1, ff = 32, causal = true, dropout = 0.1} end,
}
local m = models[kind]()
local ids = tensor.randint{96, 9, low = 1, high = 7}
local loader = data.loader(data.tensors(ids:narrow(2, 1, 8), ids:narrow(2, 2, 8)), {batch = 16, shuffle = true})
local opts = {
	lstm = function() return optim.sgd(m, {lr = 0.5, momentum = 0.9, clip = 1}) end,
	gru = function() return optim.adam(m, {lr = 0.01}) end,
	transformer = function() return optim.adamw(m, {lr = optim.cosine{lr = 0.01, steps = 24}}) end,
}
local step = 0
m:fit(loader, {opt = opts[kind](), epochs = 4, save = file, resume = true, log = false, loss = function(y, t)
	step = step + 1
	if step == tonumber(at) then
		io.popen('kill -' .. signal .. ' $PPID'):close()
		while signal == 'INT' do end
	end
	return nn.crossentropy(y, t)
end})
local all = {}
for name, value in pairs(m:state()) do all[name] = value:detach() end
tensor.save(final, all)
print 'finished'
]]
handle:close()

local function run(kind, file, signal, at, final, limit)
	return read(('env --default-signal=INT %s %s %s %s %s %s %s %s 2>&1; echo "status $?"'):format(limit or '', program, script, kind, file,
		signal, at, final))
end
local function same(a, b)
	a, b = tensor.load(a), tensor.load(b)
	local n = 0
	for name, value in pairs(a) do
		assert(b[name] and not value:ne(b[name]):any():item(), name)
		n = n + 1
	end
	for name in pairs(b) do assert(a[name], name) end
	return n
end

for _, kind in ipairs {'lstm', 'gru', 'transformer'} do
	describe(kind, function()
		local base = os.tmpname()
		local whole, final = base .. '.whole.safetensors', base .. '.final.safetensors'
		assert(run(kind, base .. '.undisturbed.safetensors', 'none', 0, whole):find 'finished')
		local function finish(file)
			local text = run(kind, file, 'none', 0, final)
			assert(text:find 'finished\nstatus 0', text)
			assert(same(whole, final) > 3)
			os.remove(final)
		end
		it('kill -9 in the first epoch: there is no file, and all begins anew', function()
			local file = base .. '.first.safetensors'
			assert(run(kind, file, 'KILL', 4, final):find 'status 137' and not io.open(file))
			finish(file)
		end)
		it('kill -9 in the third epoch, and again', function()
			local file = base .. '.killed.safetensors'
			assert(run(kind, file, 'KILL', 15, final):find 'status 137')
			local saved = tensor.load(file)
			assert(run(kind, file, 'KILL', 2, final):find 'status 137') -- within the same epoch: the file stays
			for name, value in pairs(tensor.load(file)) do assert(not value:ne(saved[name]):any():item(), name) end
			assert(run(kind, file, 'KILL', 9, final):find 'status 137' and not io.open(final))
			finish(file)
		end)
		it('Ctrl-C', function()
			local file = base .. '.interrupted.safetensors'
			local text = run(kind, file, 'INT', 16, final)
			assert(text:find 'interrupted' and text:find 'status 130' and not text:find 'finished', text)
			finish(file)
		end)
	end)
end

it('kill -9 at any moment', function()
	local base = os.tmpname()
	local whole, file, final = base .. '.whole.safetensors', base .. '.safetensors', base .. '.final.safetensors'
	assert(run('gru', base .. '.undisturbed.safetensors', 'none', 0, whole):find 'finished')
	local kills = 0
	for i = 1, 120 do
		local text = run('gru', file, 'none', 0, final, ('timeout -s KILL %.3f'):format(0.002 * 1.08 ^ i))
		if text:find 'finished' then break end
		kills = kills + 1
		if io.open(file) then tensor.load(file) end -- never half a file
	end
	assert(kills > 0 and same(whole, final) > 3)
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
it('is refused with the reason, and nothing is lost', function()
	local x = tensor.randint{4, 6, low = 1, high = 7}
	for name, m in pairs {LSTM = nn.Sequential{nn.Embedding(7, 8), nn.LSTM(8, 8), nn.Linear(8, 7)},
		GRU = nn.Sequential{nn.Embedding(7, 8), nn.GRU(8, 8), nn.Linear(8, 7)},
		Attention = nn.Sequential{nn.Embedding(7, 8), nn.Attention(8, 2), nn.Linear(8, 7)},
		Transformer = nn.Transformer{vocab = 7, d = 8, heads = 2, layers = 1, ff = 16, causal = true}} do
		describe(name, function()
			local before = m:clone():state()
			local y = x:clone()
			y[2][3] = 8
			refused('crossentropy: ', m.fit, m, {{x, y}}, {log = false})
			y[2][3] = 0
			refused('crossentropy: ', m.evaluate, m, {{x, y}}, {log = false})
			refused('embedding: ', m, y)
			refused('fit: loss: wanted a finite number, got ', m.fit, m, {{x, x}}, {log = false, loss = function(out, t)
				return nn.crossentropy(out, t) * (0 / 0)
			end})
			refused('calibrate: data: wanted at least one batch, got none', m.calibrate, m, function() return function() end end, {log = false})
			refused("mode 'static' wanted a calibrated layer", m.quantize, m, {mode = 'static'})
			local file = os.tmpname() .. '.safetensors'
			local all = {more = tensor.ones(2)}
			for key, value in pairs(m:state()) do all[key] = value:detach() end
			local gone = next(before)
			all[gone] = nil
			tensor.save(file, all)
			refused(('1 missing: %s; 1 extra: more'):format(gone), m.load, m, file)
			for key, value in pairs(m:state()) do assert(not value:detach():ne(before[key]:detach()):any():item(), key) end
			assert(m(x):size(3) == 7 and m:fit({{x, x}}, {epochs = 1, log = false})[1].loss > 0)
		end)
	end
end)
