-- SPDX-License-Identifier: MIT
-- Decides whether a run of many rows (images) goes through the graph some rows at a time, so that what one node leaves is still in the
-- caches when the next one reads it (ResNet20, 200 images, one thread, AVX-512: 99.8 ms at once, 80.7 by 33 or 34).
--
-- Graphs qualify whose nodes give float32 and whose ops compute row by row (QL_ELEMENTWISE and QL_BY_ROWS of tensor/op.h) from weights
-- that are small beside the rows of a slice, as each slice reads them again. Values are those of one run, and so are counts of the
-- ledger: a node counts once, however many slices it ran in, for each path and kernel that it took.
local _, internal = ...
local ops = internal.import 'nn/graph/ops'
local size = internal.import 'nn/graph/size'
local slices = {}

local LEAST = 32      -- rows of a slice: see QL_BY_ROWS
local BYTES = 8 << 20 -- of the operands and the result of a node, at most: larger ones are in no cache anyway
local READS = 2       -- numbers of a slice for each weight of a node, at least

local function is_batch(n) return size.is_affine(n) and n.per == 1 and n.plus == 0 end

-- Elements of a row of a value whose first axis is the batch and that is float32; nil for other values.
local function row_of(result)
	local shape = result and result.shape
	if not shape or result.dtype ~= 'float32' or result.spec or not is_batch(shape[1] or 0) then return end
	local n = 1
	for i = 2, #shape do
		if size.is_affine(shape[i]) then return end
		n = n * shape[i]
	end
	return n
end

-- A border along the axis of rows, which may keep their number.
local function moves_rows(node)
	local sizes = node.attrs.sizes
	return sizes and #sizes // 2 >= #node.results[1].shape
end

-- Whether a node computes row by row from these operands, those that are no constants; `first`: only operand 1 is one.
local function by_rows(node, rows, first)
	local info = ops.info(node.op)
	if info.by_rows then return first and not node.attrs.training and not moves_rows(node) end
	for _, row in ipairs(rows) do
		if #row.shape ~= #node.results[1].shape then return false end
	end
	return info.elementwise
end

-- The bytes of a row of the largest node; nil: the graph does not qualify.
local function bytes_of(g)
	local most = 1
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if node.op ~= 'const' then
			local n, rows, weights, first = #node.results == 1 and row_of(node.results[1]), {}, 0, true
			if not n then return end
			for i, ref in ipairs(node.inputs) do
				local from = type(ref) == 'string' and g.nodes[ref]
				if from and from.op == 'const' then
					if from.value:quantized() then return end
					weights = weights + from.value:nelem()
				elseif from then
					n = n + row_of(from.results[1])
					rows[#rows + 1], first = from.results[1], first and i == 1
				elseif not math.type(ref) then
					return
				end
			end
			if node.op ~= 'input' and not by_rows(node, rows, first and #rows == 1) or weights * READS > n * LEAST then return end
			most = math.max(most, 4 * n)
		end
	end
	for _, tree in ipairs(g.outputs) do
		if not tree.ref or g.nodes[tree.ref].op == 'const' then return end
	end
	return most
end

local known = setmetatable({}, {__mode = 'k'}) -- graph -> bytes_of, or false

-- Into how many slices a run of b rows of these inputs is divided; 1: it is not.
function slices.count(g, values, b)
	if b < 2 * LEAST or internal.recorded() then return 1 end
	for _, name in ipairs(g.inputs) do
		if values[name]:device() ~= 'cpu' then return 1 end
	end
	if known[g] == nil then known[g] = bytes_of(g) or false end
	return known[g] and known[g] * LEAST <= BYTES and b // LEAST or 1
end

-- run(values, b) for each of n slices; returns a function ref -> tensor for the outputs.
function slices.run(g, values, b, n, run)
	local parts, before, most = {}, internal.ledger_counts(), {}
	for o in ipairs(g.outputs) do parts[o] = {} end
	for i = 1, n do
		local first, stop, given = (i - 1) * b // n, i * b // n, {}
		for name, value in next, values do given[name] = value:narrow(1, first + 1, stop - first) end
		internal.ledger_counts(before)
		local get = run(given, stop - first)
		for row, count in ipairs(internal.ledger_counts()) do most[row] = math.max(most[row] or 0, count) end
		for o, tree in ipairs(g.outputs) do parts[o][i] = get(tree.ref) end
	end
	local joined = {}
	for o, tree in ipairs(g.outputs) do
		if not joined[tree.ref] then
			joined[tree.ref] = tensor.cat(parts[o], 1)
			internal.take_origin(joined[tree.ref], parts[o][1])
		end
	end
	internal.ledger_counts(most)
	return function(ref) return joined[ref] end
end

return slices
