-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 5  Convolutional networks: ranges, integers from layer to layer, four bits, and C
--
-- Photos of ten classes, residual networks, 8-bit integers. This tutorial folds batch norm, calibrates, counts how often the integer
-- network gives the *same* answer, finds the layers for which 4 bits are enough, trains a network with 4-bit weights in all layers,
-- and exports networks as C with bit-identical results.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
os.execute 'mkdir -p out'
tensor.seed(5)

-- %% [markdown]
-- ## Data and network
--
-- ResNet9 at half width, 1.6 million weights, trained by `scripts/train.lua resnet9`. The last 5000 training images serve for
-- calibration and validation; test images serve for evaluation only. Without the photos, procedural shapes and a small network are
-- used.

-- %%
found, why = data.find 'cifar10/data_batch_5.bin.xz'
if found and data.find 'cifar10/test_batch_first1000.bin.xz' then
	print 'input: real (CIFAR-10)'
	real = true
	m, norm = dofile(folder .. 'models/resnet9.lua')
	m:load(folder .. 'models/resnet9.safetensors'):eval()
	images, choices, unseen = data.cifar10{split = 'train', limit = quick and 256 or nil}, data.cifar10{split = 'validation'}, data.cifar10{split = 'test', limit = quick and 100 or nil}
else
	print('input: procedural shapes, because ' .. why)
	images, choices = data.synth{kind = 'shapes', n = quick and 3000 or 12000, seed = 1}:split(0.8)
	unseen = data.synth{kind = 'shapes', n = 1000, seed = 2}
	m = nn.Sequential{nn.Conv2d(3, 12, 3, {pad = 1, bias = false}), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
		nn.Residual{nn.Conv2d(12, 12, 3, {pad = 1, bias = false}), nn.BatchNorm2d(12), nn.ReLU()}, nn.MaxPool2d(2),
		nn.Conv2d(12, 24, 3, {pad = 1, bias = false}), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(384, 10)}
	norm = {mean = {0.5, 0.5, 0.5}, std = {0.25, 0.25, 0.25}}
	m:fit(data.loader(images, {batch = 32, shuffle = true, normalize = norm}), {opt = optim.adam(m, {lr = 3e-3}), epochs = 3, log = false})
	m:eval()
end
calib = data.loader(choices, {batch = 100, normalize = norm})
test = data.loader(unseen, {batch = quick and 50 or 200, normalize = norm})
print(m:summary())

-- %% [markdown]
-- ## Folding batch norm
--
-- At inference, batch norm is a multiplication and an addition per channel, so it can be folded into the convolution before it:
-- `fuse` does this, exactly up to rounding. The folded weights are the ones to quantize.

-- %%
f = m:fuse()
print(('%d modules become %d'):format(#m:named(), #f:named()))
for x in test() do
	e = m(x):error(f(x))
	print(('largest difference of a logit: %.2g'):format(e.max))
	break
end
print(e.sqnr > 80)  --> true

-- %% [markdown]
-- ## Calibration, and integers between layers
--
-- The column `output` shows the type of a layer's result: codes, wherever the next layer accepts codes. Only the last layer returns
-- floats.

-- %%
f:calibrate(calib, {input = 'uint8@entropy', batches = quick and 2 or 10})
static, coverage = f:quantize{mode = 'static', weight = 'int8/1'}
dynamic = f:quantize{mode = 'dynamic', weight = 'int8/1'}
print(coverage)
quant.log 'reset'
for x in test() do
	static(x)
	break
end
print(quant.log())
print(#quant.log():where{path = 'fallback'})  --> 0

-- %% [markdown]
-- ## Side by side
--
-- Accuracy hides what happens to single images: some become correct while others become wrong. `agreement` counts the images with
-- the same answer.

-- %%
function agreement(a, b)
	local same, n = 0, 0
	tensor.nograd(function()
		for x in test() do
			same = same + a(x):argmax{axis = 2}:eq(b(x):argmax{axis = 2}):sum():item()
			n = n + x:size(1)
		end
	end)
	return 100 * same / n
end
r = bench.models({float32 = f, dynamic = {dynamic, agreement = agreement(f, dynamic)}, static = {static, agreement = agreement(f, static)}},
	{data = test, metric = 'accuracy'})
print(r)
r:plot{kind = 'bar', x = 'model', y = 'accuracy', title = 'test images', ylabel = '% correct', file = 'out/05_accuracy.png'}
r:plot{kind = 'bar', x = 'model', y = 'ms', title = 'time of a batch of 200', ylabel = 'ms', file = 'out/05_ms.png'}
r:plot{kind = 'bar', x = 'model', y = {'weight_bytes', 'activation_bytes', 'peak'}, title = 'bytes', file = 'out/05_bytes.png'}
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
assert(by.static.accuracy > by.float32.accuracy - 1.5 and by.static.agreement > 96)
print(('%.0f bits a weight'):format(32 * by.static.weight_bytes / by.float32.weight_bytes))  --> 8 bits a weight

-- %% [markdown]
-- ## Which range?
--
-- Six observers for the range of the activations; weights and images are the same.

-- %%
rows = {float32 = f}
for _, name in ipairs(quick and {'minmax', 'entropy', 'mse'} or {'minmax', 'average', 'percentile', 'entropy', 'mse', 'adaptive'}) do
	f:calibrate(calib, {input = 'uint8@' .. name, batches = quick and 1 or 10})
	local q = f:quantize{mode = 'static', weight = 'int8/1'}
	rows[name] = {q, agreement = agreement(f, q)}
end
r = bench.models(rows, {data = test, metric = 'accuracy'})
print(r:sort 'agreement')
r:where(function(row) return row.model ~= 'float32' end):plot{kind = 'bar', x = 'model', y = 'agreement', title = 'same answer as float32', ylabel = '%', file = 'out/05_observers.png'}

-- %% [markdown]
-- ## Published networks
--
-- The same for published weights of ResNet20 and of MLPerf Tiny's ResNet8 (only if the photos are available).

-- %%
others = {}
if real and data.find 'weights/resnet20-cifar10.safetensors' then
	local m20, norm20 = dofile(folder .. 'models/resnet20.lua')
	others.resnet20 = {m20:load(data.find 'weights/resnet20-cifar10.safetensors'):eval():fuse(), {normalize = norm20}}
	local m8, names = dofile(folder .. 'models/resnet8.lua')
	others.resnet8 = {m8:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename = names}):eval():fuse(), {normalize = {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}}}}
