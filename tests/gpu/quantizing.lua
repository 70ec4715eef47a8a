-- SPDX-License-Identifier: MIT
-- quantize, requantize and dequantize on a device: the codes, scales and values of the CPU, found there. What the host does for the
-- device stands in the ledger with its reason.
local D = dofile 'tests/tools/gpu_tested.lua'
local same = dofile 'tests/tools/same.lua'
local nets = dofile 'tests/tools/gpu_nets.lua'

-- Rows of the ledger since its last reset that did not run on the device.
local function host_rows()
	local list = {}
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' or row.path == 'fallback' then list[#list + 1] = ('%s: %s'):format(row.op, tostring(row.reason)) end
	end
	return table.concat(list, ', ')
end

-- The function's result; the test fails if the host ran anything.
local function there(f, name)
	quant.log 'reset'
	local result = f()
	assert(host_rows() == '', ('%s: %s'):format(name, host_rows()))
	return result
end

local function same_codes(p, q, name)
	local a, b = p:qparams(), q:qparams()
	assert(q:device() == D and p:dtype() == q:dtype(), name)
	assert(same(p:codes(), q:codes()) and same(a.scale, b.scale), name)
	assert(a.scale:dtype() == b.scale:dtype() and a.nan == b.nan and a.inf == b.inf, name)
	assert(not a.zero_point or same(a.zero_point, b.zero_point), name)
	assert(same(p:dequantize(), q:dequantize()), name)
end

local specs = {'int8', 'uint8/1', 'int16/2', 'int8:32', 'uint8:7', 'int8/1:4', 'int16:32', 'int4', 'uint4/1', 'int4:32',
	{dtype = 'int4', block = 128}, 'uint4:16', 'int2:8', 'int3/1', 'uint5', 'int6:64', 'int8:4096', 'nf4', 'nf4:16', 'af4', 'fp8_e4m3',
	'fp8_e5m2/1', 'fp8_e4m3:32', 'fp6_e3m2', 'fp4_e2m1:16', 'dynamic8', 'int8 scale=0.02', 'int4 scale=0.3', 'uint8 scale=0.02 zero_point=7'}

it('quantizes whole bytes, packed codes and tables in blocks, rows and wholes', function()
	local x = tensor.randn(37, 130)
	x[3][4], x[5][6] = 0 / 0, 1 / 0
	for _, spec in ipairs {'float16', 'bfloat16', 'float8_e4m3'} do
		assert(same(x:quantize(spec), there(function() return x:to(D):quantize(spec) end, spec)), spec)
	end
	for _, of in ipairs {x, x:t(), x:narrow(2, 3, 60), x:to 'float16', x:reshape(37, 10, 13), x * 1e30, x * 1e-12} do
		local y = of:to(D)
		for _, spec in ipairs(specs) do
			local name = type(spec) == 'string' and spec or 'int4:128'
			same_codes(of:quantize(spec), there(function() return y:quantize(spec) end, name), name)
		end
	end
end)

it('blocks wait for one word', function()
	local y = tensor.randn(64, 256):to(D)
	for spec, bytes in pairs {['int4:32'] = 4, ['int8:64'] = 4, ['int16:32'] = 0, ['int4/1'] = 0, ['nf4:64'] = 0, ['fp8_e4m3'] = 0} do
		gpu.memory 'reset'
		y:quantize(spec)
		local moved = gpu.memory()
		assert(moved.read == bytes and moved.written == 0, ('%s reads %d and writes %d bytes'):format(spec, moved.read, moved.written))
	end
end)

it('rounds at random with the numbers of the CPU', function()
	local x = tensor.randn(20, 70)
	local y = x:to(D)
	for _, spec in ipairs {'int8', 'int4:32', 'uint8/1', 'int3', 'nf4:16', 'int16'} do
		local of = spec .. ' rounding=stochastic'
		tensor.seed(4)
		local p, after = x:quantize(of), tensor.rand(3)
		tensor.seed(4)
		same_codes(p, there(function() return y:quantize(of) end, of), of)
		assert(same(after, tensor.rand(3)), of) -- as many numbers were taken
	end
end)

it('requantizes codes', function()
	local x = tensor.randn(24, 64)
	for _, from in ipairs {'int8', 'uint8/1', 'int4:32', 'nf4'} do
		local p = x:quantize(from)
		local q = p:to(D)
		for _, to in ipairs {'int8', 'int4:16', 'uint4/1', 'int16', 'fp8_e4m3', 'int8 scale=0.03', 'float16'} do
			local name = from .. ' to ' .. to
			local a, b = p:requantize(to), there(function() return q:requantize(to) end, name)
			if to == 'float16' then assert(same(a, b), name) else same_codes(a, b, name) end
			assert(a:spec() == b:spec(), name)
		end
	end
	local ok, message = pcall(function() return x:to(D):requantize 'int8' end)
	assert(not ok and message:find('wanted a quantized tensor, got plain float32', 1, true), message)
end)

