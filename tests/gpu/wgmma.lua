-- SPDX-License-Identifier: MIT
-- Products of codes that are large enough run by wgmma on a device, with the bits of the CPU.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'
local kernels = dofile 'tests/tools/gpu_ledger.lua'

it('linear of codes', function()
	local x, w, b = tensor.randn(70, 544):quantize 'uint8/1', tensor.randn(80, 544):quantize 'int8/1', tensor.randn(80)
	local dx, dw, db = x:to(D), w:to(D), b:to(D)
	local wanted, active = x:linear(w, b), x:linear(w, b, {act = 'gelu'})
	quant.log 'reset'
	assert(same(wanted, dx:linear(dw, db)) and same(active, dx:linear(dw, db, {act = 'gelu'})))
	print(kernels 'linear')  --> int8 gemm_i8_wgmma
end)

it('linear of symmetric codes with a result of each width', function()
	local x, w, b = tensor.randn(133, 160):quantize 'int8/1', tensor.randn(261, 160):quantize 'int8/1', tensor.randn(261)
	local dx, dw, db = x:to(D), w:to(D), b:to(D)
	for _, dtype in ipairs {'float32', 'float16', 'bfloat16'} do
		for _, act in ipairs {false, 'relu'} do
			local options = {out = dtype, act = act or nil}
			local wanted, unbiased = x:linear(w, b, options), x:linear(w, nil, options)
			quant.log 'reset'
			local got = dx:linear(dw, db, options)
			assert(got:dtype() == dtype and same(wanted, got) and same(unbiased, dx:linear(dw, nil, options)), dtype)
			assert(kernels 'linear' == 'int8 gemm_i8_wgmma, int8 gemm_i8_wgmma')
		end
	end
end)

it('matmul of codes, with a transposed view', function()
	local x, w = tensor.randn(64, 128):quantize 'int8', tensor.randn(96, 128):quantize 'int8'
	local dx, dw = x:to(D), w:to(D)
	local wanted = x:matmul(w:t())
	quant.log 'reset'
	assert(same(wanted, dx:matmul(dw:t())))
	print(kernels 'matmul')  --> int8 gemm_i8_wgmma
end)

it('a quantized layer', function()
	local m = nn.Sequential {nn.Linear(160, 96), nn.ReLU(), nn.Linear(96, 5)}
	local q = m:quantize {mode = 'dynamic', weight = 'int8/1'}
	local x = tensor.randn(65, 160)
	local wanted = q(x)
	q:to(D)
	quant.log 'reset'
	assert(same(wanted, q(x:to(D))))
	print(kernels 'linear')  --> int8 gemm_i8_wgmma, int8 gemm_i8_mma
end)
