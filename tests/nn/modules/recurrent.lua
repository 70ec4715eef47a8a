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

it('both directions: the second one is a layer that reads from the end', function()
	for kind in pairs(OPS) do
		for _, first in ipairs {true, false} do
			local m = nn[kind](3, 4, {layers = 2, bidirectional = true, batchfirst = first})
			local x = tensor.randn(2, 5, 3)
			local time = first and 2 or 1
			local y, states = m(x)
			local function one(layer, back, t)
				local own = nn[kind](t:size(3), 4, {batchfirst = first})
				for _, part in ipairs {'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'} do
					own[part .. 1] = m[part .. layer .. (back and '_reverse' or '')]
				end
				return own(t)
			end
			local t, at = x, 0
			for layer = 1, 2 do
				local ahead, last = one(layer, false, t)
				local back, other = one(layer, true, t:flip(time))
				t = tensor.cat({ahead, back:flip(time)}, {axis = 3})
				assert(states[at + 1][1]:eq(last[1][1]):all():item() and states[at + 2][1]:eq(other[1][1]):all():item())
				at = at + 2
			end
			assert(t:eq(y):all():item() and #states == 4)
			assert(m(x, states):size(3) == 8 and not m(x, states):eq(y):all():item())
		end
		local m, x = nn[kind](3, 4, {bidirectional = true}), tensor.randn(6, 5, 3)
		assert(#m:parameters() == 8)
		assert(graph.trace(m, x[{ {1, 1} }]):run(x):size(3) == 8)
		assert(not pcall(m.carry, m, true))
		local q = nn.Sequential {m}:quantize {mode = 'dynamic', weight = 'int8/1'}
		assert(q[1].weight_hh1_reverse:quantized() and worst(q(x), m(x)) < 0.1)
	end
end)

it('reverse, lengths and the early reset are those of the ops', function()
	for kind, op in pairs(OPS) do
		tensor.seed(4)
		local early = kind == 'GRU' and {resetafter = false} or {}
		local x, lengths = tensor.randn(3, 5, 4), tensor {dtype = 'int64', 5, 2, 0}
		local m = nn[kind](4, 3, {reverse = true, layers = 2, resetafter = early.resetafter})
		assert(tostring(m):find 'reverse=true' and (tostring(m):find 'resetafter=false' ~= nil) == (kind == 'GRU'))
		local given = {tensor.ones(3, 3), STATES[kind] == 2 and tensor.ones(3, 3) or nil}
		local function through(v, i)
			local list = {v, table.unpack(given)}
			for _, name in ipairs {'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'} do list[#list + 1] = m[name .. i] end
			list[#list + 1] = {reverse = true, lengths = lengths, resetafter = early.resetafter}
			return nn[op](table.unpack(list))
		end
		local y, states = m(x, {given, given}, {lengths = lengths})
		local first = {through(x, 1)}
		local second = {through(first[1], 2)}
		assert(worst(y, second[1]) == 0 and worst(states[1][1], first[2]) == 0 and worst(states[2][1], second[2]) == 0)
		assert(not y:eq((m(x, {given, given}))):all():item())
		assert(m(x, {lengths = tensor {dtype = 'int64', 5, 5, 5}}):eq((m(x))):all():item())
		assert(y[3]:abs():max():item() == 0 and states[1][1][3]:eq(1):all():item())
		assert(m:clone()(x, {given, given}, {lengths = lengths}):eq(y):all():item())
		local g = graph.trace(nn.module(function(_, v, n) return (m(v, {lengths = n})) end), {x, lengths})
		assert(g:run {x, lengths}:eq((m(x, {lengths = lengths}))):all():item())
		for _, mode in ipairs {'dynamic', 'weight_only', 'static'} do
			local model = nn.Sequential {m:clone()}
			model:calibrate({{x, x}}, {log = false})
			local q = model:quantize {mode = mode, weight = 'int8/1'}
			assert(worst((q[1](x, {lengths = lengths})), (m(x, {lengths = lengths}))) < 0.1)
		end
		local ok, message = pcall(m.carry, m, true)
		assert(not ok and message:find 'wanted the direction from the first step, got reverse=true', message)
		ok, message = pcall(nn[kind], 4, 3, {reverse = true, bidirectional = true})
		assert(not ok and message:find 'wanted reverse or bidirectional, got both', message)
		ok, message = pcall(m, x, {length = lengths})
		assert(not ok and message:find "unknown option 'length'", message)
	end
	assert(not pcall(nn.LSTM, 4, 3, {resetafter = false}))
end)
