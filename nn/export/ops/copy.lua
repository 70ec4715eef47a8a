-- SPDX-License-Identifier: MIT
-- Ops that reorder, select or repeat elements of any type: permute, transpose, t, narrow, slice, select, expand, tile,
-- repeatinterleave, diag, depthtospace, spacetodepth.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local sizes_of = internal.import 'nn/graph/size'
internal.import 'nn/export/ops/place' -- fill, chosen

-- Offset and strides in x of the result of each op.
local VIEWS = {}
function VIEWS.permute(a, _, s)
	local made = {}
	for i, axis in ipairs(a.order) do made[i] = s[axes.at(axis, #s)] end
	return 0, made
end
function VIEWS.transpose(a, _, s)
	local x, y = axes.at(a.a, #s), axes.at(a.b, #s)
	local made = table.move(s, 1, #s, 1, {})
	made[x], made[y] = s[y], s[x]
	return 0, made
end
function VIEWS.t(_, _, s) return 0, #s < 2 and s or {s[2], s[1]} end
function VIEWS.narrow(a, shape, s)
	local axis, start = axes.at(a.axis, #s), a.start
	if start < 0 then start = shape[axis] + 1 + start end
	return (start - 1) * s[axis], s
end
function VIEWS.slice(a, shape, s)
	local axis, made = axes.at(a.axis, #s), table.move(s, 1, #s, 1, {})
	local step = a.step or 1
	local first = a.first or step < 0 and -1 or 1
	if first < 0 then first = shape[axis] + 1 + first end
	made[axis] = step * s[axis]
	return (first - 1) * s[axis], made
end
function VIEWS.select(a, shape, s)
	local axis, index = axes.at(a.axis, #s), a.index
	if index < 0 then index = shape[axis] + 1 + index end
	local made = table.move(s, 1, #s, 1, {})
	table.remove(made, axis)
	return (index - 1) * s[axis], made
end
function VIEWS.expand(_, shape, s, result)
	local made = {}
	for i = 1, #result do
		local at = i - #result + #shape
		made[i] = at >= 1 and shape[at] == result[i] and s[at] or 0
	end
	return 0, made
end

local copy = {ops = {'tile', 'repeatinterleave', 'diag', 'depthtospace', 'spacetodepth'}}
for name in next, VIEWS do copy.ops[#copy.ops + 1] = name end

-- Each axis of the result is split into an axis of repetitions and one of x.
local function tile(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local own, sizes, from = axes.dense(f.shape), {}, {}
	for i, n in ipairs(g.shape) do
		local at = i - #g.shape + #f.shape
		local size = f.shape[at] or 1
		table.move({size == 0 and 0 or n // size, size}, 1, 2, 2 * i - 1, sizes)
		table.move({0, own[at] or 0}, 1, 2, 2 * i - 1, from)
	end
	axes.copy(e, node, g.ctype, sizes, x, from, y)
end

-- Sizes of the six axes of images whose channels are pixels of squares, or the other way, and their order in the result
-- (tensor/ops/depthtospace.c).
local function squares(node, shape)
	local n, b, crd = 1, node.attrs.block, node.attrs.mode == 'crd'
	for i = 1, #shape - 3 do n = n * shape[i] end
	local c, h, w = table.unpack(shape, #shape - 2)
	if node.op == 'spacetodepth' then return {n, c, h // b, b, w // b, b}, crd and {1, 2, 4, 6, 3, 5} or {1, 4, 6, 2, 3, 5} end
	if crd then return {n, c // (b * b), b, b, h, w}, {1, 2, 5, 3, 6, 4} end
	return {n, b, b, c // (b * b), h, w}, {1, 4, 5, 2, 6, 3}
end

-- Codes stay codes.
local function blocks(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node, nil, nil, f.scale and f or nil)
	local six, order = squares(node, f.shape)
	local dense, sizes, strides = axes.dense(six), {}, {}
	for i, axis in ipairs(order) do sizes[i], strides[i] = six[axis], dense[axis] end
	axes.copy(e, node, g.ctype, sizes, x, strides, y)
end

local function repeated(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node, nil, nil, f.scale and f or nil)
	local times, rows, n, inner = node.inputs[2], 1, f.count, 1
	if node.attrs.axis then
		local axis = axes.at(node.attrs.axis, #f.shape)
		n = f.shape[axis]
		for i = 1, axis - 1 do rows = rows * f.shape[i] end
		for i = axis + 1, #f.shape do inner = inner * f.shape[i] end
	end
	if g.count == 0 then return end
	if type(times) == 'number' then
		return axes.copy(e, node, g.ctype, {rows, n, times, inner}, x, {n * inner, inner, 0, 1}, y)
	end
	local given, at = e:constant(node, 2), {}
	if not given then base.fail("export: node '%s': times: wanted a number or a constant tensor", node.name) end
	local counts = given:to('int64'):expand(n):totable()
	for i, count in ipairs(counts) do
		for _ = 1, count do at[#at + 1] = i - 1 end
	end
	e:call('%s(%s, %d, %d, %d, %d, %s, %s);', e:part('chosen', {type = g.ctype}), x, rows, n, #at, inner,
		e:array(node.name .. '_at', 'int32_t', at, 'indices'), y)
end

-- Offset, length and stride of the diagonal of an (m, n) matrix.
local function diagonal_of(m, n, k)
	local right, down = math.max(0, math.min(n, k)), math.max(0, math.min(m, -k))
	return down * n + right, math.max(0, math.min(m - down, n - right)), n + 1
end

local function diag(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local k, rank = node.attrs.diagonal or 0, #f.shape
	if g.count == 0 then return end
	if rank == 1 then
		local at, n, step = diagonal_of(g.shape[1], g.shape[2], k)
		e:call('%s(%s, %d, 0);', e:part('fill', {type = g.ctype}), y, g.count)
		return axes.copy(e, node, g.ctype, {n}, x, nil, axes.moved(y, at), {step})
	end
	local m, columns = f.shape[rank - 1], f.shape[rank]
	local at, n, step = diagonal_of(m, columns, k)
	axes.copy(e, node, g.ctype, {f.count // (m * columns), n}, axes.moved(x, at), {m * columns, step}, y)
end

local BY = {tile = tile, repeatinterleave = repeated, diag = diag, depthtospace = blocks, spacetodepth = blocks}

function copy.emit(e, node)
	if BY[node.op] then return BY[node.op](e, node) end
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local offset, strides = VIEWS[node.op](sizes_of.at(node.attrs, e.batch), f.shape, axes.dense(f.shape), g.shape)
	axes.copy(e, node, g.ctype, g.shape, axes.moved(x, offset), strides, y)
end

return copy
