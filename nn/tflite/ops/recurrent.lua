-- SPDX-License-Identifier: MIT
-- Recurrent layers. Their states (variables of the file) begin with zeros in each run, or are inputs and outputs of the graph. Codes
-- are computed as LiteRT does it (nn/tflite/recurrence.lua) or, where that is not there, decoded.
local internal = select(2, ...)
local recurrence = internal.import 'nn/tflite/recurrence'
local ops = {}

local GATES = {'input', 'forget', 'cell', 'output'}

-- Input i as floats without recording it; nil: not given.
local function floats(n, i)
	if not n:has(i) then return nil end
	return n:weight(i, 'floats', function(x)
		if x:quantized() then return x:dequantize() end
		if n.is_float(x) then return x end
		local scales = n.file:scales(n.tensors[i])
		if not scales then n:fail('input %d: wanted floats or codes, got integers', i) end
		return x:to 'float32' * tensor(scales.scale)
	end)
end

local function quietly(f)
	local before = internal.record(nil)
	local x = f()
	internal.record(before)
	return x
end

-- The tensors of the four gates from input `first` on. Without an input gate it is 1 - forget gate: sigmoid(-x) = 1 - sigmoid(x).
local function gates(n, first)
	local made = {}
	for i = 1, 4 do made[i] = floats(n, first + i - 1) end
	if not made[1] and made[2] then made[1] = quietly(function() return -made[2] end) end
	return made
end

local function joined(n, i, key, list)
	return n:weight(i, key, function() return tensor.cat({list[1], list[2], list[3], list[4]}, {axis = 1}) end)
end

local function zeros(x, batch, size) return tensor.zeros {batch, size, dtype = x:dtype()} end

---------------------------------------------------------------- LSTM

-- Everything of the op but its input: weights of the gates, peepholes, the projection, norms.
local function read_lstm(n)
	local o = {w = gates(n, 2), r = gates(n, 6), b = gates(n, 13), projection = floats(n, 17), projection_bias = floats(n, 18)}
	for i = 2, 4 do
		if not o.w[i] or not o.r[i] then n:fail('wanted weights of the %s gate, got none', GATES[i]) end
		if o.w[i]:dim() ~= 2 or o.r[i]:dim() ~= 2 then n:fail('weights of the %s gate: wanted 2 axes, got others', GATES[i]) end
	end
	o.peep, o.norm = {floats(n, 10), floats(n, 11), [4] = floats(n, 12)}, {}
	for i = 1, 4 do o.norm[i] = floats(n, 20 + i) end
	if not n:has(2) and (next(o.norm) or o.peep[2]) then n:fail 'wanted an input gate beside norms and peepholes, got none' end
	o.hidden, o.out = o.w[2]:size(1), o.r[2]:size(2)
	o.clip, o.clip_projection = n:option('cell_clip', 0), n:option('projection_clip', 0)
	return o
end

local function clipped(x, bound) return bound > 0 and x:clamp(-bound, bound) or x end

-- The value of a gate: x w + h r, with peephole, norm and bias.
local function gate(o, i, xs, step, h, c)
	local z = xs[i]:select(2, step) + h:linear(o.r[i])
	if o.peep[i] and c then z = z + c * o.peep[i] end
	if o.norm[i] then
		local d = z - z:mean {axis = 2, keep = true}
		z = d * (d:square():mean {axis = 2, keep = true} + 1e-8):rsqrt() * o.norm[i]
	end
	return o.b[i] and o.norm[i] and z + o.b[i] or z
end

local function lstm_steps(o, x, h, c)
	local ys, xs = {}, {}
	for i = 1, 4 do xs[i] = o.b[i] and not o.norm[i] and x:linear(o.w[i], o.b[i]) or x:linear(o.w[i]) end
	for step = 1, x:size(2) do
		local i, f = gate(o, 1, xs, step, h, c):sigmoid(), gate(o, 2, xs, step, h, c):sigmoid()
		c = clipped(f * c + i * gate(o, 3, xs, step, h):tanh(), o.clip)
		h = gate(o, 4, xs, step, h, c):sigmoid() * c:tanh()
		if o.projection then
			h = clipped(o.projection_bias and h:linear(o.projection, o.projection_bias) or h:linear(o.projection), o.clip_projection)
		end
		ys[step] = h
	end
	return tensor.stack(ys, {axis = 2}), h, c
