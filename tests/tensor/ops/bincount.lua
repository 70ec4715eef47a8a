-- SPDX-License-Identifier: MIT
-- bincount, by hand.
local function ids(...) return tensor{...}:to 'int64' end
print(ids(1, 3, 3):bincount(), ids(1, 3, 3):bincount(5), ids(4):bincount(2))  --> int64(3) 1 0 2 int64(5) 1 0 2 0 0 int64(4) 0 0 0 1
print(ids(1, 3, 3):bincount(tensor{0.5, 1, 2}), ids(2, 2):bincount(ids(3, 4), {n=3}))  --> float32(3) 0.5000 0.0000 3.0000 int64(3) 0 7 0
print(tensor{{1, 2}, {2, 2}, dtype='uint8'}:t():bincount(), ids(1):bincount(tensor{1, dtype='float64'}):dtype())  --> int64(2) 1 3 float64
print(tensor.zeros(0):to('int32'):bincount():size(), tensor.zeros(0):to('int32'):bincount(2))  --> 0 int64(2) 0 0
local x = tensor.randint{5000, low=1, high=30}
assert(x:bincount(30):eq(x:onehot(30):sum(1)):all():item())
print(ids(1, 1, 1):bincount(tensor{1e8, 1, -1e8}):item())  --> 1.0
print(pcall(x.bincount, ids(0, 1)))  --> false ...bincount: wanted numbers from 1, got 0
print(pcall(x.bincount, tensor{1.5}))  --> false ...bincount: index: wanted integers, got float32(1)
print(pcall(x.bincount, ids(1, 2), tensor{1}))  --> false ...bincount: weights: wanted the shape of x (2), got (1)
print(pcall(x.bincount, ids(1), {n=-1}))  --> false ...bincount: n: wanted 0 or more, got -1