end
for name, entry in pairs(others) do
	local model, how = entry[1], entry[2]
	local with = {batch = 100, normalize = how.normalize}
	model:calibrate(data.loader(choices, with), {input = 'uint8@mse', batches = quick and 2 or 10})
	local s = model:quantize{mode = 'static', weight = 'int8/1'}
	local d = model:quantize{mode = 'dynamic', weight = 'int8/1'}
	r = bench.models({float32 = model, dynamic = d, static = s}, {data = data.loader(unseen, with), metric = 'accuracy'})
	print(name)
	print(r)
	for i = 1, #r do assert(r[i].accuracy > r[1].accuracy - 1.5, name) end
end

-- %% [markdown]
-- ## Rules
--
-- As a graph (`graph.trace`) a network is a list of named nodes, and an ordered list of rules decides for each how it is
-- computed. A pattern is a regular expression for names; the first that matches wins, `false` leaves a node float. `match` only
-- shows what would happen: the weights of the last layer get 8 bits, those of convolutions 16 with one scale per output channel. The
-- rest of this tutorial uses the published network and ResNet9.

-- %%
networks = {}
if others.resnet8 then
	networks[1] = quick and {name = 'resnet8', model = others.resnet8[1], normalize = others.resnet8[2].normalize} or
		{name = 'resnet20', model = others.resnet20[1], normalize = others.resnet20[2].normalize}
