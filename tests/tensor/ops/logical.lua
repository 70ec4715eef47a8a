-- SPDX-License-Identifier: MIT
-- any and all.
local x = tensor{{0, 0, 2}, {0, 0, 0}, {1, -1, 0/0}}
print(x:any(), x:all(), x:any():dtype())  --> true false bool
print(x:any(2), x:all(2))  --> bool(3) true false true bool(3) false false true
print(x:any(1), x:all{axis = 1, keep = true}:size())  --> bool(3) true true true 1 3
print(tensor{true, true}:all():item(), tensor{true, false}:all():item(), tensor{false}:any():item())  --> true false false
print(tensor{256, 0, dtype = 'int32'}:any(), tensor{1 << 40, dtype = 'int64'}:all())  --> true true
print(tensor.zeros(0):any(), tensor.zeros(0):all(), tensor.zeros(2, 0):all(2))  --> false true bool(2) true true
local long = tensor.zeros(200000)
print(long:any())  --> false
long[123456] = -0.5
print(long:any(), long:eq(0):all())  --> true false
