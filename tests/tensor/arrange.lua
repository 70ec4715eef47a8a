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
