-- SPDX-License-Identifier: MIT
-- + - * / // % ^ and negation: broadcasting, promotion, wrapping, Lua numbers.
local x = tensor{{1, -2, 3}, {4, 5, -6}}
print(x + 1, 1 - x[1], -x[2])  --> float32(2, 3)
                               -->   2 -1  4
                               -->   5  6 -5 float32(3) 0 3 -2 float32(3) -4 -5 6
print(x * tensor{10, 100, 1000})  --> float32(2, 3)
                                  -->    10 -200 3000
                                  -->    40  500 -6000
print(x / tensor{{1}, {2}})  --> float32(2, 3)
                             -->  1.0000 -2.0000  3.0000
                             -->  2.0000  2.5000 -3.0000
print(tensor{7, -7} // 2, tensor{7, -7} % 3, tensor{7, -7} % -3)  --> float32(2) 3 -4 float32(2) 1 2 float32(2) -2 -1
print(tensor{1, 0, -1} / 0)  --> float32(3) inf nan -inf
print(tensor{2, 9} ^ 0.5)  --> float32(2) 1.4142 3.0000
print(2 ^ tensor{1, 10})  --> float32(2) 2 1024

local function dtype(a, b) return (a + b):dtype() end
local of = setmetatable({}, {__index = function(_, d) return tensor.zeros{2, dtype = d} end})
print(dtype(of.int8, of.int8), dtype(of.int8, of.uint8), dtype(of.int8, of.uint16), dtype(of.uint8, of.int16))  --> int8 int16 uint16 int16
print(dtype(of.int32, of.int64), dtype(of.uint16, of.int16), dtype(of.bool, of.bool), dtype(of.bool, of.int8))  --> int64 int32 int64 int8
print(dtype(of.float16, of.int64), dtype(of.float16, of.bfloat16), dtype(of.float32, of.float64))  --> float16 float32 float64
print(dtype(of.int4, of.uint4), dtype(of.int4, of.int8))  --> int8 int8
print(dtype(of.int8, 3), dtype(of.int8, 3.5), dtype(of.float16, 3.5), dtype(of.float64, 1))  --> int8 float32 float16 float64
print((of.int32 / of.int32):dtype(), (of.int64 / 2):dtype(), (of.float64 / of.int8):dtype())  --> float32 float32 float64

-- plain integers wrap at their own width, and never pass through floats
print(tensor({127, -128, dtype = 'int8'}) + tensor({1, -1, dtype = 'int8'}))  --> int8(2) -128 127
print(tensor({200, 3, dtype = 'uint8'}) * tensor({2, 100, dtype = 'uint8'}))  --> uint8(2) 144 44
print(tensor({16777217, dtype = 'int32'}) + 2)  --> int32(1) 16777219
print(tensor({9007199254740993, dtype = 'int64'}) + 2)  --> int64(1) 9007199254740995
print(tensor({math.mininteger, dtype = 'int64'}) // -1)  --> int64(1) -9223372036854775808
print(-tensor({-128, 5, dtype = 'int8'}))  --> int8(2) -128 -5
print(tensor({2, 3, dtype = 'int32'}) ^ 31)  --> int32(2) -2147483648 1264544299
print(tensor({7, -7, dtype = 'int16'}) // 2, tensor({7, -7, dtype = 'int16'}) % 3)  --> int16(2) 3 -4 int16(2) 1 2
print(tensor({9007199254740993, dtype = 'int64'}) / 3)  --> float32(1) 3.0024e+15

print(pcall(function() return tensor({1, dtype = 'int8'}) // 0 end))  --> false ...idiv: wanted a divisor other than 0 for integers, got 0
print(pcall(function() return tensor({1, dtype = 'int8'}) % tensor({0, dtype = 'int8'}) end))  --> false ...mod: wanted a divisor...
print(pcall(function() return tensor({2, dtype = 'int8'}) ^ -1 end))  --> false ...pow: wanted exponents of 0 or more...
print(pcall(function() return tensor({1, dtype = 'int8'}) + 200 end))  --> false ...add: wanted a number that fits int8 (-128 to 127), got 200

-- in place
local y = x:clone()
y:add_(1):mul_(2)
print(y[1])  --> float32(3) 4 -2 8
y[1]:sub_(y[2])
print(y[1])  --> float32(3) -6 -14 18
print(pcall(function() return tensor({1, dtype = 'int8'}):add_(0.5) end))  --> false ...add_: wanted a result that fits int8, got float32...
print(pcall(function() return y[1]:add_(y) end))  --> false ...the tensor's own shape (3), got (2, 3)
local h = tensor{1, 2}:to 'float16'
print(h:add_(tensor{0.5, 0.5}):dtype())  --> float16
local q = tensor{1, 2, 3}:quantize 'int8'
print(q:add_(-1):dtype(), q:dequantize())  --> int8 float32(3) 0.0000 1.0157 2.0079
print(tensor(3) + tensor(4))  --> 7
print((tensor.zeros(0, 3) + 1):size())  --> 0 3

-- fmod and div with round=, as torch 2 has them
local sevens, threes = tensor{7, -7, 7, -7, 5.5, -5.5}, tensor{3, 3, -3, -3, 2, 2}
for _, kind in ipairs {'float32', 'float64'} do
	local a, b = sevens:to(kind), threes:to(kind)
	assert(a:fmod(b):eq(tensor{1, -1, 1, -1, 1.5, -1.5}):all():item() and a:div(b, {round = 'trunc'}):eq(tensor{2, -2, -2, 2, 2, -2}):all():item())
	assert(a:div(b, {round = 'floor'}):eq(tensor{2, -3, -3, 2, 2, -3}):all():item() and a:div(b, {round = 'floor'}):dtype() == kind)
end
for _, kind in ipairs {'int8', 'int32', 'int64'} do
	local a, b = tensor({7, -7, 7, -7, 0, dtype = kind}), tensor({3, 3, -3, -3, 5, dtype = kind})
	assert(a:fmod(b):eq(tensor{1, -1, 1, -1, 0}):all():item() and a:fmod(b):dtype() == kind)
	assert(a:div(b, {round = 'trunc'}):eq(tensor{2, -2, -2, 2, 0}):all():item() and a:div(b, {round = 'trunc'}):dtype() == kind)
	assert(a:div(b, {round = 'floor'}):eq(a // b):all():item() and a:div(b):dtype() == 'float32')
	assert(a:t():div(2, {round = 'trunc'}):eq(tensor{3, -3, 3, -3, 0}):all():item())
end
print(tensor({math.mininteger, 9, dtype = 'int64'}):div(-1, {round = 'trunc'}), tensor({math.mininteger, 9, dtype = 'int64'}):fmod(-1))  --> int64(2) -9223372036854775808 -9 int64(2) 0 0
print(tensor({1 << 60, dtype = 'int64'}):div(3, {round = 'trunc'}):item() == (1 << 60) // 3)  --> true
print(tensor{1, -1, 0} / 0, tensor{1}:fmod(0), tensor{5}:fmod(math.huge), tensor{1, -1}:div(0, {round = 'trunc'}))  --> float32(3) inf -inf nan float32(1) nan float32(1) 5 float32(2) inf -inf
print(pcall(function() return tensor({1, dtype = 'int8'}):div(0, {round = 'trunc'}) end))  --> false ...div: wanted a divisor other than 0 for integers, got 0
print(pcall(function() return tensor({1, dtype = 'int8'}):fmod(0) end))  --> false ...fmod: wanted a divisor other than 0 for integers, got 0
print(pcall(function() return tensor{1}:div(2, {round = 'up'}) end))  --> false ...div: round: wanted one of floor trunc, got 'up'
print(tensor({7, -7, dtype = 'int32'}):div(2.0, {round = 'trunc'}))  --> float32(2) 3 -3
print(pcall(function() return tensor({7, dtype = 'int8'}):div(300, {round = 'trunc'}) end))  --> false ...div: wanted a number that fits int8 (-128 to 127), got 300
local halves = tensor{3, -3}
print(halves:div_(2) == halves, halves)  --> true float32(2) 1.5000 -1.5000
local seven = tensor({7, -7, dtype = 'int32'})
print(seven:div_(2, {round = 'trunc'}), seven)  --> int32(2) 3 -3 int32(2) 3 -3
local g = tensor{7, -7, grad = true}
local sum = (g:div(2, {round = 'trunc'}) + g):sum()
sum:backward()
print(g:grad())  --> float32(2) 1 1
