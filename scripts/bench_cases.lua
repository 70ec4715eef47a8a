-- SPDX-License-Identifier: MIT
-- What scripts/bench_worker.lua can time: case -> item (or '*') -> function(args) that returns the function to time and how many calls it
-- makes (default 1), and whether it returns the seconds of a call itself. Each is what a user would write. Whole networks are in scripts/bench_nets.lua.
local here = debug.getinfo(1, 'S').source:match '^@(.*)bench_cases.lua$' or ''

-- f called n times counts as n calls.
local function many(n, f)
	return function()
		for _ = 1, n do f() end
	end, n
end

local M16 = 16 << 20
local function uniform(...) return tensor.rand(...) end
local function normal(...) return tensor.randn(...) end
local function bytes(...) return tensor.randint {low = -127, high = 127, dtype = 'int8', ...} end

local function ids(...) return tensor.randint {low = 1, high = 10000, dtype = 'int64', ...} end

-- One step of training a classifier.
local function step_of(m, o, x, y)
	return function()
		o:zero()
		local loss = nn.crossentropy(m(x), y)
		loss:backward()
		o:step()
	end
end

-- ResNet9 at full width.
local function resnet9()
	local function layer(i, o) return nn.Conv2d(i, o, 3, {pad = 1, bias = false}), nn.BatchNorm2d(o), nn.ReLU() end
	local function block(c)
		local a, b, r = layer(c, c)
		return nn.Residual {a, b, r, layer(c, c)}
	end
	local parts = {}
	local function add(...) table.move({...}, 1, select('#', ...), #parts + 1, parts) end
	add(layer(3, 64))
	add(layer(64, 128))
	add(nn.MaxPool2d(2), block(128), layer(128, 256))
	add(nn.MaxPool2d(2), layer(256, 512))
	add(nn.MaxPool2d(2), block(512), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(512, 10))
	return nn.Sequential(parts)
end

local function classes(n, ...) return tensor.randint {low = 1, high = n, dtype = 'int64', ...} end

-- f(...):backward(g), then no gradients again.
local function trained(f, g, ...)
	local leaves = {...}
	for _, t in ipairs(leaves) do t:requires_grad_() end
	return function()
		f():backward(g)
		for _, t in ipairs(leaves) do t:zero_grad() end
	end
end

-- name of an item -> its function: forward, and with '_grad' after the name forward and backward
local function with_gradients(list)
	local items = {}
	for name, make in pairs(list) do
		items[name] = function() return (make()) end
		items[name .. '_grad'] = function()
			local f, g, leaves = make()
			return trained(f, g, table.unpack(leaves))
		end
	end
	return items
end

local function attention(...)
	local q, k, v = uniform(...), uniform(...), uniform(...)
	return function() return nn.attention(q, k, v, {causal = true}) end, uniform(...), {q, k, v}
end

-- forward, the gradient of its result, and what wants a gradient
local with_gradient = with_gradients {
	layernorm_4096x1024 = function()
		local x, w, b = uniform(4096, 1024), uniform(1024), uniform(1024)
		return function() return x:layernorm(w, b) end, uniform(4096, 1024), {x, w, b}
	end,
	attention_b4_h8_t512_d64 = function() return attention(4, 8, 512, 64) end,
	attention_b32_h4_t128_d32 = function() return attention(32, 4, 128, 32) end,
	embed_10000x650 = function()
		local w, chosen = uniform(10000, 650), tensor.randint {700, low = 1, high = 10000}
		return function() return w:embedding(chosen) end, uniform(700, 650), {w}
	end,
	crossentropy_700x10000 = function()
		local x, target = uniform(700, 10000), tensor.randint {700, low = 1, high = 10000}
		return function() return nn.crossentropy(x, target) end, nil, {x}
	end,
	dropout_4M = function()
		local x = uniform(4 << 20)
		return function() return nn.dropout(x) end, uniform(4 << 20), {x}
	end,
}

-- A Linear with bias, quantized, floats in and out.
local function layer_of(a, weight, mode)
	local m, x = nn.Sequential {nn.Linear(a.K, a.N)}:quantize {mode = mode, weight = weight}, uniform(a.M, a.K)
	return function() return tensor.nograd(function() return m(x) end) end
end

-- case -> item (or '*') -> function(args): the function to time, and how many calls it makes
local cases = {
	elementwise = {
		add_16M = function()
			local x, y = uniform(M16), uniform(M16)
			return function() return x + y end
		end,
		exp_16M = function()
			local x = uniform(M16)
			return function() return x:exp() end
		end,
		sum_16M = function()
			local x = uniform(M16)
			return function() return x:sum() end
		end,
		softmax_16M = function()
			local x = uniform(16384, 1024)
			return function() return x:softmax() end
		end,
	},
	gemm_f32 = {
		['*'] = function(a)
			local x, y = uniform(a.M, a.K), uniform(a.K, a.N)
			return function() return x:matmul(y) end
		end,
	},
	gemm_bf16 = { -- operands and results of 16 bits
		['*'] = function(a)
			local x, w = uniform(a.M, a.K):to 'bfloat16', uniform(a.N, a.K):to 'bfloat16'
			hw.force(hw.features().bf16 and 'bf16' or 'avx2 bf16')
			return function() return x:linear(w) end
		end,
	},
	gemm_bf16_tiles = { -- the sums of AMX
		['*'] = function(a)
			local x, w = uniform(a.M, a.K):to 'bfloat16', uniform(a.N, a.K):to 'bfloat16'
			hw.force 'bf16tiles'
			return function() return x:linear(w) end
		end,
	},
	gemm_f16 = {
		['*'] = function(a)
			local x, w = uniform(a.M, a.K):to 'float16', uniform(a.N, a.K):to 'float16'
			return function() return x:linear(w) end
		end,
	},
	-- activations that arrive as codes, weights with a scale per output, bias: float32
	gemm_i8 = {
		['*'] = function(a)
			local x = uniform(a.M, a.K):quantize {dtype = 'uint8', scale = 1 / 255, zero_point = 3}
			local w, b = normal(a.N, a.K):quantize 'int8/1', uniform(a.N)
			return function() return x:linear(w, b) end
		end,
	},
	gemm_i8_matmul = { -- plain numbers
		['*'] = function(a)
			local x, y = bytes(a.M, a.K), bytes(a.K, a.N)
			return function() return x:matmul(y) end
		end,
	},
	gemm_i8_dynamic = {['*'] = function(a) return layer_of(a, 'int8/1', 'dynamic') end},
	w4 = {['*'] = function(a) return layer_of(a, 'int4:32', 'dynamic') end},
	w4_float = {['*'] = function(a) return layer_of(a, 'int4:32', 'weight_only') end},
	format = {['*'] = function(a) return layer_of(a, a.spec, a.way) end},
	conv_i8 = { -- 3 x 3 with padding, codes in and out; with groups=I depthwise, of codes as a convolution before it leaves them
		['*'] = function(a)
			local x = uniform(a.B, a.I, a.H, a.H):quantize {dtype = 'uint8', scale = 1 / 255, zero_point = 3}
			local w, b = normal(a.O, a.I // (a.groups or 1), 3, 3):quantize 'int8/1', uniform(a.O)
			local o = {pad = 1, groups = a.groups, out = {dtype = 'uint8', scale = 0.1, zero_point = 100}}
			if a.groups then x = x:conv2d(normal(a.I, a.I, 1, 1):quantize 'int8/1', {out = o.out}) end
			return function() return x:conv2d(w, b, o) end
		end,
	},
	exported = {['*'] = function(a)
		assert(tensor.threads() == 1, 'exported C has one thread')
		return dofile(here .. 'bench_nets.lua').exported(a.target), 1, true
	end},
	nets = {['*'] = function(a) return dofile(here .. 'bench_nets.lua').call(a.net, a.way, a.batch, a.graph == 1) end},
	conv = { -- 3 x 3 with padding: forward; with grad=1 forward and both gradients (of the weight only for images)
		['*'] = function(a)
			local x, w = uniform(a.B, a.I, a.H, a.H), uniform(a.O, a.I, 3, 3)
			if a.grad ~= 1 then
				local b = uniform(a.O)
				return function() return x:conv2d(w, b, {pad = 1}) end
			end
			local g = uniform(a.B, a.O, a.H, a.H)
			if a.I > 3 then x:requires_grad_() end
			w:requires_grad_()
			return function()
				x:conv2d(w, {pad = 1}):backward(g)
				x:zero_grad()
				w:zero_grad()
			end
		end,
	},
	norm = { -- batch norm in training: forward; with grad=1 with all gradients
		['*'] = function(a)
			local x, w, b = uniform(a.B, a.I, a.H, a.H), tensor.ones(a.I), tensor.zeros(a.I)
			local m, v = tensor.zeros(a.I), tensor.ones(a.I)
			if a.grad ~= 1 then
				return function() return nn.batchnorm(x, w, b, m, v, {training = true}) end
			end
			local g = uniform(a.B, a.I, a.H, a.H)
			for _, t in ipairs {x, w, b} do t:requires_grad_() end
			return function()
				nn.batchnorm(x, w, b, m, v, {training = true}):backward(g)
				for _, t in ipairs {x, w, b} do t:zero_grad() end
			end
		end,
	},
	pool = { -- largest of 2 x 2; with grad=1 with its gradient
		['*'] = function(a)
			local x = uniform(a.B, a.I, a.H, a.H)
			if a.grad ~= 1 then return function() return x:maxpool2d(2) end end
			local g = uniform(a.B, a.I, a.H // 2, a.H // 2)
			x:requires_grad_()
			return function()
				x:maxpool2d(2):backward(g)
				x:zero_grad()
			end
		end,
	},
	quantize = {
		quant_tensor = function(a)
			local x = uniform(a.n // 4096, 4096)
			return function() return x:quantize {dtype = 'int8', scale = 1 / 127} end
		end,
		quant_block32 = function(a)
			local x = uniform(a.n // 4096, 4096)
			return function() return x:quantize 'int8:32' end
		end,
		quant_row = function(a)
			local x = uniform(a.n // 4096, 4096)
			return function() return x:quantize 'int8/1' end
		end,
		dequant_tensor = function(a)
			local q = uniform(a.n // 4096, 4096):quantize 'int8'
			return function() return q:dequantize() end
		end,
		minmax = function(a)
			local x = uniform(a.n // 4096, 4096)
			return function() return x:aminmax() end
		end,
		dyn_quant = function(a)
			local x = uniform(a.n // 4096, 4096)
			return function() return x:quantize 'int8' end
		end,
		observe = function(a)
			local x, o = uniform(a.n // 4096, 4096), quant.observer 'int8@mse'
			return function() return o:update(x) end
		end,
	},
	nnops = {
		chain_4M = function()
			local x, y = uniform(4 << 20), uniform(4 << 20)
			local chain = tensor.fuse(function(a, b) return (a * 2 + b):tanh() * a - b end)
			return function() return chain(x, y) end
		end,
		softmax_4096x1024 = function()
			local x = uniform(4096, 1024)
			return function() return x:softmax() end
		end,
		gelu_4M = function()
			local x = uniform(4 << 20)
			return function() return x:gelu() end
		end,
		lstm_650_b20_t35 = function()
			local m, x = nn.LSTM(650, 650), uniform(20, 35, 650)
			return function() return tensor.nograd(function() return m(x) end) end
		end,
		adamw_1M = function()
			local x = uniform(1 << 20):requires_grad_()
			x:backward(uniform(1 << 20))
			local o = optim.adamw {x}
			return function() o:step() end
		end,
	},
	train = {
		mlp_784_512_512_10_b128 = function()
			local m = nn.Sequential {nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)}
			return step_of(m, optim.sgd(m, {lr = 0.01, momentum = 0.9}), uniform(128, 784), classes(10, 128))
		end,
		resnet9_b64 = function()
			local m = resnet9()
			return step_of(m, optim.sgd(m, {lr = 0.01, momentum = 0.9}), uniform(64, 3, 32, 32), classes(10, 64))
		end,
		transformer_256x4_t128_b16 = function()
			local m = nn.Transformer {vocab = 10000, d = 256, heads = 8, layers = 4, ff = 1024, act = 'relu', context = 128}
			return step_of(m, optim.adamw(m, {lr = 1e-3}), ids(16, 128), ids(16, 128))
		end,
		-- one layer alone, forward and backward
		lstm_200_t35_b20 = function()
			local m, x, g = nn.LSTM(200, 200), uniform(20, 35, 200):requires_grad_(), uniform(20, 35, 200)
			return function()
				m:zero_grad()
				x:zero_grad()
				local y = m(x)
				y:backward(g)
			end
		end,
		lstm_lm_650_t35_b20_v10000 = function()
			local m = nn.Sequential {nn.Embedding(10000, 650), nn.LSTM(650, 650, {layers = 2}), nn.Linear(650, 10000)}
			return step_of(m, optim.sgd(m, {lr = 1}), ids(20, 35), ids(20, 35))
		end,
	},
	overhead = {
		add8 = function()
			local x = tensor.ones(8)
			return many(1000, function() return x + x end)
		end,
		add8_grad = function()
			local x, y = tensor.ones(8), tensor.ones(8):requires_grad_()
			return many(200, function()
				(y + x):sum():backward()
				y:zero_grad()
			end)
		end,
		matmul8 = function()
			local x = tensor.ones(8, 8)
			return many(1000, function() return x:matmul(x) end)
		end,
		call_fn = function()
			local t = {f = function(x) return x end}
			local n = 100000
			return function()
				local s
				for i = 1, n do s = t.f(i) end
				return s
			end, n
		end,
		loop_add = function()
			local n = 100000
			return function()
				local s = 0.0
				for i = 1, n do s = s + i end
				return s
			end, n
		end,
	},
}

for name, make in pairs(with_gradient) do cases.nnops[name] = make end

return cases
