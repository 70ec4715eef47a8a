-- SPDX-License-Identifier: MIT
-- diag, by hand.
local x = tensor{{1, 2, 3}, {4, 5, 6}}
print(x:diag(), x:diag(1), x:diag(2), x:diag(-1), x:t():diag(1))  --> float32(2) 1 5 float32(2) 2 6 float32(1) 3 float32(1) 4 float32(1) 4
print(x:diag(3):size(), x:diag(-9):size(), x:diag(math.mininteger):size(), x:diag(math.maxinteger):size())  --> 0 0 0 0
print(tensor{1, 2}:diag(), tensor{7}:diag(-1))  --> float32(2, 2)
                                                --> 1 0
                                                --> 0 2 float32(2, 2)
                                                --> 0 0
                                                --> 7 0
print(tensor.zeros(0):diag():nelem(), tensor.zeros(0):diag(2):sum():item())  --> 0 0.0
local b = tensor.randn(4, 3, 5)
for k = -3, 5 do
	for i = 1, 4 do assert(b:diag(k)[i]:eq(b[i]:diag(k)):all():item()) end
end
for _, dtype in ipairs{'float64', 'float16', 'int8', 'uint16', 'int64', 'bool', 'int4', 'uint4'} do
	local y = tensor{1, 0, 1}:to(dtype)
	local m = y:diag(1)
	assert(m:dtype() == dtype and m:to('int64'):sum():item() == 2 and m:diag(1):to('int64'):eq(tensor{1, 0, 1}):all():item(), dtype)
end
print(tensor{1, 2}:quantize('int8'):diag():dtype())  --> float32
print(pcall(function() return tensor(3):diag() end))  --> false ...diag: wanted a vector or matrices, got a tensor without axes
print(pcall(function() return tensor{1}:diag(1 << 40) end))  --> false ...diag: diagonal: wanted a matrix that fits in memory, got 1099511627776
