-- SPDX-License-Identifier: MIT
-- labels: full
-- Comparisons, tests and where in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, list = tensor.randn(40, 6, 8):round(), {}
for _, op in ipairs {'eq', 'ne', 'lt', 'le', 'gt', 'ge'} do
	list[op] = function(self, a) return a[op](a, self.b) end
	list[op .. ' a number'] = function(_, a) return a[op](a, 1) end
end
for _, op in ipairs {'isnan', 'isfinite', 'isinf'} do list[op] = function(_, a) return a[op](a:log()) end end
list.where = function(self, a) return tensor.where(a:gt(self.b), a, self.c) end
list['where with numbers'] = function(_, a) return tensor.where(a:lt(0), 0, a) end
exported.functions(list, x, {b=tensor.randn(8):round(), c=tensor.randn(6, 1)})
it('of whole numbers', function()
	local ids = tensor.randint {20, 6, low=1, high=5}:to 'int32'
	exported.check('numbers', exported.of(function(self, a) return a:eq(self.b) end, ids, {b=tensor {1, 2, 3, 4, 5, 1, dtype='int32'}}), ids)
end)
it('operands of two types are refused', function()
	local g = exported.of(function(_, a) return a:eq(tensor.ones {6, dtype='int64'}) end, tensor.randn(2, 6))
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...wanted operands of one type for eq, got float and int64_t
end)
