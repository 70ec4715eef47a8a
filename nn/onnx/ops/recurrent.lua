-- SPDX-License-Identifier: MIT
-- Recurrent layers. X is (steps, batch, input), or with layout=1 (batch, steps, input); W (directions, gates * hidden, input), R
-- (directions, gates * hidden, hidden), B (directions, 2 * gates * hidden), the states (directions, batch, hidden). Y is
-- (steps, directions, batch, hidden).
local ops = {}

-- Rows of gates in another order: `order` are the numbers of the gates.
local function gates(x, order, hidden)
	local parts = {}
	for i, gate in ipairs(order) do parts[i] = x:narrow(1, (gate - 1) * hidden + 1, hidden) end
	return tensor.cat(parts, {axis = 1})
end

-- The tensors of one direction in the order of PyTorch's gates, which are constants where those of the file are.
local function ordered(d, order, hidden, w, r, b)
	local made = {gates(w:select(1, d), order, hidden), gates(r:select(1, d), order, hidden)}
	if b then
		local both, half = b:select(1, d), #order * hidden
		made[3], made[4] = gates(both:narrow(1, 1, half), order, hidden), gates(both:narrow(1, half + 1, half), order, hidden)
	end
	return made
end

local function weights(n, d, order, hidden, w, r, b)
	if not n.known(w) or not n.known(r) or b and not n.known(b) then return ordered(d, order, hidden, w, r, b) end
	return n:once(d, function() return ordered(d, order, hidden, w, r, b) end)
end

local function check(n, defaults)
	local list = n:attr 'activations'
	for i, name in ipairs(list or {}) do
		local want = defaults[(i - 1) % #defaults + 1]
		if name:lower() ~= want:lower() then n:fail("activations: wanted %s, got '%s'", want, name) end
	end
	if n:attr 'clip' then n:fail 'clip: wanted none, got one' end
	if n:attr('input_forget', 0) ~= 0 then n:fail 'input_forget: wanted 0, got another' end
end

local function lengths(n, lens, steps)
	if not lens then return end
	for _, length in ipairs(n:list(lens, 'sequence_lens')) do
		if length ~= steps then n:fail('sequence_lens: wanted the number of steps, %d, got %d', steps, length) end
	end
end

-- The state of a direction before the first step.
local function state(given, d, batch, hidden, x)
	if given then return given:select(1, d) end
	return tensor.zeros {batch, hidden, dtype = x:dtype()}
end

-- run(x, weights, states...) of one direction: y (batch, steps, hidden) and the last states.
local function layer(n, x, w, r, b, lens, states, order, defaults, run)
	check(n, defaults)
	local first, hidden = n:attr('layout', 0) == 1, n:attr('hidden_size', r:size(3))
	if not first then x = x:transpose(1, 2) end
	local batch, steps = x:size(1), x:size(2)
	local directions, way = w:size(1), n:attr('direction', 'forward')
	lengths(n, lens, steps)
	local ys, last = {}, {}
	for d = 1, directions do
		local back = way == 'reverse' or d == 2
		local before = {}
		for i = 1, states.n do before[i] = state(states[i] and (first and states[i]:transpose(1, 2) or states[i]), d, batch, hidden, x) end
		local result = {run(back and x:flip {axes = {2}} or x, weights(n, d, order, hidden, w, r, b), before)}
		ys[d] = back and result[1]:flip {axes = {2}} or result[1]
		for i = 1, states.n do
			last[i] = last[i] or {}
			last[i][d] = result[i + 1]
		end
	end
	local outputs = {#ys == 1 and ys[1]:unsqueeze(3) or tensor.stack(ys, {axis = 3})} -- (batch, steps, directions, hidden)
	if not first then outputs[1] = outputs[1]:permute(2, 3, 1, 4) end
	for i = 1, states.n do
		local y = #last[i] == 1 and last[i][1]:unsqueeze(1) or tensor.stack(last[i], {axis = 1})
		outputs[i + 1] = first and y:transpose(1, 2) or y
	end
	return table.unpack(outputs)
end

local function states_of(n, ...) return {n = n, ...} end

-- Gates i o f c.
function ops.LSTM(n, x, w, r, b, lens, h, c, peepholes)
	if peepholes then n:fail 'P: wanted no peepholes, got some' end
	return layer(n, x, w, r, b, lens, states_of(2, h, c), {1, 3, 4, 2}, {'Sigmoid', 'Tanh', 'Tanh'}, function(y, p, before)
		if p[3] then return nn.lstm(y, before[1], before[2], p[1], p[2], p[3], p[4]) end
		return nn.lstm(y, before[1], before[2], p[1], p[2])
	end)
end

function ops.RNN(n, x, w, r, b, lens, h)
	return layer(n, x, w, r, b, lens, states_of(1, h), {1}, {'Tanh'}, function(y, p, before)
		if p[3] then return nn.rnn(y, before[1], p[1], p[2], p[3], p[4]) end
		return nn.rnn(y, before[1], p[1], p[2])
	end)
end

-- Gates z r h. With linear_before_reset=0 the reset gate multiplies the state before its product.
function ops.GRU(n, x, w, r, b, lens, h)
	if n:attr('linear_before_reset', 0) == 0 then n:fail 'linear_before_reset: wanted 1, got 0' end
	return layer(n, x, w, r, b, lens, states_of(1, h), {2, 1, 3}, {'Sigmoid', 'Tanh'}, function(y, p, before)
		if p[3] then return nn.gru(y, before[1], p[1], p[2], p[3], p[4]) end
		return nn.gru(y, before[1], p[1], p[2])
	end)
end

return ops
