-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 10  Your model: from an ONNX file to the layer that hurts, to 4 bits, to C
--
--     ./quoll tutorials/10_your_model.lua my_model.onnx
--
-- loads the model that you exported from PyTorch, TensorFlow or another program. Without a file the tutorial trains a small network,
-- writes it with `g:export{onnx=}`, and takes that, as if it came from outside.

-- %%
quick, file = os.getenv 'QUOLL_QUICK' ~= nil, nil
for _, a in ipairs(arg or {}) do
	quick = quick or a == '--quick'
	if a:find '%.onnx$' then file = a end
end
os.execute 'mkdir -p out'
tensor.seed(10)
own = file == nil
if own then
	digits = data.synth{kind = 'digits', n = quick and 2000 or 8000, seed = 1}
	train = data.loader(digits, {batch = 64, shuffle = true, normalize = {mean = {0.13}, std = {0.31}}})
	net = nn.Sequential{nn.Conv2d(1, 16, 3, {pad = 1, stride = 2}), nn.ReLU(), nn.Conv2d(16, 32, 3, {pad = 1, stride = 2}), nn.ReLU(), nn.Flatten(),
		nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)}
	net:fit(train, {opt = optim.adam(net, {lr = 1e-3}), epochs = quick and 2 or 4, log = false})
	file = 'out/my_model.onnx'
	graph.trace(net:eval(), tensor.ones(1, 1, 28, 28)):export{onnx = file}
end

-- %% [markdown]
-- ## 1  Load it
--
-- One line. The nodes have the names of the file; what depends on sizes only is computed, and an axis with a name in the file stays the
-- batch (`B`). Where the file leaves other sizes open, `graph.load{file, inputs={x={1, 3, 320, 320}}}` gives them. Ops that are missing
-- are one error that lists them all.

-- %%
g = graph.load(file)
print(g)

-- %% [markdown]
-- Inputs for it: of the data set here, or random numbers of the right sizes for your model. Take your own data for figures that mean
-- something: `tensor.load 'inputs.npy'`.

-- %%
function sizes_of(name, n)
	local list = {}
	for i, size in ipairs(g:node(name).shape) do list[i] = math.type(size) == 'integer' and size or n end
	return list
end
if own then
	for x in train() do
		samples = x:narrow(1, 1, 32)
		break
	end
else
	samples = tensor.randn(table.unpack(sizes_of(g.inputs[1], 8)))
end
want = g:run(samples)
print(samples:size())
print(want:size())

-- %% [markdown]
-- ## 2  A module, and which layer hurts
--
-- `nn.Graph(g)` is a module whose layers are the nodes with weights. Everything works on it that works on a model that was built here:
-- `m:calibrate`, `m:quantize`, `quant.sensitivity`, `m:fit`. The sensitivity says what each layer alone does to the result when its
-- weights have 4 bits, and why. Without labels the float model itself is the teacher: the loss is the squared distance to its outputs.

-- %%
m = nn.Graph(g)
print(m)
batches = {{samples, want}}
hurts = quant.sensitivity(m, {data = batches, spec = 'int4', loss = nn.mse, metric = 'loss', log = false})
print(hurts)

-- %% [markdown]
-- ## 3  4 bits, but for that layer
--
-- 4-bit weights in blocks of 32 with a scale each, and 8 bits for the layer that suffers most.

-- %%
worst = hurts[1]
q = m:quantize{mode = 'weight_only', weight = 'int4:32', rules = {{worst.layer, weight = 'int8/1'}}}
all = m:quantize{mode = 'weight_only', weight = 'int4:32'}
function noise(model) return want:error(model(samples)).sqnr end
print(('bytes: float32 %d, 4 bits %d, with one layer in 8 bits %d'):format(m:nbytes(), all:nbytes(), q:nbytes()))
print(('signal to noise: 4 bits %.1f dB, with %s in 8 bits %.1f dB'):format(noise(all), worst.layer, noise(q)))
print(noise(q) >= noise(all))  --> true

-- %% [markdown]
-- ## 4  Integers, and C
--
-- For a device without floats: calibrate with samples, quantize statically, export. The C file has the same bits as `g:run`, and a
-- self-test that says so.

-- %%
gi = g:calibrate{{samples}}:quantize{mode = 'static'}
print(gi:match {} and noise(function(x) return gi:run(x):dequantize() end) > 15)  --> true
gi:export{dir = 'out/my_model', name = 'my_model', vectors = 1}
print(io.open 'out/my_model/my_model.c' ~= nil)  --> true

-- %% [markdown]
-- `g:export{onnx='out/my_model_int8.onnx'}` writes the quantized graph for other runtimes (QuantizeLinear and DequantizeLinear), and
-- `cd out/my_model && make test` runs the self-test of the C.
