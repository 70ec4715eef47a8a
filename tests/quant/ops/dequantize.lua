-- SPDX-License-Identifier: MIT
-- dequantize and codes.
local q = tensor{{1, -2}, {0.5, 4}}:quantize 'int8/1'
print(q:dequantize()[2])  --> float32(2) 0.5039 4.0000
print(q:codes():dtype(), q:codes():qparams())  --> int8 nil
-- codes is a view of the same storage
q:codes()[1][1] = 0
print(q:dequantize()[1])  --> float32(2) 0 -2
-- a plain tensor is returned as it is
local x = tensor{1, 2}
print(x:dequantize() == x)  --> true
-- int8 codes minus a zero point need more than 8 bits
local u = tensor{-1, 1}:quantize{dtype = 'int8', scheme = 'asymmetric', scale = 1, zero_point = 127}
u:codes():fill_(-128)
print(u:dequantize())  --> float32(2) -255 -255
