-- SPDX-License-Identifier: MIT
-- Elements in another order, or some of them: permute, transpose, t, narrow, select, expand. Of any type.
local _, internal = ...
local axes = internal.import 'export_axes'

-- offset and strides of the result against x, for each op.
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

local ops = {}
for name in next, VIEWS do ops[#ops + 1] = name end

return {ops = ops, emit = function(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local offset, strides = VIEWS[node.op](node.attrs, f.shape, axes.dense(f.shape), g.shape)
	axes.copy(e, node, g.ctype, g.shape, ('%s + %d'):format(x, offset), strides, y)
end}
