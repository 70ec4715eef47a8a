-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 3  Calibration: what range?
--
-- The weights of a network are known, but its activations are not: before they can become 8-bit codes, their range must be
-- determined. An **observer** estimates the range from batches of data. If it uses the largest value, one outlier makes every step
-- coarse; if it clips too early, large values are wrong. Each observer is a different compromise.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
os.execute 'mkdir -p out'
tensor.seed(3)

-- %% [markdown]
-- ## Six observers on the same data
--
-- Batches like those after a ReLU, with one outlier. All observers process all batches; none stores them: each has a histogram of
-- fixed size.

-- %%
function batch()
	local x = tensor.randn{4096}:relu()
	x[1] = 40
	return x
end
names = {'minmax', 'average', 'percentile', 'entropy', 'mse', 'adaptive'}
obs = {uint8 = {}, uint4 = {}}
for dtype, list in pairs(obs) do
	for _, name in ipairs(names) do list[name] = quant.observer(dtype .. '@' .. name) end
end
for i = 1, quick and 16 or 64 do
	local x = batch()
	for _, list in pairs(obs) do
		for _, o in pairs(list) do o:update(x) end
	end
end
x, r = batch(), {columns = {'dtype', 'observer', 'hi', 'sqnr', 'bulk', 'clipped'}}
bulk = x[{{2, 4096}}]
for _, dtype in ipairs{'uint8', 'uint4'} do
	for _, name in ipairs(names) do
		local p = obs[dtype][name]:params()
		local spec = {dtype = dtype, scale = p.scale, zero_point = p.zero_point}
		local e, inside = x:error(x:quantize(spec)), bulk:error(bulk:quantize(spec))
		r[#r + 1] = {dtype = dtype, observer = name, hi = select(2, obs[dtype][name]:range()),
			sqnr = e.sqnr, bulk = inside.sqnr, clipped = e.clipped}
	end
end
r = report(r)
print(r)

-- %% [markdown]
-- `sqnr` includes the outlier, `bulk` does not. At 8 bits there are enough steps for both: the observers that minimize an error keep
-- the outlier, too. At 4 bits they differ. minmax keeps the outlier at the cost of the bulk, entropy and percentile do the opposite,
-- and mse has the smallest squared error. Which one is best depends on how much the outlier matters to the network, as the next
-- section shows.

-- %%
four = r:where{dtype = 'uint4'}
function of(name) return four:where{observer = name} end
print(of 'minmax'.hi)  --> 40.0
assert(of('entropy').bulk > of('minmax').bulk + 3)
for _, name in ipairs(names) do assert(of('mse').sqnr >= of(name).sqnr - 0.2, name) end
four:plot{kind = 'bar', x = 'observer', y = {'sqnr', 'bulk'}, title = '4 bits: with and without the outlier', ylabel = 'dB',
	file = 'out/03_observers.png'}:show()
print(obs.uint4.minmax:stats())
obs.uint4.entropy:plot{file = 'out/03_entropy.png'}:show()
obs.uint4.minmax:plot{file = 'out/03_minmax.png'}

-- %% [markdown]
-- ## Real activations
--
-- The activations of a trained perceptron for handwritten digits. `m:calibrate` puts an observer before every layer and runs batches
-- through the model, whose outputs do not change. Without the data, procedural digits are used.

-- %%
folder = (arg and arg[0] or ''):match '^(.*/)' or ''
found, why = data.find 'mnist/train-images-idx3-ubyte.gz'
real = found and data.find 'mnist/t10k-images-idx3-ubyte.gz'
if real then
	print 'input: real (MNIST)'
	images, test = data.mnist{split = 'validation'}, data.mnist{split = 'test'}
else
	print('input: procedural digits, because ' .. why)
	images, test = data.synth{kind = 'digits', n = 2000, seed = 1}, data.synth{kind = 'digits', n = 1000, seed = 2}
end
m = dofile(folder .. 'models/mlp.lua')
if real then
	m:load(folder .. 'models/mlp.safetensors')
else
	m:fit(data.loader(images, {batch = 100, shuffle = true}), {opt = optim.adam(m, {lr = 2e-3}), epochs = 3, log = false})
end
calibration = data.loader(images, {batch = 100})
if quick then test = test:narrow(1, 1000) end
test = data.loader(test, {batch = 500})

-- %%
rows = {columns = {'observer', 'bits', 'hi', 'accuracy'}}
full = m:evaluate(test, {metric = 'accuracy', log = false}).accuracy
for _, bits in ipairs{8, 4} do
	for _, name in ipairs{'minmax', 'average', 'percentile', 'entropy', 'mse', 'adaptive'} do
		m:calibrate(calibration, {input = {bits = bits, scheme = 'asymmetric', observer = name}, batches = 16, log = false})
		local q = m:quantize{mode = 'static', weight = 'int8/1'}
		rows[#rows + 1] = {observer = name, bits = bits, hi = m:observers()[3].hi,
			accuracy = q:evaluate(test, {metric = 'accuracy', log = false}).accuracy}
	end
end
r = report(rows)
print(('float32: %.2f %%'):format(full))
print(r)
assert(r:where{bits = 8}:best('accuracy').accuracy > full - 0.5)
r:where{bits = 4}:plot{kind = 'bar', x = 'observer', y = 'accuracy', title = 'activations in 4 bits', ylabel = '% correct',
	file = 'out/03_accuracy.png'}

-- %% [markdown]
-- At 8 bits any observer is good enough for this network. At 4 bits there are only 16 steps, and the choice of the range matters.
-- `hi` is the upper end of the range chosen for the input of the last layer.
--
-- ## User-defined observers
--
-- An observer may be a function of the histogram: `counts` for bins between `lo` and `hi`.

-- %%
half = quant.observer{dtype = 'uint8', observer = function(h) return 0, h.hi / 2 end}
half:update(tensor.linspace(0, 8, 100))
print(('%.3f'):format(half:params().scale:item() * 255))  --> 4.000
