-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 6  A recurrent language model: dynamic quantization
--
-- An LSTM reads newspaper text word by word and predicts the probability of each next word. Its state passes through the same weights
-- at each step, so errors are fed back, and the ranges of the state depend on the text. Therefore recurrent networks are mostly
-- quantized *dynamically*: weights in advance, activations with their current range.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
os.execute 'mkdir -p out'
tensor.seed(6)

-- %% [markdown]
-- ## Text and model
--
-- Two LSTM layers of 200 units, 10000 words, and an embedding shared with the last layer; weights by `scripts/train.lua lstm`.
-- Without the Penn Treebank the text comes from a Markov chain, and a tiny model is trained.

-- %%
found, why = data.find 'ptb/ptb.train.txt.xz'
if found and data.find 'ptb/ptb.test.txt.xz' then
	print 'input: real (Penn Treebank)'
	real = true
	d = data.ptb{}
	m = dofile(folder .. 'models/lstm.lua'):load(folder .. 'models/lstm.safetensors'):eval()
	batch, steps = 20, 35
else
	print('input: procedural text, because ' .. why)
	d = data.synth{kind = 'markov', n = 60000, seed = 1}
	m = nn.Sequential{nn.Embedding(#d.vocab, 48), nn.LSTM(48, 64, {layers = 2}), nn.Linear(64, #d.vocab)}
	batch, steps = 16, 32
	m:fit(data.loader(d.train, {batch = batch, steps = steps}), {opt = optim.adam(m, {lr = 3e-3, clip = 1}), epochs = quick and 2 or 4, log = false})
	m:eval()
end
test = data.loader(d.test, {batch = batch, steps = steps})
valid = data.loader(d.valid, {batch = batch, steps = steps})
print(m:summary())

-- %% [markdown]
-- ## Integers
--
-- `dynamic` determines the range of each activation at each call, `static` uses ranges calibrated on the validation text.
-- `dynamic_all` has the embedding in int8, too; it is shared with the last layer and takes most of the bytes. Each step of the LSTM
-- is two integer products.

-- %%
m:calibrate(valid, {input = 'uint8', batches = quick and 4 or 50})
float_embedding = {{'embedding.*', false}}
models = {float32 = m,
	dynamic = m:quantize{mode = 'dynamic', weight = 'int8/1', rules = float_embedding},
	dynamic_all = m:quantize{mode = 'dynamic', weight = 'int8/1'},
	static = m:quantize{mode = 'static', weight = 'int8/1', rules = float_embedding},
	['int4:32'] = m:quantize{mode = 'weight_only', weight = 'int4:32', rules = float_embedding}}
batches = quick and 20 or nil
quant.log 'reset'
models.dynamic:evaluate(test, {metric = 'perplexity', batches = 1})
print(quant.log())
print(#quant.log():where{path = 'fallback'})  --> 0

-- %%
r = bench.models(models, {data = test, metric = 'perplexity', batches = batches})
print(r)
r:plot{kind = 'scatter', x = 'weight_bytes', y = 'perplexity', label = 'model', title = 'Penn Treebank, test text', file = 'out/06_ptb.png'}:show()
r:plot{kind = 'bar', x = 'model', y = 'ms', title = 'time of a batch', ylabel = 'ms', file = 'out/06_ms.png'}:show()
r:plot{kind = 'bar', x = 'model', y = {'weight_bytes', 'activation_bytes', 'peak'}, title = 'bytes', file = 'out/06_bytes.png'}:show()
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
print(('perplexity, more than float32: dynamic %+.2f %%, static %+.2f %%, int4:32 %+.2f %%'):format(
	100 * (by.dynamic.value / by.float32.value - 1), 100 * (by.static.value / by.float32.value - 1), 100 * (by['int4:32'].value / by.float32.value - 1)))
print(('%.2f %.1f'):format(by.dynamic.value / by.float32.value, by['int4:32'].value / by.float32.value))  --> 1.00 1.0
assert(by['int4:32'].value < 1.05 * by.float32.value)

-- %% [markdown]
-- ## Fewer bits for the weights
--
-- Perplexity for each number of bits, with one scale per block of 32 weights.

-- %%
rows = {float32 = m}
for _, bits in ipairs{8, 6, 5, 4, 3, 2} do
	rows['bits' .. bits] = {bits = bits, m:quantize{mode = 'weight_only', weight = {bits = bits, block = 32}, rules = float_embedding}}
end
r = bench.models(rows, {data = test, metric = 'perplexity', batches = quick and 5 or 40})
r = r:sort 'perplexity'
print(r)
print(r[#r].bits, r[#r - 1].bits, r[#r - 2].bits)  --> 2 3 4
r:where(function(row) return row.bits end):plot{x = 'bits', y = 'perplexity', title = 'perplexity against bits per weight', file = 'out/06_bits.png'}
