-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Exponentials, logarithms, roots, trigonometry. Expected values from double precision, written with 7 digits; hyperbolic functions, atan2
-- from torch 2 in float64.
local elementwise = dofile 'tests/tools/elementwise.lua'

local x = tensor{-20, -3, -1, -0.5, 0, 0.25, 1, 2.5, 10, dtype = 'float64'}
local of_x = {
	exp = {2.061154e-09, 0.04978707, 0.3678794, 0.6065307, 1, 1.284025, 2.718282, 12.18249, 22026.47},
	exp2 = {9.536743e-07, 0.125, 0.5, 0.7071068, 1, 1.189207, 2, 5.656854, 1024},
	expm1 = {-1, -0.9502129, -0.6321206, -0.3934693, 0, 0.2840254, 1.718282, 11.18249, 22025.47},
	sin = {-0.9129453, -0.14112, -0.841471, -0.4794255, 0, 0.247404, 0.841471, 0.5984721, -0.5440211},
	cos = {0.4080821, -0.9899925, 0.5403023, 0.8775826, 1, 0.9689124, 0.5403023, -0.8011436, -0.8390715},
	tan = {-2.237161, 0.1425465, -1.557408, -0.5463025, 0, 0.2553419, 1.557408, -0.7470223, 0.6483608},
	atan = {-1.520838, -1.249046, -0.7853982, -0.4636476, 0, 0.2449787, 0.7853982, 1.19029, 1.471128},
	erf = {-1, -0.9999779, -0.8427008, -0.5204999, 0, 0.2763264, 0.8427008, 0.999593, 1}
}
local y = tensor{1e-35, 1e-5, 0.1, 0.5, 1, 2, 10, 1e30, dtype = 'float64'}
local of_y = {
	log = {-80.59048, -11.51293, -2.302585, -0.6931472, 0, 0.6931472, 2.302585, 69.07755},
	log2 = {-116.2675, -16.60964, -3.321928, -1, 0, 1, 3.321928, 99.65784},
	log10 = {-35, -5, -1, -0.30103, 0, 0.30103, 1, 30},
	log1p = {1e-35, 9.99995e-06, 0.09531018, 0.4054651, 0.6931472, 1.098612, 2.397895, 69.07755},
	sqrt = {3.162278e-18, 0.003162278, 0.3162278, 0.7071068, 1, 1.414214, 3.162278, 1e+15},
	rsqrt = {3.162278e+17, 316.2278, 3.162278, 1.414214, 1, 0.7071068, 0.3162278, 1e-15},
	reciprocal = {1e+35, 100000, 10, 2, 1, 0.5, 0.1, 1e-30},
}
of_x.sinh = {-242582597.7, -10.01787493, -1.175201194, -0.5210953055, 0, 0.2526123168, 1.175201194, 6.050204481, 11013.23287}
of_x.cosh = {242582597.7, 10.067662, 1.543080635, 1.127625965, 1, 1.0314131, 1.543080635, 6.13228948, 11013.23292}
of_x.asinh = {-3.689503869, -1.818446459, -0.881373587, -0.4812118251, 0, 0.2474664615, 0.881373587, 1.647231146, 2.99822295}
for op, want in pairs(of_x) do elementwise(op, x, want, {float32 = 1e-6, float64 = 6e-7}) end
for op, want in pairs(of_y) do
	elementwise(op, y, want, op == 'log1p' and {float32 = 1e-5, float64 = 1e-5} or {float32 = 1e-6, float64 = 6e-7})
end
elementwise('atanh', tensor{-0.9, -0.5, -1e-5, 0, 0.25, 0.9, dtype = 'float64'}, {-1.47221949, -0.5493061443, -1e-05, 0, 0.2554128119, 1.47221949},
	{float32 = 1e-6, float64 = 1e-9})
elementwise('acosh', tensor{1, 1.5, 2, 3, 10, 1e5, 1e30, dtype = 'float64'},
	{0, 0.9624236501, 1.316957897, 1.762747174, 2.993222846, 12.20607265, 69.77069997}, {float32 = 1e-6, float64 = 1e-9})
local inf, nan = math.huge, 0 / 0
print(tensor{-inf, inf, nan}:sinh(), tensor{-inf, nan}:cosh(), tensor{-inf, inf, nan}:asinh())  --> float32(3) -inf inf nan float32(2) inf nan float32(3) -inf inf nan
print(tensor{0.5, -5, inf, nan}:acosh(), tensor{-1, 1, 1.5, -inf, nan}:atanh())  --> float32(4) nan nan inf nan float32(5) -inf inf nan nan nan
print(tensor{88.9, 89.5, 3e38}:cosh():isfinite(), tensor{3e38}:asinh(), tensor{3e38}:acosh())  --> bool(3) true false false float32(1) 89.2900 float32(1) 89.2900
for _, dtype in ipairs {'float32', 'float64'} do
	local angles = tensor({1, 1, -1, -1, 0, 0, -3, 2, dtype = dtype}):atan2(tensor({1, -1, -1, 1, 2, -2, 0, 0, dtype = dtype})):totable()
	for i, v in ipairs {0.7853981633974483, 2.356194490192345, -2.356194490192345, -0.7853981633974483, 0, 3.141592653589793, -1.5707963267948966,
		1.5707963267948966} do assert(math.abs(angles[i] - v) < 2e-7, i) end
	for _, at in ipairs {{0.0, 0.0}, {-0.0, 0.0}, {0.0, -0.0}, {-0.0, -0.0}, {inf, inf}, {inf, -inf}, {-inf, inf}, {1, inf}, {-1, -inf}, {inf, 3}, {-0.0, -5}, {0.0, -5},
		{nan, 1}, {1, nan}, {0.0, nan}, {3e38, 1e-38}} do -- C's own
		local got, right = tensor({at[1], dtype = dtype}):atan2(tensor({at[2], dtype = dtype})):item(), math.atan(at[1], at[2])
		assert(math.abs(got - right) < 3e-7 and 1 / got * right >= 0 or got == right and 1 / got == 1 / right or got ~= got and right ~= right, at[1] .. ' ' .. at[2])
	end
