-- SPDX-License-Identifier: MIT
-- dot.
local x, y = tensor{1, 2, 3}, tensor{4, 5, 6}
print(x:dot(y):item(), tensor.dot(x, y):dim())  --> 32.0 0
print(x:to('int8'):dot(y:to 'uint8'), x:to('int8'):dot(y:to 'uint8'):dtype())  --> 32 int64
print(x:to('int8'):dot(y):dtype(), x:to('float16'):dot(y:to 'float16'):dtype())  --> float32 float16
print(tensor{1e10, 1, -1e10}:dot(tensor{1e4, 1, 1e4}):item(), tensor.zeros(0):dot(tensor.zeros(0)):item())  --> 1.0 0.0
print(tensor{{1, 2}, {3, 4}}:t()[1]:dot(tensor{{1, 2}, {3, 4}}:t()[2]):item())  --> 14.0
local long = tensor(0.1):expand(200000)
local once = long:dot(long):item()
tensor.threads(tensor.threads() + 1)
print(long:dot(long):item() == once, once / (200000 * long[1]:item()^2))  --> true 1.00000
print(pcall(function() return x:dot(tensor{1, 2}) end))  --> false ...dot: wanted two vectors of one length, got (3) and (2)
print(pcall(function() return x:view(3, 1):dot(x) end))  --> false ...got (3, 1) and (3)
