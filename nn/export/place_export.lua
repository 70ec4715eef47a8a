-- SPDX-License-Identifier: MIT
-- Elements put into another place: pad fills a border around x, flip turns axes round. In any layout, of any type; the border of
-- codes is their zero point.
local _, internal = ...
local axes = internal.import 'export_axes'
local base = internal.import 'base'
local parts = internal.import 'export_parts'

parts.add('fill', {fields = {'type'}, text = [==[
static void ${name}(${type} *y, int32_t n, ${type} value)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = value;
}
]==]})

-- A list by axis in the order in which the axes lie in memory.
local function in_memory(list, layout)
	if layout ~= 'nhwc' then return list end
	return {list[1], list[3], list[4], list[2]}
end

-- How many elements stand before x along each axis; the sizes come in pairs from the last axis on.
local function before_of(sizes, rank)
	local before = {}
	for i = 1, rank do before[i] = 0 end
	if #sizes == 1 then sizes = {sizes[1], sizes[1]} end
	for i = 1, #sizes, 2 do before[rank - (i - 1) // 2] = sizes[i] end
	return before
end

local function border(e, node, f, g, y)
	local value = node.attrs.value or 0
	if f.scale and value ~= 0 then base.fail("export: node '%s': value: wanted 0 around codes, got %g", node.name, value) end
	local text = f.scale and tostring(f.zero) or f.ctype == 'float' and e.float(e.single(value)) or ('%d'):format(value)
	e:call('%s(%s, %d, %s);', e:part('fill', {type = g.ctype}), y, g.count, text)
end

return {ops = {'pad', 'flip'}, emit = function(e, node)
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout, nil, f.scale and f or nil)
	local strides, at = axes.dense(in_memory(g.shape, layout)), 0
	if node.op == 'pad' then
		for i, n in ipairs(in_memory(before_of(node.attrs.sizes, #g.shape), layout)) do at = at + n * strides[i] end
		border(e, node, f, g, y)
	else
		local turned = {}
		for i = 1, #g.shape do turned[i] = false end
		for _, axis in ipairs(node.attrs.axes) do turned[axes.at(axis, #g.shape)] = true end
		for i, turn in ipairs(in_memory(turned, layout)) do
			if turn then
				at = at + (in_memory(g.shape, layout)[i] - 1) * strides[i]
				strides[i] = -strides[i]
			end
		end
	end
	axes.copy(e, node, g.ctype, in_memory(f.shape, layout), x, nil, ('%s + %d'):format(y, at), strides)
end}
