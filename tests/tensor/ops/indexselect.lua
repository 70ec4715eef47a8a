-- SPDX-License-Identifier: MIT
-- Indexing by an integer tensor: indexselect and indexassign, x[ids] and x[ids] = y.
local function ids(...) return tensor{...}:to 'int64' end
local x = tensor{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}}
print(x[ids(3, 1)])  --> float32(2, 3)
                     --> 7 8 9
                     --> 1 2 3
print(x[{{}, ids(-1, 2)}][1], x[{2, ids(3, 3)}], x[{{2, 3}, ids(1)}]:size())  --> float32(2) 3 2 float32(2) 6 6 2 1
print(x:indexselect(2, ids(2)[1]), x[ids(1)[1]])  --> float32(4) 2 5 8 11 float32(3) 1 2 3
print(x[tensor{{1, 2}, {3, 4}, dtype='uint8'}]:size())  --> 2 2 3
print(x:indexselect(-1, tensor.zeros(0):to 'int32'):size(), x:indexselect(ids(4), {axis=1}):size())  --> 4 1 3

it('is a loop over the indices, for every axis, view and dtype', function()
	tensor.seed(3)
	for _, dtype in ipairs{'float32', 'float64', 'float16', 'int8', 'uint16', 'int32', 'int64', 'bool', 'int4', 'uint4'} do
		local v = tensor.randint{3, 5, 4, low=0, high=1}:to(dtype)
		for _, y in ipairs{v, v:permute(2, 1, 3), dtype:find '4$' and v or v:permute(3, 1, 2)} do
			for axis = 1, 3 do
				local at = tensor.randint{7, low=1, high=y:size(axis)}
				local got, parts = y:indexselect(axis, at), {}
				for i = 1, 7 do parts[i] = y:to('int64'):select(axis, at[i]:item()) end
				assert(got:dtype() == dtype and got:to('int64'):eq(tensor.stack(parts, {axis=axis})):all():item(), dtype .. axis)
			end
		end
	end
	local big, at = tensor.randn(50, 3000), tensor.randint{4000, low=1, high=3000}
	assert(big:indexselect(2, at):eq(big:gather(2, at:expand(50, 4000))):all():item())
	local wide = tensor.arange(1, 12):view(3, 4):to 'int4' -- packed rows of another length
	print(wide:indexselect(2, tensor{{1, 2, 3}, {4, 4, 4}, dtype='int64'})[1])  --> int4(2, 3)
	                                                                           --> 1 2 3
	                                                                           --> 4 4 4
end)

it('assigns', function()
	local y = tensor.zeros(3, 2)
	y[ids(3, 1)] = tensor{{1, 2}, {3, 4}}
	print(y)  --> float32(3, 2)
	          --> 3 4
	          --> 0 0
	          --> 1 2
	y[ids(2)] = tensor{7, 8}
	y[{{2, 3}, ids(2)}] = 9
	print(y:view(6))  --> float32(6) 3 4 7 9 1 9
	y[{{}, ids(2, 2)}] = tensor{{1, 2}, {3, 4}, {5, 6}}
	print(y:t()[2])  --> float32(3) 2 4 6
	local z = tensor.zeros(4)
	print(z:indexassign_(1, ids(2, -1, 2), 5) == z, z)  --> true float32(4) 0 5 0 5
	for reduce, want in pairs{none={3, 5}, add={3, 14}, mul={3, 36}, max={3, 6}, min={2, 2}} do
		local got = tensor{3, 2}:indexassign(1, ids(2, 1, 2, 2)['1::1'], reduce == 'min' and tensor{6, 2, 3, 5} or tensor{6, 3, 1, 5}, {reduce=reduce})
		assert(got:eq(tensor(reduce == 'mul' and {9, 60} or reduce == 'add' and {6, 14} or want)):all():item(), reduce)
	end
	local packed = tensor{1, 2, 3}:to 'int4'
	packed[ids(2)] = -5
	print(packed, tensor{true, true}:indexassign(1, ids(1), 0))  --> int4(3) 1 -5 3 bool(2) false true
	print(tensor{1, 2, dtype='int64'}:indexassign(1, ids(1, 1), (1 << 53) + 1)[1]:item())  --> 9007199254740993
	print(tensor.full{2, value=0/0}:indexassign(1, ids(1), 1, {reduce='max'}))  --> float32(2) nan nan
	local q = tensor{1, 2, 3}:quantize 'int8'
	q[ids(3)] = 1
	print(q:dtype(), q:dequantize()[3]:item() < 1.01)  --> int8 true
end)

it('has the same bits on any number of threads', function()
	local at, v = tensor.randint{5000, low=1, high=40}, tensor.randn(5000, 300)
	local sums = {}
	for i, n in ipairs{1, 4} do
		local before = tensor.threads()
		tensor.threads(n)
		sums[i] = tensor.zeros(40, 300):indexassign(1, at, v, {reduce='add'})
		tensor.threads(before)
	end
	assert(sums[1]:eq(sums[2]):all():item())
end)

print(pcall(function() return x[ids(5)] end))  --> false ...indexselect: index: wanted 1 to 4 (or -4 to -1), the size of axis 1, got 5
print(pcall(function() return x[{{}, ids(0)}] end))  --> false ...the size of axis 2, got 0
print(pcall(function() return x[{ids(1), ids(1)}] end))  --> false ...index: wanted one tensor of indices, got two; use x:gathernd(index)
print(pcall(function() return x[{{}, x[1]:gt(1)}] end))  --> false ...index: wanted a tensor of integers in a list, got a mask; use mask:nonzero()
print(pcall(function() return x:indexselect(1, x) end))  --> false ...indexselect: index: wanted integers, got float32(4, 3)
print(pcall(function() x[ids(1, 2)] = tensor{1, 2} end))  --> false ...indexassign: src: wanted sizes that are 1 or equal, got (2) to (2, 3)
print(pcall(function() return x:indexassign(1, ids(1), 1, {reduce='mean'}) end))  --> false ...indexassign: reduce: wanted one of none add mul max min, got 'mean'...
