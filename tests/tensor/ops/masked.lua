-- SPDX-License-Identifier: MIT
-- Selecting and assigning by a bool mask.
local x = tensor{{1, -2, 3}, {-4, 5, -6}}
local m = tensor{{true, false, true}, {false, true, false}}
print(x[m])  --> float32(3) 1 3 5
x[m] = 0
print(x)  --> float32(2, 3)
          -->  0 -2  0
          --> -4  0 -6
x[m] = tensor{7, 8, 9}
print(x[m])  --> float32(3) 7 8 9
print(pcall(function() x[m] = tensor{1, 2} end))  --> false ...one value or 3 for the mask, got 2
print(pcall(function() return x[m[1]] end))  --> false ...bool mask of shape (2, 3) or of its leading axes, got bool(3)
print(x:t()[m:t()]:size())  --> 3
local q = x:quantize 'int8'
q[m] = 0
print(q:dequantize()[m], q:dtype())  --> float32(3) 0 0 0 int8
-- packed rows are padded
local packed = tensor({{1, 2, 3}, {-4, 5, 6}, dtype = 'int4'})
print(packed[packed:gt(2)])  --> int4(3) 3 5 6
packed[packed:gt(2)] = tensor({7, -7, -8, dtype = 'int4'})
print(packed)  --> int4(2, 3)
               -->   1 2 7
               -->  -4 -7 -8
local wide = packed:t():clone():t():unsqueeze(2)
print(wide[wide:gt(2)])  --> int4(1) 7
print(tensor.zeros(2, 1)[tensor{{true}, {false}}], tensor.zeros(2, 0)[tensor.zeros(2, 0):gt(1)]:size())  --> float32(1) 0 0
-- masks of leading axes
do
	local y = tensor{{1, 2}, {3, 4}, {5, 6}}
	local rows = y:sum(2):gt(4)
	print(y[rows])  --> float32(2, 2)
	                --> 3 4
	                --> 5 6
	y[rows] = tensor{7, 8}
	print(y:view(6))  --> float32(6) 1 2 7 8 7 8
	y[rows] = tensor{{1}, {2}}
	print(y:view(6))  --> float32(6) 1 2 1 1 2 2
	y[rows] = 0
	print(y:sum():item(), y[rows:bnot()]:size())  --> 3.0 1 2
	local z = tensor.randn(3, 4, 2)
	assert(z[z:sum(3):gt(0)]:eq(z:gathernd(z:sum(3):gt(0):nonzero())):all():item())
	print(z[tensor.zeros(3):gt(0)]:size(1), z:permute(2, 1, 3)[tensor.ones(4):gt(0)]:eq(z:permute(2, 1, 3)):all():item())  --> 0 true
	print(pcall(function() y[rows] = tensor{1, 2, 3} end))  --> false ...index: wanted sizes that are 1 or equal, got (3) to (2, 2)
	print(pcall(function() return y[tensor{true, false}] end))  --> false ...wanted a bool mask of shape (3, 2) or of its leading axes, got bool(2)
	local codes = tensor{{1, 2, 3}, {4, 5, 6}, dtype='int4'}
	print(codes[tensor{false, true}][1])  --> int4(3) 4 5 6
end
