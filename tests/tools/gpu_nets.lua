-- SPDX-License-Identifier: MIT
-- Small versions of the networks of the tutorials 4 to 7, with data, for tests of devices. Gives a list of tables
--   name
--   make()      a new model, the same at each call
--   batches(n)  n batches {x, y} on the CPU, the same at each call
--   opt(m)      an optimizer as in the tutorial
-- and trained(net, mode), quantized(net, mode).
local function conv(inputs, outputs)
	return nn.Conv2d(inputs, outputs, 3, {pad=1, bias=false}), nn.BatchNorm2d(outputs), nn.ReLU()
end

local function residual(channels)
	local a, b, c = conv(channels, channels)
	local d, e, f = conv(channels, channels)
	return nn.Residual {a, b, c, d, e, f}
end

-- The order of layers of tutorials/models/resnet9.lua.
local function resnet9()
	local list = {}
	local function add(...) table.move({...}, 1, select('#', ...), #list + 1, list) end
	add(conv(3, 4))
	add(conv(4, 8))
	add(nn.MaxPool2d(2), residual(8))
	add(conv(8, 8))
	add(nn.MaxPool2d(2))
	add(conv(8, 16))
	add(nn.MaxPool2d(2), residual(16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 10))
	return nn.Sequential(list)
end

-- The last layer shares the embedding, as in tutorials/models/lstm.lua.
local function lstm()
	local m = nn.Sequential {nn.Embedding(40, 16), nn.Dropout(0.2), nn.LSTM(16, 16, {layers=2, dropout=0.2}), nn.Dropout(0.2), nn.Linear(16, 40)}
	m.linear1.weight = m.embedding1.weight
	return m
end

local function images(channels, size, batch)
	return function(n)
		tensor.seed(5)
		local list = {}
		for i = 1, n do
			list[i] = {tensor.randn {batch, channels, size, size}, tensor.randint {batch, low=1, high=10}}
		end
		return list
	end
end

local function texts(vocab, batch, steps, stream)
	return function(n)
		tensor.seed(5)
		local list = {stream = stream} -- true: a layer's state goes from batch to batch
		for i = 1, n do
			local text = tensor.randint {batch, steps + 1, low=1, high=vocab}
			list[i] = {text:narrow(2, 1, steps):contiguous(), text:narrow(2, 2, steps):contiguous()}
		end
		return list
	end
end

local nets = {
	{name = 'mlp', build = function() return nn.Sequential {nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10)} end,
		batches = images(1, 8, 16), opt = function(m) return optim.adam(m, {lr = 2e-3}) end},
	{name = 'resnet9', build = resnet9,
		batches = images(3, 16, 4), opt = function(m) return optim.sgd(m, {lr = 0.02, momentum = 0.9, decay = 5e-4}) end},
	{name = 'lstm', build = lstm,
		batches = texts(40, 4, 6, true), opt = function(m) return optim.adam(m, {lr = 3e-3, clip = 1}) end},
	{name = 'transformer', build = function() return nn.Transformer {vocab=40, d=16, heads=2, layers=2, ff=32, context=16, causal=true, dropout=0.1} end,
		batches = texts(40, 4, 8), opt = function(m) return optim.adam(m, {lr = 3e-3}) end},
}

for _, net in ipairs(nets) do
	function net.make()
		tensor.seed(3)
		return net.build()
	end
end

-- A model of the CPU that is trained in a mode: float, train, qat.
function nets.trained(net, mode)
	local m = net.make()
	if mode == 'float' then return m end
	return (m:quantize {mode = mode})
end

-- A quantized model of the CPU: dynamic, static, weight_only.
function nets.quantized(net, mode)
	local m = net.make()
	if mode == 'static' then m:calibrate(net.batches(2), {input = 'uint8', log = false}) end
	return (m:quantize {mode = mode, weight = 'int8/1'})
end

return nets
