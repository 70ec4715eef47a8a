-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 11  4 bits without tears
--
-- Rounding is where a 4-bit model breaks: ResNet8 with one scale a row answers 542 of 1000 images rightly, 881 in floats. Methods that look at a few
-- inputs win most of that back, without labels and without training:
--
--     ./quoll tutorials/11_four_bits.lua                 ResNet8, or a small network where its weights are not there
--     ./quoll tutorials/11_four_bits.lua my_model.onnx   your model
--
-- `help 'methods'` lists them, with what each costs and when it does not help.

-- %%
quick, file = os.getenv 'QUOLL_QUICK' ~= nil, nil
for _, a in ipairs(arg or {}) do
	quick = quick or a == '--quick'
	if a:find '%.onnx$' then file = a end
end
tensor.seed(11)
folder = debug.getinfo(1, 'S').source:match '^@(.*/)' or 'tutorials/'

-- %% [markdown]
-- ## 1  A model, some of its inputs, and how good it is
--
-- Calibration needs inputs only. 256 images are enough here; section 4 shows how much is.

-- %%
function photographs()
	local weights, images = data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', data.find 'cifar10/data_batch_5.bin.xz'
	if not weights or not images or not data.find 'cifar10/test_batch_first1000.bin.xz' then return end
	print 'input: real (ResNet8)'
	local m, names = dofile(folder .. 'models/resnet8.lua')
	local as_bytes = {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}}
	return m:load(weights, {rename = names}):eval():fuse(), data.loader(data.cifar10 {split = 'validation', limit = quick and 32 or 256}, {batch = quick and 16 or 64, normalize = as_bytes}),
		data.loader(data.cifar10 {split = 'test', limit = quick and 100 or 1000}, {batch = quick and 50 or 250, normalize = as_bytes})
end

function digits()
	print 'input: procedural digits, because the weights of ResNet8 or photographs are not there'
	local normal = {mean = {0.13}, std = {0.31}}
	local function some(n, seed, batch) return data.loader(data.synth {kind = 'digits', n = n, seed = seed}, {batch = batch, normalize = normal}) end
	local m = nn.Sequential {nn.Conv2d(1, 8, 3, {pad = 1, stride = 2}), nn.ReLU(), nn.Conv2d(8, 16, 3, {pad = 1, stride = 2}), nn.ReLU(), nn.Flatten(),
		nn.Linear(16 * 7 * 7, 32), nn.ReLU(), nn.Linear(32, 10)}
	local seen = some(quick and 2000 or 8000, 1, 64)
	m:fit(seen, {opt = optim.adam(m, {lr = 2e-3}), epochs = 2, log = false})
	return m:eval(), some(256, 2, 64), some(500, 3, 250)
end

if file then
	m = nn.Graph(graph.load(file))
	shape = {}
	for i, n in ipairs(m.graph:node(m.graph.inputs[1]).shape) do shape[i] = math.type(n) == 'integer' and n or 8 end
	calibration = {}
	for i = 1, 4 do calibration[i] = {tensor.randn(table.unpack(shape))} end -- take your own inputs: tensor.load 'inputs.npy'
	test, metric = {}, 'loss'
	for i = 1, 2 do
		local x = tensor.randn(table.unpack(shape))
		test[i] = {x, m(x)}
	end
	loss = nn.mse
else
	m, calibration, test = photographs()
	if not m then m, calibration, test = digits() end
	metric = 'accuracy'
end
spec = file and 'int4:32' or 'int4/1'
print(m)
print(m:evaluate(test, {metric = metric, loss = loss, log = false}))

-- %% [markdown]
-- ## 2  Rounding, and which layer it hurts
--
-- `method='rtn'` is what `m:quantize` does anyway, but with data the report says what each layer loses: `rtn` and `error` are the ratio of its outputs to
-- their error (dB), `block` that of the part of the network that it is in, behind all quantized parts before it.

-- %%
rounded, report = m:quantize {mode = 'weight_only', weight = spec, method = 'rtn', data = calibration, log = false}
print(report)
print(rounded:evaluate(test, {metric = metric, loss = loss, log = false}))

-- %% [markdown]
-- ## 3  GPTQ, and a chain
--
-- GPTQ rounds one column after the other and makes up for each error in the columns behind it. A chain is a list of methods in the order in which
-- they decide: ranges first, then codes, then biases. What is worse than rounding on the calibration data is not taken, and `why` says so.

-- %%
q, report = m:quantize {mode = 'weight_only', weight = spec, data = calibration, log = false,
	method = {{'gptq', range = 'mse', act = true}, 'biascorrect'}}
print(report)
print(q:evaluate(test, {metric = metric, loss = loss, log = false}))

-- %% [markdown]
-- ## 4  Which method for my model?
--
-- One call tries many on the same data and ranks them by the metric on other data. `sizes=` shows how much calibration data is enough.

-- %%
tried = {'rtn', 'mse', 'gptq', 'biascorrect', {'mse', 'gptq'}, {{'gptq', range = 'mse', act = true}, 'biascorrect'}}
if quick then tried = {'rtn', 'gptq', 'biascorrect'} end
ranking = quant.methods(m, tried, {mode = 'weight_only', weight = spec, data = calibration, test = test, metric = metric, loss = loss, log = false})
print(ranking)

-- %% [markdown]
-- ## 5  Not the same for all layers
--
-- Rules choose methods too: here the first layer, which has few weights, stays in 8 bits.

-- %%
names = {}
for _, row in ipairs(report) do
	if row.method then names[#names + 1] = row.name end
end
mixed, report = m:quantize {mode = 'weight_only', weight = spec, data = calibration, log = false, method = {'mse', 'gptq'},
	rules = {{names[1]:gsub('[^%w_]', '.') .. '$', 'int8/1', method = 'rtn'}}}
print(report)
print(mixed:evaluate(test, {metric = metric, loss = loss, log = false}), mixed:nbytes(), q:nbytes())

-- %% [markdown]
-- ## 6  A language model, calibrated by itself
--
-- Whoever has no texts lets the model write some: `data.self`. Blocks of 32 weights with a scale and a minimum each (`+min`) are the best 4 bits for small
-- language models; `awq` moves factors from inputs into weights, `imatrix` lets large inputs count more.

-- %%
stories = data.find 'weights/stories260K.bin'
if stories and not quick and not file then
	language = nn.llama(stories)
	texts = data.self(language, {texts = 8, steps = 256, begin = tensor {{2}, dtype = 'int64'}, seed = 1})
	held = data.self(language, {texts = 4, steps = 256, begin = tensor {{2}, dtype = 'int64'}, seed = 99})
	print(quant.methods(language, {'rtn', 'gptq', {'imatrix', {'gptq', act = true}}, {'seqmse', {'gptq', act = true}}},
		{mode = 'weight_only', weight = 'uint4:32+min', data = texts, test = held, metric = 'perplexity', log = false}))
else
	print 'skipped: stories260K is not there, or --quick'
end
