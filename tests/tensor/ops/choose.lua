-- SPDX-License-Identifier: MIT
-- maximum, minimum, where.
local nan = 0 / 0
print(tensor{1, 5, nan, 2}:maximum(tensor{3, 4, 1, nan}))  --> float32(4) 3 5 nan nan
print(tensor{1, 5}:minimum(3), tensor({1, 5, dtype = 'int8'}):maximum(tensor({2, 300, dtype = 'int16'})))  --> float32(2) 1 3 int16(2) 2 300
-- maximum and minimum of IEEE 754-2019: -0 is below 0, in either order
for _, dtype in ipairs{'float32', 'float64', 'float16'} do
	local a, b = tensor{-0.0, 0.0, -0.0, 0.0, dtype = dtype}, tensor{0.0, -0.0, -0.0, 0.0, dtype = dtype}
	assert((1 / a:maximum(b)):eq(tensor{1 / 0, 1 / 0, -1 / 0, 1 / 0}):all():item(), dtype)
	assert((1 / a:minimum(b)):eq(tensor{-1 / 0, -1 / 0, -1 / 0, 1 / 0}):all():item(), dtype)
end
local x = tensor{{1, -2}, {-3, 4}}
print(tensor.where(x:gt(0), x, 0))  --> float32(2, 2)
                                    -->  1 0
                                    -->  0 4
print(tensor.where(x:gt(0), 1, -1):dtype(), tensor.where(x:gt(0), 1.5, 2):dtype())  --> int64 float32
print(tensor.where(tensor{true, false}, x, tensor{{10}, {20}}))  --> float32(2, 2)
                                                                 -->   1 10
                                                                 -->  -3 20
print(tensor.where(x:gt(0), x:gt(1), x:lt(0)):dtype())  --> bool
print(pcall(tensor.where, x, x, x))  --> false ...where: condition: wanted bool, got float32(2, 2)
print(tensor.where(tensor{true, false}, tensor{nan, 1}, tensor{2, nan}))  --> float32(2) nan nan
