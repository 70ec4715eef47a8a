-- SPDX-License-Identifier: MIT
-- m:fit and m:evaluate: what they compute, what they report, what an error or an interrupt leaves, going on from a file.
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

-- A task that a linear model solves: which of 3 directions is nearest.
tensor.seed(7)
local centers = tensor{{2, 0}, {-1, 2}, {-1, -2}}
local function batch(n)
	local y = tensor.randint {n, low=1, high=3}
	return {centers:embedding(y) + tensor.randn(n, 2) * 0.4, y}
end
local train, valid = {}, {batch(200)}
for i = 1, 10 do train[i] = batch(50) end

local function net()
	tensor.seed(3)
	return nn.Sequential {nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3)}
end

it('learns, and reports a row for each epoch', function()
	local m = net()
	local before = m:evaluate(valid, {metric='accuracy', log=false})
	local r = m:fit(train, {opt=optim.adam(m, {lr=0.02}), epochs=4, validate=valid, metric='accuracy', log=false})
	assert(#r == 4 and r[4].epoch == 4 and r[4].lr == 0.02 and r[4].loss < r[1].loss and r[4].seconds > 0)
	assert(r[4].valid > 97 and before.accuracy < 90 and before.count == 200 and before.batches == 1)
	assert(m.training and m.linear1.training, 'the mode was not put back')
	assert(m:eval() and m:fit(train, {epochs=1, log=false}) and not m.training)
end)

it('gives the same bits from the same seed', function()
	local a, b = net(), net()
	for _, m in ipairs {a, b} do
		tensor.seed(9)
		m:fit(train, {opt=optim.sgd(m, {lr=0.1, momentum=0.9}), epochs=2, log=false})
	end
	for name, value in pairs(a:state()) do assert(value:detach():ne(b:state()[name]:detach()):any():item() == false, name) end
end)

it('evaluate: metrics', function()
	local m = net():eval()
	local y = m(valid[1][1])
	local loss = nn.crossentropy(y, valid[1][2]):item()
	assert(math.abs(m:evaluate(valid, {log=false}).loss - loss) < 1e-6)
	assert(math.abs(m:evaluate(valid, {metric='perplexity', log=false}).perplexity - math.exp(loss)) < 1e-5)
	local two = {{valid[1][1]:narrow(1, 1, 50), valid[1][2]:narrow(1, 1, 50)}, {valid[1][1]:narrow(1, 51, 150), valid[1][2]:narrow(1, 51, 150)}}
	assert(math.abs(m:evaluate(two, {log=false}).value - loss) < 1e-6, 'batches of other sizes do not count by their size')
	assert(m:evaluate(valid, {metric=function() return 4 end, log=false}).value == 4)
	assert(not m(valid[1][1]):detach():requires_grad() and m(valid[1][1]):requires_grad())
end)

it('decay and lr', function()
	local m = net()
	local r = m:fit(train, {opt=optim.sgd(m, {lr=0.1}), epochs=3, decay=0.5, log=false})
	assert(r[1].lr == 0.1 and r[2].lr == 0.05 and r[3].lr == 0.025)
end)

it('a loss that is not finite ends it before the step', function()
	local m = net()
	local broken = {train[1], {tensor.full {50, 2, value=0/0}, train[2][2]}}
	local states = {}
	refused('fit: loss: wanted a finite number, got ', m.fit, m, broken, {opt=optim.sgd(m, {lr=0.1}), log=false,
		loss=function(y, t)
			states[#states + 1] = m.linear1.weight:detach():clone()
			return nn.crossentropy(y, t)
		end})
	assert(#states == 2 and m.linear1.weight:detach():ne(states[2]):any():item() == false)
end)

it('bad input', function()
	local m = net()
	refused("fit: unknown option 'epoch'; did you mean 'epochs'?", m.fit, m, train, {epoch=3})
	refused('fit: epochs: wanted 1 or more, got 0', m.fit, m, train, {epochs=0})
	refused('fit: data: wanted at least one batch, got none', m.fit, m, function() return function() end end, {log=false})
	refused('fit: data: wanted a loader or a list of batches {x, y}, got 3', m.fit, m, 3, {log=false})
	refused('fit: data: wanted batches of two tensors x, y, got float32(2, 2) and nil', m.fit, m, {{tensor.ones(2, 2)}}, {log=false})
	refused('fit: resume: wanted a file in save=, got none', m.fit, m, train, {resume=true})
	local function never() error 'a batch was trained' end
	refused('fit: save: wanted a file that can be written, got /dev/null/a.safetensors: Not a directory', m.fit, m, train,
		{opt=optim.sgd(m, {lr=0.1}), save='/dev/null/a.safetensors', loss=never, log=false})
	refused("metric: wanted accuracy, loss, mse, perplexity or a function, got 'acuracy'; did you mean 'accuracy'?", m.evaluate, m,
		valid, {metric='acuracy'})
	refused('fit: wanted a model with parameters, got none', nn.Sequential({nn.ReLU()}).fit, nn.Sequential {nn.ReLU()}, train)
	refused('crossentropy:', m.fit, m, {{tensor.ones(2, 2), tensor {1, 4, dtype='int64'}}}, {log=false}) -- no class 4
end)

it('goes on from the file of an interrupted run to the same bits', function()
	local name = os.tmpname()
	local file = name .. '.safetensors'
	local function run(epochs, options)
		local m = net()
		tensor.seed(11)
		local o = {opt=optim.adam(m, {lr=0.01}), epochs=epochs, log=false}
		for key, value in pairs(options) do o[key] = value end
		return m, m:fit(train, o)
	end
	local whole = run(4, {})
	local calls = 0
	local m = net()
	tensor.seed(11)
	refused('stopped', m.fit, m, train, {opt=optim.adam(m, {lr=0.01}), epochs=4, save=file, log=false, loss=function(y, t)
		calls = calls + 1
		if calls == 25 then error 'stopped' end
		return nn.crossentropy(y, t)
	end})
	assert(m.training and m(valid[1][1]):size(2) == 3, 'the model cannot be used')
	local again, r = run(4, {save=file, resume=true})
	assert(#r == 4)
	for key, value in pairs(whole:state()) do assert(value:detach():ne(again:state()[key]:detach()):any():item() == false, key) end
	local plain = net()
	assert(plain:load(file) == plain, 'the file cannot be loaded as a model')
	tensor.save(file, {['linear1.weight']=tensor.ones(16, 2)})
	refused('wanted a file that fit has saved', run, 4, {save=file, resume=true})
	os.remove(file)
	os.remove(name)
end)

it('refuses labels that count from 0, as crossentropy does', function()
	local m, x = nn.Linear(2, 3), tensor.ones(2, 2)
	local function evaluate(labels) return m:evaluate({{x, tensor{dtype='int64', table.unpack(labels)}}}, {metric='accuracy', log=false}) end
	refused('accuracy: target: wanted classes 1 to 3, got 0; labels that count from 0 are target + 1', evaluate, {0, 1})
	refused('accuracy: target: wanted classes 1 to 3, got 4', evaluate, {1, 4})
	assert(evaluate {1, 3}.count == 2)
end)
