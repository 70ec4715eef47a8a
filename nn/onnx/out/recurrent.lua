-- SPDX-License-Identifier: MIT
-- Recurrent layers: weights with the gates in ONNX's order, (directions, gates * hidden, …). Codes are decoded; of a dynamic layer whose
-- states are codes, the states stay floats.
local _, internal = ...
local linear = internal.import 'nn/onnx/out/linear'
local ops = {}

-- Rows of gates in another order, as one direction.
local function gates(n, i, order, hidden, dtype)
	local t, list, sizes = n:constant(i), {}, {}
	if t then
		for k, gate in ipairs(order) do list[k] = t:narrow(1, (gate - 1) * hidden + 1, hidden) end
		return n.w:initializer(n:value(i).made, tensor.cat(list, {axis = 1}):to(dtype), nil, true)
	end
	if #order == 1 then return n:input(i, dtype) end
	for k = 1, #order do sizes[k] = hidden end
	local parts = {n:emit('Split', {n:input(i, dtype), n:ints(sizes)}, {axis = 0}, #order)}
	for k, gate in ipairs(order) do list[k] = parts[gate] end
	return n:emit('Concat', list, {axis = 0})
end

-- The operand of lengths, if there is one: the last, the only one of integers; the number of the others.
local function lengths_of(n)
	local kind = quant.dtype(n:dtype(n.count)).kind
	if kind == 'int' or kind == 'uint' then return n.count, n.count - 1 end
	return nil, n.count
end

-- `states` before the weights; results: y, then the last states.
local function layer(op, states, order, attrs_of)
	return function(n)
		local first, dtype, w = n:attr('batchfirst', true), linear.precision(n), 2 + states
		local hidden = n.shapes[w + 1][2]
		local attrs = attrs_of and attrs_of(n) or {}
		attrs.hidden_size = hidden
		n:attr 'states'
		attrs.direction = n:attr('reverse', false) and 'reverse' or nil
		local lengths, count = lengths_of(n)
		local x = n:input(1, dtype)
		if first then x = n:emit('Transpose', {x}, {perm = {1, 0, 2}}) end
		local inputs = {x, n:unsqueeze(gates(n, w, order, hidden, dtype), {0}), n:unsqueeze(gates(n, w + 1, order, hidden, dtype), {0})}
		if count > w + 1 then
			local b = n:emit('Concat', {gates(n, w + 2, order, hidden, dtype), gates(n, w + 3, order, hidden, dtype)}, {axis = 0})
			inputs[4] = n:unsqueeze(b, {0})
		end
		inputs[4], inputs[5] = inputs[4] or '', lengths and n:input(lengths, 'int32') or ''
		for i = 1, states do inputs[5 + i] = n:unsqueeze(n:input(1 + i, dtype), {0}) end
		local made = {n:emit(op, inputs, attrs, 1 + states)}
		made[1] = n:squeeze(made[1], {1}) -- (steps, batch, hidden)
		if first then made[1] = n:emit('Transpose', {made[1]}, {perm = {1, 0, 2}}) end
		for i = 1, 1 + states do made[i] = n:cast(i > 1 and n:squeeze(made[i], {0}) or made[i], dtype, n.node.results[i].dtype) end
		return table.unpack(made)
	end
end

local CELLS = {tanh = 'Tanh', relu = 'Relu', sigmoid = 'Sigmoid'}

ops.lstm = layer('LSTM', 2, {1, 4, 2, 3})
ops.gru = layer('GRU', 1, {2, 1, 3}, function(n) return {linear_before_reset = n:attr('resetafter', true) and 1 or 0} end)
ops.rnn = layer('RNN', 1, {1}, function(n)
	local act = n:attr('act', 'tanh')
	if not CELLS[act] then n:refuse('act=%s', act) end
	return {activations = {CELLS[act]}}
end)

return ops
