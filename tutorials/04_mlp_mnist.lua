-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 4  A perceptron: train, calibrate, quantize, measure
--
-- The complete workflow: handwritten digits, a network of three layers, 8-bit integers, and a table of speed, size and accuracy. The
-- network is trained in this tutorial (with `--quick` on a part of the images).

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
os.execute 'mkdir -p out'
tensor.seed(1)

-- %% [markdown]
-- ## Data
--
-- Images are uint8 tensors with the scale 1/255: they are quantized already and need no scaling. The last 5000 training images are
-- reserved for validation (`split='validation'`); the test images are used once, at the end.

-- %%
found, why = data.find 'mnist/train-images-idx3-ubyte.gz'
if found and data.find 'mnist/t10k-images-idx3-ubyte.gz' then
	print 'input: real (MNIST)'
	images, choices, unseen = data.mnist{split = 'train', limit = quick and 12000 or nil}, data.mnist{split = 'validation'}, data.mnist{split = 'test', limit = quick and 2000 or nil}
else
	print('input: procedural digits, because ' .. why)
	local all = data.synth{kind = 'digits', n = quick and 8000 or 40000, seed = 1}
	images, choices = all:split(0.9)
	unseen = data.synth{kind = 'digits', n = 2000, seed = 2}
end
print(images)
train = data.loader(images, {batch = 128, shuffle = true})
valid, test = data.loader(choices, {batch = 500}), data.loader(unseen, {batch = 500})

-- %% [markdown]
-- ## Training

-- %%
m = dofile(folder .. 'models/mlp.lua')
print(m)
print(m:nbytes(), #m:named())  --> 940584 6
epochs = quick and 3 or 10
r = m:fit(train, {opt = optim.adam(m, {lr = optim.cosine{lr = 2e-3, steps = epochs * #train}}), loss = nn.crossentropy, epochs = epochs,
	validate = valid, metric = 'accuracy'})
print(r)
assert(r[#r].valid > (quick and 94 or 97.5))

-- %% [markdown]
-- ## Two quantization modes
--
-- **dynamic**: weights become int8 once, with one scale per output; the range of the activations is determined at each call.
-- **static**: the range is determined in advance by calibration and then fixed. No range has to be found at inference, and codes pass
-- from layer to layer without conversion to float, as the column `output` shows.

-- %%
dyn = m:quantize{mode = 'dynamic', weight = 'int8/1', input = 'uint8'}
m:calibrate(valid, {input = 'uint8@entropy', batches = 10})
print(m:observers())
sta, coverage = m:quantize{mode = 'static', weight = 'int8/1'}
print(coverage)
assert(coverage[1].output ~= 'float')

-- %% [markdown]
-- The ledger confirms it: three integer products and no fallback.

-- %%
quant.log 'reset'
for x in test() do
	sta(x)
	break
end
print(quant.log())
assert(#quant.log():where{path = 'fallback'} == 0)

-- %% [markdown]
-- ## Speed, size and accuracy

-- %%
r = bench.models({float32 = m, dynamic = dyn, static = sta}, {data = test, metric = 'accuracy'})
print(r)
r:plot{kind = 'bar', x = 'model', y = 'accuracy', title = 'MNIST perceptron', ylabel = '% correct', file = 'out/04_accuracy.png'}:show()
r:plot{kind = 'bar', x = 'model', y = 'ms', title = 'time of a batch of 500', ylabel = 'ms', file = 'out/04_ms.png'}:show()
r:plot{kind = 'bar', x = 'model', y = {'weight_bytes', 'activation_bytes'}, title = 'bytes', file = 'out/04_bytes.png'}:show()
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
assert(by.static.accuracy > by.float32.accuracy - 0.3 and by.dynamic.accuracy > by.float32.accuracy - 0.3)
assert(by.static.weight_bytes < 0.26 * by.float32.weight_bytes)

-- %% [markdown]
-- ## Fewer bits
--
-- 4-bit weights in blocks of 32 are multiplied in float (`weight_only`): smaller, but not faster.

-- %%
rows = {}
for _, spec in ipairs{'int8/1', 'int4/1', 'int4:32', 'int4:16', 'binary/1'} do
	rows[spec] = m:quantize{mode = 'weight_only', weight = spec}
end
r = bench.models(rows, {data = test, metric = 'accuracy'})
print(r:sort 'weight_bytes')
r:plot{kind = 'scatter', x = 'weight_bytes', y = 'accuracy', label = 'model', title = 'accuracy against size of the weights', file = 'out/04_bits.png'}
