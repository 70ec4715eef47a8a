-- SPDX-License-Identifier: MIT
-- Rounding, sign, magnitude, bounds, tests for nan and infinity.
local x = tensor{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}
print(x:round(), x:floor(), x:ceil(), x:trunc())  --> float32(6) -2 -2 -0 0 2 2 float32(6) -3 -2 -1 0 1 2 float32(6) -2 -1 -0 1 2 3 float32(6) -2 -1 -0 0 1 2
print(x:sign(), x:abs())  --> float32(6) -1 -1 -1 1 1 1 float32(6) 2.5000 1.5000 0.5000 0.5000 1.5000 2.5000
print(tensor({-3, 0, 7, dtype = 'int8'}):sign(), tensor({-128, dtype = 'int8'}):abs())  --> int8(3) -1 0 1 int8(1) -128
print(tensor({3, -3, dtype = 'int32'}):round():dtype())  --> int32
print(x:clamp(-1, 1))  --> float32(6) -1.0000 -1.0000 -0.5000 0.5000 1.0000 1.0000
print(x:clamp{high = 0}, x:clamp{low = 2})  --> float32(6) -2.5000 -1.5000 -0.5000 0.0000 0.0000 0.0000 float32(6) 2.0000 2.0000 2.0000 2.0000 2.0000 2.5000
print(tensor({-5, 5, dtype = 'int8'}):clamp(-2, 3))  --> int8(2) -2 3
print(x:clamp(2, 1), tensor({-5, 5, dtype = 'int8'}):clamp(3, 2), tensor({0.5, 9, dtype = 'float64'}):clamp(3, 2))  --> float32(6) 1 1 1 1 1 1 int8(2) 2 2 float64(2) 2 2
print(tensor{0 / 0}:clamp(2, 1):isnan():item(), pcall(x.clamp, x, 0 / 0, 1))  --> true false ...clamp: wanted bounds that are numbers, got ...
local s = tensor{0 / 0, 1 / 0, -1 / 0, 1}
print(s:isnan(), s:isfinite(), s:isinf())  --> bool(4) true false false false bool(4) false false false true bool(4) false true true false
print(tensor({1, dtype = 'int64'}):isnan(), tensor({1, dtype = 'int64'}):isfinite())  --> bool(1) false bool(1) true
print(tensor{0 / 0}:clamp(0, 1):isnan(), tensor{0 / 0}:sign():isnan())  --> bool(1) true bool(1) true
x:round_()
print(x[1]:item())  --> -2.0

-- bounds beyond the dtype's own range
print(tensor({-128, 5, 127, dtype = 'int8'}):clamp(-1000, 100))  --> int8(3) -128 5 100
print(tensor({1, 5, dtype = 'int64'}):clamp(3, 1e30), tensor({1, 5, dtype = 'int64'}):clamp{high = 1 / 0}[1])  --> int64(2) 3 5 1
print(tensor({-3, 0, 3, dtype = 'int32'}):clamp(-1.5, 2.5))  --> int32(3) -1 0 2
print(pcall(function() return tensor({1, dtype = 'int8'}):clamp(200, 300) end))  --> false ...clamp: wanted bounds with an integer of int8 between them, got 200 and 300
print(pcall(function() return tensor({1, dtype = 'int8'}):clamp(0.2, 0.8) end))  --> false ...clamp: wanted bounds with an integer of int8...

local ends = tensor{1 / 0, -1 / 0, 0 / 0, 3e38}
for _, dtype in ipairs {'float32', 'float64', 'float16'} do
	assert(ends:to(dtype):isinf(1):totable()[1] and not ends:to(dtype):isinf(1):totable()[2] and not ends:to(dtype):isinf(-1):totable()[1])
end
print(ends:isinf(), ends:isinf(1), ends:isinf{sign = -1})  --> bool(4) true true false false bool(4) true false false false bool(4) false true false false
print(tensor({1, 2, dtype = 'int8'}):isinf(1), pcall(function() return ends:isinf(2) end))  --> bool(2) false false false ...isinf: sign: wanted 1 or -1, got 2