end
networks[#networks + 1] = {name = real and 'resnet9' or 'small', model = f, normalize = norm}
for _, net in ipairs(networks) do
	net.with = {batch = quick and 20 or 250, normalize = net.normalize}
	net.test = data.loader(unseen, net.with)
	for x, y in net.test() do
		net.photos = x
		if quick then net.test = data.loader(data.tensors(x, y), {batch = 20}) end
		break
	end
	net.g = graph.trace(net.model, net.photos[{{1, 1}}])
	print(net.name)
	print(net.g:match({{'.*(linear|dense).*', 'int8'}, {'.*conv.*', 'int16/1'}}, {mode = 'weight_only'}))
end

-- %% [markdown]
-- ## A spec for each layer
--
-- For some layers 4 bits are enough. `quant.sensitivity` quantizes one layer at a time and reports the loss and its cause.
-- `quant.search` measures each layer with each spec, solves for the best assignment within a budget (here 65 % of the bytes of 8
-- bits) and measures the proposal: it returns rules ready for use, and the Pareto front of combinations. Both use training images
-- only. Both minimize the loss, which is sensitive to changes that do not alter the predicted class yet.

-- %%
for _, net in ipairs(networks) do
	how = {data = data.loader(choices, net.with), batches = quick and 1 or 4, metric = 'loss', log = false}
	how.spec = 'int4/1'
	print(net.name)
	print((quant.sensitivity(net.model, how)))
	how.spec, how.choices, how.bytes = nil, {'int4/1', 'int8/1'}, 0.65 * quant.estimate(net.model, 'int8/1').bytes
	net.rules, pareto = quant.search(net.model, how)
	pareto:plot{kind = 'scatter', x = 'bytes', y = 'drop', title = net.name .. ': loss against bytes', ylabel = 'loss above float32', file = 'out/05_pareto_' .. net.name .. '.png'}
	mixed = net.model:quantize{mode = 'weight_only', rules = net.rules}
	r = bench.models({float32 = net.model, int8 = net.model:quantize{mode = 'weight_only', weight = 'int8/1'}, mixed = mixed,
		int4 = net.model:quantize{mode = 'weight_only', weight = 'int4/1'}}, {data = net.test, metric = 'accuracy'})
	print(r)
	by = {}
	for i = 1, #r do by[r[i].model] = r[i] end
	assert(by.mixed.accuracy > by.float32.accuracy - (quick and 8 or 1.5) and by.mixed.accuracy >= by.int4.accuracy - (quick and 8 or 1))
	assert(by.mixed.weight_bytes < 0.72 * by.int8.weight_bytes)
end

-- %% [markdown]
-- ## Export as C
--
-- `export` writes C99 without dependencies: no library, no allocation, one block of memory for all values, and a `main.c` with a
-- self-test. In this example one program contains three precisions of a network; weights that two of them share are written once.
-- The results are bit-identical to `g:run` on any processor, so both misclassify the same photos. ResNet9 has megabytes of weights:
-- `blob=true` stores them in a file that the program reads, not in its source.

-- %%
for _, net in ipairs(networks) do
	net.model:calibrate(data.loader(choices, net.with), {input = 'uint8@mse', batches = quick and 1 or 4, log = false})
	g = graph.trace(net.model, net.photos[{{1, 1}}])
	net.dir = 'out/05_' .. net.name
	net.variants = {int8 = g:quantize{mode = 'static'}, mixed = g:quantize{mode = 'static', rules = net.rules}, float32 = g}
	print(g:export{dir = net.dir, name = 'net', samples = net.photos, variants = net.variants, profile = '.*conv.*', blob = net.name == 'resnet9'})
	net.compiles = os.execute(('make -s -C %s >%s_make.txt 2>&1 && %s/net --selftest'):format(net.dir, net.dir, net.dir))
	print(net.compiles and 'compiled' or ('no C compiler here, or %s_make.txt says why'):format(net.dir))
end

-- %% [markdown]
-- The program reads photos as floats from standard input and writes logits, which are bit-identical in every precision. `ordered`
-- makes a float network add in the order of its C, which is slower than Quoll's default; networks with codes always do.

-- %%
differ = 0
for _, net in ipairs(networks) do
	n = quick and (net.name == 'resnet9' and 5 or 20) or 100
	if net.compiles then
		pack, input = string.pack, io.open('out/05_photos', 'wb')
		for _, value in ipairs(net.photos[{{1, n}}]:contiguous():view(-1):totable()) do input:write(pack('<f', value)) end
		input:close()
		for name, q in pairs(net.variants) do
			assert(os.execute(('%s/net %s --run <out/05_photos >out/05_logits'):format(net.dir, name)))
			bytes, same, wanted = io.open('out/05_logits', 'rb'):read 'a', 0, q:run(net.photos[{{1, n}}], {ordered = true})
			for i, value in ipairs(wanted:contiguous():view(-1):totable()) do same = same + (string.unpack('<f', bytes, 4 * i - 3) == value and 1 or 0) end
			print(('%s %-8s %d of %d logits have the same bits'):format(net.name, name, same, wanted:nelem()))
			differ = differ + wanted:nelem() - same
		end
		os.execute(('cd %s && ./net int8 --time %d && ./net float32 --time %d | head -1'):format(net.dir, quick and 10 or 100, quick and 2 or 20))
	end
end
print(differ)  --> 0

-- %% [markdown]
-- ## Four bits everywhere
--
-- Post-training quantization to 4-bit weights in all layers and 8-bit activations costs some points of accuracy: each output channel
-- has only 15 levels. After a little more training with the rounding in place (`qat`, learned steps), the weights are adapted to these
-- levels.

-- %%
f:calibrate(calib, {input = 'uint8@mse', batches = quick and 1 or 10})
ptq4 = f:quantize{mode = 'static', weight = 'int4/1@mse'}
q = f:quantize{mode = 'qat', weight = {dtype = 'int4', axis = 1, observer = 'mse', learn = true}, input = {dtype = 'uint8', observer = 'mse', learn = true}}
train = data.loader(images, {batch = 128, shuffle = true, normalize = norm, augment = real and {crop = 4, flip = true} or nil})
epochs = quick and 1 or 2
q:fit(train, {opt = optim.sgd(q, {lr = optim.cosine{lr = quick and 2e-4 or 2e-3, steps = epochs * #train}, momentum = 0.9}), epochs = epochs})
qat4 = q:quantize{mode = 'static'}
r = bench.models({float32 = f, ptq4 = {ptq4, bits = 4, agreement = agreement(f, ptq4)}, qat4 = {qat4, bits = 4, agreement = agreement(f, qat4)},
	static = {static, bits = 8, agreement = agreement(f, static)}}, {data = test, metric = 'accuracy'})
print(r)
r:plot{kind = 'scatter', x = 'weight_bytes', y = 'accuracy', label = 'model', title = 'accuracy against size of the weights', file = 'out/05_bits.png'}
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
print(by.qat4.weight_bytes < (real and 0.14 or 0.17) * by.float32.weight_bytes)  --> true
assert(by.qat4.accuracy > by.float32.accuracy - (quick and 4 or 1.5))
