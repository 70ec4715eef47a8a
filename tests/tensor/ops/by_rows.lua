-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Every op that says it computes row by row (elementwise or by_rows in tensor.ops and nn.ops): an op of some rows gives the bits that
-- the op of all rows has there. An op is called with each set of operands below that it takes, and takes at least one of them.
local same = dofile 'tests/tools/same.lua'
tensor.seed(5)

local ROWS = 131
local PARTS = {{1, 32}, {33, 99}, {52, 131}} -- 32 rows at least: sums of floats
local x, y, z = tensor.randn(ROWS, 6, 9, 7), tensor.randn(ROWS, 6, 9, 7), tensor.rand(ROWS, 1, 9, 1)
local positive = tensor.rand(ROWS, 6, 9, 7) * 0.8 + 0.1
local whole, truth = (tensor.rand(ROWS, 6, 9, 7) * 30 + 1):to 'int32', x:gt(0)
local square = tensor.randn(ROWS, 6, 4, 4) -- small images have an algorithm of their own
local flat = tensor.randn(ROWS, 70)
local one = tensor.randn(6)
-- operands, how many of them have rows, and the arguments behind them
local sets = {
	{{x}, 1}, {{positive}, 1}, {{whole}, 1}, {{truth}, 1}, {{x, y}, 2}, {{x, z}, 2}, {{truth, truth}, 2}, {{whole, whole}, 2},
	{{truth, x, y}, 3}, {{x, 2.5}, 1}, {{x, one:view(6, 1, 1)}, 1}, {{x}, 1, 0.25}, {{x}, 1, -1, 1},
	{{x, tensor.randn(8, 6, 3, 3), tensor.randn(8)}, 1, {pad = 1}}, {{x, tensor.randn(8, 3, 3, 3)}, 1, {groups = 2, stride = 2, act = 'relu'}},
	{{x, tensor.randn(8, 6, 1, 1)}, 1}, {{square, tensor.randn(40, 6, 3, 3)}, 1, {pad = 1}}, {{square, tensor.randn(6, 1, 3, 3)}, 1, {pad = 1, groups = 6}},
	{{flat, tensor.randn(33, 70), tensor.randn(33)}, 1}, {{flat, tensor.randn(1, 70)}, 1, {act = 'gelu'}}, {{x, tensor.randn(5, 7)}, 1},
	{{x, one, one, one, one:abs()}, 1}, {{x}, 1, 3, {stride = 2, pad = 1}}, {{x}, 1, -1, 54, 7}, {{flat}, 1, -1, 7, 10},
	{{tensor.randn(ROWS, 1, 9)}, 1}, {{tensor.randn(ROWS, 4, 6, 2)}, 1, 2}, {{x}, 1, 3}, {{x}, 1, {1, 2, 0, 3}},
}

local function is_tensor(value) return type(value) == 'userdata' end

-- The results of fn for rows first to last: a list, or nil.
local function call(fn, set, first, last)
	local list = {}
	for i, operand in ipairs(set[1]) do
		list[i] = i <= set[2] and operand:narrow(1, first, last - first + 1) or operand
	end
	for i = 3, #set do list[#list + 1] = set[i] end
	local results = table.pack(pcall(fn, table.unpack(list)))
	return results[1] and is_tensor(results[2]) and {table.unpack(results, 2, results.n)} or nil
end

local function equal(a, b) return table.concat({a:size()}, ' ') == table.concat({b:size()}, ' ') and same(a, b) end

for module, list in pairs {tensor = tensor.ops(), nn = nn.ops()} do
	for _, op in ipairs(list) do
		if op.elementwise or op.by_rows then
			it(module .. '.' .. op.name, function()
				local taken = 0
				for _, set in ipairs(sets) do
					local fn = op.method and x[op.name] or _G[module][op.name]
					local all = (op.elementwise or set[2] == 1) and call(fn, set, 1, ROWS)
					if all and all[1]:dim() > 0 and all[1]:size(1) == ROWS then
						taken = taken + 1
						for _, part in ipairs(PARTS) do
							local some = call(fn, set, part[1], part[2])
							assert(some and #some == #all)
							for i, result in ipairs(all) do
								assert(equal(some[i], result:narrow(1, part[1], part[2] - part[1] + 1)),
									('set %d, rows %d to %d'):format(taken, part[1], part[2]))
							end
						end
					end
				end
				assert(taken > 0, 'takes none of the sets of operands: add one')
			end)
		end
	end
end
