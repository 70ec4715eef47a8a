-- SPDX-License-Identifier: MIT
-- cumsum; literals from NumPy 2.
local x = tensor{{3, -1, 4}, {-5, 9, 2}}
print(x:cumsum())  --> float32(2, 3)
                   -->  3  2  6
                   --> -5  4  6
print(x:cumsum(1))  --> float32(2, 3)
                    -->  3 -1 4
                    --> -2  8 6
print(x:cumsum{axis = -2}[2], x:cumsum(2)[2])  --> float32(3) -2 8 6 float32(3) -5 4 6
print(tensor{100, 100, 100, dtype = 'int8'}:cumsum(), tensor{true, false, true}:cumsum())  --> int64(3) 100 200 300 int64(3) 1 1 2
print(tensor{math.maxinteger, 1, dtype = 'int64'}:cumsum()[2]:item() == math.mininteger)  --> true
print(tensor{1, 2, dtype = 'float16'}:cumsum():dtype(), tensor{1, 2, dtype = 'float64'}:cumsum():dtype())  --> float16 float64
print(tensor{1e8, 1, -1e8}:cumsum()[3]:item())  --> 1.0
print(tensor{1, 0/0, 2}:cumsum(), tensor{1/0, -1/0, 1}:cumsum())  --> float32(3) 1 nan nan float32(3) inf nan nan
print(tensor(3):cumsum(), tensor.zeros(2, 0):cumsum():dim(), tensor.zeros(0, 2):cumsum(1):size())  --> 3 2 0 2
print(pcall(function() return x:cumsum(3) end))  --> false ...cumsum: axis: wanted an axis from 1 to 2 (or -2 to -1), got 3