end
print(tensor{{1}, {-1}}:atan2(tensor{1, -1})[2], tensor{1}:atan2(0), tensor({1, dtype = 'int32'}):atan2(1):dtype())  --> float32(2) -0.7854 -2.3562 float32(1) 1.5708 float32
print(tensor{inf, -inf, nan, 89, -104, 88.7}:exp())  --> float32(6)
                                                          --> inf 0.0000e+00 nan inf 0.0000e+00 3.3260e+38
print(tensor{0, -1, inf, nan}:log(), tensor{-1, -2}:log1p())  --> float32(4) -inf nan inf nan float32(2) -inf nan
print(tensor{-1, 0, inf}:sqrt(), tensor{0, 4}:rsqrt(), tensor{-3, 2}:square())  --> float32(3) nan 0 inf float32(2) inf 0.5000 float32(2) 9 4
print(tensor({1, 2, dtype = 'int32'}):exp():dtype(), tensor{1, 2}:to('float16'):exp():dtype())  --> float32 float16
print(tensor{-1, 0, 1}:asin(), tensor{-1, 0, 1}:acos())  --> float32(3) -1.5708 0.0000 1.5708 float32(3) 3.1416 1.5708 0.0000
print(tensor{1, 2}:quantize('int8'):exp():origin().path)  --> fallback
-- beyond 2^20 the argument is reduced with more bits
for _, v in ipairs{1e6, 1048576, -3e7, 1e30, -3.4028234e38} do
	local f = string.unpack('f', string.pack('f', v))
	for op, want in pairs{sin = math.sin(f), cos = math.cos(f), tan = math.tan(f)} do
		local got = tensor{f}[op](tensor{f}):item()
		assert(math.abs(got - want) <= 2e-7 * math.max(1, math.abs(want)), op .. ' ' .. v .. ' ' .. got)
	end
end
print(tensor{inf, nan}:sin(), tensor{-inf}:cos())  --> float32(2) nan nan float32(1) nan
print(tensor{-2, -8, 0, 0, inf, 2, 1, -1} ^ tensor{3, 1 / 3, 0, -1, 0.5, -inf, nan, inf})  --> float32(8) -8 nan 1 inf inf 0 1 1
print(tensor{-3, 0, inf, -0.5} ^ 2, tensor{1e-30, 1e30} ^ 2, tensor{3} ^ tensor{2, 3, 4})  --> float32(4) 9.0000 0.0000 inf 0.2500 float32(2) 0 inf float32(3) 9 27 81
print(tensor{-2, -2, -2, -1, -1, -8} ^ tensor{3, -3, 2.5, 16777215, 1e10, 0})  --> float32(6) -8.0000 -0.1250 nan -1.0000 1.0000 1.0000

-- Signs of zero, as PyTorch 2.15 has them: alone, in a vector, in every float dtype.
for names, sign in pairs {['sinh asinh atanh elu celu selu mish softsign hardtanh relu relu6 sin tan tanh expm1 log1p asin atan erf gelu silu hardswish leakyrelu sqrt round floor ceil trunc'] = -1,
	['abs sign square neg'] = 1} do
	for name in names:gmatch '%w+' do
		for _, dtype in ipairs {'float32', 'float64', 'float16', 'bfloat16'} do
			local zeros = tensor.zeros {77, dtype = dtype}:neg()
			for _, z in ipairs {zeros[name](zeros), zeros[1][name](zeros[1]):view(1)} do
				assert((1 / z:to 'float64'):eq(sign / 0):all():item(), name .. ' of -0 as ' .. dtype)
			end
			local z = name == 'neg' and -zeros or zeros:abs()[name](zeros:abs())
			assert((1 / z:to 'float64'):eq(1 / 0):all():item(), name .. ' of 0 as ' .. dtype)
		end
	end
end
assert(1 / tensor{-1}:relu():item() == 1 / 0)
for _, op in ipairs {'gelu', 'silu'} do -- below the denormals
	local low = tensor{-20, -120, -1e20, -inf}
	assert(op == 'gelu' and (1 / low:gelu()):eq(-inf):all():item() or (1 / low[{{2, 4}}]:silu()):eq(-inf):all():item(), op)
end