end

-- A state in floats: the input, or zeros.
local function state(n, i, x, size)
	local s = n:state(i)
	if not s then return zeros(x, x:size(1), size) end
	return s:quantized() and s:dequantize() or s
end

local function keep(n, i, x)
	local t = n.tensors[i]
	if n:wants_states() and t then n:keep(i, n.file:coded(t) and x:quantize(n:spec_of(t)) or x) end
end

-- The op of a layer, where it has all that the op has: |c| grows by less than 1 a step, so it may never reach the bound.
local function is_simple(o, steps)
	return not o.projection and not next(o.norm) and not o.peep[1] and not o.peep[2] and not o.peep[4] and o.b[2] and (o.clip <= 0 or steps <= o.clip)
end

local MOST = 500 -- steps that become nodes of their own

local function check_steps(n, x)
	if x:size(2) > MOST then n:fail('input: wanted at most %d steps of an LSTM that is computed step by step, got %d', MOST, x:size(2)) end
end

function ops.UNIDIRECTIONAL_SEQUENCE_LSTM(n)
	local act = n:act()
	if act ~= 'tanh' then n:fail('activation: wanted tanh, got %s', act or 'none') end
	if n:option('diagonal', false) then n:fail 'diagonal_recurrent_tensors: wanted false, got true' end
	local major = n:option('time_major', false)
	local in_codes = recurrence.is_lstm(n)
	local x = in_codes and n:plain(1) or n:real_plain(1)
	if x:dim() ~= 3 then n:fail('input: wanted 3 axes, got %d', x:dim()) end
	if major then x = x:transpose(1, 2) end
	if in_codes then
		local y = recurrence.lstm(n, x)
		return major and y:transpose(1, 2) or y
	end
	local o = read_lstm(n)
	local h, c = state(n, 19, x, o.out), state(n, 20, x, o.hidden)
	local y
	if is_simple(o, x:size(2)) and not n:state(20) then
		local b = joined(n, 14, 'b', o.b)
		local none = n:weight(14, 'no b', function() return tensor.zeros {4 * o.hidden} end)
		y, h, c = nn.lstm(x, h, c, joined(n, 3, 'w', o.w), joined(n, 7, 'r', o.r), b, none)
	else
		check_steps(n, x)
		y, h, c = lstm_steps(o, x, h, c)
	end
	keep(n, 19, h)
	keep(n, 20, c)
	return n:give(major and y:transpose(1, 2) or y)
end

---------------------------------------------------------------- SVDF

-- Filters of features and of their last values: the memory (batch, filters * size) has the newest one last.
function ops.SVDF(n)
	local rank = n:option('rank', 0)
	local in_codes = recurrence.is_svdf(n)
	local x, feature, time = in_codes and n:plain(1) or n:real_plain(1), floats(n, 2), floats(n, 3)
	if x:dim() ~= 2 or feature:dim() ~= 2 or time:dim() ~= 2 then n:fail('input: wanted 2 axes, got %d', x:dim()) end
	local filters, size = time:size(1), time:size(2)
	if rank < 1 or filters % rank ~= 0 then n:fail('rank: wanted a divisor of %d, got %d', filters, rank) end
	if in_codes then return recurrence.svdf(n, x, rank) end
	local newest = x:linear(feature)
	if n:wants_states() then
		local old = n.whole(state(n, 5, x, filters * size)):view(x:size(1), filters, size)
		local memory = tensor.cat({old:narrow(3, 2, size - 1), newest:view(x:size(1), filters, 1)}, {axis = 3})
		keep(n, 5, memory:view(x:size(1), filters * size))
		newest = (memory * time):sum(3)
	else -- of zeros but for the newest
		newest = newest * n:weight(3, 'newest', function() return time:select(2, size):contiguous() end)
	end
	local y = newest:view(x:size(1), filters // rank, rank):sum(3)
	if n:has(4) then y = y + floats(n, 4) end
	return n:give(n.under(y, n:act()))
end

return ops
