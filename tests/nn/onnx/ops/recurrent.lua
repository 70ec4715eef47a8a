-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local function sigmoid(v) return 1 / (1 + math.exp(-v)) end
local function tanh(v) return 2 * sigmoid(2 * v) - 1 end

it('runs layers of one unit as their formulas do', function()
	local x = tensor {{{1}}, {{-2}}} -- (steps, batch, input)
	local function column(...) return tensor {...}:view(1, -1, 1) end
	local w, r, b = column(0.5, -0.3, 0.2, 0.7), column(0.1, 0.4, -0.6, 0.3), tensor {{0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0}}
	local h, c, want = 0, 0, {}
	for t, v in ipairs {1, -2} do
		local i, o, f = sigmoid(0.5 * v + 0.1 * h + 0.1), sigmoid(-0.3 * v + 0.4 * h + 0.2), sigmoid(0.2 * v - 0.6 * h + 0.3)
		c = f * c + i * tanh(0.7 * v + 0.3 * h + 0.4)
		h = o * tanh(c)
		want[t] = {{{h}}}
	end
	local y, last, cell = run('LSTM', {x, w, r, b}, {hidden_size = 1}, {fixed = {2, 3, 4}, outputs = 3})
	assert(equal(y, want) and equal(last, {{{h}}}) and equal(cell, {{{c}}}))
	h = 0.5
	w, r = column(0.5, -0.3, 0.2), column(0.1, 0.4, -0.6)
	for t, v in ipairs {1, -2} do
		local z, reset = sigmoid(0.5 * v + 0.1 * h), sigmoid(-0.3 * v + 0.4 * h)
		h = (1 - z) * tanh(0.2 * v + reset * (-0.6 * h)) + z * h
		want[t] = {{{h}}}
	end
	y = run('GRU', {x, w, r, false, false, tensor {{{0.5}}}}, {hidden_size = 1, linear_before_reset = 1}, {fixed = {2, 3, 6}})
	assert(equal(y, want))
end)

it('runs in both directions', function()
	local x = tensor {{{1}}, {{-2}}}
	local w, r = tensor {{{0.5}}, {{2}}}, tensor {{{0.1}}, {{-0.4}}}
	local a = tanh(0.5)
	local b = tanh(-1 + 0.1 * a)
	local d = tanh(-4)
	local e = tanh(2 - 0.4 * d)
	local y, last = run('RNN', {x, w, r}, {hidden_size = 1, direction = 'bidirectional'}, {fixed = {2, 3}, outputs = 2})
	assert(equal(y, {{{{a}}, {{e}}}, {{{b}}, {{d}}}}) and equal(last, {{{b}}, {{e}}}))
	local ok, message = pcall(run, 'RNN', {x, w, r}, {hidden_size = 1, direction = 'bidirectional', activations = {'Relu'}}, {fixed = {2, 3}})
	assert(not ok and message:find 'activations: wanted 2, got 1', message)
	ok, message = pcall(run, 'RNN', {x, w, r}, {hidden_size = 1, direction = 'bidirectional', activations = {'Tanh', 'Step'}}, {fixed = {2, 3}})
	assert(not ok and message:find "activations: wanted one of those of ONNX's recurrent layers, got 'step'", message)
	ok, message = pcall(run, 'RNN', {x, w, r}, {hidden_size = 1}, {fixed = {2, 3}})
	assert(not ok and message:find "direction: wanted one that goes with 2, got 'forward'", message)
end)

local function column(...) return tensor {...}:view(1, -1, 1) end
local x = tensor {{{1}, {0.3}}, {{-2}, {0.7}}, {{0.5}, {-1}}} -- (3 steps, 2 sequences, 1)
local X = x:totable()

-- y[step][1][sequence][1] and the last states of f(v, states…) -> states, for one unit.
local function unrolled(f, lens, back, count)
	local y, last = {{{{}, {}}}, {{{}, {}}}, {{{}, {}}}}, {}
	for b = 1, 2 do
		local states = {}
		for i = 1, count or 1 do states[i] = 0 end
		for i = 1, 3 do
			local t = back and 4 - i or i
			if t <= lens[b] then
				states = {f(X[t][b][1], table.unpack(states))}
				y[t][1][b][1] = states[1]
			else
				y[t][1][b][1] = 0
			end
		end
		last[b] = states
	end
	return y, {{{last[1][1]}, {last[2][1]}}}
end

