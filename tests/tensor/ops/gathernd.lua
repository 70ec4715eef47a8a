-- SPDX-License-Identifier: MIT
-- gathernd and scatternd; literals from onnx.reference 1.17 (indices there from 0).
local function ids(list) return tensor(list):to 'int64' end
local d = tensor.arange(1, 12):view(2, 3, 2):to 'float32'
print(d:gathernd(ids{{1, 3}, {2, 1}}))  --> float32(2, 2)
                                        --> 5 6
                                        --> 7 8
print(d:gathernd(ids{{2}, {1}}, {batch=1}))  --> float32(2, 2)
                                             --> 3 4
                                             --> 7 8
print(d:gathernd(ids{{1, 3, 2}, {-1, -1, -1}}), d:gathernd(ids{2, 1, 1}):item())  --> float32(2) 6 12 7.0
print(d:permute(3, 1, 2):gathernd(ids{{{2}}}):size())  --> 1 1 2 3
print(d:gathernd(tensor.zeros(3, 0):to 'int64'):size(), d:gathernd(tensor.zeros(0, 2):to 'int32'):size())  --> 3 0 2
print(tensor.zeros(2, 0):gathernd(ids{{1}}):size())  --> 1 0

local e, at, v = tensor.arange(1, 8):to 'float32', ids{{5}, {4}, {2}, {5}}, tensor{9, 10, 11, 12}
print(e:scatternd(at, v))  --> float32(8) 1 11 3 10 12 6 7 8
print(e:scatternd(at, v, {reduce='add'}))  --> float32(8) 1 13 3 14 26 6 7 8
print(e:scatternd(at, v, {reduce='mul'}))  --> float32(8) 1 22 3 40 540 6 7 8
print(e:scatternd(at, v, {reduce='max'}), e:scatternd(at, v, {reduce='min'}))  --> float32(8) 1 11 3 10 12 6 7 8 float32(8) 1 2 3 4 5 6 7 8
print(d:scatternd(ids{{1, 2}, {2, 3}}, tensor{0, -1}):view(12))  --> float32(12) 1 2 0 -1 5 6 7 8 9 10 0 -1
print(d:scatternd(ids{{2}, {1}}, 0, {batch=1}):view(12))  --> float32(12) 1 2 0 0 5 6 0 0 9 10 11 12

it('every dtype, and in place', function()
	for _, dtype in ipairs{'float64', 'float16', 'bfloat16', 'int8', 'uint16', 'int32', 'int64', 'bool', 'int4', 'uint4'} do
		local y = tensor{{1, 0, 1}, {0, 1, 1}}:to(dtype)
		local got = y:gathernd(ids{{1, 2}, {2, 3}})
		assert(got:dtype() == dtype and got:to('float32'):eq(tensor{0, 1}):all():item(), dtype)
		local put = y:scatternd(ids{{1, 2}, {2, 1}}, 1)
		assert(put:dtype() == dtype and put:to('float32'):sum():item() == 6, dtype)
	end
	local y = tensor.zeros(2, 2)
	print(y:scatternd_(ids{{1, 1}}, 3) == y, y[1])  --> true float32(2) 3 0
	print(tensor{100, 100, dtype='int8'}:scatternd(ids{{1}}, 100, {reduce='add'}))  --> int8(2) -56 100
end)

print(pcall(d.gathernd, d, ids{{3, 1}}))  --> false ...gathernd: index: wanted 1 to 2 (or -2 to -1), the size of axis 1, got 3
print(pcall(d.gathernd, d, ids{{1, 1, 1, 1}}))  --> false ...gathernd: index: wanted tuples of at most 3 indices along its last axis and the same 0 batch axes as (2, 3, 2), got (1, 4)
print(pcall(d.gathernd, d, ids{{1}}, {batch=1}))  --> false ...the same 1 batch axes as (2, 3, 2), got (1, 1)
print(pcall(d.gathernd, d, d))  --> false ...gathernd: index: wanted integers, got float32(2, 3, 2)
print(pcall(d.scatternd, d, ids{{1}}, tensor{1, 2, 3}))  --> false ...scatternd: src: wanted sizes that are 1 or equal, got (3) to (1, 3, 2)