it('decodes every format', function()
	local x = tensor.randn(12, 512)
	for _, f in ipairs {'nf4', 'af4', 'fp4_e2m1', 'mxfp4', 'mxfp6_e2m3', 'mxfp8_e5m2', 'mxint8', 'nvfp4', 'nf4:64:256', 'kmeans4', 'ternary', 'dynamic8',
		'q8_0', 'q4_0', 'q4_1', 'q5_1', 'q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl', 'tq1_0', 'tq2_0', 'gguf.mxfp4', 'binary', 'binary/1', 'int8 log', 'uint4 log'} do
		local p = x:quantize(f)
		local q = p:to(D)
		assert(same(p:dequantize(), there(function() return q:dequantize() end, f)), f)
		assert(same(p:narrow(1, 3, 5):dequantize(), there(function() return q:narrow(1, 3, 5):dequantize() end, f)), f)
	end
end)

-- Each was silent before: the ledger showed a kernel of the CPU.
it('what the host does for the device is in the ledger', function()
	local x = tensor.randn(4, 256)
	local y, q = x:to(D), x:quantize{dtype = 'int16', axis = 1, scheme = 'log'}:to(D)
	quant.log 'reset'
	q:dequantize()
	print(host_rows())  --> dequantize: codes of a kind that no kernel decodes
	quant.log 'reset'
	q:exp()
	assert(host_rows():find('dequantize: codes of a kind', 1, true), host_rows())
	for _, spec in ipairs {'int8@mse', 'q8_0', 'mxfp4', 'nvfp4', 'nf4:64:256', 'kmeans4', 'int8 log', 'binary', 'uint4+min'} do
		quant.log 'reset'
		local z = y:quantize(spec)
		assert(host_rows() == 'quantize: the host finds the scales of this spec', spec .. ' ' .. host_rows())
		assert(same(x:quantize(spec):dequantize(), z:dequantize()), spec)
	end
	local before = gpu.fallback 'error'
	local ok, message = pcall(function() return q:dequantize() end)
	gpu.fallback(before)
	assert(not ok and message:find('dequantize: wanted a kernel of', 1, true), message)
end)

it('given scales are copied once', function()
	local x = tensor.randn(8, 16)
	local y = x:to(D)
	local scales = tensor.rand(8) + 0.01
	for name, spec in pairs {one = 'int8 scale=0.0625', axis = {dtype = 'int8', axis = 1, scale = scales},
		zero = {dtype = 'uint8', scale = 0.031, zero_point = 9}} do
		local p = x:quantize(spec)
		y:quantize(spec)
		gpu.memory 'reset'
		local q = y:quantize(spec)
		assert(gpu.memory().written == 0, name)
		same_codes(p, q, name)
		q:qparams().scale:fill_(3) -- of this tensor, not of the next one
		same_codes(p, y:quantize(spec), name)
		gpu.memory 'reset'
		assert(same(x:fake(spec), y:fake(spec)), name)
		assert(gpu.memory().written == 0, name)
	end
	scales:mul_(2)
	same_codes(x:quantize{dtype = 'int8', axis = 1, scale = scales}, y:quantize{dtype = 'int8', axis = 1, scale = scales}, 'changed')
end)

it('results in fixed point are rescaled there', function()
	local x, w = tensor.randn(9, 40):quantize 'int8', tensor.randn(12, 40):quantize 'int8/1'
	local b = tensor.randn(12)
	local dx, dw, db = x:to(D), w:to(D), b:to(D)
	for _, rounding in ipairs {'single', 'double'} do
		local out = 'int8 scale=0.21 rounding=' .. rounding
		assert(same(x:linear(w, b, {out = out}):codes(), there(function() return dx:linear(dw, db, {out = out}) end, out):codes()), out)
	end
	local exact = 'int8 scale=0.21 rounding=exact' -- on the host
	assert(same(x:linear(w, b, {out = exact}):codes(), dx:linear(dw, db, {out = exact}):codes()))
	local ok, message = pcall(function() return tensor.randn(4):to(D):quantize 'int8 scale=1 rounding=single' end)
	assert(not ok and message:find('wanted integer results', 1, true), message)
end)

for _, net in ipairs(nets) do
	it(net.name .. ': weights of 4 bits in blocks are made there', function()
		local want = net.make():quantize{mode = 'weight_only', weight = 'int4:16'}
		local m = net.make():to(D)
		local q = there(function() return (m:quantize{mode = 'weight_only', weight = 'int4:16'}) end, net.name)
		local x = net.batches(1)[1][1]
		local function near(a, b) return (a - b:to 'cpu'):abs():max():item() <= 1e-4 * (1 + a:abs():max():item()) end
		assert(near(want(x), q(x:to(D))), net.name)
	end)
end
