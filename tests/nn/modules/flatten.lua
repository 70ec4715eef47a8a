-- SPDX-License-Identifier: MIT
-- nn.Flatten: a view, for codes as well.
local m = nn.Flatten()
print(m(tensor.zeros(2, 3, 4)):size())  --> 2 12
print(m(tensor.zeros(2, 5)):size())  --> 2 5
print(m(tensor.zeros(0, 3, 4)):size())  --> 0 12
print(nn.Flatten(3)(tensor.zeros(2, 3, 4, 5)):size())  --> 2 3 20
print(nn.Flatten(1)(tensor.zeros(2, 3, 4)):size())  --> 24
print(pcall(nn.Flatten(3), tensor.zeros(2, 3)))  --> false ...Flatten: wanted a tensor of at least 3 axes, got float32(2, 3)
local q = tensor.rand(2, 3, 4):quantize 'uint8'
print(m(q):quantized(), m(q):dtype(), m(q):codes() == q:codes():view(2, 12))  --> true uint8 true
