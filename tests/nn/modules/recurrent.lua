-- SPDX-License-Identifier: MIT
-- nn.RNN, nn.LSTM, nn.GRU: the ops (checked against PyTorch in their own tests) one above the other; states that are
-- given, returned and carried over; both layouts; gradients of every parameter.
local OPS = {RNN = 'rnn', LSTM = 'lstm', GRU = 'gru'}
local STATES = {RNN = 1, LSTM = 2, GRU = 1}

local function worst(a, b)
	return (a:detach():to 'float64' - b:detach():to 'float64'):abs():max():item()
end

local function zeros(m, b)
	local list = {}
	for i = 1, m.states do list[i] = tensor.zeros(b, m.hidden) end
	return list
end

local function layer(m, x, states, i)
	local operands = {x, table.unpack(states)}
	for _, name in ipairs {'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'} do operands[#operands + 1] = m[name .. i] end
	return nn[OPS[m.kind]](table.unpack(operands))
end

it('stacks layers', function()
	for kind in pairs(OPS) do
		tensor.seed(1)
		local m, x = nn[kind](3, 5, {layers = 2}), tensor.randn(2, 4, 3)
		rawset(m, 'kind', kind)
		local y, states = m(x)
		local first = {layer(m, x, zeros(m, 2), 1)}
		local second = {layer(m, first[1], zeros(m, 2), 2)}
		assert(m.states == STATES[kind] and #states == 2 and #states[1] == m.states)
		assert(worst(y, second[1]) == 0 and worst(states[1][1], first[2]) == 0 and worst(states[2][1], second[2]) == 0)
		if m.states == 2 then assert(worst(states[2][2], second[3]) == 0) end
	end
end)

it('goes on from states, and with time first', function()
	for kind in pairs(OPS) do
		tensor.seed(2)
		local m, x = nn[kind](3, 5, {layers = 2}), tensor.randn(2, 6, 3)
		local y = m(x)
		local a, states = m(x[{{}, {1, 2}}])
		local b = m(x[{{}, {3, 6}}], states)
		assert(worst(y, tensor.cat({a, b}, {axis = 2})) < 1e-6)
		m:carry(true)
		a = m(x[{{}, {1, 2}}])
		b = m(x[{{}, {3, 6}}])
		m:carry(false)
		assert(worst(y, tensor.cat({a, b}, {axis = 2})) < 1e-6)
		local t = nn[kind](3, 5, {layers = 2, batchfirst = false})
		for name, parameter in pairs(m:state()) do
			tensor.nograd(function() t[name]:copy_(parameter) end)
		end
		assert(worst(t(x:transpose(1, 2)), y:transpose(1, 2)) < 1e-6)
	end
end)

it('trains: gradients reach every parameter, the loss falls', function()
	for kind in pairs(OPS) do
		tensor.seed(3)
		local m, x = nn[kind](2, 8), tensor.randn(16, 5, 2)
		local target = x:cumsum(2):sum{axis = 3, keep = true}:tile(1, 1, 8):tanh() * 0.5
		local o, first, last = optim.adam(m, {lr = 0.01, clip = 5}), nil, nil
		for _ = 1, 60 do
			o:zero()
			local loss = nn.mse((m(x)), target)
			loss:backward()
			for _, parameter in ipairs(m:parameters()) do assert(parameter:grad():abs():max():item() > 0) end
			o:step()
			first, last = first or loss:item(), loss:item()
		end
		assert(last < 0.3 * first, ('%s: %g to %g'):format(kind, first, last))
	end
end)
