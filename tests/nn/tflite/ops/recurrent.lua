-- SPDX-License-Identifier: MIT
-- labels: quick
-- Recurrent ops of TFLite, step by step in the test.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)

local function lstm(options, gates, more)
	local n, hidden = 3, 4
	local x = tensor.randn(2, 5, n)
	local inputs, fixed = {x}, {}
	for i = 1, 4 do inputs[1 + i] = gates[i] and tensor.randn(hidden, n) or false end
	for i = 1, 4 do inputs[5 + i] = gates[i] and tensor.randn(hidden, more.out or hidden) or false end
	for i = 1, 3 do inputs[9 + i] = more.peep and tensor.randn(hidden) or false end
	for i = 1, 4 do inputs[12 + i] = gates[i] and tensor.randn(hidden) or false end
	inputs[17], inputs[18] = more.out and tensor.randn(more.out, hidden) or false, false
	for i = 19, 20 do inputs[i] = tensor.zeros(1, i == 19 and more.out or hidden) end
	for i = 1, 4 do inputs[20 + i] = more.norm and tensor.randn(hidden) or false end
	for i = 2, 24 do fixed[#fixed + 1] = i end
	return x, inputs, run('UNIDIRECTIONAL_SEQUENCE_LSTM', inputs, options, {fixed = fixed})
end

local function steps(x, inputs, o, hidden, out)
	local h, c, ys = tensor.zeros(2, out), tensor.zeros(2, hidden), {}
	for s = 1, 5 do
		local function gate(i, cell)
			local z = x:select(2, s):matmul(inputs[1 + i]:t()) + h:matmul(inputs[5 + i]:t())
			local peep = cell and inputs[({10, 11, [4] = 12})[i]]
			if peep then z = z + cell * peep end
			local norm = inputs[20 + i]
			if norm then
				local d = z - z:mean {axis = 2, keep = true}
				z = d / (d:square():mean {axis = 2, keep = true} + 1e-8):sqrt() * norm
			end
			return z + inputs[12 + i]
		end
		local forget = gate(2, c):sigmoid()
		local input = inputs[2] and gate(1, c):sigmoid() or 1 - forget
		c = forget * c + input * gate(3):tanh()
		if o.cell_clip then c = c:clamp(-o.cell_clip, o.cell_clip) end
		h = gate(4, c):sigmoid() * c:tanh()
		if inputs[17] then h = h:matmul(inputs[17]:t()) end
		ys[s] = h
	end
	return tensor.stack(ys, {axis = 2})
end

it('runs LSTMs: simple, with clips, peepholes, projections, norms, without an input gate', function()
	local all = {true, true, true, true}
	for _, case in ipairs {{{}, all, {}}, {{cell_clip = 10}, all, {}}, {{cell_clip = 0.3}, all, {}}, {{}, all, {peep = true}}, {{}, all, {out = 2}}, {{}, all, {norm = true}},
		{{}, {false, true, true, true}, {}}} do
		local o = {act = 4, cell_clip = case[1].cell_clip}
		local x, inputs, y = lstm(o, case[2], case[3])
		assert(equal(y, steps(x, inputs, o, 4, case[3].out or 4), 1e-4))
	end
	local ok, message = pcall(lstm, {act = 1}, all, {})
	assert(not ok and message:find 'activation: wanted tanh, got relu', message)
end)

it('runs SVDF with states of zeros', function()
	local x, feature, time, b = tensor.randn(2, 3), tensor.randn(4, 3), tensor.randn(4, 5), tensor.randn(2)
	local y = run('SVDF', {x, feature, time, b, tensor.zeros(1, 20)}, {rank = 2, act = 1}, {fixed = {2, 3, 4, 5}})
	local newest = x:matmul(feature:t()) * time:select(2, 5)
	assert(equal(y, (newest:view(2, 2, 2):sum(3) + b):relu()))
	local ok, message = pcall(run, 'SVDF', {x, feature, time}, {rank = 3}, {fixed = {2, 3}})
	assert(not ok and message:find 'rank: wanted a divisor of 4, got 3', message)
end)
