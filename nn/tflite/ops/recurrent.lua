-- SPDX-License-Identifier: MIT
-- Recurrent layers. Their states (variables of the file) begin with zeros in each run. Computed in floats, codes are decoded.
local internal = select(2, ...)
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

local function lstm_steps(o, x)
	local h, c, ys, xs = zeros(x, x:size(1), o.out), zeros(x, x:size(1), o.hidden), {}, {}
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
	return tensor.stack(ys, {axis = 2})
end

-- The op of a layer, where it has all that the op has: |c| grows by less than 1 a step, so it may never reach the bound.
local function is_simple(o, steps)
	return not o.projection and not next(o.norm) and not o.peep[1] and not o.peep[2] and not o.peep[4] and o.b[2] and (o.clip <= 0 or steps <= o.clip)
end

function ops.UNIDIRECTIONAL_SEQUENCE_LSTM(n)
	local x, o = n:real_plain(1), read_lstm(n)
	local act = n:act()
	if act ~= 'tanh' then n:fail('activation: wanted tanh, got %s', act or 'none') end
	if n:option('diagonal', false) then n:fail 'diagonal_recurrent_tensors: wanted false, got true' end
	if x:dim() ~= 3 then n:fail('input: wanted 3 axes, got %d', x:dim()) end
	local major = n:option('time_major', false)
	if major then x = x:transpose(1, 2) end
	local y
	if is_simple(o, x:size(2)) then
		local h = zeros(x, x:size(1), o.hidden)
		local b = joined(n, 14, 'b', o.b)
		local none = n:weight(14, 'no b', function() return tensor.zeros {4 * o.hidden} end)
		y = nn.lstm(x, h, h, joined(n, 3, 'w', o.w), joined(n, 7, 'r', o.r), b, none)
	else
		y = lstm_steps(o, x)
	end
	return n:give(major and y:transpose(1, 2) or y)
end

---------------------------------------------------------------- SVDF

-- With states of zeros the memory has the newest number only.
function ops.SVDF(n)
	local x, feature, time = n:real_plain(1), floats(n, 2), floats(n, 3)
	local rank, memory = n:option('rank', 0), time:size(2)
	local act = n:act()
	if rank < 1 or feature:size(1) % rank ~= 0 then n:fail('rank: wanted a divisor of %d, got %d', feature:size(1), rank) end
	local newest = n:weight(3, 'newest', function() return time:select(2, memory):contiguous() end)
	local y = (x:linear(feature) * newest):view(x:size(1), feature:size(1) // rank, rank):sum(3)
	if n:has(4) then y = y + floats(n, 4) end
	return n:give(n.under(y, act))
end

return ops
