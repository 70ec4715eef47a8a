-- SPDX-License-Identifier: MIT
-- Recurrent ops of codes as LiteRT's reference kernels compute them (lstm_eval.cc, LstmStepInteger8x8_16; reference/svdf.h): sums and
-- states are plain integers of 64 bits, in which nothing is rounded but where LiteRT does it.
local _, internal = ...
local fixed = internal.import 'nn/tflite/fixed'
local single, times, clamp16 = fixed.single, fixed.times, fixed.clamp16
local recurrence = {}

-- The codes of a value less its zero point.
local function centred(x, zero)
	x = (x:quantized() and x:codes() or x):to 'int64'
	return zero ~= 0 and x - zero or x
end

-- Codes of 64 bits as a quantized tensor of these scales.
local function coded(n, x, t)
	local scales = n.file:coded(t)
	local spec = {dtype = n.file:dtype(t), scale = scales.scale[1]}
	if scales.zero[1] ~= 0 or spec.dtype:find '^u' then spec.scheme, spec.zero_point = 'asymmetric', scales.zero[1] end
	return ((x - scales.zero[1]):to 'float32' * scales.scale[1]):quantize(spec)
end

-- One scale and zero point of a tensor; nil: it has none, or several.
local function one(n, t)
	local scales = t and n.file:scales(t)
	if not scales or scales.several then return nil end
	return scales.scale[1], scales.zero[1]
end

local function quietly(f, ...)
	local before = internal.record(nil)
	local results = table.pack(f(...))
	internal.record(before)
	return table.unpack(results, 1, results.n)
end

-- A state as integers: the input, or codes of 0.
local function state(n, i, batch, size)
	local x = n:state(i)
	local _, zero = one(n, n.tensors[i])
	if x then return centred(x, zero), zero end
	return tensor.zeros {batch, size, dtype = 'int64'}, zero
end

---------------------------------------------------------------- LSTM

-- Whether the op is one of integers that LiteRT has, without peepholes, projection and norms.
function recurrence.is_lstm(n)
	local function bits(i) return n:has(i) and n.file:coded(n.tensors[i]) and quant.dtype(n.file:dtype(n.tensors[i])).bits or nil end
	for i = 3, 9 do
		if i ~= 6 and bits(i) ~= 8 then return false end
	end
	for _, i in ipairs {10, 11, 12, 17, 18, 21, 22, 23, 24} do
		if n:has(i) then return false end
	end
	local intermediates = n.from.intermediates
	return bits(1) == 8 and bits(19) == 8 and bits(20) == 16 and n:has(14) and n:has(15) and n:has(16) and intermediates and #intermediates >= 5 and
		one(n, n.file:tensor(intermediates[5])) ~= nil
end

