-- SPDX-License-Identifier: MIT
-- Recurrent layers. X is (steps, batch, input), or with layout=1 (batch, steps, input); W (directions, gates * hidden, input), R
-- (directions, gates * hidden, hidden), B (directions, 2 * gates * hidden), the states (directions, batch, hidden). Y is
-- (steps, directions, batch, hidden).
local internal = select(2, ...)
local cells = internal.import 'nn/onnx/cells'
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

-- Lengths of the sequences (batch), or nil if all have all steps.
local function lengths(n, lens, steps)
	if not lens then return nil end
	if n.known(lens) then
		local all = true
		for _, length in ipairs(n:list(lens, 'sequence_lens')) do
			if length < 0 or length > steps then n:fail('sequence_lens: wanted 0 to %d, got %d', steps, length) end
			all = all and length == steps
		end
		if all then return nil end
	end
	return lens
end

-- The state of a direction before the first step.
local function state(given, d, batch, hidden, x)
	if given then return given:select(1, d) end
	return tensor.zeros {batch, hidden, dtype = x:dtype()}
end

-- The tensors of one direction for cells, which are constants where those of the file are.
local function parameters(n, d, hidden, kind)
	local given, known = {hidden = hidden}, true
	for _, name in ipairs {'w', 'r', 'b', 'peepholes'} do
		given[name] = kind[name]
		known = known and (not kind[name] or n.known(kind[name]))
	end
	local function made() return cells.parameters(n.op, d, given) end
	return known and n:once('cells' .. d, made) or made()
end

-- One direction: y (batch, steps, hidden) and the last states. kind.can(activations): nn's op computes it.
local function direction(n, x, d, back, hidden, kind, f, lens, before)
	if kind.peepholes or not kind.can(f) then
		return cells.run(n, x, parameters(n, d, hidden, kind), f, before, lens and lens:unsqueeze(2), back)
	end
	local given, o = {x}, kind.options and kind.options(f) or {}
	for _, list in ipairs {before, weights(n, d, kind.order, hidden, kind.w, kind.r, kind.b)} do table.move(list, 1, #list, #given + 1, given) end
	o.reverse, o.lengths = back or nil, lens
	given[#given + 1] = o
	return nn[kind.op](table.unpack(given))
end

local function joined(list, axis) return #list == 1 and list[1]:unsqueeze(axis) or tensor.stack(list, {axis = axis}) end

local function layer(n, x, lens, states, kind)
	local first, hidden = n:attr('layout', 0) == 1, n:attr('hidden_size', kind.r:size(3))
	if not first then x = x:transpose(1, 2) end
	local batch, steps = x:size(1), x:size(2)
	local directions, way = kind.w:size(1), n:attr('direction', 'forward')
	if directions ~= (way == 'bidirectional' and 2 or 1) then n:fail("direction: wanted one that goes with %d, got '%s'", directions, way) end
	local functions, ys, last = cells.activations(n, kind.defaults, directions), {}, {}
	lens = lengths(n, lens, steps)
	for d = 1, directions do
		local before = {}
		for i = 1, states.n do before[i] = state(states[i] and (first and states[i]:transpose(1, 2) or states[i]), d, batch, hidden, x) end
		local result = {direction(n, x, d, way == 'reverse' or d == 2, hidden, kind, functions[d], lens, before)}
		ys[d] = result[1]
		for i = 1, states.n do
			last[i] = last[i] or {}
			last[i][d] = result[i + 1]
		end
	end
	local outputs = {joined(ys, 3)} -- (batch, steps, directions, hidden)
	if not first then outputs[1] = outputs[1]:permute(2, 3, 1, 4) end
	for i = 1, states.n do
		local y = joined(last[i], 1)
		outputs[i + 1] = first and y:transpose(1, 2) or y
	end
	return table.unpack(outputs)
end

local function states_of(n, ...) return {n = n, ...} end

-- Gates i o f c.
function ops.LSTM(n, x, w, r, b, lens, h, c, peepholes)
	return layer(n, x, lens, states_of(2, h, c), {op = 'lstm', w = w, r = r, b = b, peepholes = peepholes, order = {1, 3, 4, 2},
		defaults = {'Sigmoid', 'Tanh', 'Tanh'}, can = function(f) return f.plain and n:attr('input_forget', 0) == 0 end})
end

function ops.RNN(n, x, w, r, b, lens, h)
	return layer(n, x, lens, states_of(1, h), {op = 'rnn', w = w, r = r, b = b, order = {1}, defaults = {'Tanh'},
		can = function(f) return f.plain or not n:given('clip', 'float') and f.names[1] == 'relu' end,
		options = function(f) return not f.plain and {act = 'relu'} or {} end})
end

-- Gates z r h. With linear_before_reset=0 the reset gate multiplies the state before its product.
function ops.GRU(n, x, w, r, b, lens, h)
	local after = n:attr('linear_before_reset', 0) ~= 0
	return layer(n, x, lens, states_of(1, h), {op = 'gru', w = w, r = r, b = b, order = {2, 1, 3}, defaults = {'Sigmoid', 'Tanh'},
		can = function(f) return f.plain end, options = function() return not after and {resetafter = false} or {} end})
end

return ops
