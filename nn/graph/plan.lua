-- SPDX-License-Identifier: MIT
-- g:plan: one block of memory for all values between input and output. A buffer is live from the node that writes it
-- to the last one that reads it or a view of it; buffers that are live at the same time do not overlap. Placement is
-- a one-dimensional packing problem: several orders are tried, each buffer gets the lowest gap that is free during
-- its lifetime, and the smallest block wins. The lower bound is the largest sum of buffers that are live at one node.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local report = internal.import 'interp/prelude/report'
local methods, method = core.methods, core.method
local plan = {}

local ALIGN, TRIES = 64, 60

---------------------------------------------------------------- buffers

-- The buffer of an operand that the result may overwrite: same size and dtype, not used afterwards.
local function in_place(g, node, at, bytes, b, of, last)
	local info, me = ops.info(node.op), node.results[1]
	if not (info.inplace and info.elementwise) or node.mode then return end
	for _, ref in ipairs(node.inputs) do
		local buffer = type(ref) == 'string' and of[ref]
		local x = buffer and g:result_of(ref)
		if buffer and buffer.ref == ref and last[buffer] == at and not x.spec and x.dtype == me.dtype and
			ops.bytes(x, b) == bytes and not buffer.output then
			return buffer
		end
	end
end

-- Position of the last node that reads each buffer; needs `of` to be complete.
local function last_uses(g, of)
	local last = {}
	for at, name in ipairs(g.order) do
		for _, ref in ipairs(g.nodes[name].inputs) do
			local buffer = type(ref) == 'string' and of[ref]
			if buffer then last[buffer] = at end
		end
		for k = 1, #g.nodes[name].results do
			local buffer = of[core.ref(name, k)]
			if buffer then last[buffer] = math.max(last[buffer] or 0, at) end
		end
	end
	core.each_output(g, function(leaf)
		local buffer = of[leaf.ref]
		if buffer then last[buffer], buffer.output = #g.order, true end
	end)
	return last
end

