-- SPDX-License-Identifier: MIT
-- Models on a device: moving, training, optimizers, loaders, files, calibration, quantization, graphs, generation, measurements give what
-- they give on the CPU. Runs with every device that QUOLL_TEST_DEVICE names (tests/CMakeLists.txt).
local D = os.getenv 'QUOLL_TEST_DEVICE'
if not D then skip 'cudaemu: the emulation is not built' end
local nets = dofile 'tests/tools/gpu_nets.lua'

-- Equal up to the rounding of products, which the device may add in another order.
local function near(a, b, tolerance)
	a, b = a:detach(), b:detach():to 'cpu'
	return a:dtype() == b:dtype() and a:error(b).max <= (tolerance or 1e-4) * (1 + a:to('float32'):abs():max():item())
end

local function on(device, list)
	local moved = {stream = list.stream}
	for i, batch in ipairs(list) do moved[i] = {batch[1]:to(device), batch[2]:to(device)} end
	return moved
end

local mlp, resnet, lstm, transformer = table.unpack(nets)

it('move with buffers, codes and what they share', function()
	for _, net in ipairs(nets) do
		local m = net.make():to(D)
		for name, value in pairs(m:state()) do assert(value:device() == D, name) end
		assert(m:device() == D and m:to('cpu'):device() == 'cpu')
	end
	local m = lstm.make():to(D)
	print(m.linear1.weight == m.embedding1.weight, m.linear1.weight:requires_grad(), #m:parameters())  --> true	true	10
	for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
		for _, net in ipairs(nets) do
			local q, x = nets.quantized(net, mode), net.batches(1)[1][1]
			local wanted = q(x)
			q:to(D)
			for name, value in pairs(q:state()) do assert(value:device() == D, name) end
			assert(near(wanted, q(x:to(D))), net.name .. ' ' .. mode)
			assert(q:to('cpu')(x):error(wanted).max == 0, net.name .. ' ' .. mode)
		end
	end
end)

it('are quantized where they are', function()
	for _, net in ipairs(nets) do
		local data = net.batches(2)
		local x = data[1][1]
		for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
			local m = net.make():to(D)
			if mode == 'static' then m:calibrate(data, {input = 'uint8', log = false}) end
			local q = m:quantize {mode = mode, weight = 'int8/1'}
			assert(q:device() == D and near(nets.quantized(net, mode)(x), q(x:to(D)), 0.02), net.name .. ' ' .. mode)
			assert(q:dequantize():device() == D and q:clone():device() == D)
		end
	end
end)

it('are calibrated with batches of the CPU', function()
	for _, net in ipairs {mlp, resnet, lstm} do
		local a, b = nn.Sequential {net.make()}, nn.Sequential {net.make()}:to(D)
		local r = a:calibrate(net.batches(2), {input = 'uint8@mse', log = false}):observers()
		local s = b:calibrate(net.batches(2), {input = 'uint8@mse', log = false}):observers()
		for i = 1, #r do
			assert(math.abs(r[i].scale - s[i].scale) <= 1e-3 * r[i].scale, net.name .. ' ' .. r[i].name)
		end
	end
end)

it('learn from batches of the CPU as from those on the device', function()
	local function trained(device, where, mode)
		local m = nets.trained(mlp, mode):to(device)
		local r = m:fit(on(where, mlp.batches(3)), {opt = mlp.opt(m), epochs = 2, log = false, validate = on(where, mlp.batches(2)), metric = 'accuracy'})
		return r[2].loss, r[2].valid, m
	end
	for _, mode in ipairs {'float', 'train', 'qat'} do
		local loss, valid = trained('cpu', 'cpu', mode)
		for _, where in ipairs {'cpu', D} do
			local loss_there, valid_there, m = trained(D, where, mode)
			assert(math.abs(loss - loss_there) < 1e-3 and valid == valid_there and m:device() == D, mode)
		end
	end
	local m = mlp.make():to(D)
	local r = m:evaluate(mlp.batches(2), {metric = 'perplexity', log = false})
	assert(math.abs(r.perplexity / mlp.make():evaluate(mlp.batches(2), {metric = 'perplexity', log = false}).perplexity - 1) < 1e-4)
end)

it('qat with learned scales, where the model is', function()
	local spec = {weight = {dtype = 'int4', axis = 1, observer = 'mse', learn = true}, input = {dtype = 'uint8', observer = 'mse', learn = true}, mode = 'qat'}
	local function trained(device)
		local m = mlp.make():to(device)
		m:calibrate(mlp.batches(1), {log = false})
		local q = m:quantize(spec)
		for name, value in pairs(q:state()) do assert(value:device() == device, name) end
		return q:fit(mlp.batches(2), {opt = mlp.opt(q), log = false})[1].loss, q:quantize {mode = 'static'}
	end
	local loss, q = trained(D)
	assert(math.abs(loss - trained 'cpu') < 1e-3 and q:device() == D)
end)

it('end at a loss that is no number, before the step', function()
	local m = nn.Linear(2, 1):to(D)
	local before = m.weight:detach():clone()
	local ok, why = pcall(m.fit, m, {{tensor {{1, 0 / 0}}, tensor {{1}}}}, {loss = nn.mse, log = false})
	print(ok, why:match 'wanted a finite number.*')  --> false	wanted a finite number, got nan in epoch 1, batch 1; the parameters are those before it
	assert(before:eq(m.weight:detach()):all():item())
end)

it('keep the state of optimizers there', function()
	for _, make in ipairs {optim.adam, optim.adamw, function(m) return optim.sgd(m, {lr = 0.1, momentum = 0.9, clip = 1}) end} do
		local m = nn.Linear(3, 2):to(D)
		local x = tensor.randn {4, 3, device = D}
		local function step(o)
			o:zero()
			m(x):sum():backward()
			return o:step()
		end
		local o = make(m)
		step(o)
		local state, host = o:state(), {}
		for name, value in pairs(state) do
			host[name] = type(value) == 'userdata' and value:to 'cpu' or value
			assert(name == 'steps' or type(value) ~= 'userdata' or value:device() == D, name)
		end
		local before = m.weight:detach():clone()
		step(o)
		local wanted = m.weight:detach():clone()
		for _, given in ipairs {state, host} do
			m.weight:detach():copy_(before)
			step(make(m):load(given))
			assert(wanted:eq(m.weight:detach()):all():item())
		end
	end
end)

it('get batches from loaders', function()
	local ds = data.synth {kind = 'digits', n = 40, seed = 1}
	local here, there = {}, {}
	tensor.seed(1)
	for x, y in data.loader(ds, {batch = 8, shuffle = true})() do here[#here + 1] = {x, y} end
	local n = 0
	tensor.seed(1)
	for x, y in data.loader(ds, {batch = 8, shuffle = true, device = D})() do
		n = n + 1
		assert(x:device() == D and y:device() == D and x:dequantize():to('cpu'):eq(here[n][1]:dequantize()):all():item())
		there[n] = y:to 'cpu'
		assert(there[n]:eq(here[n][2]):all():item())
	end
	print(n, #here)  --> 5	5
	local ok, why = pcall(data.loader, ds, {batch = 8, device = 'nowhere'})
	if ok then ok, why = pcall(why) end
	print(ok, why:match 'loader: device: wanted [^,]*')  --> false	loader: device: wanted cpu
end)

it('go to files and come from them', function()
	local file = os.tmpname() .. '.safetensors'
	local m, c = resnet.make():to(D), resnet.make():to(D)
	m:fit(resnet.batches(1), {opt = resnet.opt(m), log = false})
	m:save(file)
	local weight = c.conv1.weight
	c:load(file)
	assert(c.conv1.weight == weight and weight:device() == D)
	for name, value in pairs(m:state()) do assert(near(value:to 'cpu', c:state()[name], 0), name) end
	c = resnet.make():load(m:state())
	assert(c:device() == 'cpu' and near(c.conv1.weight, m.conv1.weight, 0))
	local q, p = nets.quantized(mlp, 'dynamic'), nets.quantized(mlp, 'dynamic'):to(D)
	q:save(file)
	p:load(file)
	assert(p:device() == D and near(q(mlp.batches(1)[1][1]), p(mlp.batches(1)[1][1]:to(D))))
	p:load(q:state())
	print(p.linear1.weight:device() == D, q.linear1.weight:device())  --> true	cpu
end)

it('go on from the file of a training', function()
	local function trained(device, epochs, file)
		local m = mlp.make():to(device)
		return m:fit(mlp.batches(3), {opt = mlp.opt(m), epochs = epochs, log = false, save = file, resume = true})[epochs].loss
	end
	local file, other = os.tmpname() .. '.safetensors', os.tmpname() .. '.safetensors'
	trained(D, 2, file)
	assert(trained(D, 4, file) == trained(D, 4, other))
end)

it('generate with the cache of keys and values, and with the state of layers', function()
	for _, net in ipairs {lstm, transformer} do
		local m = net.make()
		local wanted = m:generate({1, 2, 3}, {steps = 20, temperature = 0})
		m:to(D)
		local got = m:generate({1, 2, 3}, {steps = 20, temperature = 0})
		assert(got:device() == D and got:to('cpu'):eq(wanted):all():item(), net.name)
		tensor.seed(4)
		got = m:generate(tensor {1, 2, 3, dtype = 'int64', device = D}, {steps = 8, topk = 5})
		tensor.seed(4)
		assert(m:to('cpu'):generate({1, 2, 3}, {steps = 8, topk = 5}):eq(got:to 'cpu'):all():item(), net.name)
		local q = nets.quantized(net, 'dynamic'):to(D)
		assert(q:generate({1, 2}, {steps = 3}):nelem() == 5)
	end
	local m = lstm.make():eval() -- a state that was made before the move goes along
	m.lstm1.carrying = true
	local x = lstm.batches(1)[1][1]
	m(x)
	local second = m(x)
	m.lstm1.carried = false
	m(x)
	assert(near(second, m:to(D)(x:to(D))))
end)

it('are graphs there', function()
	for _, net in ipairs(nets) do
		local m, x = net.make():to(D):eval(), net.batches(1)[1][1]:to(D)
		local g = graph.trace(m, x)
		local wanted = m(x)
		assert(g:run(x):eq(wanted):all():item() and g:run(x, {check = true}):device() == D, net.name)
		assert(g:run(x, {arena = true}):eq(wanted):all():item(), net.name)
		g:calibrate(net.batches(2), {log = false})
		for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
			local q = g:quantize {mode = mode, weight = 'int8/1'}
			assert(q:run(x):device() == D, net.name .. ' ' .. mode)
		end
	end
	local g = graph.trace(mlp.make():to(D), mlp.batches(1)[1][1]:to(D))
	print(#g:match {{'linear.*', 'int8/1'}} > 0)  --> true
end)

it('are exported as C from there', function()
	local x, dir = mlp.batches(1)[1][1], os.tmpname()
	local function exported(device)
		local m = mlp.make():calibrate(mlp.batches(1), {log = false}):to(device)
		local g = graph.trace(m:quantize {mode = 'static'}, x:to(device))
		os.remove(dir)
		tensor.seed(1)
		g:export {dir = dir, name = 'mlp', samples = x}
		g:export {dir = dir, name = 'other'} -- with samples of its own
		return io.open(dir .. '/mlp.c'):read 'a'
	end
	assert(exported(D) == exported 'cpu')
end)

it('are equalized, corrected, searched', function()
	local m = mlp.make():to(D)
	local batches = mlp.batches(2)
	assert(m:equalize():device() == D)
	m:calibrate(batches, {log = false})
	local q = m:quantize {mode = 'static', method = {'equalize', 'biascorrect'}, data = batches, log = false}
	assert(q:device() == D)
	local g = graph.trace(m, batches[1][1]:to(D))
	q = nn.Graph(g):calibrate(batches, {log = false}):quantize {mode = 'static', method = {'equalize', 'biascorrect'}, data = batches, log = false}
	assert(q(batches[1][1]:to(D)):device() == D)
	print(#quant.sensitivity(m, {data = batches, log = false}))  --> 3
	local found = quant.search(m, {data = batches, metric = 'loss', drop = 0.5, log = false})
	print(found ~= nil)  --> true
end)

it('are measured there', function()
	local r = bench.matmul {sizes = {16}, dtypes = {'float32', 'int8'}, runs = 1, warmup = 1, device = D}
	print(r[1].device == D, r[2].device_peak > 0)  --> true	true
	local m = mlp.make():to(D)
	r = bench.models({float32 = m, dynamic = m:quantize {mode = 'dynamic'}}, {data = mlp.batches(2), metric = 'accuracy', log = false})
	assert(#r == 2 and r[1].device_peak > 0 and r[1].accuracy == mlp.make():evaluate(mlp.batches(2), {metric = 'accuracy', log = false}).accuracy)
	r = bench.models({float32 = mlp.make()}, {data = mlp.batches(1), metric = 'accuracy', log = false})
	print(tostring(r):find 'device')  --> nil
	local here = mlp.make()
	r = bench.models({float32 = here, dynamic = here:quantize {mode = 'dynamic'}}, {data = mlp.batches(1), metric = 'accuracy', log = false, device = D})
	assert(r[2].device == D and r[2].device_peak > 0 and here:device() == 'cpu')
	local x = tensor.randn {8, device = D}
	print(bench.time(function() return x:exp() end, {runs = 1, calls = 2}).device_peak > 0)  --> true
	assert(m:summary(mlp.batches(1)[1][1]:to(D))[2].output ~= '-')
end)
