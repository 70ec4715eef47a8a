-- SPDX-License-Identifier: MIT
-- Recurrent layers on a device: results and gradients have the bits of the CPU where products are ordered, as at the
-- level ref, and are near them otherwise; the ledger names the kernels.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'
local function near(a, b)
	a, b = a:to 'cpu', b:to 'cpu'
	return (a - b):abs():max():item() <= 1e-5 * (1 + a:abs():max():item())
end

-- Path and kernel of the ops of these names in the ledger since the last reset; none may have run on the host.
local function rows(...)
	local found = {}
	for _, name in ipairs {...} do
		for _, row in ipairs(quant.log()) do
			if row.op == name then
				assert(row.path ~= 'host', name .. ': ' .. tostring(row.reason))
				found[#found + 1] = row.path .. ' ' .. row.kernel
			end
		end
	end
	return table.concat(found, ', ')
end

-- Results, states and gradients of a layer and of x.
local function all_of(m, x)
	local list = {}
	x = x:detach():requires_grad_()
	for _, p in pairs(m:state()) do p:zero_grad() end
	local y, states = m(x)
	list[1] = y
	for _, inner in ipairs(states) do table.move(inner, 1, #inner, #list + 1, list) end
	local loss = (y * y):sum()
	for _, inner in ipairs(states) do
		for i, s in ipairs(inner) do loss = loss + (s * s):sum() * i end
	end
	loss:backward()
	list[#list + 1] = x:grad()
	for _, p in pairs(m:state()) do list[#list + 1] = p:grad() end
	return list
end

local function expect(want, got, equal, text)
	assert(#want == #got and #want > 4)
	for i, t in ipairs(want) do assert(equal(t, got[i]), ('%s: tensor %d'):format(text, i)) end
end

local KINDS = {LSTM = 'lstm', GRU = 'gru', RNN = 'rnn'}

it('steps from the last to the first run there; lengths and a reset before the product run on the host', function()
	hw.force 'ref'
	for kind, op in pairs(KINDS) do
		for _, o in ipairs {{bidirectional = true}, {reverse = true, batchfirst = false}, kind == 'GRU' and {resetafter = false} or nil} do
			local m = nn[kind](7, 18, o)
			local x = tensor.randn(5, 4, 7)
			local want = all_of(m, x)
			m:to(D)
			quant.log 'reset'
			local got = all_of(m, x:to(D))
			expect(want, got, o.resetafter == false and near or same, op)
			if o.resetafter == nil then rows(op, op .. '_back') end
		end
	end
	local m, x, lengths = nn.LSTM(7, 18), tensor.randn(5, 4, 7), tensor {dtype = 'int64', 4, 1, 3, 2, 4}
	local want = m(x, {lengths = lengths})
	m:to(D)
	assert(same(want, (m(x:to(D), {lengths = lengths:to(D)}))))
	hw.force 'native'
end)

for kind, op in pairs(KINDS) do
	it(kind .. ' and its gradients run there', function()
		for _, level in ipairs {'ref', 'native'} do
			hw.force(level)
			for _, batchfirst in ipairs {true, false} do
				local m = nn[kind](7, 18, {layers = 2, batchfirst = batchfirst, bias = batchfirst})
				local x = tensor.randn(5, 4, 7)
				local want = all_of(m, x)
				m:to(D)
				quant.log 'reset'
				local got = all_of(m, x:to(D))
				assert(rows(op) == 'float32 recurrent' and rows(op .. '_back') == 'float32 recurrent_back')
				assert(got[2]:device() == D)
				expect(want, got, level == 'ref' and same or near, kind .. ' at the level ' .. level)
			end
		end
	end)
end

it('float16 and float64 layers do', function()
	hw.force 'ref'
	for _, dtype in ipairs {'float16', 'float64'} do
		for kind in pairs(KINDS) do
			local m = nn[kind](6, 9):to(dtype)
			local x = tensor.randn(3, 4, 6):to(dtype)
			local want = all_of(m, x)
			m:to(D)
			expect(want, all_of(m, x:to(D)), dtype == 'float16' and same or near, kind .. ' ' .. dtype)
		end
	end
	hw.force 'native'
end)

it('quantized layers give the bits of the CPU', function()
	local paths = {dynamic = 'int8 recurrent', static = 'int8 recurrent'}
	for kind, op in pairs(KINDS) do
		local m, x = nn[kind](20, 24, {layers = 2}), tensor.randn(6, 5, 20)
		m:calibrate({{x}}, {log = false})
		for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
			local q = m:quantize {mode = mode, weight = 'int8/1'}
			local want, states = q(x)
			q:to(D)
			quant.log 'reset'
			local got, there = q(x:to(D))
			assert(rows(op) == (paths[mode] or 'float32 recurrent'), rows(op))
			assert((mode == 'weight_only' and near or same)(want, got) and near(states[2][1], there[2][1]), kind .. ' ' .. mode)
		end
	end
end)

it('layers train with quantized weights', function()
	hw.force 'ref'
	for kind, op in pairs(KINDS) do
		for _, mode in ipairs {'train', 'qat'} do
			local m, x = nn[kind](8, 16), tensor.randn(3, 4, 8)
			m:calibrate({{x}}, {log = false})
			local q = m:quantize {mode = mode, weight = 'int8/1'}
			local want = all_of(q, x)
			q:to(D)
			quant.log 'reset'
			local got = all_of(q, x:to(D))
			assert(rows(op):find 'recurrent' and rows(op .. '_back') == 'float32 recurrent_back', rows(op))
			expect(want, got, same, kind .. ' ' .. mode)
		end
	end
	hw.force 'native'
end)

it('carried states follow the layer', function()
	local m, x = nn.LSTM(4, 6), tensor.randn(2, 3, 4)
	m:carry(true)
	m(x)
	local want = m(x)
	m:carry(true)
	m(x)
	m:to(D)
	assert(near(want, m(x:to(D))))
	print(m.carried[1][1]:device() == D, m.carried[1][2]:device() == D)  --> true	true
	m:to 'cpu'
	print(m(x):device())  --> cpu
end)

it('what the layer refuses is the error of the CPU', function()
	local d = function(...) return tensor.ones(...):to(D) end
	local x, h, w_ih, w_hh = d(1, 2, 3), d(1, 4), d(4, 3), d(4, 4)
	print(pcall(nn.rnn, x, h, w_ih, w_hh, {states = 'int8'}))  --> false	rnn: states: wanted a quantized w_hh, got float32(4, 4)
end)
