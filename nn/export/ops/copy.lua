-- SPDX-License-Identifier: MIT
-- Ops that reorder, select or repeat elements of any type: permute, transpose, t, narrow, select, expand, split, tile.
local _, internal = ...
local axes = internal.import 'nn/export/axes'

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

local copy = {ops = {'split', 'tile'}}
for name in next, VIEWS do copy.ops[#copy.ops + 1] = name end

-- Pieces along an axis.
local function split(e, node)
	local x, f = e:input(node, 1, 'plain')
	local strides = axes.dense(f.shape)
	local axis = axes.at(node.attrs.axis or 1, #f.shape)
	for i = 1, #node.results do
		local y, g = e:output(node, nil, i)
		axes.copy(e, node, g.ctype, g.shape, axes.moved(x, (i - 1) * node.attrs.size * strides[axis]), strides, y)
	end
end

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

function copy.emit(e, node)
	if node.op == 'split' then return split(e, node) end
	if node.op == 'tile' then return tile(e, node) end
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local offset, strides = VIEWS[node.op](node.attrs, f.shape, axes.dense(f.shape), g.shape)
	axes.copy(e, node, g.ctype, g.shape, axes.moved(x, offset), strides, y)
end

return copy
