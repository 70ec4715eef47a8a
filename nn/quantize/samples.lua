-- SPDX-License-Identifier: MIT
-- The calibration data of a block as rows: what the block reads and what the float block gives for some rows, drawn at random. Batches
-- whose rows the graph does not name are taken whole.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local is_tensor = base.is_tensor

local Samples = {}
Samples.__index = Samples

-- The axes of the rows in the operands of batch i, or nil.
local function axes_of(block, i, operands)
	local part = block.run.parts[i][block.number]
	if not part.graph or not part.rows or #part.graph.inputs ~= #operands then return end
	local axes, rows = {}, nil
	for k, x in ipairs(operands) do
		if not is_tensor(x) then return end
		axes[k] = part.graph.axes[part.graph.inputs[k]] or false
		local n = axes[k] and x:size(axes[k])
		if n and rows and n ~= rows then return end
		rows = rows or n
	end
	local y = block.float[i]
	if not rows or not is_tensor(y) or y:size(part.rows) ~= rows then return end
	return axes, rows, part.rows
end

-- Rows of batches with the same sizes can be put together.
local function key_of(part, operands, axes)
	local words = {tostring(part)}
	for k, x in ipairs(operands) do
		local sizes = {x:size()}
		if axes[k] then sizes[axes[k]] = 0 end
		words[#words + 1] = x:dtype() .. table.concat(sizes, ' ')
	end
	return table.concat(words, ',')
end

function Samples.of(block)
	local s = setmetatable({block = block, rows = {}, batches = {}}, Samples)
	for i in ipairs(block.run.inputs) do
		local operands = block:operands(i, block.values[i])
		local axes, n, out = axes_of(block, i, operands)
		s.batches[i] = {operands = operands, axes = axes, out = out, key = axes and key_of(block.run.parts[i][block.number], operands, axes)}
		for r = 1, n or 1 do s.rows[#s.rows + 1] = {i, axes and r} end
	end
	return s
end

local function joined(list, axis)
	if #list == 1 then return list[1] end
	return tensor.cat(list, {axis = axis})
end

-- A group of rows as {batch=, operands=, float=}.
local function group_of(s, rows)
	local i = rows[1][1]
	local b = s.batches[i]
	if not b.axes then return {batch = i, operands = b.operands, float = s.block.float[i]} end
	local operands, floats = {}, {}
	for k, x in ipairs(b.operands) do
		local list = {}
		for j, row in ipairs(rows) do list[j] = b.axes[k] and s.batches[row[1]].operands[k]:narrow(b.axes[k], row[2], 1) end
		operands[k] = b.axes[k] and joined(list, b.axes[k]) or x
	end
	for j, row in ipairs(rows) do floats[j] = s.block.float[row[1]]:narrow(b.out, row[2], 1) end
	return {batch = i, operands = operands, float = joined(floats, b.out)}
end

-- n of the numbers 1 to m, in a random order.
local function some(m, n)
	local order = select(2, tensor.rand(m):sort())
	return order:narrow(1, 1, math.min(n, m)):totable()
end

-- The groups of n rows, each of one size; all of them if there are no more. tensor.seed decides which.
function Samples:draw(n)
	if n >= #self.rows and self.all then return self.all end
	local groups, of = {}, {}
	for _, at in ipairs(some(#self.rows, n)) do
		local row = self.rows[at]
		local key = self.batches[row[1]].key or row[1]
		if not of[key] then
			of[key] = {}
			groups[#groups + 1] = of[key]
		end
		table.insert(of[key], row)
	end
	for g, rows in ipairs(groups) do groups[g] = group_of(self, rows) end
	if n >= #self.rows then self.all = groups end
	return groups
end

return Samples
