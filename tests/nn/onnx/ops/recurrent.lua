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
	local ok, message = pcall(run, 'RNN', {x, w, r}, {hidden_size = 1, activations = {'Relu', 'Relu'}}, {fixed = {2, 3}})
	assert(not ok and message:find "activations: wanted Tanh, got 'Relu'", message)
end)
