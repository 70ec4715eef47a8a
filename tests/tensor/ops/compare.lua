-- SPDX-License-Identifier: MIT
-- Comparisons give bool; identity is ==.
local x, y, nan = tensor{1, 2, 3}, tensor{3, 2, 1}, 0 / 0
print(x:eq(y), x:ne(y), x:lt(y), x:le(y), x:gt(y), x:ge(y))  --> bool(3) false true false bool(3) true false true bool(3) true false false bool(3) true true false bool(3) false false true bool(3) false true true
print(tensor{nan, 1}:eq(tensor{nan, 1}), tensor{nan}:ne(nan))  --> bool(2) false true bool(1) true
print(tensor({9007199254740993, dtype = 'int64'}):eq(tensor({9007199254740992, dtype = 'int64'})))  --> bool(1) false
print(x:lt(2), tensor({5, dtype = 'uint8'}):gt(-1))  --> bool(3) true false false bool(1) true
print(tensor{{1}, {2}}:lt(tensor{1, 2}):size())  --> 2 2
print(x == x:view(3), x == x:clone(), x:t() == x)  --> true false true
print(pcall(function() return x < y end))  --> false ...a:lt(b)...
print(x:quantize('int8'):gt(1.5))  --> bool(3) false true true
-- integers beyond 24 bits are not rounded on the way
print(tensor({16777217, 16777216, dtype = 'int32'}):gt(16777216.5), tensor({16777217, dtype = 'int32'}):eq(tensor{16777216}))  --> bool(2) true false bool(1) false
