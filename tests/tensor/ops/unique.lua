-- SPDX-License-Identifier: MIT
-- nonzero and unique; literals from NumPy 2, positions there from 0.
print(tensor{2, -1, 2, 7, -1, 2}:unique())  --> float32(3) -1 2 7 int64(6) 2 1 2 3 1 2 int64(3) 2 3 1
local v, i, c = tensor{{3, 1}, {1, 3}, dtype='int64'}:unique()
print(v, i:view(4), c)  --> int64(2) 1 3 int64(4) 2 1 1 2 int64(2) 2 2
print(tensor{3, 0/0, 1, 0/0}:unique())  --> float32(3) 1 3 nan int64(4) 2 3 1 3 int64(3) 1 1 2
print(tensor{-0.0, 0}:unique():size(), tensor(5):unique())  --> 1 float32(1) 5 1 int64(1) 1
print(tensor.zeros(0, 2):unique():size(), select(2, tensor.zeros(0, 2):unique()):size())  --> 0 0 2
for _, dtype in ipairs{'float64', 'float16', 'int8', 'uint16', 'int32', 'bool', 'int4', 'uint4'} do
	local y = tensor{{1, 0, 1}, {0, 1, 1}}:to(dtype)
	local values, inverse, counts = y:t():unique()
	assert(values:dtype() == dtype and values:to('int64'):eq(tensor{0, 1}):all():item() and counts:eq(tensor{2, 4}):all():item(), dtype)
	assert(values:gather(1, inverse:reshape(6)):eq(y:t():reshape(6)):all():item(), dtype)
	assert(y:nonzero():t()[2]:eq(tensor{1, 3, 2, 3}):all():item())
end
print(tensor{{0, 7}, {5, 0}}:nonzero())  --> int64(2, 2)
                                         --> 1 2
                                         --> 2 1
print(tensor{0, 0}:nonzero():size(), tensor(3):nonzero():size(), tensor(0):nonzero():size(), tensor.zeros(0, 2):nonzero():size())  --> 0 1 0 0 2
print(tensor{0/0, -0.0, 1}:nonzero():view(2), tensor{{0, 1}, {2, 0}}:t():nonzero()[1])  --> int64(2) 1 3 int64(2) 1 2
local x = tensor.randn(5, 7)
assert(x:gathernd(x:gt(0):nonzero()):eq(x[x:gt(0)]):all():item())
print(pcall(graph.trace, nn.module(function(_, a) return a:nonzero() end), x))  --> false ...got x:nonzero(), whose size depends on values
print(pcall(function() tensor{1, 2, grad=true}:unique():sum():backward() end))  --> false ...unique...
