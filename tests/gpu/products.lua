-- SPDX-License-Identifier: MIT
-- Products of floats, and of floats and codes, on a device: with ordered products forward and backward have the bits of the
-- CPU, else they are as near as gemm_f32 states; none runs on the host.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- Rows of products in the ledger since the last reset: all are of the device.
local function products()
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.op == 'linear' or row.op == 'matmul' then
			assert(row.path ~= 'host' and row.path ~= 'fallback', row.op .. ': ' .. tostring(row.reason))
			found[#found + 1] = row.op .. ' ' .. row.path .. ' ' .. row.kernel
		end
	end
	table.sort(found)
	return table.concat(found, ', ')
end

-- Sets quant.fallback until the value is closed.
local function fallback(level)
	local before = quant.fallback()
	quant.fallback(level)
	return setmetatable({}, {__close = function() quant.fallback(before) end})
end

-- Runs f with the ordered products of the level ref.
local function ordered(f)
	local level = hw.force()
	hw.force 'ref'
	local ok, message = pcall(f)
	hw.force(level)
	assert(ok, message)
end

-- The result of f of the tensors, and the gradients of all that require one, on a device.
local function run(device, f, ...)
	local at = {}
	for i, t in ipairs {...} do
		at[i] = t:to(device)
		if not t:quantized() then at[i] = at[i]:clone():requires_grad_() end
	end
	local y = f(table.unpack(at))
	local results = {y}
	y:square():sum():backward()
	for _, t in ipairs(at) do
		if not t:quantized() then results[#results + 1] = t:grad() end
	end
	return results
end

local function compare(f, ...)
	local wanted = run('cpu', f, ...)
	quant.log 'reset'
	local got = run(D, f, ...)
	for i, t in ipairs(wanted) do assert(same(t, got[i]), 'result ' .. i) end
	return products()
end

it('floats have the bits of the CPU with ordered products, forward and backward', function()
	ordered(function()
		local x, w, b = tensor.randn(33, 70), tensor.randn(21, 70), tensor.randn(21)
		for _, act in ipairs {'relu', 'gelu', 'tanh', 'silu', 'hardswish', 'sigmoid'} do
			compare(function(p, q, r) return p:linear(q, r, {act = act}) end, x, w, b)
		end
		print(compare(function(p, q) return p:linear(q) end, x, w))  --> linear float32 gemm_f32, matmul float32 gemm_f32
		compare(function(p, q) return p:matmul(q:t()) end, x, w)
		compare(function(p, q) return p:matmul(q) end, tensor.randn(3, 5, 20), tensor.randn(20, 7))
		compare(function(p, q) return p:matmul(q) end, tensor.randn(2, 1, 5, 20), tensor.randn(4, 20, 7))
		compare(function(p, q) return p:matmul(q) end, tensor.randn(20), tensor.randn(20, 7))
		compare(function(p, q) return p:transpose(1, 2):linear(q) end, tensor.randn(9, 4, 20), tensor.randn(7, 20))
	end)
end)

it('float16, bfloat16 and float64 too', function()
	ordered(function()
		for _, dtype in ipairs {'float16', 'bfloat16', 'float64'} do
			local x, w, b = tensor.randn(13, 50):to(dtype), tensor.randn(21, 50):to(dtype), tensor.randn(21)
			compare(function(p, q, r) return p:linear(q, r, {act = 'relu'}) end, x, w, b)
			compare(function(p, q) return p:matmul(q:t()) end, x, w)
		end
	end)
end)

it('weights of codes are decoded as they are read', function()
	ordered(function()
		local x, w, b = tensor.randn(11, 64), tensor.randn(20, 64), tensor.randn(20)
		local _ <close> = fallback 'silent'
		for _, spec in ipairs {'int8', 'int8/1', 'uint8/1', 'int4:32', 'uint4:16', 'int16/1', 'int3/1', 'q4_1', 'ternary'} do
			local found = compare(function(p, q, r) return p:linear(q, r) end, x, w:quantize(spec), b)
			assert(found == 'linear float32 gemm_f32, matmul float32 gemm_f32', spec .. ': ' .. found)
		end
	end)
end)

it('other codes are decoded on the device before, as on the CPU', function()
	local x = tensor.randn(6, 256)
	local _ <close> = fallback 'silent'
	ordered(function()
		for _, spec in ipairs {'nf4:32', 'q4_k', 'fp8_e4m3', 'int8 log'} do
			local w = tensor.randn(5, 256):quantize(spec)
			local wanted, there = x:linear(w), w:to(D)
			quant.log 'reset'
			assert(same(wanted, (x:to(D)):linear(there)), spec)
			local found
			for _, row in ipairs(quant.log()) do
				if row.op == 'linear' then found = row.kernel .. ' ' .. row.path .. ': ' .. row.reason end
			end
			assert(found == 'gemm_f32 fallback: an operand is not quantized', spec .. ': ' .. tostring(found))
		end
	end)
	quant.fallback 'error'
	local w = tensor.randn(5, 256):quantize 'nf4'
	local _, message = pcall(function() return (x:to(D)):linear(w:to(D)) end)
	assert(message:find("linear: wanted an integer kernel for float32 x uint4q (quant.fallback is 'error'), got none: an operand is not quantized", 1, true))
end)

it('options of integer paths are errors without codes', function()
	local y = tensor {-1, 2}:to(D)
	local _, message = pcall(function() return y:add(y, {act = 'relu'}) end)
	assert(message:find('add: act: wanted quantized operands and out= that an integer kernel takes, got none: no operand is quantized', 1, true))
end)

it('products that need no order are near, and integers exact', function()
	local x, w = tensor.randn(20, 3000), tensor.randn(9, 3000)
	local y = (x:to(D)):linear(w:to(D)):to 'cpu'
	local exact, most = x:to('float64'):linear(w:to 'float64'), x:abs():linear(w:abs()):to 'float64'
	assert(((y:to 'float64' - exact):abs():le(most * (3000 * 2 ^ -24))):all():item())
	local a, b = (tensor.randn(7, 40) * 60):to 'int8', (tensor.randn(40, 5) * 60):to 'int8'
	local p = (a:to(D)):matmul(b:to(D))
	print(p:dtype(), same(p, a:matmul(b)))  --> int32	true
end)

-- The gradients of a small net's input and parameters.
local function gradients(x, mode, device)
	tensor.seed(7)
	local m = nn.Sequential {nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 7)}
	m:calibrate({{x}}, {log = false})
	m = mode == 'float' and m or m:quantize {mode = mode}
	m:to(device)
	local g = x:to(device):clone():requires_grad_()
	quant.log 'reset'
	m(g):square():sum():backward()
	local list = {g:grad()}
	for _, p in ipairs(m:parameters()) do list[#list + 1] = p:grad() end
	return list
end

it('layers learn in all modes without a product of the host', function()
	local _ <close> = fallback 'silent'
	ordered(function()
		local x = tensor.randn(12, 64)
		for mode, rows in pairs {float = 'linear float32 gemm_f32, matmul float32 gemm_f32', qat = 'linear float32 gemm_f32, matmul float32 gemm_f32',
			train = 'linear int8 gemm_i8_mma, matmul float32 gemm_f32'} do
			local wanted, got = gradients(x, mode, 'cpu'), gradients(x, mode, D)
			assert(products() == rows, mode .. ': ' .. products())
			assert(#wanted == #got and #got == 5)
			for i, t in ipairs(wanted) do assert(same(t, got[i]), mode .. ' ' .. i) end
		end
	end)
end)

-- Operands and kernels of linear in the ledger.
local function operands()
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.op == 'linear' then found[#found + 1] = row.operands .. ' ' .. row.kernel end
	end
	table.sort(found)
	return table.concat(found, ', ')
end

it('layers of mode weight_only multiply few rows with codes, more rows with decoded weights', function()
	local m = nn.Sequential {nn.Linear(64, 40), nn.GELU(), nn.Linear(40, 7)}
	local codes = {['int4:32'] = 'int4q', ['uint8/1'] = 'uint8q', nf4 = 'float32'}
	for spec, read in pairs(codes) do
		for _, rows in ipairs {5, 12} do
			local x = tensor.randn(rows, 64)
			local q = m:quantize {mode = 'weight_only', weight = spec}
			local wanted = q(x)
			q:to(D)
			quant.log 'reset'
			assert(q(x:to(D)):to('cpu'):error(wanted).max < 1e-4, spec)
			local kernel = rows == 5 and 'gemv_f32' or 'gemm_f32'
			read = rows == 5 and read or 'float32'
			-- 40 is no multiple of the 32 or 16 codes of a piece
			local second = rows == 5 and read ~= 'float32' and 'gemm_f32' or kernel
			local want = {('float32 x %s x float32 %s'):format(read, kernel), ('float32 x %s x float32 %s'):format(read, second)}
			table.sort(want)
			if read == 'float32' then want = {('float32 x float32 x float32 %s'):format(kernel)} end
			assert(operands() == table.concat(want, ', '), spec .. ': ' .. operands())
		end
	end
end)

-- The largest difference from y, relative to the largest value of y, in units.
local function units(got, y, unit)
	y = y:to 'float32'
	return (got:to('cpu'):to 'float32' - y):abs():max():item() / (y:abs():max():item() * unit)
end

it('of 16-bit floats they multiply any number of rows with codes, on tensor cores', function()
	local _ <close> = fallback 'error'
	local m = nn.Sequential {nn.Linear(64, 40), nn.GELU(), nn.Linear(40, 7)}
	for _, dtype in ipairs {'float16', 'bfloat16'} do
		for _, spec in ipairs {'int4:32', 'int8/1', 'uint4/1', 'int4:8'} do
			local x = tensor.randn(21, 64):to(dtype)
			local q = m:quantize {mode = 'weight_only', weight = spec}
			local wanted = q(x)
			q:to(D)
			quant.log 'reset'
			local got = q(x:to(D))
			assert(got:dtype() == dtype and units(got, wanted, dtype == 'float16' and 2 ^ -9 or 2 ^ -6) < 1, spec)
			for _, row in ipairs(quant.log():where {op = 'linear'}) do
				assert(row.kernel == 'gemm_f16_mma' and row.path == dtype and row.operands:find('int%dq'), row.operands .. ' ' .. row.kernel)
			end
			assert(#quant.log():where {op = 'dequantize'} == 0, spec)
		end
	end
end)

it('the quantized linear learns in 16-bit floats: its gradients are products on tensor cores with codes that are decoded on the way', function()
	local _ <close> = fallback 'silent' -- the CPU decodes for backward
	for _, dtype in ipairs {'float16', 'bfloat16'} do
		local q = nn.Linear(48, 40):quantize {mode = 'train', weight = 'int8/1', input = 'int8'}
		local x, g = tensor.randn(3, 7, 48):to(dtype), tensor.randn(3, 7, 40):to(dtype)
		local function step(device)
			q:to(device)
			q:zero_grad()
			local input = x:to(device):clone():requires_grad_()
			quant.log 'reset'
			q(input):backward(g:to(device))
			return {input:grad(), q.weight:grad(), q.bias:grad()}
		end
		local wanted, got = step 'cpu', step(D)
		assert(products() == ('linear int8 gemm_i8_mma, matmul %s gemm_f16_mma'):format(dtype), products())
		for _, row in ipairs(quant.log()) do assert(row.path ~= 'host' and row.path ~= 'fallback', row.op .. ': ' .. tostring(row.reason)) end
		for i, t in ipairs(wanted) do
			assert(t:dtype() == got[i]:dtype() and units(got[i], t, dtype == 'float16' and 2 ^ -10 or 2 ^ -7) < 1, dtype .. ' ' .. i)
		end
	end
end)

it('float layers of modules that make codes are ordered, so that the result has the bits of the CPU', function()
	local m = nn.Sequential {nn.Linear(64, 40), nn.GELU(), nn.Linear(40, 7)}
	for _, rows in ipairs {3, 20} do
		local x = tensor.randn(rows, 64)
		local q = m:quantize {mode = 'dynamic', rules = {{'linear1', false}, {'.*', 'int8/1'}}}
		local wanted = q(x)
		q:to(D)
		quant.log 'reset'
		assert(same(wanted, q(x:to(D))))
		assert(products() == 'linear float32 gemm_f32, linear int8 gemm_i8_mma', products())
	end
end)