-- Weights of the gates (input, forget, cell, output; without the first: three) as int8 (gates, inputs), factors and biases.
local function gates_of(n, first, scale, biased)
	local list, factors, biases = {}, {}, {}
	for gate = n:has(2) and 0 or 1, 3 do
		local w = n:weight(first + gate, 'integers', function(x) return x:codes() end)
		local hidden = w:size(1)
		list[#list + 1] = w
		local m = single(single(one(n, n.tensors[first + gate]) * scale) / 2.0 ^ -12)
		for _ = 1, hidden do factors[#factors + 1] = m end
		if biased then
			biases[#biases + 1] = n:weight(13 + gate, 'integers', function(b) return (b:quantized() and b:codes() or b):to 'int64' end)
		end
	end
	return {w = tensor.cat(list, {axis = 1}), factors = factors, bias = biased and tensor.cat(biases, {axis = 1}) or nil, hidden = list[1]:size(1)}
end

-- Multipliers and shifts, as nn.integerlstm takes them.
local function pairs_of(list)
	local multipliers, shifts = {}, {}
	for i, m in ipairs(list) do multipliers[i], shifts[i] = internal.fixed(m) end
	return tensor {multipliers, shifts}:to 'int64'
end

-- Everything of the op that does not depend on the inputs.
local function lstm_parts(n)
	local scale, zero = one(n, n.tensors[1])
	local state_scale = one(n, n.tensors[19])
	local cell_scale = one(n, n.tensors[20])
	local hidden_scale, hidden_zero = one(n, n.file:tensor(n.from.intermediates[5]))
	local exponent = math.floor(math.log(cell_scale, 2) + 0.5)
	if 2.0 ^ exponent ~= cell_scale or exponent < -15 or exponent > -9 then n:fail('cell state: wanted a scale of 2^-15 to 2^-9, got %g', cell_scale) end
	local clip = n:option('cell_clip', 0)
	local x, h = gates_of(n, 2, scale, true), gates_of(n, 6, state_scale)
	local multiplier, shift = internal.fixed(single(2.0 ^ -30 / hidden_scale))
	return {w = x.w:to 'int64':t():contiguous(), bias = x.bias, factors = fixed.factors(x.factors), zero = zero, hidden = x.hidden, h = h.w, h_factors = pairs_of(h.factors),
		tables = tensor.stack({fixed.table('sigmoid', 3), fixed.table('tanh', 3), fixed.table('tanh', 15 + exponent)}, {axis = 1}):to 'int16',
		options = {exponent = exponent, zero = hidden_zero, multiplier = multiplier, shift = shift,
			clip = clip > 0 and math.tointeger(math.floor(math.min(single(clip / cell_scale), 32767))) or nil}}
end

-- x (batch, steps, inputs); gives codes (batch, steps, outputs).
function recurrence.lstm(n, x)
	local o = quietly(lstm_parts, n)
	local batch, steps = x:size(1), x:size(2)
	local h, zero = state(n, 19, batch, o.hidden)
	local c = state(n, 20, batch, o.hidden)
	o.options.statezero = zero
	local flat = n.whole(centred(x, o.zero)):view(batch * steps, x:size(3))
	local sums = clamp16(times(flat:matmul(o.w) + o.bias, o.factors)):view(batch, steps, o.w:size(2))
	local y
	y, h, c = nn.integerlstm(sums:to 'int16', h:to 'int16', c:to 'int16', o.h, o.h_factors, o.tables, o.options)
	local function result(codes, t) return coded(n, codes:to 'int64', t) end
	if n:wants_states() then
		n:keep(19, result(zero ~= 0 and h + zero or h, n.tensors[19]))
		n:keep(20, result(c, n.tensors[20]))
	end
	return result(zero ~= 0 and y + zero or y, n.outputs[1])
end

---------------------------------------------------------------- SVDF

function recurrence.is_svdf(n)
	for _, i in ipairs {1, 2, 3, 5} do
		if not n:has(i) or not n.file:coded(n.tensors[i]) or not one(n, n.tensors[i]) then return false end
	end
	return n.file:coded(n.outputs[1]) ~= nil
end

local function svdf_parts(n, act)
	local scale, zero = one(n, n.tensors[1])
	local state_scale, out_scale, out_zero = one(n, n.tensors[5]), one(n, n.outputs[1])
	local d = quant.dtype(n.file:dtype(n.tensors[5]))
	local o = {zero = zero, out_zero = out_zero, least = d.min, most = d.max}
	o.feature = n:weight(2, 'integers', function(w) return w:codes():to 'int64':t():contiguous() end)
	o.time = n:weight(3, 'integers', function(w) return w:codes():to 'int64' end)
	o.bias = n:has(4) and n:weight(4, 'integers', function(b) return (b:quantized() and b:codes() or b):to 'int64' end)
	o.into = fixed.factors {single(single(scale * one(n, n.tensors[2])) / state_scale)}
	o.out = fixed.factors {single(single(state_scale * one(n, n.tensors[3])) / out_scale)}
	local spec = n:spec(act)
	local dtype = quant.dtype(n.file:dtype(n.outputs[1]))
	o.low, o.high = spec.quant_min or dtype.min, spec.quant_max or dtype.max
	return o
end

-- x (batch, inputs), filters of `rank` each; the memory is (batch, filters * size).
function recurrence.svdf(n, x, rank)
	local o = quietly(svdf_parts, n, n:act())
	local batch, filters, size = x:size(1), o.time:size(1), o.time:size(2)
	local newest = times(centred(x, o.zero):matmul(o.feature), o.into):clamp(o.least, o.most)
	local memory
	if n:state(5) or n:wants_states() then
		local old = n.whole(state(n, 5, batch, filters * size)):view(batch, filters, size)
		memory = tensor.cat({old:narrow(3, 2, size - 1), newest:view(batch, filters, 1)}, {axis = 3})
		n:keep(5, coded(n, memory:view(batch, filters * size), n.tensors[5]))
		newest = (memory * o.time):sum(3)
	else -- of zeros but for the newest
		newest = newest * n:weight(3, 'newest integers', function() return o.time:select(2, size):contiguous() end)
	end
	local y = newest:view(batch, filters // rank, rank):sum(3)
	y = times(o.bias and y + o.bias or y, o.out) + o.out_zero
	return coded(n, y:clamp(o.low, o.high), n.outputs[1])
end

return recurrence
