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

---------------------------------------------------------------- codes and states

-- Integers from a formula, so that LiteRT had the same.
local function some(count, range, k)
	local list = {}
	for i = 1, count do list[i] = (i * 37 + k * 101 + i * i) % (2 * range + 1) - range end
	return tensor(list)
end
local function builder(m)
	return function(t)
		m.tensors[#m.tensors + 1] = t
		return #m.tensors
	end
end
local function codes(name, values, type, scale, ...)
	local dtype = type:lower()
	return {name = name, shape = {...}, type = type, scale = scale and {scale}, zero = scale and {0}, data = values:to(dtype):view(...)}
end

-- 3 inputs, 4 cells, steps of 8 bits with cells of 16 bits.
local function integer_lstm(o)
	local m = {tensors = {}, inputs = {1}, outputs = {}}
	local add, ins = builder(m), {1}
	local steps, batch = o.steps or 3, o.batch or 1
	add {name = 'x', shape = {batch, steps, 3}, type = 'INT8', scale = {0.02}, zero = {5}}
	for i = 1, 4 do
		local given = i > 1 or not o.cifg
		ins[1 + i] = given and add(codes('w' .. i, some(12, 127, i), 'INT8', 0.01 + 0.003 * i, 4, 3)) or 0
		ins[5 + i] = given and add(codes('r' .. i, some(16, 127, i + 4), 'INT8', 0.012 + 0.002 * i, 4, 4)) or 0
		ins[12 + i] = given and add(codes('b' .. i, some(4, 3000, i), 'INT32', 0.0002, 4)) or 0
	end
	for _, i in ipairs {10, 11, 12, 17, 18, 21, 22, 23, 24} do ins[i] = 0 end
	ins[19] = add {name = 'h', shape = {batch, 4}, type = 'INT8', scale = {1 / 128}, zero = {-3}, variable = true}
	ins[20] = add {name = 'c', shape = {batch, 4}, type = 'INT16', scale = {2.0 ^ -11}, zero = {0}, variable = true}
	local inner = {}
	for i = 1, 4 do inner[i] = add {name = 'i' .. i, shape = {}, type = 'INT16', scale = {2.0 ^ -12}, zero = {0}} end
	inner[5] = add {name = 'i5', shape = {}, type = 'INT8', scale = {1 / 128}, zero = {-3}}
	m.outputs[1] = add {name = 'y', shape = {batch, steps, 4}, type = 'INT8', scale = {1 / 128}, zero = {-3}}
	m.ops = {{'UNIDIRECTIONAL_SEQUENCE_LSTM', ins, m.outputs, {act = 4, cell_clip = o.clip or 0}, inner}}
	return m
end

-- 3 inputs, 2 units of rank 2, 5 steps of memory.
local function integer_svdf(batch)
	local m = {tensors = {}, inputs = {1}, outputs = {}}
	local add = builder(m)
	add {name = 'x', shape = {batch or 1, 3}, type = 'INT8', scale = {0.02}, zero = {5}}
	local ins = {1, add(codes('f', some(12, 127, 1), 'INT8', 0.02, 4, 3)), add(codes('t', some(20, 20000, 2), 'INT16', 0.0001, 4, 5)),
		add(codes('b', some(2, 9000, 3), 'INT32', nil, 2)), add {name = 's', shape = {batch or 1, 20}, type = 'INT16', scale = {0.0002}, zero = {0}, variable = true}}
	m.outputs[1] = add {name = 'y', shape = {batch or 1, 2}, type = 'INT8', scale = {0.05}, zero = {-128}}
	m.ops = {{'SVDF', ins, m.outputs, {rank = 2, act = 1}}}
	return m
end

-- Runs step by step with the states of the run before; the codes of all steps.
local function stepped(g, xs, states)
	local ys = {}
	for i, x in ipairs(xs) do
		local r = {g:run {x, table.unpack(states)}}
		if #r == 1 and type(r[1]) == 'table' then r = r[1] end
		ys[i] = r[1]
		for k = 1, #states do states[k] = r[k + 1] end
	end
	return ys
end
local function start(g, ...)
	local list = {}
	for i, sizes in ipairs {...} do
		local z, spec = tensor.zeros(table.unpack(sizes)), g:node(g.inputs[i + 1]).spec
		list[i] = spec.output and z:quantize(spec.output) or z
	end
	return list
end
local function x_of(k, ...) return some(({...})[1] * ({...})[2] * (({...})[3] or 1), 127, k):to 'int8':view(...) end

local function flat(ys)
	for i, y in ipairs(ys) do ys[i] = y:codes():contiguous():view(-1):to 'int64' end
	return tensor.cat(ys)
end

-- The codes of LiteRT 2.3's reference kernels (BUILTIN_REF) in four calls, which keep the states.
local CASES = {
	{'LSTM', integer_lstm {}, {{1, 4}, {1, 4}}, {1, 3, 3}, {-2, -6, -1, -66, -3, 16, -3, 2, -5, -3, -100, -3, -6, -2, -39, -3, -2, -10, -5, -66, -3, -20, -3, 3,
		-3, -57, -3, 36, 10, 0, -8, -3, -3, -21, -3, -20, 23, -3, -100, -3, -3, -92, -4, 63, -57, -4, -99, -2}},
	{'LSTM without an input gate, clipped', integer_lstm {cifg = true, clip = 0.25}, {{1, 4}, {1, 4}}, {1, 3, 3}, {-2, -9, 5, -34, -3, -18, -3, -1, -34, -4, -34, -3,
		-21, -3, -9, -3, -3, -2, -1, -32, -3, -33, -3, -1, -3, -27, -2, 14, 9, -1, -5, -3, -3, -6, -2, -24, -28, -3, -34, -3, -3, -28, -3, 13, -34, -3, -34, -2}},
	{'SVDF', integer_svdf(), {{1, 20}}, {1, 3}, {-128, -79, 14, 29, -102, 49, 127, -43}}}
for _, case in ipairs(CASES) do
	it(case[1] .. ' of codes has those of LiteRT, with states', function()
		local g, plain, xs = tflite.load(case[2], {states = true}), tflite.load(case[2]), {}
		for i = 1, 4 do xs[i] = x_of(i, table.unpack(case[4])) end
		assert(equal(flat(stepped(g, xs, start(g, table.unpack(case[3])))), case[5], 0))
		local first = plain:run(xs[1])
		assert(#plain.inputs == 1 and equal(first:codes():contiguous():view(-1), tensor(case[5]):narrow(1, 1, first:nelem()), 0)) -- zeros
	end)
end

it('is exported in integers', function()
	local dir, g = os.tmpname(), tflite.load(CASES[1][2], {states = true})
	os.remove(dir)
	g:export {dir = dir, name = 'net'}
	local text = io.open(dir .. '/net.c'):read 'a'
	os.execute('rm -r ' .. dir)
	assert(not text:find 'tanhf' and not text:find 'q_tanh')
end)

it('goes on where it was: floats and codes, batches', function()
	local function pieces(model, whole, size, ...)
		local g, parts = tflite.load(model(size), {states = true}), {}
		for i = 1, whole:size(2) // size do parts[i] = whole:narrow(2, (i - 1) * size + 1, size):contiguous() end
		return tensor.cat((function(ys)
			for i, y in ipairs(ys) do ys[i] = y:quantized() and y:dequantize() or y end
			return ys
		end)(stepped(g, parts, start(g, ...))), {axis = 2})
	end
	local function codes_of(size) return integer_lstm {steps = size, batch = 2} end
	local x = x_of(1, 2, 6, 3)
	assert(equal(pieces(codes_of, x, 2, {2, 4}, {2, 4}), pieces(codes_of, x, 6, {2, 4}, {2, 4}), 0))
	local function floats_of(size)
		local m = integer_lstm {steps = size, batch = 2}
		for _, t in ipairs(m.tensors) do
			if t.data and t.type == 'INT32' then t.data = t.data:to 'float32' / 3000
			elseif t.data then t.data = t.data:to 'float32' * t.scale[1] / 2 end
			t.type, t.scale, t.zero = 'FLOAT32', nil, nil
		end
		return m
	end
	local y = x:to 'float32' / 50
	assert(equal(pieces(floats_of, y, 2, {2, 4}, {2, 4}), pieces(floats_of, y, 6, {2, 4}, {2, 4}), 1e-5))
	-- SVDF of floats: the sum over the last five features
	local m = integer_svdf(2)
	for _, t in ipairs(m.tensors) do
		if t.data then t.data = t.data:to 'float32' / 100 end
		t.type, t.scale, t.zero = 'FLOAT32', nil, nil
	end
	local g, xs = tflite.load(m, {states = true}), {}
	for i = 1, 7 do xs[i] = x_of(i, 2, 3):to 'float32' / 50 end
	local ys, feature, time = stepped(g, xs, start(g, {2, 20})), m.tensors[2].data, m.tensors[3].data
	local sum = tensor.zeros(2, 4)
	for k = 1, 5 do sum = sum + xs[2 + k]:matmul(feature:t()) * time:select(2, k) end
	assert(equal(ys[7] / 1000, (sum:view(2, 2, 2):sum(3) + m.tensors[4].data):relu() / 1000, 1e-4))
end)

it('bounds the steps that become nodes', function()
	assert(#tflite.load(integer_lstm {steps = 500}).order < 50) -- of codes: one op
	local long = integer_lstm {steps = 501}
	long.tensors[#long.tensors + 1] = codes('p', some(4, 100, 1), 'INT16', 0.01, 4)
	for i = 10, 12 do long.ops[1][2][i] = #long.tensors end -- peepholes
	local ok, message = pcall(tflite.load, long)
	assert(not ok and message:find 'input: wanted at most 500 steps of an LSTM that is computed step by step, got 501', message)
end)

it('refuses states where there are none, and twice', function()
	local ok, message = pcall(graph.load, {'none.onnx', states = true})
	assert(not ok and message:find 'load: states: wanted a TFLite file, got none.onnx', message)
	local m = integer_lstm {}
	m.tensors[1].name = 'h'
	ok, message = pcall(tflite.load, m, {states = true})
	assert(not ok and message:find "inputs: wanted different names, got 'h' twice", message)
	m = integer_lstm {}
	for _, t in ipairs(m.tensors) do
		if t.name == 'c' then t.scale = {0.001} end
	end
	ok, message = pcall(tflite.load, m)
	assert(not ok and message:find 'cell state: wanted a scale of 2^%-15 to 2^%-9, got 0.001', message)
end)
