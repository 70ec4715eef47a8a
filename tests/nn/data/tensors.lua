-- SPDX-License-Identifier: MIT
-- data.tensors, and what every data set can do.
-- labels: once
local x, y = tensor{{1,2},{3,4},{5,6},{7,8},{9,10}}, tensor{1,2,1,2,1, dtype='int64'}
local ds = data.tensors(x, y, {name='five', classes={'odd', 'even'}})
print(#ds, ds.name)          --> 5 five
print(ds:get(2))             --> float32(2)  3  4 2
print(ds:get(-1))            --> float32(2)  9 10 1
print(table.unpack(ds[4]))   --> float32(2)  7  8 2
print(ds)                    --> five: 5 samples
                             -->   x  float32(5, 2)
                             -->   y  int64(5)
                             -->   2 classes: odd even
local a, b = ds:split(2)
print(#a, #b, b.x[1], b.classes[1])  --> 2 3 float32(2)  5  6 odd
print(#ds:split(0.6), #select(2, ds:split(1.0 * 5)), #ds:split(0))  --> 3 0 0
print(#ds:narrow(2, 4), ds:narrow(-2, -1).y)  --> 3 int64(2)  2  1
print(#ds:narrow(3, 2), #ds:narrow(3))        --> 0 3
local only = data.tensors(x)
print(only:get(1), only.y)   --> float32(2)  1  2 nil
print(#data.tensors(x, {name='x'}), data.tensors(x, {name='x'}).name)  --> 5 x

it('shares memory', function()
	local part = ds:narrow(2, 3)
	x[2][1] = 33
	assert(part.x[1][1]:item() == 33)
	x[2][1] = 3
end)

data.tensors(3)                      --> error: tensors: x: wanted a tensor with samples along its first axis, got 3
data.tensors(tensor(3))              --> error: tensors: x: wanted a tensor with samples along its first axis
data.tensors(x, tensor{1,2})         --> error: tensors: y: wanted as many targets as samples, got 2 and 5
data.tensors(x, y, {clases={}})      --> error: did you mean 'classes'
ds:get(6)                            --> error: get: wanted the number of a sample, 1 to 5, got 6
ds:get(0)                            --> error: get: wanted the number of a sample, 1 to 5, got 0
print(ds[6])                         --> error: get: wanted the number of a sample
ds:split(6)                          --> error: split: wanted a number of samples up to 5 or a share below 1, got 6
ds:split(2.5)                        --> error: split: wanted a number of samples
ds:narrow(0, 2)                      --> error: narrow: wanted samples within 1 to 5, got 0 to 2
ds:narrow(4, 2)                      --> error: narrow: wanted samples within 1 to 5, got 4 to 2
ds.get(3)                            --> error: get: wanted a data set, as in ds:get
