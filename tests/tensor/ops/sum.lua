-- SPDX-License-Identifier: MIT
-- sum and mean; literals from NumPy 2. What every reduction has in common is in tests/tensor/reduce.lua.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}
print(x:sum():item(), x:sum())  --> 18.0 18
print(x:sum(1))  --> float32(4) 3 11 1 3
print(x:sum(2), x:sum(-1))  --> float32(3) 7 0 11 float32(3) 7 0 11
print(x:mean():item(), x:mean(2))  --> 1.5 float32(3) 1.75 0.00 2.75
print(x:mean(1))  --> float32(4) 1.0000 3.6667 0.3333 1.0000

-- integers: exact, wrapping only at 64 bits
local big = tensor{math.maxinteger, math.maxinteger, 2, dtype = 'int64'}
print(big:sum():dtype(), big:sum():item())  --> int64 0
print(big['1:2']:mean():item() == 2.0^63)  --> true
print(tensor{1 << 53, 1, dtype = 'int64'}:sum():item())  --> 9007199254740993
print(tensor{127, 127, -128, dtype = 'int8'}:sum():item())  --> 126
print(tensor{true, false, true}:sum():item(), tensor{true, false, true}:sum():dtype())  --> 2 int64
print(tensor{true, false}:mean())  --> 0.5
print(tensor{-8, 7, 3, dtype = 'int4'}:sum():item())  --> 2
print(tensor{1, 2, dtype = 'int8'}:mean():dtype())  --> float32

-- floats keep their dtype; nothing is lost in a long sum
for _, dtype in ipairs{'float16', 'bfloat16', 'float32', 'float64'} do
	assert(tensor{0.5, 0.25, dtype = dtype}:sum():dtype() == dtype)
	assert(tensor{0.5, 0.25, dtype = dtype}:mean():item() == 0.375)
end
print(math.abs(tensor.zeros(1 << 21):add(0.1):sum():item() - 209715.203) < 0.02)  --> true
print(tensor{1, dtype = 'float64'}:expand(3, 1000003):sum():item())  --> 3000009.0
print(tensor{1e8, 1, -1e8}:expand(5, 3):sum():item())  --> 5.0

-- nothing, and what is not a number
print(tensor.zeros(0):sum():item(), tensor.zeros(0):mean():item() ~= tensor.zeros(0):mean():item())  --> 0.0 true
print(tensor.zeros(2, 0):sum(2), tensor.zeros{0, dtype = 'int8'}:sum())  --> float32(2) 0 0 0
print(tensor{1, 0/0, 2}:sum():item() ~= 1, tensor{1/0, 1}:sum():item(), tensor{1/0, -1/0}:sum())  --> true inf nan
