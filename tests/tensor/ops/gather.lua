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
