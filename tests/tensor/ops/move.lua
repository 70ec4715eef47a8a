-- SPDX-License-Identifier: MIT
-- labels: quick host
-- clone, contiguous, to: every dtype to every dtype through known values.
local x = tensor{{1, 2}, {3, 4}}
local c = x:t():clone()
c[1][1] = 9
print(x[1][1]:item(), c:stride())  --> 1.0 2 1
print(x:contiguous() == x, x:t():contiguous() == x:t())  --> true false
print(tensor{-1.5, -0.5, 0.5, 1.5, 2.5}:to 'int8')  --> int8(5) -2 0 0 2 2
print(tensor{300, -300, 0 / 0, 1 / 0}:to 'int8')  --> int8(4) 127 -128 0 127
print(tensor{300, -3, 0 / 0}:to 'uint8')  --> uint8(3) 255 0 0
print(tensor{1e30, -1e30}:to('int64'))  --> int64(2) 9223372036854775807 -9223372036854775808
print(tensor{9, -9}:to 'int4', tensor{20, -1}:to 'uint4')  --> int4(2) 7 -8 uint4(2) 15 0
print(tensor{0, 2, -1}:to 'bool')  --> bool(3) false true true
print(tensor{70000, 1e-8, 2049}:to('float16'):to 'float32')  --> float32(3) inf 0 2048
print(tensor{1, 257}:to('bfloat16'):to 'float32')  --> float32(2) 1 256
print(tensor({1, 2, dtype = 'int32'}):to('float64'):dtype())  --> float64
print(tensor({16777217, dtype = 'int32'}):to('float64'):item())  --> 16777217.0
print(tensor({300, -300, dtype = 'int32'}):to 'int8')  --> int8(2) 127 -128
local q = x:quantize 'int8'
print(q:to 'float32' == q, q:to('float16'):dtype(), q:to('float32'):qparams())  --> false float16 nil
print(pcall(q.to, q, 'int8'))  --> false ...wanted a float dtype for a quantized tensor, got int8...
print(pcall(x.to, x, 'cuda'))  --> false ...wanted a device that is here, got 'cuda'...
print(pcall(x.to, x, 'flaot16'))  --> false ...wanted the name of a dtype or device, got 'flaot16'; did you mean 'float16'?
