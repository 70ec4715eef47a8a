-- SPDX-License-Identifier: MIT
-- quant.sensitivity finds the layer that was made bad, and says why.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end

tensor.seed(3)
local function made(change)
	local m = nn.Sequential {nn.Linear(32, 32, {bias=false}), nn.ReLU(), nn.Linear(32, 32, {bias=false}), nn.ReLU(), nn.Linear(32, 32, {bias=false})}
	if change then tensor.nograd(function() change(m) end) end
	return m
end
local x = tensor.randn(64, 32)
local function data_of(m) return {{x, m(x):detach()}} end
local function run(m, o)
	o.data, o.metric, o.log = data_of(m), 'mse', false
	local r, rules = quant.sensitivity(m, o)
	local by = {}
	for i = 1, #r do by[r[i].layer] = r[i] end
	return r, rules, by
end

it('numbers are those of their definitions', function()
	local m = made()
	local r, rules, by = run(m, {spec='int4'})
	assert(#r == 3 and #rules >= 1 and r[1].only_drop >= r[2].only_drop and r[2].only_drop >= r[3].only_drop)
	local w = m.linear2.weight:detach()
	local q = w:quantize 'int4'
	assert(math.abs(by.linear2.weight - w:error(q).sqnr) < 1e-3 and by.linear2.bytes == q:nbytes())
	local inner = m.linear1(x):relu()
	-- the activation is part of the layer
	assert(math.abs(by.linear2['local'] - m.linear2(inner):relu():detach():error(inner:linear(q:dequantize()):relu():detach()).sqnr) < 1e-2)
	local one = m:quantize {mode='weight_only', rules={{'linear2', 'int4'}, {'.*', false}}}
	assert(math.abs(by.linear2.only - one:evaluate(data_of(m), {metric='mse', log=false}).value) < 1e-9)
	local rest = m:quantize {mode='weight_only', weight='int4', rules={{'linear2', false}}}
	assert(math.abs(by.linear2.but - rest:evaluate(data_of(m), {metric='mse', log=false}).value) < 1e-9)
	local all = m:quantize {mode='weight_only', weight='int4'}
	local worst = all:evaluate(data_of(m), {metric='mse', log=false}).value
	assert(math.abs(by.linear2.gain - (worst - by.linear2.but)) < 1e-9)
	assert(math.abs(by.linear3.accumulated - m(x):detach():error(all(x)).sqnr) < 1e-2)
	assert(by.linear1.accumulated == by.linear1['local'])
	-- the rules can be used as they are
	local better = m:quantize {mode='weight_only', weight='int4', rules=rules}
	assert(better:evaluate(data_of(m), {metric='mse', log=false}).value < worst)
	assert(load('return {' .. r[1].rule .. '}')()[1][2] == false)
end)
it('outliers', function()
	local r, _, by = run(made(function(m) m.linear2.weight[3][5] = 20 end), {spec='int8'})
	assert(r[1].layer == 'linear2' and by.linear2.cause == 'outliers' and by.linear1.cause == 'resolution', by.linear2.cause)
end)
it('dead channels', function()
	local _, _, by = run(made(function(m)
		local w = m.linear3.weight
		w:narrow(1, 1, 4):mul_(1e-4)
	end), {spec='int4'})
	assert(by.linear3.cause == 'dead channel' and by.linear3.why:find '^4 of 32', by.linear3.why)
end)
it('saturation', function()
	local m = made()
	m:calibrate({{x * 0.1, x}}, {input='uint8', log=false})
	local _, _, by = run(m, {spec='int8/1', mode='static'})
	assert(by.linear1.cause == 'saturation' and by.linear1.why:find '%% of the inputs', by.linear1.cause)
end)
it('bias shift', function()
	-- all weights of a row lie a quarter of a step above a code: with positive inputs the errors add up
	local m = nn.Sequential {nn.Linear(32, 16, {bias=false})}
	tensor.nograd(function()
		m.linear1.weight:copy_(tensor.full {16, 32, value=0.25 / 7 * 1.25})
		for i = 1, 16 do m.linear1.weight[i][i] = 0.25 end
	end)
	local before = x
	x = x:abs() + 1
	local _, _, by = run(m, {spec='int4'})
	x = before
	assert(by.linear1.cause == 'bias shift', by.linear1.cause .. ' ' .. by.linear1.why)
end)
it('bad input', function()
	local m = made()
	refused('sensitivity: wanted a model, got 3', quant.sensitivity, 3, {})
	for _, spec in ipairs {'float32', 'float16'} do
		refused(("sensitivity: spec: wanted a spec of codes, such as 'int8/1', got '%s'"):format(spec), quant.sensitivity, m, {data=data_of(m), spec=spec})
	end
	refused('sensitivity: batches: wanted positive integer, got 0', quant.sensitivity, m, {data=data_of(m), batches=0})
	refused('sensitivity: data: wanted a loader', quant.sensitivity, m, {})
	refused("sensitivity: metric: wanted", quant.sensitivity, m, {data=data_of(m), metric='acuracy'})
	refused('sensitivity: wanted a float model, got one in which linear1 is quantized', quant.sensitivity, m:quantize {mode='dynamic'},
		{data=data_of(m)})
	refused("mode 'static' wanted a calibrated layer", quant.sensitivity, made(), {data=data_of(m), metric='mse', mode='static', log=false})
	refused('sensitivity: wanted a model with layers that have weights', quant.sensitivity, nn.ReLU(), {data=data_of(m)})
end)
it('says when the data is what weights are trained on', function()
	local set = data.synth{n = 40}
	local function note(name)
		rawset(set, 'name', name)
		return tostring((quant.sensitivity(nn.Sequential {nn.Flatten(), nn.Linear(set.x:nelem() // 40, 10)}, {data = data.loader(set, {batch = 20}), metric = 'loss', log = false})))
	end
	assert(note 'MNIST train':find 'MNIST train: weights that were trained' and note 'MNIST all':find 'MNIST all:')
	assert(not note 'MNIST validation':find 'trained' and not note 'trainable set':find 'look less')
end)

it('codes that a method chooses', function()
	local m = made()
	local inputs = {{tensor.randn(40, 32)}, {x}}
	local _, _, by = run(m, {spec='int3/1', method={'mse', 'gptq'}, calibration=inputs})
	local q = m:quantize {mode='weight_only', weight='int3/1', method={'mse', 'gptq'}, data=inputs, sequential=false, log=false}
	assert(by.linear2.spec == 'int3/1 mse, gptq')
	local w = m.linear2.weight:detach()
	assert(math.abs(by.linear2.weight - w:error(q.linear2.weight).sqnr) < 1e-3)
	local one = m:quantize {mode='weight_only', rules={{'linear2', 'int3/1', method={'mse', 'gptq'}}, {'.*', false}}, data=inputs, sequential=false, log=false}
	assert(math.abs(by.linear2.only - one:evaluate(data_of(m), {metric='mse', log=false}).value) < 1e-9)
	local _, _, plain = run(m, {spec='int3/1'})
	assert(by.linear2.only_drop < plain.linear2.only_drop)
	refused("wanted methods that decide about one weight, got 'biascorrect'", run, m, {method='biascorrect'})
	refused('calibration: wanted method= with it', run, m, {calibration=inputs})
end)