-- Offsets are multiples of ALIGN; those of packed dtypes also of the bytes of a group.
local function align_of(dtype)
	local d = quant.dtype(dtype)
	return ALIGN * (d.bits < 8 and d.packed * d.bits // 8 or 1)
end

-- ref -> buffer {ref=, bytes=, align=, first=}. Results that alias an operand have its buffer; inputs and constants have none.
local function own_buffers(g, b)
	local of, list = {}, {}
	for at, name in ipairs(g.order) do
		local node = g.nodes[name]
		for k, result in ipairs(node.results) do
			local ref = core.ref(name, k)
			if result.alias then
				of[ref] = of[node.inputs[result.alias]]
			elseif node.op ~= 'const' and node.op ~= 'input' then
				of[ref] = {ref = ref, node = node, bytes = ops.bytes(result, b), align = align_of(result.dtype), first = at, note = ''}
				list[#list + 1] = of[ref]
			end
		end
	end
	return of, list
end

-- Joins buffers that are written in place with the buffer that they overwrite.
local function share_in_place(g, b, of, list)
	local last, joined = last_uses(g, of), {}
	for _, buffer in ipairs(list) do
		local old = #buffer.node.results == 1 and in_place(g, buffer.node, buffer.first, buffer.bytes, b, of, last)
		if old then
			for ref, other in next, of do
				if other == buffer then of[ref] = old end
			end
			last[old] = last[buffer]
			old.output = old.output or buffer.output
			old.ref = buffer.ref -- the value that it holds from here on
			joined[buffer] = true
		end
	end
	local kept = {}
	for _, buffer in ipairs(list) do
		if not joined[buffer] then
			buffer.last = last[buffer]
			kept[#kept + 1] = buffer
		end
	end
	return kept
end

---------------------------------------------------------------- placing

local function aligned(n) return (n + ALIGN - 1) // ALIGN * ALIGN end

-- The lowest offset at which the buffer overlaps no placed buffer that is live at the same time.
local function lowest(buffer, placed)
	local around = {}
	for _, other in ipairs(placed) do
		if other.first <= buffer.last and buffer.first <= other.last then around[#around + 1] = other end
	end
	table.sort(around, function(x, y) return x.offset < y.offset end)
	local at = 0
	for _, other in ipairs(around) do
		if at + aligned(buffer.bytes) <= other.offset then break end
		at = math.max(at, (other.offset + other.bytes + buffer.align - 1) // buffer.align * buffer.align)
	end
	return at
end

local function place(list)
	local placed, peak = {}, 0
	for i, buffer in ipairs(list) do
		buffer.offset = lowest(buffer, placed)
		placed[i] = buffer
		peak = math.max(peak, buffer.offset + aligned(buffer.bytes))
	end
	return peak
end

-- Largest sum of buffers (rounded up to ALIGN) that are live at one node: a lower bound for every plan.
local function bound(list, n)
	local sum, best, where = {}, 0, 1
	for at = 1, n do sum[at] = 0 end
	for _, buffer in ipairs(list) do
		for at = buffer.first, buffer.last do sum[at] = sum[at] + aligned(buffer.bytes) end
	end
	for at = 1, n do
		if sum[at] > best then best, where = sum[at], at end
	end
	return best, where
end

local function area(buffer) return buffer.bytes * (buffer.last - buffer.first + 1) end

local ORDERS = {
	function(x, y) return x.bytes > y.bytes end,
	function(x, y) return area(x) > area(y) end,
	function(x, y) return x.last - x.first > y.last - y.first end,
	function(x, y) return x.first < y.first end,
}

local function sorted(list, before)
	local copy = table.move(list, 1, #list, 1, {})
	table.sort(copy, function(x, y)
		if before(x, y) ~= before(y, x) then return before(x, y) end
		return x.first < y.first or x.first == y.first and x.ref < y.ref
	end)
	return copy
end

-- Exchanges two entries of the list, chosen by pseudo-random numbers that are the same in every run.
local function shuffled(list, seed)
	local copy = table.move(list, 1, #list, 1, {})
	for _ = 1, 2 do
		seed = (seed * 1103515245 + 12345) % 2147483648
		local i = seed // 65536 % #copy + 1
		seed = (seed * 1103515245 + 12345) % 2147483648
		local k = seed // 65536 % #copy + 1
		copy[i], copy[k] = copy[k], copy[i]
	end
	return copy, seed
end

local function best_placing(list, least)
	local best, best_peak, seed = nil, math.huge, 1
	local function try(candidate)
		local peak = place(candidate)
		if peak < best_peak then best, best_peak = candidate, peak end
	end
	for _, before in ipairs(ORDERS) do try(sorted(list, before)) end
	for _ = 1, TRIES do
		if best_peak <= least or #list < 3 then break end
		local candidate
		candidate, seed = shuffled(best, seed)
		try(candidate)
	end
	return place(best or {}) or 0
end

-- Buffers with offsets for a batch of b, the buffer of each ref, the peak, and the bound with its node.
function plan.make(g, b)
	local of, list = own_buffers(g, b)
	local kept = share_in_place(g, b, of, list)
	local least, where = bound(kept, #g.order)
	local peak = best_placing(kept, least)
	return {of = of, buffers = kept, peak = peak, bound = least, where = g.order[where]}
end

---------------------------------------------------------------- the report

local options = method('plan', 'g:plan()  g:plan{batch=8}',
	[[Lays out all values between input and output in one block of memory and returns a report. Columns: node, first and last (positions
of the node that writes the buffer and of the last that reads it), bytes, offset (a multiple of 64), inplace (nodes that overwrite their
operand there), views (nodes whose results are views of it). Values that are never live at the same time share memory. The note has the
size of the block, the largest sum of values that are live at one node (a lower bound) and the size without sharing. Inputs and
constants are not counted; buffers are rounded up to multiples of 64 bytes. batch= (default 1). g:run(x, {arena=true}) uses exactly this
layout.]],
	[[m = nn.Sequential{nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16), nn.Linear(16, 4)}
g = graph.trace(m, tensor.ones(1, 16))
r = g:plan()
print(#r, r[1].offset, r[1].inplace)  --> 3 0 relu1]],
	{{'batch', 'integer', 'rows (default 1)'}})
function methods.plan(g, o)
	core.expect(g, 'plan')
	o = base.options(options, o)
	local b = o.batch or 1
	if b < 1 then base.fail('plan: batch: wanted an integer of at least 1, got %s', base.describe(b)) end
	local p = plan.make(g, math.tointeger(b))
	local rows, sum = {columns = {'node', 'first', 'last', 'bytes', 'offset', 'inplace', 'views'}}, 0
	table.sort(p.buffers, function(x, y) return x.first < y.first or x.first == y.first and x.offset < y.offset end)
	for _, buffer in ipairs(p.buffers) do
		local inside, views = {}, {}
		for _, name in ipairs(g.order) do
			for k, result in ipairs(g.nodes[name].results) do
				local ref = core.ref(name, k)
				if p.of[ref] == buffer and ref ~= core.ref(buffer.node.name, 1) and buffer.node ~= g.nodes[name] then
					table.insert(result.alias and views or inside, ref)
				end
			end
		end
		sum = sum + aligned(buffer.bytes)
		rows[#rows + 1] = {node = buffer.node.name, first = buffer.first, last = buffer.last, bytes = buffer.bytes, offset = buffer.offset,
			inplace = table.concat(inside, ' '), views = table.concat(views, ' ')}
	end
	rows.note = ("%d bytes; at node '%s' %d bytes are live at the same time, all buffers take %d"):format(p.peak, p.where or '', p.bound, sum)
	return report(rows), p.peak, p.bound
end

-- For g:run{arena=true}: a function that moves the results of a node to their places in one block.
function plan.arena(g, x, read_inputs)
	local values, b = read_inputs(g, x)
	local p, first = plan.make(g, b), values[g.inputs[1]]
	local block = tensor.zeros {math.max(ALIGN, p.peak), dtype = 'uint8', device = first and first:device() or core.device(g)}
	return function(node, results)
		local placed = {}
		for k, result in ipairs(results) do
			local buffer, alias = p.of[core.ref(node.name, k)], node.results[k].alias
			placed[k] = buffer and not alias and internal.place(block, buffer.offset, result) or result
		end
		return placed
	end
end

return plan
