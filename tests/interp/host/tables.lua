-- SPDX-License-Identifier: MIT
-- table.insert, remove, move, concat and sort: the meaning and the errors of plain Lua. The values beside the lines are those of lua5.4.
local function list(t) return table.concat(t, ' ') end
t = {1, 2, 3}
table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 6, 5)
print(list(t))  --> 0 1 2 3 4 5
print(table.remove(t), table.remove(t, 1), table.remove(t, 2), list(t))  --> 5 0 2 1 3 4
print(table.remove(t, 4), #t, table.remove({}), table.remove({}, 0), table.remove({[0]='z'}, 0))  --> nil 3 nil nil z
print(select('#', table.insert({}, 1)), select('#', table.remove {}))  --> 0 1
print(list(table.move({1, 2, 3, 4, 5}, 1, 3, 2)), list(table.move({1, 2, 3, 4, 5}, 2, 5, 1)))  --> 1 1 2 3 5 2 3 4 5 5
print(list(table.move({1, 2, 3}, 1, 3, 1, {9, 9, 9, 9})), list(table.move({1, 2}, 2, 1, 5)))  --> 1 2 3 9 1 2
print(table.concat({}, 'x'), table.concat({1, 2.5, 'a'}, ', '), table.concat({1, 2, 3}, '-', 2), table.concat({1, 2, 3}, '-', 2, 2), table.concat({1, 2}, '', 3))  -->  1, 2.5, a 2-3 2
print(table.concat({[math.maxinteger] = 'end'}, '', math.maxinteger, math.maxinteger))  --> end

table.insert({1, 2, 3}, 5, 1)             --> error: bad argument #2 to 'insert' (position out of bounds)
table.insert({1, 2, 3}, 0, 1)             --> error: bad argument #2 to 'insert' (position out of bounds)
table.insert({})                          --> error: wrong number of arguments to 'insert'
table.insert({}, 1, 2, 3)                 --> error: wrong number of arguments to 'insert'
table.insert(1, 2)                        --> error: bad argument #1 to 'insert' (table expected, got number)
table.insert({}, 'x', 2)                  --> error: bad argument #2 to 'insert' (number expected, got string)
table.remove({1, 2, 3}, 5)                --> error: bad argument #2 to 'remove' (position out of bounds)
table.remove({1, 2, 3}, 0)                --> error: bad argument #2 to 'remove' (position out of bounds)
table.remove({}, -1)                      --> error: bad argument #2 to 'remove' (position out of bounds)
table.move({}, 1, 2)                      --> error: bad argument #4 to 'move' (number expected, got no value)
table.move({}, 0, math.maxinteger, 1)     --> error: bad argument #3 to 'move' (too many elements to move)
table.move({}, 1, math.maxinteger, 2)     --> error: bad argument #4 to 'move' (destination wrap around)
table.move({}, 1, 2, 3, 4)                --> error: bad argument #5 to 'move' (table expected, got number)
table.concat({1, {}, 3})                  --> error: invalid value (at index 2) in table for 'concat'
table.concat({}, '', 1, 1)                --> error: invalid value (at index 1) in table for 'concat'
table.sort({1, 2}, 3)                     --> error: bad argument #2 to 'sort' (function expected, got number)
table.sort({1, 'x'})                      --> error: attempt to compare
table.sort(setmetatable({}, {__len = function() return math.maxinteger end}))  --> error: bad argument #1 to 'sort' (array too big)

it('sorts as a plain insertion does, with and without an order', function()
	local function plain(t, less)
		local s = {}
		for i, v in ipairs(t) do
			local k = i
			while k > 1 and less(v, s[k - 1]) do
				s[k] = s[k - 1]
				k = k - 1
			end
			s[k] = v
		end
		return s
	end
	math.randomseed(1)
	for n = 0, 300, 7 do
		local t = {}
		for i = 1, n do t[i] = math.random(n // 2 + 1) end
		local up, down = plain(t, function(a, b) return a < b end), plain(t, function(a, b) return a > b end)
		local a, b = table.move(t, 1, n, 1, {}), table.move(t, 1, n, 1, {})
		table.sort(a)
		table.sort(b, function(x, y) return x > y end)
		assert(list(a) == list(up) and list(b) == list(down), n)
	end
end)

it('sorts what is sorted, reversed, equal or nearly so in time n log n', function()
	local n = 20000
	local makers = {function(i) return i end, function(i) return n - i end, function() return 1 end, function(i) return i % 2 end,
		function(i) return i < n / 2 and i or n - i end}
	for k, make in ipairs(makers) do
		local t, calls = {}, 0
		for i = 1, n do t[i] = make(i) end
		table.sort(t, function(a, b)
			calls = calls + 1
			return a < b
		end)
		for i = 2, n do assert(t[i - 1] <= t[i]) end
		assert(calls < 40 * n, k .. ': ' .. calls)
	end
end)

it('finds an order that contradicts itself, or ends', function()
	for n = 3, 60 do
		local t = {}
		for i = 1, n do t[i] = i end
		local good, why = pcall(table.sort, t, function() return true end)
		assert(good or why:find 'invalid order function for sorting', why)
		pcall(table.sort, t, function() return math.random(2) == 1 end)
	end
	local t = {}
	for i = 1, 60 do t[i] = i end
	local good, why = pcall(table.sort, t, function() return true end)
	assert(not good and why == 'invalid order function for sorting', why)
end)

it('goes through metamethods', function()
	local log, real = {}, {3, 1, 2}
	local proxy = setmetatable({}, {__len = function() return #real end, __index = function(_, i) return real[i] end,
		__newindex = function(_, i, v) log[#log + 1] = i real[i] = v end})
	table.sort(proxy)
	assert(list(real) == '1 2 3' and #log > 0)
	table.insert(proxy, 1, 0)
	assert(list(real) == '0 1 2 3' and table.remove(proxy, 1) == 0 and list(real) == '1 2 3')
	assert(table.concat(proxy, ',') == '1,2,3' and list(table.move(proxy, 1, 3, 1, {})) == '1 2 3')
	local good, why = pcall(table.insert, setmetatable({}, {__len = function() return 'x' end}), 1)
	assert(not good and why:find 'object length is not an integer', why)
end)

it('passes errors of comparisons on', function()
	local good, why = pcall(table.sort, {3, 2, 1}, function() error {} end)
	assert(not good and type(why) == 'table')
end)
