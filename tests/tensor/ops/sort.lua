-- SPDX-License-Identifier: MIT
-- sort and topk: order, positions, equals, nan, every dtype.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}}
local values, indices = x:sort()
print(values)  --> float32(2, 4)
               --> -1  1 3 4
               --> -6 -5 2 9
print(indices)  --> int64(2, 4)
                --> 2 4 1 3
                --> 4 1 3 2
values, indices = x:sort(1)
print(values)  --> float32(2, 4)
               --> -5 -1 2 -6
               -->  3  9 4  1
print(indices)  --> int64(2, 4)
                --> 2 1 2 2
                --> 1 2 1 1
values, indices = x:sort{descending = true}
print(values)  --> float32(2, 4)
               --> 4  3  1 -1
               --> 9  2 -5 -6
print(indices)  --> int64(2, 4)
                --> 3 1 4 2
                --> 2 3 1 4
values, indices = x:topk(2)
print(values)  --> float32(2, 2)
               --> 4 3
               --> 9 2
print(indices)  --> int64(2, 2)
                --> 3 1
                --> 2 3
values, indices = x:topk(1, {axis = 1, largest = false})
print(values[1], indices[1])  --> float32(4) -5 -1 2 -6 int64(4) 2 1 2 2
indices = select(2, x:topk(3, 2))
print(indices[1])  --> int64(3) 3 1 4

-- equal elements keep their order; nan comes last in both directions
print(tensor{1, 0, 1, 0}:sort())  --> float32(4) 0 0 1 1 int64(4) 2 4 1 3
print(tensor{1, 0, 1, 0}:sort{descending = true})  --> float32(4) 1 1 0 0 int64(4) 1 3 2 4
for _, descending in ipairs{false, true} do
	print(select(2, tensor{0.0, -0.0, 0.0}:sort{descending = descending}))
end  --> int64(3) 1 2 3
     --> int64(3) 1 2 3
print(tensor{0/0, 1/0, -1/0, 2}:sort())  --> float32(4) -inf 2 inf nan int64(4) 3 4 2 1
print(tensor{0/0, 1/0, -1/0, 2}:sort{descending = true})  --> float32(4) inf 2 -inf nan int64(4) 2 4 3 1
print(tensor{0/0, 1, 0/0, 2}:topk(3))  --> float32(3) 2 1 nan int64(3) 4 2 1

for _, dtype in ipairs{'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'int4'} do
	local v, i = tensor{3, -2, 7, -8, 0, dtype = dtype}:sort()
	assert(v:dtype() == dtype and i:dtype() == 'int64', dtype)
	assert(table.concat(i:totable(), ' ') == '4 2 5 1 3', dtype)
	for k, want in ipairs{-8, -2, 0, 3, 7} do assert(v:totable()[k] == want, dtype) end
end
print(tensor{1 << 53, (1 << 53) + 1, math.mininteger, dtype = 'int64'}:sort{descending = true})  --> int64(3) 9007199254740993 9007199254740992 -9223372036854775808 int64(3) 2 1 3
print(tensor{true, false, true}:sort())  --> bool(3) false true true int64(3) 2 1 3

it('sorts and selects long lines', function()
	local state, list = 1, {}
	for i = 1, 5000 do
		state = (state * 1103515245 + 12345) % 2147483648
		list[i] = state % 1000 - 500 + (i % 2) / 4
	end
	for _, dtype in ipairs{'float32', 'float64'} do
		local t = tensor(list):to(dtype)
		local v, i = t:sort()
		local down, at = t:sort{descending = true}
		local some, where = t:topk(700)
		local few, place = t:topk(700, {largest = false})
		v, i, down, at = v:totable(), i:totable(), down:totable(), at:totable()
		some, where, few, place = some:totable(), where:totable(), few:totable(), place:totable()
		for k = 1, #v do
			assert(v[k] == list[i[k]] and down[k] == list[at[k]])
			if k > 1 then
				assert(v[k - 1] < v[k] or v[k - 1] == v[k] and i[k - 1] < i[k])
				assert(down[k - 1] > down[k] or down[k - 1] == down[k] and at[k - 1] < at[k])
			end
		end
		for k = 1, 700 do
			assert(some[k] == down[k] and where[k] == at[k] and few[k] == v[k] and place[k] == i[k])
		end
	end
end)

print(tensor(5):sort())  --> 5 1
print(#tensor.zeros(0):sort(), #tensor.zeros(3, 0):topk(0), #x:topk(0, 1))  --> 0 3 0
print(pcall(function() return x:topk(5) end))  --> false ...topk: k: wanted 0 to 4, the size of axis 2, got 5
print(pcall(function() return x:topk() end))  --> false ...topk: k: wanted how many, got nothing
print(pcall(function() return x:sort{decending = true} end))  --> false ...did you mean 'descending'...
