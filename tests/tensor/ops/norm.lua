-- SPDX-License-Identifier: MIT
-- norm; literals from NumPy 2.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}
print(x:norm():item(), x:norm(2):item(), x:norm{p = 2}:item())  --> 17.20465 17.20465 17.20465
print(x:norm(2, 2))  --> float32(3) 5.1962 12.083 11.091
print(x:norm(1, 2), x:norm(0, 2))  --> float32(3) 9 22 21 float32(3) 4 4 4
print(x:norm(3, {axis = 2}), x:norm(0.5, 2))  --> float32(3) 4.5307 10.254 9.2404 float32(3) 32.856 82.806 81.588
print(x:norm(math.huge, 2), x:norm(-math.huge, 1))  --> float32(3) 4 9 8 float32(4) 3 1 2 1
print(x:norm{axis = {1, 2}, keep = true}:size())  --> 1 1

-- squares that float32 does not hold
print(tensor{3e30, 4e30}:norm():item() / 1e30, tensor{3e-30, 4e-30}:norm():item() * 1e30)  --> 5.0 5.0
print(tensor{0/0, 1}:norm(math.huge), tensor{0/0, 1}:norm(-math.huge), tensor{1/0, 1}:norm())  --> nan nan inf
print(tensor{3, -4, dtype = 'int8'}:norm(), tensor{3, -4, dtype = 'int8'}:norm():dtype())  --> 5 float32
print(tensor.zeros(0):norm(), tensor.zeros(0):norm(1), tensor.zeros(0):norm(math.huge))  --> 0 0 0
print(pcall(function() return tensor.zeros(0):norm(-math.huge) end))  --> false ...norm: wanted at least one element...
print(pcall(function() return x:norm(0/0) end))  --> false ...norm: p: wanted a number, got nan
