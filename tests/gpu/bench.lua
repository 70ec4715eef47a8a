-- SPDX-License-Identifier: MIT
-- Reports of measurements on a device: what ran there, its peak, its name, the column speedup, the file and the plot.
local D = dofile 'tests/tools/gpu_tested.lua'
local quick = {runs = 2, warmup = 1, timeout = 0.5}

local function file(name)
	local path = os.tmpname()
	os.remove(path)
	return path .. name
end

it('bench.time', function()
	local x = tensor.randn(50, 40):to(D)
	local row = bench.time(function() return x:relu() end, quick)[1]
	assert(row.device_peak >= 8000 and row.device_peak % 8000 == 0 and row.ms > 0, row.device_peak)
	assert(row.gpu == gpu.info().devices[1].name)
	print(row.runs, row.kernel, row.path)  --> 2	rows	float32
	local text = tostring(bench.time(function() return tensor.ones(9, {device = 'cpu'}):relu() end, quick))
	print(text:find '\npeak ' ~= nil, text:find 'device_peak', text:find '\ngpu ')  --> true	nil	nil
end)

it('bench.matmul', function()
	local r = bench.matmul {sizes = {32, {1, 64, 32}}, dtypes = {'float32', 'int8', 'int4:32'}, device = D, runs = 2, warmup = 1, timeout = 0.5}
	assert(#r == 6)
	for i, row in ipairs(r) do
		assert(row.device == D and row.kernel:find '^gem' and row.path ~= 'host' and row.device_peak >= 4 * 32 and row.gops > 0)
		assert(row.speedup == r[i <= 3 and 1 or 4].ms / row.ms)
	end
	local path = file '.csv'
	r:save(path)
	local head = io.lines(path)()
	os.remove(path)
	print(head:match 'size,dtype,input,device,', head:match 'device_peak', head:match 'gpu')  --> size,dtype,input,device,	device_peak	gpu
	path = file '.png'
	r:plot {kind = 'bar', x = 'dtype', y = 'gops', file = path}
	assert(io.open(path)):close()
	os.remove(path)
end)

it('bench.models', function()
	local m = nn.Sequential {nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)}
	local batches = {}
	for i = 1, 3 do batches[i] = {tensor.randn(4, 12), tensor.randint {4, low = 1, high = 3}} end
	quant.log 'reset'
	local r = bench.models({float32 = m, int8 = {m:quantize {mode = 'dynamic'}, bits = 8}}, {data = batches, device = D, log = false})
	for _, row in ipairs(quant.log()) do assert(row.path ~= 'host', row.op) end
	assert(m:device() == 'cpu' and r[1].speedup == 1 and r[2].speedup == r[1].ms / r[2].ms)
	assert(r[2].bytes < r[1].bytes and r[1].device_peak >= r[1].activation_bytes)
	print(r[1].device == D, r[2].device == D, r[2].bits, r[2].batches)  --> true	true	8	3
	assert(r[1].accuracy == bench.models({m = m}, {data = batches, log = false})[1].accuracy)
	local both = bench.models({float32 = m, there = m:clone():to(D)}, {data = batches, log = false})
	print(both[1].device, both[2].device == D, both[1].device_peak, both[1].gpu, both[2].gpu ~= nil)  --> cpu	true	0	nil	true
end)
