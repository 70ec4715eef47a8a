-- SPDX-License-Identifier: MIT
-- tensor.outer and tensor.meshgrid.
print(tensor.outer(tensor{1, 2}, tensor{3, 4, 5}))  --> float32(2, 3)
                                                    --> 3 4 5
                                                    --> 6 8 10
print(tensor.outer(tensor{{1, 2}}, tensor(3)):view(2), tensor.outer(tensor.zeros(0), tensor{1}):size())  --> float32(2) 3 6 0 1
local X, Y = tensor.meshgrid(tensor{1, 2}, tensor{3, 4, 5})
print(X, Y[2])  --> float32(2, 3)
                --> 1 1 1
                --> 2 2 2 float32(3) 3 4 5
X, Y = tensor.meshgrid(tensor{1, 2}, tensor{3, 4, 5}, {indexing='xy'})
print(X[1], Y:t()[1])  --> float32(2) 1 2 float32(3) 3 4 5
local A, B, C = tensor.meshgrid(tensor{1, 2}, tensor{3}, tensor{4, 5, 6}, {indexing='xy'})
print(A:dim(), A:size(1), A:size(2), A:size(3), B[1][2], C[1][1])  --> 3 1 2 3 float32(3) 3 3 3 float32(3) 4 5 6
print(tensor.meshgrid(tensor(7)):size())  --> 1
local x = tensor{1, 2, grad=true}
tensor.outer(x, tensor{3, 4}):sum():backward()
print(x:grad())  --> float32(2) 7 7
local g = graph.trace(nn.module(function(_, v) return tensor.outer(v, tensor{1, 2}) + (tensor.meshgrid(v, tensor{1, 2})) end), tensor.randn(2))
assert(g:run(tensor{3, 4, 5}):eq(tensor{{6, 9}, {8, 12}, {10, 15}}):all():item())
print(pcall(tensor.outer, tensor{1}, 2))  --> false ...outer: operand 2: wanted a tensor, got 2
print(pcall(tensor.meshgrid, tensor{{1}}))  --> false ...meshgrid: operand 1: wanted a tensor with one axis, got...
print(pcall(tensor.meshgrid, tensor{1}, {indexing='yx'}))  --> false ...meshgrid: indexing: wanted 'ij' or 'xy', got 'yx'
print(pcall(tensor.meshgrid))  --> false ...meshgrid: operand 1: wanted a tensor, got nothing
