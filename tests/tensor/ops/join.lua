-- SPDX-License-Identifier: MIT
-- cat and stack.
local a, b = tensor{{1, 2}, {3, 4}}, tensor{{5, 6}}
print(tensor.cat{a, b}:size())  --> 3 2
print(tensor.cat({a, b:t()}, {axis = 2})[2])  --> float32(3) 3 4 6
print(tensor.cat({a, a:t()}, {axis = -1})[1])  --> float32(4) 1 2 1 3
print(pcall(tensor.cat, {a, b}, {axis = 2}))  --> false ...item 2: wanted sizes that fit (2, 2), got (1, 2)
print(pcall(tensor.cat, {a, 3}))  --> false ...item 2: wanted a tensor, got number
print(pcall(tensor.cat, {}))  --> false ...list of 1 or more tensors, got 0
print(tensor.cat{a:to 'int8', b:to 'int32'}:dtype(), tensor.cat{a:to 'int8', b}:dtype())  --> int32 float32
print(tensor.stack{a, a * 2}:size())  --> 2 2 2
print(tensor.stack({a[1], a[2]}, {axis = 2}))  --> float32(2, 2)
                                              -->  1 3
                                              -->  2 4
print(tensor.stack{a[1][1], a[2][2]})  --> float32(2) 1 4
print(pcall(tensor.stack, {a, b}))  --> false ...item 2...
print(tensor.cat{tensor.zeros(0, 2), a}:size())  --> 2 2
-- packed types, at any index
local p = tensor({1, -2, 3, dtype = 'int4'})
print(tensor.cat{p, p}, tensor.stack({p, p}, {axis = 2})[2], tensor.cat{p, tensor({7, dtype = 'int4'})}:dtype())  --> int4(6) 1 -2 3 1 -2 3 int4(2) -2 -2 int4
print(tensor.cat{tensor({1, -1, 1, dtype = 'binary'}), tensor({-1, dtype = 'binary'})})  --> binary(4) 1 -1 1 -1
