-- SPDX-License-Identifier: MIT
-- tensor.outer and tensor.meshgrid: composed of ops, which graphs then record.
local tensor, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, doc, describe, is_tensor = base.fail, base.doc, base.describe, base.is_tensor

doc {name = 'tensor.outer', usage = 'tensor.outer(a, b)',
	text = [[All products of an element of a and one of b: element (i, j) is a[i] * b[j]. Operands of several axes are flattened.]],
	example = [[print(tensor.outer(tensor{1,2}, tensor{3,4,5}))  --> float32(2, 3)
--> 3 4 5
--> 6 8 10]]}

function tensor.outer(a, b)
	for i = 1, 2 do
		local operand = i == 1 and a or b
		if not is_tensor(operand) then fail('outer: operand %d: wanted a tensor, got %s', i, describe(operand)) end
	end
	return a:reshape(-1, 1) * b:reshape(1, -1)
end

local meshgrid = doc {name = 'tensor.meshgrid', usage = "X, Y = tensor.meshgrid(x, y)  tensor.meshgrid(x, y, {indexing='xy'})",
	text = [[The coordinates of the points of a grid: for vectors of m, n, … elements as many views of shape (m, n, …), each of which repeats its
vector along the other axes. With indexing='xy' the first two axes are exchanged, (n, m, …), as images are indexed.]],
	options = {{'indexing', 'text', "'ij' or 'xy' (default ij)"}},
	example = [[X, Y = tensor.meshgrid(tensor{1,2}, tensor{3,4,5})
print(X:size(1), Y[1])  --> 2 float32(3) 3 4 5]]}

function tensor.meshgrid(...)
	local given = table.pack(...)
	local options = base.options(meshgrid, type(given[given.n]) == 'table' and table.remove(given, given.n) or nil)
	local indexing, sizes, grid = options.indexing or 'ij', {}, {}
	if indexing ~= 'ij' and indexing ~= 'xy' then fail("meshgrid: indexing: wanted 'ij' or 'xy', got '%s'", indexing) end
	if #given < 1 then fail 'meshgrid: operand 1: wanted a tensor, got nothing' end
	for i, x in ipairs(given) do
		if not is_tensor(x) or x:dim() > 1 then fail('meshgrid: operand %d: wanted a tensor with one axis, got %s', i, describe(x)) end
		sizes[i] = x:nelem()
	end
	local function axis_of(i) return indexing == 'xy' and #given > 1 and i <= 2 and 3 - i or i end
	local shape = {}
	for i, n in ipairs(sizes) do shape[axis_of(i)] = n end
	for i, x in ipairs(given) do
		local own = {}
		for k = 1, #given do own[k] = k == axis_of(i) and sizes[i] or 1 end
		grid[i] = x:reshape(own):expand(shape)
	end
	return table.unpack(grid)
end
