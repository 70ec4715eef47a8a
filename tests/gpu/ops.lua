-- SPDX-License-Identifier: MIT
-- Tensors on a device: ops whose kernels run there have the bits of the CPU, and the ledger names the kernels.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- Kernels of the op in the ledger since the last reset.
local function kernels(op)
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.op == op then found[#found + 1] = row.path .. ' ' .. row.kernel end
	end
	return table.concat(found, ', ')
end

it('reductions run there in the order of the CPU', function()
	local x = tensor.randn(37, 4100)
	local y = x:to(D)
	for _, op in ipairs {'sum', 'mean', 'max', 'min'} do
		for _, axis in ipairs {1, 2} do assert(same(x[op](x, axis), y[op](y, axis)), op) end
		assert(same(x[op](x), y[op](y)), op)
	end
	quant.log 'reset'
	y:sum(2)
	print(kernels 'sum', y:sum(2):device() == D)  --> float32 reduce	true
end)

-- Paths and kernels of all ops in the ledger since the last reset.
local function paths()
	local found = {}
	for _, row in ipairs(quant.log()) do found[row.path .. ' ' .. row.kernel] = row.op end
	return found
end

it('elementwise ops run there by the functions of their files', function()
	local x = tensor{-1, 2, 0/0, 1/0, -0.0, 0.25}
	local y = x:to(D)
	quant.log 'reset'
	assert(same(x:exp() * 2 + x:relu(), y:exp() * 2 + y:relu()))
	assert(same(tensor.where(x:gt(0), x, 0):clamp(0, 1), tensor.where(y:gt(0), y, 0):clamp(0, 1)))
	assert(same(x:clone():mul_(3):gelu{approximate = 'tanh'}, y:clone():mul_(3):gelu{approximate = 'tanh'}))
	for _, row in ipairs(quant.log()) do assert(row.path ~= 'host', row.op .. ': ' .. tostring(row.reason)) end
end)

-- relu keeps bits for its gradient, whose making is no function of elements.
it('so do their gradients', function()
	for _, op in ipairs(tensor.ops()) do
		local name = op.name
		local x = tensor{-1.5, 2, 0.25, -0.0, 0.75}
		if op.elementwise and op.gradient and op.arity_max == 1 and op.inplace and not name:find '^relu' then
			local function gradient(at)
				local leaf = at:clone():requires_grad_()
				leaf[name](leaf):sum():backward()
				return leaf:grad()
			end
			local want = gradient(x)
			quant.log 'reset'
			local got = gradient(x:to(D))
			assert(want and same(want, got) or want == got, name)
			for path, slope in pairs(paths()) do assert(not path:find '^host', name .. ': ' .. slope) end
		end
	end
end)

it('views, casts and copies stay there', function()
	local x = tensor.randn(9, 30)
	local y = x:to(D)
	assert(same(x:t():contiguous(), y:t():contiguous()) and same(x:to 'float16', y:to 'float16'))
	print(y:t():contiguous():device() == D, y:to('int8'):device() == D, y:narrow(2, 3, 5):clone():device() == D)  --> true	true	true
end)

it('products of codes run there, with bias and activation', function()
	local x, w, b = tensor.randn(33, 300):quantize 'uint8', tensor.randn(70, 300):quantize 'int8/1', tensor.randn(70)
	local dx, dw, db = x:to(D), w:to(D), b:to(D)
	for _, act in ipairs {'relu', 'gelu', 'tanh'} do
		assert(same(x:linear(w, b, {act = act}), dx:linear(dw, db, {act = act})), act)
	end
	quant.log 'reset'
	local y = dx:linear(dw, db)
	print(kernels 'linear', y:device() == D, same(y, x:linear(w, b)))  --> int8 gemm_i8_mma	true	true
	quant.log 'reset'
	y = dx:matmul(dw:t())
	print(kernels 'matmul', same(y, x:matmul(w:t())))  --> int8 gemm_i8_mma	true
end)

it('quantizing finds scales, zero points, NaN and infinities there', function()
	local x = tensor.randn(64, 100)
	x[3][4], x[5][6] = 0 / 0, 1 / 0
	local y = x:to(D)
	for _, spec in ipairs {'int8', 'int8/1', 'uint8', 'uint8/2', 'int16', 'int8 scale=0.02'} do
		quant.log 'reset'
		local p, q = x:quantize(spec), y:quantize(spec)
		assert(kernels 'quantize':find 'quantize_' and kernels 'quantize':find(q:dtype() .. ' quantize', 1, true), kernels 'quantize')
		local a, b = p:qparams(), q:qparams()
		assert(same(p:codes(), q:codes()) and same(a.scale, b.scale) and same(p:dequantize(), q:dequantize()), spec)
		assert(b.nan == 1 and b.inf == 1 and (not a.zero_point or same(a.zero_point, b.zero_point)), spec)
	end
	for _, spec in ipairs {'int8:32', 'int4', 'nf4', 'fp8_e4m3', 'int8@mse', 'q8_0'} do
		local z = y:narrow(2, 1, 64):contiguous()
		assert(same(z:quantize(spec):dequantize(), (z:to 'cpu'):quantize(spec):dequantize()), spec)
	end
end)

it('quantized layers give the bits of the CPU', function()
	local x = tensor.randn(33, 100)
	for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
		local m = nn.Sequential {nn.Linear(100, 40), nn.ReLU(), nn.Linear(40, 7)}
		m:calibrate({{x}}, {log=false})
		local q = m:quantize {mode=mode, weight='int8/1'}
		local wanted = q(x)
		q:to(D)
		quant.log 'reset'
		assert(same(wanted, q(x:to(D))), mode)
		if mode == 'dynamic' then print(kernels 'linear', kernels 'quantize') end  --> int8 gemm_i8_mma	uint8 quantize
	end
end)

it('what has no kernel runs on the host, and the ledger says why', function()
	local y = tensor{4, 2, 3}:to(D)
	quant.log 'reset'
	print(y:sort():device() == D)  --> true
	for _, row in ipairs(quant.log()) do
		if row.op == 'sort' then print(row.path, row.reason) end  --> host	the device has no kernel of the op
	end
end)
