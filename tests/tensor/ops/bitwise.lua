-- SPDX-License-Identifier: MIT
-- Bit operations on integers and bools.
local a, b = tensor({12, -1, 7, dtype = 'int32'}), tensor({10, 5, 0, dtype = 'int32'})
print(a & b, a | b, a ~ b, ~a)  --> int32(3) 8 5 0 int32(3) 14 -1 7 int32(3) 6 -6 7 int32(3) -13 0 -8
print(a << 2, a >> 1, a << -1)  --> int32(3) 48 -4 28 int32(3) 6 -1 3 int32(3) 6 -1 3
print(tensor({1, dtype = 'int64'}) << 63, tensor({1, dtype = 'int64'}) << 64)  --> int64(1) -9223372036854775808 int64(1) 0
print(tensor({-8, dtype = 'int64'}) >> 99)  --> int64(1) -1
print(tensor({200, dtype = 'uint8'}) & 15)  --> uint8(1) 8
local p, q = tensor{true, true, false}, tensor{true, false, false}
print(p & q, p | q, p ~ q, ~p)  --> bool(3) true false false bool(3) true true false bool(3) false true false bool(3) false false true
print(pcall(function() return tensor{1} & 1 end))  --> false ...band: operand 1: wanted plain integers or bool, got float32(1)
print(pcall(function() return tensor{1}:quantize 'int8' & 1 end))  --> false ...got int8(1) quantized
