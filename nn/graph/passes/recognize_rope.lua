-- SPDX-License-Identifier: MIT
-- Pass recognize_rope: x cos + (-x2, x1) sin, where x1 and x2 are the halves of rows of x, becomes `rope` with cos and sin as tables. Hugging
-- Face's models and what is exported of them spell it out so (rotate_half). The bits stay.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local pattern = internal.import 'nn/graph/pattern'
local any = pattern.any

local function along_rows(node, e)
	local x = e:result_of(node.inputs[1])
	return x and node.attrs.axis == #x.shape
end

local function half(first)
	return function(node, e)
		local width = along_rows(node, e) and e:result_of(node.inputs[1]).shape[node.attrs.axis]
		return math.type(width) == 'integer' and node.attrs.length * 2 == width and node.attrs.start == (first and 1 or width // 2 + 1)
	end
end

local second = {'narrow', 'x', if_ = half(false)}
local turned = {'cat', any {{'neg', second}, {'mul', second, -1}}, {'narrow', 'x', if_ = half(true)}, if_ = along_rows}
-- The first of both products binds x.
local spelled = {'add', {'mul', turned, 'sin'}, {'mul', 'x', 'cos'}}

-- The axis of x that has the positions, and the sizes of a table that is broadcast to x: (positions, d) or (batch, positions, d).
local function places(x, table_shape)
	local more, axis, batch = #x - #table_shape, nil, nil
	if more < 0 or table_shape[#table_shape] ~= x[#x] then return end
	for i = 1, #table_shape - 1 do
		if table_shape[i] ~= 1 then
			if table_shape[i] ~= x[more + i] or batch then return end
			batch, axis = axis, more + i
		end
	end
	if not axis or batch and batch ~= 1 then return end
	return axis, batch and {x[1], x[axis], x[#x]} or {x[axis], x[#x]}
end

-- A constant table of equal halves needs one of them.
local function short(value)
	local width = value:size(2) // 2
	local a, b = value:narrow(2, 1, width), value:narrow(2, width + 1, width)
	return a:eq(b):all():item() and a:contiguous() or value
end

local function is_const(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and not node.value:quantized()
end

-- The edge of a table of these sizes, made once. A constant is shortened where both are (cut).
local function table_of(e, made, ref, sizes, cut, before)
	local key = ref .. (cut and ':cut' or '')
	if made[key] then return made[key] end
	local node, at = core.split(ref)
	local name, given = e:fresh(node .. '.table'), e.nodes[node].results[at]
	local result = {shape = sizes, dtype = given.dtype, alias = not is_const(e, ref) and 1 or nil}
	if is_const(e, ref) then
		local value = e.nodes[ref].value:reshape(table.unpack(sizes))
		if cut then value = short(value) end
		result.shape = {value:size()}
		e:add({name = name, op = 'const', inputs = {}, attrs = {}, results = {result}, value = value, module = before.module, kind = before.kind}, before.name)
	else
		e:add({name = name, op = 'reshape', inputs = {ref}, attrs = {size = sizes}, results = {result}, module = before.module, kind = before.kind}, before.name)
	end
	made[key] = name
	return name
end

-- Whether both tables are constants of equal halves.
local function can_cut(e, found, sizes)
	for _, ref in ipairs {found.cos, found.sin} do
		if #sizes ~= 2 or not is_const(e, ref) or short(e.nodes[ref].value:reshape(table.unpack(sizes))):size(2) == sizes[2] then return false end
	end
	return true
end

local function same_shape(a, b)
	for i = 1, math.max(#a, #b) do
		if a[i] ~= b[i] then return false end
	end
	return true
end

-- Gives the operands and attributes of rope, or nil.
local function rope_of(e, node, made)
	local found = pattern.match(e, node.name, spelled)
	if not found or type(found.x) ~= 'string' or type(found.cos) ~= 'string' or type(found.sin) ~= 'string' then return end
	local x, cos, sin = e:result_of(found.x), e:result_of(found.cos), e:result_of(found.sin)
	local axis, sizes = places(x.shape, cos.shape)
	local floats = x.dtype == 'float32' or x.dtype == 'float64'
	if not axis or not floats or x.spec or not same_shape(cos.shape, sin.shape) or cos.dtype ~= x.dtype or sin.dtype ~= x.dtype then return end
	local cut = can_cut(e, found, sizes)
	return {found.x, table_of(e, made, found.cos, sizes, cut, node), table_of(e, made, found.sin, sizes, cut, node)},
		{style = 'half', axis = axis ~= #x.shape - 1 and axis or nil}
end

return {group = 'layers', text = 'rotary positions that are spelled out become rope', run = function(e, say)
	local present, made = {}, {}
	for _, name in ipairs(e.order) do present[e.nodes[name].op] = true end
	if not pattern.possible(spelled, present) then return end
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local inputs, attrs = nil, nil
		if node.op == 'add' and #node.results == 1 then inputs, attrs = rope_of(e, node, made) end
		if inputs then
			e:change(node, {op = 'rope', inputs = inputs, attrs = attrs})
			say(name, 'add and what it uses become rope')
		end
	end
end}
