-- SPDX-License-Identifier: MIT
-- var and std; literals from NumPy 2 in float64.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}
print(x:var():item(), x:std():item())  --> 24.45455 4.945154
print(x:var(1))  --> float32(4) 28.0000 25.3333 22.3333 49.0000
print(x:var{axis = 2, unbiased = false})  --> float32(3) 3.6875 36.5 23.188
print(x:var{axis = 2, correction = 0})  --> float32(3) 3.6875 36.5 23.188
print(x:var{axis = 2, correction = 2, keep = true}:view(3))  --> float32(3) 7.375 73.000 46.375
print(x:std{unbiased = false}:item()^2 - x:var{correction = 0}:item() < 1e-5)  --> true

-- a large mean takes nothing from the deviations
local far = tensor.zeros{3000, dtype = 'float64'}
for i = 1, 3000 do far[i] = 1e9 + i % 3 end
print(far:var{unbiased = false}:item())  --> 0.6666666666667
local jump = tensor.zeros(4096)
jump[1] = 1e15
print(jump:var():item() / 1e30 * 4096)  --> 1.0

print(tensor{5}:var():item(), tensor{5}:var{unbiased = false}:item(), tensor.zeros(0):var():item())  --> nan 0.0 nan
print(tensor{1, 2}:var{correction = 3}:item(), tensor{1, 1/0}:std():item())  --> inf nan
print(tensor{1, 3, dtype = 'int8'}:var():dtype(), tensor{1, 3, dtype = 'float16'}:std():dtype())  --> float32 float16
print(tensor{true, false}:var{unbiased = false}:item())  --> 0.25
print(pcall(function() return x:var{unbiased = true, correction = 1} end))  --> false ...var: wanted unbiased or correction, got both
