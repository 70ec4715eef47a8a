-- SPDX-License-Identifier: MIT
-- labels: quick
-- nn.localresponsenorm: values and gradients of PyTorch 2 (float64), other dtypes, views, errors.
local function data() return tensor.arange(1, 42):to('float64'):sin():view(2, 7, 3) end
local weights = tensor.arange(0, 41):to('float64'):cos():view(2, 7, 3)
-- {size, alpha, beta, k}, values and gradients of the elements 1 5 11 21 42
local CASES = {
	{{5, 1e-4, 0.75, 1}, {0.841449370739891, -0.9588706958495254, -0.9999181543039078, 0.8366344694878483, -0.9164837083244227},
		{0.9999182374595994, -0.6535293504359087, -0.8388901505449982, 0.4080557493996007, -0.9872236896997401}},
	{{3, 0.5, 0.75, 2}, {0.4636965141003231, -0.4890487232763351, -0.5039738786099074, 0.4614821648765748, -0.49156547066919826},
		{0.4698822555090432, -0.2381196279396075, -0.2967949771058952, 0.19706334534841716, -0.4374008687514903}},
	{{4, 2, 0.5, 1.5}, {0.5751623977266571, -0.5667668757953958, -0.539172345351975, 0.5465391405985921, -0.5404156376560006},
		{0.4163314450495579, -0.13879403225993586, -0.18136348743760766, 0.2047270223112171, -0.4291630390908244}},
	{{9, 1, 1.25, 0.5}, {1.220307393054009, -0.8270564271470489, -0.7813155500918046, 1.2225418973453954, -0.8882349823256646},
		{0.08108824279160243, 0.3004866422823136, 0.48326062311359974, 0.3348369328562608, -0.15675758039358595}},
}

it('has the values and gradients of PyTorch', function()
	for _, case in ipairs(CASES) do
		for dtype, most in pairs {float64=1e-13, float32=1e-6, float16=2e-3} do
			local x = data():to(dtype):requires_grad_()
			local y = nn.localresponsenorm(x, table.unpack(case[1]))
			assert(y:dtype() == dtype)
			;(y * weights:to(dtype)):sum():backward()
			local value, gradient = y:detach():to('float64'):view(42), x:grad():to('float64'):view(42)
			for i, at in ipairs {1, 5, 11, 21, 42} do
				assert(math.abs(value[at]:item() - case[2][i]) < most and math.abs(gradient[at]:item() - case[3][i]) < 4 * most, dtype)
			end
		end
	end
end)

it('takes views, rows, few and many channels, threads', function()
	tensor.seed(1)
	local x, before = tensor.randn(3, 700, 5, 2), tensor.threads()
	local y = nn.localresponsenorm(x, 7, 0.3)
	for threads = 1, 3 do
		tensor.threads(threads)
		assert(nn.localresponsenorm(x, 7, 0.3):eq(y):all():item())
		assert(nn.localresponsenorm(x:transpose(3, 4):contiguous():transpose(3, 4), 7, 0.3):eq(y):all():item())
	end
	tensor.threads(before)
	assert(nn.localresponsenorm(x:view(3, 700, 10), 7, 0.3):view(3, 700, 5, 2):eq(y):all():item())
	local rows = x:view(3, 7000)
	assert((nn.localresponsenorm(rows, 1, 3, 1) - rows / (rows * rows * 3 + 1)):abs():max():item() < 1e-6)
	assert(nn.localresponsenorm(x[{{1, 1}, {1, 2}}], 1001, 1001, 1, 0):view(2, 10):sum(1):isfinite():all():item())
	print(nn.localresponsenorm(tensor.zeros(0, 3, 2), 3):size())  --> 0 3 2
	print(nn.localresponsenorm(tensor.zeros(2, 0), 3):size())  --> 2 0
	local q = x:quantize 'int8'
	assert(nn.localresponsenorm(q, 3):eq(nn.localresponsenorm(q:dequantize(), 3)):all():item())
end)

it('refuses what does not fit', function()
	print(pcall(nn.localresponsenorm, tensor.zeros(3), 3))  --> false ...wanted x (n, channels, …), got (3)
	print(pcall(nn.localresponsenorm, tensor.zeros(3, 2), 0))  --> false ...size: wanted 1 or more, got 0
	print(pcall(nn.localresponsenorm, tensor.zeros(3, 2)))  --> false ...size...
	print(pcall(nn.localresponsenorm, tensor.zeros(3, 2), 3, {beta=0 / 0}))  --> false ...beta: wanted a finite number, got...nan
	print(pcall(nn.localresponsenorm, tensor.zeros(3, 2):to 'int32', 3))  --> false ...wanted floats, got int32(3, 2)
end)
