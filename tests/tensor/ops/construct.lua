-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Constructors: every dtype, sizes by position and in a table, ranges.
for _, d in ipairs{'float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'bool', 'int4',
	'uint4', 'binary'} do
	assert(tensor.zeros{2, 3, dtype = d}:dtype() == d and tensor.ones{2, 3, dtype = d}:dtype() == d, d)
	assert(tensor.ones{2, 3, dtype = d}:to('float32'):sum():item() == 6, d)
	assert(tensor.empty{0, 3, dtype = d}:nelem() == 0, d)
	if d ~= 'bool' then assert(tensor.full{5, value = 1, dtype = d}:to('float32'):sum():item() == 5, d) end
end
print(tensor.zeros(2, 3):size(1), tensor.zeros():dim(), tensor.zeros{2, 3}:dtype())  --> 2 0 float32
print(tensor.full{2, value = -2.5}, tensor.full{2, value = 9007199254740992, dtype = 'int64'})  --> float32(2) -2.5000 -2.5000 int64(2) 9007199254740992 9007199254740992
print(pcall(tensor.full, {2, value = 300, dtype = 'int8'}))  --> false ...full: value: wanted an integer that fits int8, got 300
print(pcall(tensor.full, {2}))  --> false ...full: value: wanted...got nothing
print(tensor.arange(1, 5), tensor.arange(5, 1, -2), tensor.arange(0, 1, 0.5), tensor.arange(2, 1))  --> int64(5) 1 2 3 4 5 int64(3) 5 3 1 float32(3) 0.0000 0.5000 1.0000 int64(0)
print(tensor.arange(0, 1, 0.1):nelem(), tensor.arange(1, 3, {dtype = 'float32'}):dtype())  --> 11 float32
print(pcall(tensor.arange, 1, 5, 0))  --> false ...arange: wanted finite numbers and a step other than 0...
print(tensor.linspace(0, 1, 5), tensor.linspace(3, 7, 1), tensor.linspace(0, 1, 0):size())  --> float32(5) 0.0000 0.2500 0.5000 0.7500 1.0000 float32(1) 3 0
print(tensor.eye(3):sum():item(), tensor.eye(2, 3)[2], tensor.eye(2, {dtype = 'int4'}))  --> 3.0 float32(3) 0 1 0 int4(2, 2)
                                                                                     -->  1 0
                                                                                     -->  0 1
print(tensor.ones{2, 2, quant = 'int8'}:dtype(), tensor.zeros{3, quant = 'uint8/1'}:qparams().scale:size())  --> int8 3
print(pcall(tensor.zeros, {2, device = 'cuda'}))  --> false ...zeros: device: wanted a device that is here, got 'cuda'...
print(tensor{1, 2, dtype = 'int8'}:dtype(), tensor{true, false}:dtype(), tensor(3):dim(), tensor{{}, {}}:size())  --> int8 bool 0 2 0
print(tensor.eye(3, {diagonal=1}), tensor.eye(2, 3, {diagonal=-1, dtype='int8'}))  --> float32(3, 3)
--> 0 1 0
--> 0 0 1
--> 0 0 0 int8(2, 3)
--> 0 0 0
--> 1 0 0
for k = -5, 5 do assert(tensor.eye(3, 4, {diagonal=k}):eq(tensor.ones(3, 4):triu(k):tril(k)):all():item(), k) end
print(tensor.eye(2, {diagonal=math.mininteger}):sum():item(), tensor.eye(2, {diagonal=math.maxinteger}):sum():item())  --> 0.0 0.0
