-- SPDX-License-Identifier: MIT
-- tile, flip, pad, tril, triu.
local x = tensor{{1, 2}, {3, 4}}
print(x:tile(2, 1):size(1), x:tile(1, 3)[1])  --> 4 float32(6) 1 2 1 2 1 2
print(tensor{1, 2}:tile(2, 2))  --> float32(2, 4)
                                -->  1 2 1 2
                                -->  1 2 1 2
print(x:tile(2):size())  --> 2 4
print(x:t():tile(1, 2)[1])  --> float32(4) 1 3 1 3
print(tensor{1, 2}:tile(0):size())  --> 0
print(x:flip(1), x:flip{1, 2}[1], x:t():flip(2)[1])  --> float32(2, 2)
                                                     -->  3 4
                                                     -->  1 2 float32(2) 4 3 float32(2) 3 1
print(pcall(x.flip, x, 1, 1))  --> false ...each axis once, got axis 1 twice
print(x:pad(1, 2)[1], x:pad(0, 0, 1, 0):size())  --> float32(5) 0 1 2 0 0 3 2
print(x:pad{1, value = 9}[2])  --> float32(4) 9 3 4 9
print(pcall(x.pad, x, 1, 2, 3))  --> false ...pad: sizes: wanted one number or up to 2 pairs, got 3 numbers
print(tensor.ones(3, 3):tril(), tensor.ones(2, 3):triu(1))  --> float32(3, 3)
                                                            -->  1 0 0
                                                            -->  1 1 0
                                                            -->  1 1 1 float32(2, 3)
                                                            -->  0 1 1
                                                            -->  0 0 1
print(tensor.ones(2, 2, 2):tril():sum():item(), tensor.ones(3, 3):tril(-1):sum():item(), tensor.ones(3, 3):tril(9):sum():item())  --> 6.0 3.0 9.0
print(tensor({1, 2, 3, dtype = 'int4'}):flip(1))  --> int4(3) 3 2 1
local p = tensor({{1, -2, 3}, {4, 5, -6}, dtype = 'int4'})
print(p:tile(1, 2)[2], p:pad{1, value = 7}[1], p:tile(2, 1):size())  --> int4(6) 4 5 -6 4 5 -6 int4(5) 7 1 -2 3 7 4 3
print(p:tril(), tensor({{1, -1}, {-1, -1}, dtype = 'binary'}):tile(1, 2)[1])  --> int4(2, 3)
                                                                             -->   1  0  0
                                                                             -->   4  5  0 binary(4) 1 -1 1 -1
print(tensor(5):tile(2, 2), tensor{1, 2}:tile(1), tensor{1, 2}:tile(2, 0):size())  --> float32(2, 2)
                                                                                   -->  5 5
                                                                                   -->  5 5 float32(2) 1 2 2 0
do -- a copy even where nothing is repeated
	local a = tensor{1, 2}
	a:tile(1)[1] = 9
	print(a)  --> float32(2) 1 2
end
print(tensor.arange(1, 12):view(2, 3, 2):tile(2, 1, 2):view(-1))  --> int64(48)
                                     --> 1 2 1 2 3 4 3 4 5 6 5 6 7 8 7 8 9 10 9 10
                                     --> 11 12 11 12 1 2 1 2 3 4 3 4 5 6 5 6 7 8 7 8
                                     --> 9 10 9 10 11 12 11 12
print(pcall(p.pad, p, {1, value = 8}))  --> false ...pad: value: wanted an integer that fits int4, got 8
print(pcall(p.pad, p, {1, value = 0.5}))  --> false ...pad: value: wanted an integer that fits int4, got 0.5
