-- SPDX-License-Identifier: MIT
-- gather and scatter.
local function index(list) return tensor(list):to 'int64' end
local x = tensor{{1, 2}, {3, 4}, {5, 6}}
print(x:gather(1, index{{3, 1}, {-1, 2}}))  --> float32(2, 2)
                                            --> 5 2
                                            --> 5 4
print(x:gather(2, index{{2}, {1}, {2}}):view(3))  --> float32(3) 2 3 6
print(x:gather(-1, tensor{{2, 2, 1}, dtype = 'uint8'})[1])  --> float32(3) 2 2 1
print(x:t():gather(1, index{{2, 1, 2}})[1])  --> float32(3) 2 3 6
print(x:gather(index{{2}}, {axis = 1}):item())  --> 3.0

-- every dtype moves as it is
for _, dtype in ipairs{'float64', 'float16', 'bfloat16', 'int8', 'uint16', 'int32', 'int64', 'bool', 'int4', 'uint4'} do
	local y = tensor{1, 0, 1, 1, 0}:to(dtype)
	local got = y:gather(1, index{2, 3, -1})
	assert(got:dtype() == dtype)
	assert(got:to('float32'):metrics(tensor{0, 1, 0}).max == 0, dtype)
	local put = y:scatter(1, index{1, 5}, tensor{0, 1}:to(dtype))
	assert(put:dtype() == dtype and put:to('float32'):metrics(tensor{0, 0, 1, 1, 1}).max == 0, dtype)
end
print(tensor{(1 << 53) + 1, 0, dtype = 'int64'}:gather(1, index{1}):item())  --> 9007199254740993

print(tensor.zeros(3):scatter(1, index{3, 1}, tensor{5, 6}))  --> float32(3) 6 0 5
print(x:scatter(1, index{{3, 1}}, 9))  --> float32(3, 2)
                                       --> 1 9
                                       --> 3 4
                                       --> 9 6
print(tensor.zeros(2, 3):scatter(2, index{{3}, {1}}, tensor{{1, 2}, {3, 4}}))  --> float32(2, 3)
                                                                               --> 0 0 1
                                                                               --> 3 0 0
print(tensor.zeros(2):scatter(1, index{2, 2, 2}, tensor{1, 2, 3}))  --> float32(2) 0 3
print(tensor.zeros(2):scatter(1, index{2, 2, 1}, tensor{1, 2, 3}, {add = true}))  --> float32(2) 3 3
print(tensor{100, 0, dtype = 'int8'}:scatter(1, index{1, 1}, tensor{100, 100}:to 'int8', {add = true}):item(1))  --> error: item
local y = tensor.zeros(4)
print(y:scatter_(1, index{2}, 7) == y, y)  --> true float32(4) 0 7 0 0
print(tensor.zeros(0):gather(1, index{}:view(0)):size())  --> 0

print(pcall(function() return x:gather(1, index{{4, 1}}) end))  --> false ...gather: index: wanted 1 to 3 (or -3 to -1), the size of axis 1, got 4
print(pcall(function() return x:gather(1, index{{0, 1}}) end))  --> false ...got 0
print(pcall(function() return x:scatter(2, index{{-3}}, 1) end))  --> false ...scatter: index: wanted 1 to 2...got -3
print(pcall(function() return x:gather(1, index{1}) end))  --> false ...index: wanted as many axes as (3, 2) and no longer ones but axis 1, got (1)
print(pcall(function() return x:gather(1, tensor{{1.0}}) end))  --> false ...index: wanted integers, got float32(1, 1)
print(pcall(function() return x:gather(3, index{{1}}) end))  --> false ...axis: wanted an axis from 1 to 2...
print(pcall(function() return x:gather(1) end))  --> false ...gather: ...
print(pcall(function() return x:scatter(1, index{{1, 1}, {1, 1}}, tensor{{1, 2}}) end))  --> false ...src: wanted a number or a tensor at least as large as the index (2, 2), got (1, 2)
-- reduce=; literals from PyTorch's scatter_reduce
local t, i, s = tensor{1, 2, 3, 4, 5}, index{1, 1, 4, 5}, tensor{7, -2, 3, 9}
print(t:scatter(1, i, s, {reduce='add'}), t:scatter(1, i, s, {reduce='mul'}))  --> float32(5) 6 2 3 7 14 float32(5) -14 2 3 12 45
print(t:scatter(1, i, s, {reduce='max'}), t:scatter(1, i, s, {reduce='min'}))  --> float32(5) 7 2 3 4 9 float32(5) -2 2 3 3 5
print(t:scatter(1, i, s, {reduce='none'}), t:scatter(1, i, 10, {reduce='mul'}))  --> float32(5) -2 2 3 3 9 float32(5) 100 2 3 40 50
print(t:to('int16'):scatter(1, i, s, {reduce='max'}), t:to('int4'):scatter(1, i, s:clamp(-8, 7), {reduce='min'}))  --> int16(5) 7 2 3 4 9 int4(5) -2 2 3 3 5
print(tensor{1, 0/0}:scatter(1, index{1, 2}, tensor{0/0, 1}, {reduce='max'}))  --> float32(2) nan nan
do
	local a, b = tensor{3, 3, 1, grad=true}, tensor{3, 3, grad=true}
	a:scatter(1, index{1, 1}, b, {reduce='max'}):sum():backward()
	print(a:grad(), b:grad())  --> float32(3) 0.3333 1.0000 1.0000 float32(2) 0.3333 0.3333
	a, b = tensor{1, 2, 3, 4, 5, grad=true}, tensor{7, -2, 3, 9, grad=true}
	local weighed = a:scatter(1, i, b, {reduce='mul'}) * t
	weighed:sum():backward()
	print(a:grad(), b:grad())  --> float32(5) -14 2 3 12 45 float32(4) -2 7 16 25
end
print(pcall(function() return t:scatter(1, i, s, {reduce='max', add=true}) end))  --> false ...scatter: wanted reduce='add' or no reduce= with add=true, got 'max'
print(t:quantize('int8'):gather(1, i):dtype(), t:view(1, 5):quantize('int8/1'):gather(2, i:view(1, 4)):dtype())  --> int8 float32
