-- SPDX-License-Identifier: MIT
-- Observers of tensors on a device: the histogram stays there, nothing is read until somebody asks, and then all numbers are those of
-- the CPU. What only the host can observe is copied, and the ledger says so.
local D = dofile 'tests/tools/gpu_tested.lua'

local function batches()
	tensor.seed(6)
	local list = {tensor.randn(40, 60), tensor.randn(100, 100) * 1e-3, tensor.rand(300, 300) * 50, tensor.randn(7)}
	list[1][2][3], list[3][5][6] = 0 / 0, -1 / 0
	list[5] = list[1]:t() * 3
	list[6] = tensor.randn(64):to 'float16'
	list[7] = tensor.randn(30, 8):quantize 'int8'
	return list
end


local function same_state(a, b, name)
	local p, q = a:measure(), b:measure()
	for key, value in pairs(p) do assert(value == q[key] or (value ~= value and q[key] ~= q[key]), ('%s: %s is %s, not %s'):format(name, key, q[key], value)) end
	local g, h = a:histogram(64), b:histogram(64)
	for i, n in ipairs(g.counts) do assert(n == h.counts[i], name) end
	for _, kind in ipairs {'minmax', 'percentile', 'mse'} do
		local s, t = a:params{observer = kind}, b:params{observer = kind}
		assert(s.scale:item() == t.scale:item() and (not s.zero_point or s.zero_point:item() == t.zero_point:item()), name .. ' ' .. kind)
	end
	local lo, hi = a:range()
	local low, high = b:range()
	assert(lo == low and hi == high and a.count == b.count and tostring(a) == tostring(b), name)
end

local function host_rows()
	local list = {}
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' then list[#list + 1] = ('%s: %s'):format(row.op, tostring(row.reason)) end
	end
	return table.concat(list, ', ')
end

for _, spec in ipairs {'int8', 'uint8', 'uint8@percentile', 'int8@mse', 'int4'} do
	it(spec .. ': nothing is read before somebody asks', function()
		local a, b = quant.observer(spec), quant.observer(spec)
		local there = {}
		for i, x in ipairs(batches()) do there[i] = x:to(D) end
		quant.log 'reset'
		gpu.memory 'reset'
		for _, x in ipairs(there) do b:update(x) end
		local moved = gpu.memory()
		assert(moved.read == 0 and moved.written == 0, ('reads %d and writes %d bytes'):format(moved.read, moved.written))
		assert(host_rows() == '', host_rows())
		for _, x in ipairs(batches()) do a:update(x) end
		same_state(a, b, spec)
		b:update(there[3]) -- goes on there after it was read
		a:update(there[3]:to 'cpu')
		same_state(a, b, spec)
	end)
end

it('goes on with tensors of the host, merges and resets', function()
	local list = batches()
	local a, b, c, d = quant.observer 'int8', quant.observer 'int8', quant.observer 'int8', quant.observer 'int8'
	a:update(list[1]):update(list[2]):update(list[3])
	b:update(list[1]:to(D)):update(list[2]):update(list[3]:to(D))
	same_state(a, b, 'mixed')
	c:update(list[4]:to(D))
	d:update(list[4])
	same_state(a:merge(d), b:merge(c), 'merged')
	same_state(d, c:reset():update(list[4]:to(D)), 'reset')
	local ok, message = pcall(function() return quant.observer('int8'):update(tensor{1, 2}:to('int32'):to(D)) end)
	assert(not ok and message:find('wanted floats', 1, true), message)
	ok, message = pcall(function() return quant.observer('int8'):update(tensor{0 / 0}:to(D)):params() end)
	assert(not ok and message:find('no samples', 1, true), message)
end)

it('the host observes the rest, and the ledger says so', function()
	local x = batches()[3]
	for spec, why in pairs {['int8/1'] = 'an observer of several scales', ['uint8@entropy'] = 'an observer that needs more than the histogram',
		['uint8@average'] = 'an observer that needs more than the histogram'} do
		quant.log 'reset'
		local a, b = quant.observer(spec):update(x), quant.observer(spec):update(x:to(D))
		assert(host_rows() == 'observe: ' .. why, host_rows())
		local s, t = a:params(), b:params()
		assert(s.scale:eq(t.scale):all():item(), spec)
	end
end)

it('errors are measured on the host, and the ledger says so', function()
	local x = batches()[2]
	local q = x:quantize 'int4'
	quant.log 'reset'
	local a, b = x:metrics(q), x:to(D):metrics(q:to(D))
	assert(host_rows() == 'error: errors are measured on the host', host_rows())
	assert(a.sqnr == b.sqnr and a.mse == b.mse)
end)

it('models are calibrated there', function()
	local nets = dofile 'tests/tools/gpu_nets.lua'
	local net = nets[1]
	local m, data = net.make():to(D), {}
	for i, b in ipairs(net.batches(3)) do data[i] = {b[1]:to(D), b[2]:to(D)} end
	gpu.memory 'reset'
	quant.log 'reset'
	m:calibrate(data, {input = 'uint8', log = false})
	assert(host_rows() == '', host_rows())
	local q = m:quantize{mode = 'static', weight = 'int8/1'}
	assert(q(data[1][1]):device() == D)
end)
