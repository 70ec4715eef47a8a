-- SPDX-License-Identifier: MIT
-- onehot.
print(tensor{2, 1, dtype = 'int64'}:onehot(3))  --> int64(2, 3)
                                                --> 0 1 0
                                                --> 1 0 0
print(tensor{{1}, {4}, dtype = 'uint8'}:onehot():size())  --> 2 1 4
print(tensor{2, dtype = 'int32'}:onehot(2, {dtype = 'float32'})[1])  --> float32(2) 0 1
print(tensor{{1, 2}, {2, 1}, dtype = 'int8'}:t():onehot{dtype = 'bool'}[2])  --> bool(2, 2)
                                                                              --> false true
                                                                              --> true false
print(tensor.zeros{0, dtype = 'int64'}:onehot(3):size())  --> 0 3
print(pcall(function() return tensor{3, dtype = 'int64'}:onehot(2) end))  --> false ...onehot: wanted classes from 1 to n, got 3
print(pcall(function() return tensor{0, dtype = 'int64'}:onehot() end))  --> false ...wanted classes from 1, got 0
print(pcall(function() return tensor{1}:onehot(2) end))  --> false ...onehot: wanted integers, got float32(1)
print(table.concat(tensor{2, 0, 9, -1, dtype = 'int64'}:onehot(2, {on = 2.5, off = -1, foreign = true, dtype = 'float32'}):view(8):totable(), ' '))  --> -1.0 2.5 -1.0 -1.0 -1.0 -1.0 -1.0 -1.0
print(tensor{5, 2, -3, dtype = 'int64'}:onehot{foreign = true}:size(), tensor{0, dtype = 'int64'}:onehot{foreign = true}:nelem())  --> 3 0
