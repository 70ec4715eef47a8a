-- SPDX-License-Identifier: MIT
-- Other shapes of the same elements.
local ops = {}

function ops.Reshape(n, x, shape)
	local list, sizes = n:given('shape', 'list of integers') or n:list(shape, 'shape'), {}
	local zero = n:attr('allowzero', 0) ~= 0
	for i, size in ipairs(list) do sizes[i] = size == 0 and not zero and (x:size(i) or 0) or size end
	if #sizes == 0 then return x:reshape {} end
	return x:reshape(table.unpack(sizes))
end

function ops.Flatten(n, x)
	local axis, rank, rows, columns = n:attr('axis', 1), x:dim(), 1, 1
	axis = axis < 0 and axis + rank or axis
	for i, size in ipairs(n.shape(x)) do
		if i <= axis then rows = rows * size else columns = columns * size end
	end
	return x:reshape(rows, columns)
end

function ops.Transpose(n, x)
	local perm, order = n:given('perm', 'list of integers'), {}
	for i = 1, x:dim() do order[i] = perm and n:axis(perm[i] or -99, x:dim()) or x:dim() - i + 1 end
	for i = 1, #order do
		if order[i] ~= i then return x:permute(table.unpack(order)) end
	end
	return x
end

function ops.Squeeze(n, x, axes)
	local list = n:axes(axes, x:dim())
	if not list then return x:squeeze() end
	table.sort(list, function(a, b) return a > b end)
	for _, axis in ipairs(list) do x = x:squeeze(axis) end
	return x
end

function ops.Unsqueeze(n, x, axes)
	local given = n:given('axes', 'list of integers') or n:list(axes, 'axes')
	local list = {}
	for i, axis in ipairs(given) do list[i] = n:axis(axis, x:dim() + #given) end
	table.sort(list)
	for _, axis in ipairs(list) do x = x:unsqueeze(axis) end
	return x
end

function ops.Expand(n, x, shape)
	local list = n:list(shape, 'shape')
	local sizes, rank, same = {}, math.max(#list, x:dim()), #list <= x:dim()
	local was = {x:size()}
	for i = 1, rank do
		local a, b = was[i - rank + #was] or 1, list[i - rank + #list] or 1
		sizes[i] = a == 1 and b or a
		same = same and sizes[i] == a
	end
	same = same and not (n.known(x) and n.machine.dynamic[shape]) -- the batch may be 1 in this trace only
	return (rank == 0 or same) and x or x:expand(table.unpack(sizes))
end

return {ops = ops, codes = {'Reshape', 'Flatten', 'Transpose', 'Squeeze', 'Unsqueeze', 'Expand'}}
