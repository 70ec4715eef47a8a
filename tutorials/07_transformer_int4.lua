-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 7  A language model with 4-bit weights
--
-- A small Transformer that writes like Shakespeare, one character at a time. Large language models are limited by memory bandwidth:
-- to generate one token, every weight is read once. Therefore weights are stored in 4 bits and decoded when they are needed
-- (`weight_only`). How much worse does the model become, and which 4-bit format is best?

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
os.execute 'mkdir -p out'
tensor.seed(7)

-- %% [markdown]
-- ## The text and the model
--
-- The weights are those of `scripts/train.lua transformer`. Without the text, a Markov chain generates one, and a tiny model is
-- trained.

-- %%
if data.find 'text/tinyshakespeare.txt.xz' then
	print 'input: real (tiny Shakespeare)'
	d = data.text{level = 'char', steps = 128}
	m = dofile(folder .. 'models/transformer.lua'):load(folder .. 'models/transformer.safetensors'):eval()
	prompt = 'The '
else
	print('input: procedural text, because ' .. select(2, data.find 'text/tinyshakespeare.txt.xz'))
	d = data.synth{kind = 'markov', n = 60000, seed = 1}
	m = nn.Transformer{vocab = #d.vocab, d = 32, heads = 2, layers = 1, ff = 64, context = 128}
	m:fit(data.loader(d.train, {batch = 16, steps = 64, shuffle = true}), {opt = optim.adam(m, {lr = 3e-3}), epochs = 1, log = false})
	m:eval()
	prompt = d:decode(d.test:narrow(1, 1, 4))
end
print(m)
test = data.loader(d.test, {batch = 32, steps = 128, order = 'windows'})
valid = data.loader(d.valid, {batch = 32, steps = 128, order = 'windows'})

-- %% [markdown]
-- ## Eight formats for the weights
--
-- `int4/1` has one scale per output, `int4:32` one per 32 weights of an output; `uint4:32@mse` clips the range of each block to
-- minimize the squared error. `mxfp4` is 4-bit floating point with a power-of-two scale per 32 weights, `nf4:64` a table of quantiles
-- of the normal distribution with a scale per 64 weights. The embedding stays float.

-- %%
batches = quick and 2 or nil
v = {float32 = m}
for _, s in ipairs{'int8/1', 'int4/1', 'int4:128', 'int4:64', 'int4:32', 'uint4:32@mse', 'mxfp4', 'nf4:64'} do
	v[s] = m:quantize{mode = 'weight_only', weight = s, rules = {{'embedding.*', false}}}
end
r = bench.models(v, {data = test, metric = 'perplexity', batches = batches})
print(r:sort 'weight_bytes')
r:plot{kind = 'scatter', x = 'weight_bytes', y = 'perplexity', label = 'model', title = 'perplexity against size of the weights', file = 'out/07_w4.png'}:show()
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
assert(by['int8/1'].value < 1.01 * by.float32.value and by['int4:32'].value < 1.04 * by.float32.value)
head = v['int4:32'].head.weight
print(8 * head:nbytes() / head:nelem())  --> 4.5
print(('%.2f'):format(by['int8/1'].value / by.float32.value))  --> 1.00
-- most weights of the tiny substitute model are in the embedding, which stays float
assert(by['int4:32'].weight_bytes < (prompt == 'The ' and 0.17 or 0.35) * by.float32.weight_bytes)

-- %% [markdown]
-- ## Integer products
--
-- With 8-bit activations as well, the products run in integers, with ranges determined at each call (`dynamic`) or by calibration on
-- the validation text (`static`).

-- %%
m:calibrate(valid, {input = 'uint8', batches = quick and 2 or 16})
r = bench.models({float32 = m, dynamic = m:quantize{mode = 'dynamic'}, static = m:quantize{mode = 'static'}},
	{data = test, metric = 'perplexity', batches = batches})
print(r)
r:plot{kind = 'bar', x = 'model', y = 'ms', title = 'time of a batch', ylabel = 'ms', file = 'out/07_ms.png'}:show()
for i = 1, #r do assert(r[i].value < 1.01 * r[1].value) end
print(('%.2f'):format(r[2].value / r[1].value))  --> 1.00

-- %% [markdown]
-- ## Generated text

-- %%
for _, name in ipairs{'float32', 'int4:32'} do
	tensor.seed(7)
	print(('-- %s'):format(name))
	print(d:decode(v[name]:generate(d:encode(prompt), {steps = quick and 40 or 300, temperature = 0.8})))
end