it('resets a GRU before the product, for sequences of any length', function()
	local w, r, b = column(0.5, -0.3, 0.2), column(0.1, 0.4, -0.6), tensor {{0.1, 0.2, 0.3, 0, -0.1, 0.5}}
	local function cell(v, h)
		local z, reset = sigmoid(0.5 * v + 0.1 * h + 0.1), sigmoid(-0.3 * v + 0.4 * h + 0.1)
		return (1 - z) * tanh(0.2 * v - 0.6 * reset * h + 0.8) + z * h
	end
	local function late(v, h)
		local z, reset = sigmoid(0.5 * v + 0.1 * h + 0.1), sigmoid(-0.3 * v + 0.4 * h + 0.1)
		return (1 - z) * tanh(0.2 * v + reset * (-0.6 * h + 0.5) + 0.3) + z * h
	end
	for _, lens in ipairs {{3, 3}, {2, 3}, {1, 0}} do
		for _, way in ipairs {'forward', 'reverse'} do
			for kind, f in ipairs {cell, late} do
				local want, last = unrolled(f, lens, way == 'reverse')
				local given = tensor {lens[1], lens[2], dtype = 'int32'}
				for _, fixed in ipairs {{2, 3, 4, 5}, {2, 3, 4}} do
					local y, h = run('GRU', {x, w, r, b, given}, {hidden_size = 1, direction = way, linear_before_reset = kind - 1}, {fixed = fixed, outputs = 2})
					assert(equal(y, want) and equal(h, last))
				end
			end
		end
	end
	local ok, message = pcall(run, 'GRU', {x, w, r, b, tensor {4, 1, dtype = 'int32'}}, {hidden_size = 1}, {fixed = {2, 3, 4, 5}})
	assert(not ok and message:find 'sequence_lens: wanted 0 to 3, got 4', message)
end)

it('has peepholes, coupled gates and clip in an LSTM', function()
	local w, r, b = column(0.5, -0.3, 0.2, 0.7), column(0.1, 0.4, -0.6, 0.3), tensor {{0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0}}
	local p, zeros = tensor {{0.3, -0.2, 0.6}}, tensor.zeros(1, 2, 1)
	for _, coupled in ipairs {0, 1} do
		local function clip(v) return math.max(-0.4, math.min(0.4, v)) end
		local want, last = unrolled(function(v, h, c)
			local i = sigmoid(clip(0.5 * v + 0.1 * h + 0.1 + 0.3 * c))
			local f = coupled == 1 and 1 - i or sigmoid(clip(0.2 * v - 0.6 * h + 0.3 + 0.6 * c))
			c = f * c + i * tanh(clip(0.7 * v + 0.3 * h + 0.4))
			return sigmoid(clip(-0.3 * v + 0.4 * h + 0.2 - 0.2 * c)) * tanh(clip(c)), c
		end, {3, 3}, false, 2)
		local y, h = run('LSTM', {x, w, r, b, false, zeros, zeros, p}, {hidden_size = 1, clip = 0.4, input_forget = coupled}, {fixed = {2, 3, 4, 8}, outputs = 2})
		assert(equal(y, want) and equal(h, last))
	end
end)

it('has other activations, with their numbers', function()
	local w, r = tensor {{{0.5}}, {{2}}}, tensor {{{0.1}}, {{-0.4}}}
	local y = run('RNN', {x, w, r}, {hidden_size = 1, direction = 'bidirectional', activations = {'Relu', 'Relu'}}, {fixed = {2, 3}})
	local want = unrolled(function(v, h) return math.max(0, 0.5 * v + 0.1 * h) end, {3, 3})
	assert(equal(y:narrow(2, 1, 1), want))
	y = run('RNN', {x, w, r}, {hidden_size = 1, direction = 'bidirectional', activations = {'Affine', 'ScaledTanh'}, activation_alpha = {0.5, 2.0}, activation_beta = {0.25, 0.3}},
		{fixed = {2, 3}})
	want = unrolled(function(v, h) return 0.5 * (0.5 * v + 0.1 * h) + 0.25 end, {3, 3})
	assert(equal(y:narrow(2, 1, 1), want))
	want = unrolled(function(v, h) return 2 * tanh(0.3 * (2 * v - 0.4 * h)) end, {3, 3}, true)
	assert(equal(y:narrow(2, 2, 1), want))
	for name, f in next, {Softsign = function(v) return v / (1 + math.abs(v)) end, Softplus = function(v) return math.log(1 + math.exp(v)) end,
		HardSigmoid = function(v) return math.max(0, math.min(1, 0.2 * v + 0.5)) end, LeakyRelu = function(v) return v < 0 and 0.01 * v or v end,
		Elu = function(v) return v < 0 and math.exp(v) - 1 or v end, ThresholdedRelu = function(v) return v > 1 and v or 0 end} do
		y = run('RNN', {x, w:narrow(1, 2, 1), r:narrow(1, 2, 1)}, {hidden_size = 1, activations = {name}}, {fixed = {2, 3}})
		assert(equal(y, (unrolled(function(v, h) return f(2 * v - 0.4 * h) end, {3, 3}))), name)
	end
end)

it('keeps the batch of what it computes step by step', function()
	local w, r = tensor.randn(1, 9, 3), tensor.randn(1, 9, 3)
	local g = onnx.load {nodes = {onnx.node('GRU', {'x', 'w', 'r', '', 'l'}, {'y'}, {hidden_size = 3})}, inputs = {{'x', 'float32', {5, 'n', 3}}, {'l', 'int32', {'n'}}}, outputs = {'y'},
		initializers = {w = w, r = r}}
	local all, lens = tensor.randn(5, 4, 3), tensor {1, 2, 3, 5, dtype = 'int32'}
	local y = g:run {all, lens}
	for i = 1, 4 do assert(equal(g:run {all:narrow(2, i, 1), lens:narrow(1, i, 1)}, y:narrow(3, i, 1))) end
end)
