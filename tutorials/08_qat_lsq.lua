-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 8  Training for few bits: quantization-aware training with learned steps
--
-- With 8 bits, post-training quantization works. With 2 bits it does not: a weight has only four codes, and rounding to them destroys
-- the accuracy. **Quantization-aware training** includes the rounding in training: the forward pass uses rounded values, the backward
-- pass treats the rounding as the identity (the straight-through estimator). **LSQ** (Esser et al. 2020) also learns the step sizes.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
os.execute 'mkdir -p out'
tensor.seed(8)

-- %%
found, why = data.find 'mnist/train-images-idx3-ubyte.gz'
m = dofile(folder .. 'models/lenet.lua')
if found and data.find 'mnist/t10k-images-idx3-ubyte.gz' then
	print 'input: real (MNIST)'
	images, unseen = data.mnist{split = 'train', limit = quick and 1500 or nil}, data.mnist{split = 'test', limit = quick and 500 or nil}
	m:load(folder .. 'models/lenet.safetensors')
else
	print('input: procedural digits, because ' .. why)
	images, unseen = data.synth{kind = 'digits', n = quick and 4000 or 20000, seed = 1}, data.synth{kind = 'digits', n = 1000, seed = 2}
	m:fit(data.loader(images, {batch = 64, shuffle = true}), {opt = optim.adam(m, {lr = 2e-3}), epochs = 1})
end
train, test = data.loader(images, {batch = 128, shuffle = true}), data.loader(unseen, {batch = 500})
m = m:fuse()
print(m:nbytes())  --> 246824
print(m:evaluate(test, {metric = 'accuracy'}))

-- %% [markdown]
-- ## The same network with 8, 4, 3 and 2 bits
--
-- Weights *and* activations of all layers, including the first and the last. `ptq` is post-training quantization with the range of
-- least squared error; `lsq` trains a little longer and is then converted, so the measured model runs in integers. Most papers keep
-- the first and the last layer in 8 bits, as they are small and sensitive: `ends8` does so with two rules.

-- %%
function steps(b) return {bits = b, axis = 1, learn = true}, {bits = b, scheme = 'asymmetric', learn = true} end
function learned(b, rules)
	local weight, input = steps(b)
	local q = m:quantize{mode = 'qat', weight = weight, input = input, rules = rules}
	local epochs = b > 2 and 1 or 3
	q:fit(train, {opt = optim.adam(q, {lr = optim.cosine{lr = 1e-3, steps = epochs * #train}}), loss = nn.crossentropy, epochs = epochs})
	for x in test() do
		print(b .. ' bits')
		print(q:verify(x))
		break
	end
	return q:quantize{mode = 'static'}
end
out = {float32 = m}
for _, b in ipairs(quick and {8, 2} or {8, 4, 3, 2}) do
	m:calibrate(train, {input = {bits = b, scheme = 'asymmetric', observer = 'mse'}, batches = 8, log = false})
	out['ptq' .. b] = {bits = b, method = 'ptq', m:quantize{mode = 'static', weight = {bits = b, axis = 1, observer = 'mse'}}}
	out['lsq' .. b] = {bits = b, method = 'lsq', learned(b)}
end
if not quick then
	local weight, input = steps(8)
	out.ends8 = {bits = 2, method = 'lsq', learned(2, {{'conv1', weight = weight, input = input}, {'linear3', weight = weight, input = input}})}
end
r = bench.models(out, {data = test, metric = 'accuracy'})
print(r)
r:where{method = 'ptq'}:plot{x = 'bits', y = 'accuracy', title = 'rounded afterwards', file = 'out/08_ptq.png'}:show()
r:plot{kind = 'scatter', x = 'weight_bytes', y = 'accuracy', label = 'model', title = 'accuracy against size, by method', file = 'out/08_qat.png'}

-- %%
by = {}
for i = 1, #r do by[r[i].model] = r[i] end
assert(by.lsq2.accuracy >= (quick and 94 or 97) and by.lsq2.accuracy > by.ptq2.accuracy + 5, 'learned steps must be worth it at 2 bits')
assert(quick or by.ends8.accuracy >= 97.5)
assert(by.lsq8.accuracy > by.float32.accuracy - 1)
