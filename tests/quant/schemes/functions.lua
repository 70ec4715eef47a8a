-- SPDX-License-Identifier: MIT
-- The scheme of formats made of functions: what specs say of it (tests/quant/user_functions.lua has the rest).
local s = quant.scheme {name='thirds', bits=3, encode=function(x, scale) return (x / scale * 3):round() + 4 end,
	decode=function(codes, scale) return (codes - 4) * scale / 3 end}
print(s.scheme, s.functions, s.affine, s.monotone, s.zero_code, s.min, s.max)  --> functions true false false false 0 7
print(tensor{-3, 1, 2}:quantize 'thirds':codes())       --> uint3(3)  1  5  6
print(tensor{-3, 1, 2}:quantize 'thirds':dequantize())  --> float32(3)  -3   1   2
print(pcall(quant.spec, 'uint3 functions'))             --> false ...wanted the name of a format...
