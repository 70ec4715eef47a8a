-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Random numbers: same bits for seed, threads and instruction set; their distributions.
tensor.seed(7)
local a = tensor.randn(1000)
tensor.seed(7)
assert(tensor.randn(1000):metrics(a).max == 0)
assert(tensor.randn(1000):metrics(a).max > 0)

describe('bits', function()
	it('do not depend on threads', function()
		local before = tensor.threads()
		tensor.seed(3)
		tensor.threads(1)
		local one = tensor.randn(3000000)
		tensor.seed(3)
		tensor.threads(2)
		local two = tensor.randn(3000000)
		tensor.threads(before)
		assert(one:metrics(two).max == 0)
	end)
	it('do not depend on the instruction set', function()
		tensor.seed(5)
		local native = {tensor.rand(1001), tensor.randn(1001), tensor.randint{1001, low = -9, high = 9}}
		local was = hw.force 'ref'
		tensor.seed(5)
		local ref = {tensor.rand(1001), tensor.randn(1001), tensor.randint{1001, low = -9, high = 9}}
		hw.force(was)
		for i = 1, 3 do assert(native[i]:metrics(ref[i]).max == 0) end
	end)
	it('are those of Philox4x32-10', function()
		-- known answer of the Random123 distribution for counter 0 and key 0: first word 6627e8d5
		tensor.seed(0)
		assert(tensor.rand(1):item() == (0x6627e8d5 >> 8) / 2 ^ 24)
	end)
end)

describe('distributions', function()
	tensor.seed(11)
	local n = 1000000
	it('rand is uniform', function()
		local u = tensor.rand(n)
		assert(u:min():item() >= 0 and u:max():item() < 1)
		assert(math.abs(u:mean():item() - 0.5) < 0.002 and math.abs(u:var():item() - 1 / 12) < 0.001)
		local chi = 0
		for k = 0, 9 do
			local hits = u:ge(k / 10):to('float32'):sum():item() - u:ge((k + 1) / 10):to('float32'):sum():item()
			chi = chi + (hits - n / 10) ^ 2 / (n / 10)
		end
		assert(chi < 33, chi) -- 9 degrees of freedom, p = 0.0001
	end)
	it('rand stays below 1 in every dtype', function()
		for _, d in ipairs{'float16', 'bfloat16', 'float64'} do
			local u = tensor.rand{n, dtype = d}:to 'float32'
			assert(u:min():item() >= 0 and u:max():item() < 1, d)
			assert(math.abs(u:mean():item() - 0.5) < 0.004, d)
		end
	end)
	it('randn is normal', function()
		local z = tensor.randn(n)
		assert(math.abs(z:mean():item()) < 0.005 and math.abs(z:var():item() - 1) < 0.01)
		-- shares beyond 1, 2, 3, 4 standard deviations
		for k, share in ipairs{0.317311, 0.0455003, 0.0026998, 0.0000633} do
			local got = z:abs():gt(k):to('float32'):sum():item() / n
			assert(math.abs(got - share) < 6 * math.sqrt(share / n), k .. ' ' .. got)
		end
		assert(math.abs((z * z * z):mean():item()) < 0.02 and math.abs((z * z * z * z):mean():item() - 3) < 0.06)
	end)
	it('randint reaches every value evenly', function()
		local r = tensor.randint{n, low = -2, high = 2}
		for v = -2, 2 do
			local hits = r:eq(v):to('float32'):sum():item()
			assert(math.abs(hits - n / 5) < 2500, v .. ' ' .. hits)
		end
		-- 64 random bits scaled to 3 * 2^61 values would hit a third of them 1.5 times as often as another
		local wide = tensor.randint{100000, low = 0, high = 3 * 2 ^ 61 // 1 | 0} % 3
		for v = 0, 2 do
			local hits = wide:eq(v):to('float32'):sum():item()
			assert(math.abs(hits - 100000 / 3) < 900, v .. ' ' .. hits)
		end
		assert(tensor.randint{10, low = 5, high = 5}:min():item() == 5)
		assert(tensor.randint{4, low = math.mininteger, high = math.maxinteger}:dtype() == 'int64')
		assert(tensor.randint{4, high = 7, dtype = 'uint4'}:dtype() == 'uint4')
	end)
end)
print(pcall(tensor.randint, {4, low = 3, high = 2}))  --> false ...randint: wanted low <= high, got 3 and 2
print(pcall(tensor.randint, {4, high = 300, dtype = 'int8'}))  --> false ...fit int8...
print(pcall(tensor.rand, {4, dtype = 'int8'}))  --> false ...rand: dtype: wanted a float, got int8...
print(tensor.randn{100, dtype = 'float16'}:dtype(), tensor.randn{64, quant = 'int8'}:dtype())  --> float16 int8
