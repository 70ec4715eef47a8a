-- SPDX-License-Identifier: MIT
-- Puts the tensors of a file into a model, under the names of an architecture. A row of its list `names` has the model's name and
-- the other programs' names, in which %d is the number of a block (from 1 here, from 0 there), and `turn`, what is done to the tensor:
--   {'block%d.attention.query.weight', huggingface = 'model.layers.%d.self_attn.q_proj.weight', gguf = 'blk.%d.attn_q.weight', turn = pairs}
-- turn(tensor, options, back) gives the tensor in the form of the model, or, with back, in that of the file.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local files = internal.import 'nn/base/files'
local module = internal.import 'nn/base/module'
local place = {}

-- The row and the number of a block for a name of the model.
local function row_of(rows, name)
	local number = name:match '^block(%d+)%.'
	local row = rows[number and name:gsub('^block%d+', 'block%%d') or name]
	return row, number and tonumber(number) - 1
end

local function indexed(names)
	local rows = {}
	for _, row in ipairs(names) do rows[row[1]] = row end
	return rows
end

-- The rows in that order, counted from 1.
local function pairs_order(rows, width, back)
	local list, half = {dtype = 'int64'}, width // 2
	for i = 0, rows - 1 do
		local head, at = i // width * width, i % width
		list[i + 1] = 1 + head + (back and at % half * 2 + at // half or at % 2 * half + at // 2)
	end
	return list
end

-- Rows of a row with heads * size rows, whose pairs are the halves of a head (Hugging Face), to neighbouring pairs (nn.rope); or back.
function place.pairs(x, heads, back)
	local rows, sizes = x:size(1), {x:size()}
	local width = rows // heads
	if x:quantized() then return x:indexselect(1, tensor(pairs_order(rows, width, back)):to(x:device())) end
	local split = back and {heads, width // 2, 2} or {heads, 2, width // 2}
	local last = table.move(sizes, 2, #sizes, 4, split)
	return x:view(table.unpack(last)):transpose(2, 3):clone():view(table.unpack(sizes))
end

-- The file's name for the order of a layer's inputs (nn/packings), by the model's name.
local function order_of(rows, name, kind)
	local row, number = row_of(rows, name:gsub('%.order$', '.weight'), nil)
	local theirs = row and row[kind] and row[kind]:gsub('%.weight$', '.order')
	return theirs and (number and theirs:format(number) or theirs) or ''
end

-- Gives layers whose inputs have an order there room for it.
local function reorder(m, rows, given, kind)
	module.walk(m, function(name, inner)
		local order = module.class_of(inner).reorder and given[order_of(rows, name .. '.order', kind)]
		if order then inner:reorder(order) end
	end)
end

-- Whether it is a bias of zeros of a layer with packed codes: AutoGPTQ once gave one to each layer.
local function is_empty(name, value, o)
	local layer = name:match '^(.*)%.bias$'
	return layer and o.packed and o.packed[layer] and value:eq(0):all():item()
end

-- given: name -> tensor; from: what messages call it; kind: 'huggingface' or 'gguf'; file: the tensors
-- as they were read, of which given is made. Returns m and the tensors that it does not use.
function place.load(m, architecture, o, given, from, kind, file)
	local rows = indexed(architecture.names)
	reorder(m, rows, given, kind)
	local result = files.match(m, given, function(name, seen)
		local row, number = row_of(rows, name)
		local theirs = row and row[kind]
		if not theirs then return given[order_of(rows, name, kind)] and seen[order_of(rows, name, kind)] end
		if number then theirs = theirs:format(number) end
		local value = seen[theirs] -- marks it as used
		if value and row.turn then value = row.turn(value, o) end
		return value or theirs
	end)
	local extra, trouble, left = {}, {}, {}
	for _, name in ipairs(result.extra) do
		for _, pattern in ipairs(architecture.ignored or {}) do
			if name:find(pattern) then left[name] = given[name] end
		end
		if is_empty(name, given[name], o) then left[name] = given[name] end
		if not left[name] and (o.tie == false or name ~= architecture.head[kind]) then extra[#extra + 1] = name end
	end
	result.extra = extra
	for _, state in ipairs {'missing', 'extra'} do
		if #result[state] > 0 then trouble[#trouble + 1] = ('%d %s: %s'):format(#result[state], state, files.list(result[state])) end
	end
	if #result.wrong > 0 then trouble[#trouble + 1] = files.list(result.wrong) end
	if #result.missing > 0 then trouble[#trouble + 1] = files.refused(file or given) end
	if #trouble > 0 then base.fail('load: %s: wanted the tensors of a %s, got %s', from, architecture.title, table.concat(trouble, '; ')) end
	module.change_tensors(m, function(_, name) return result.found[name] end)
	return m, left
end

-- Calls f(layer, name there) for each layer with a weight that the architecture names.
function place.layers(m, architecture, kind, f)
	local rows = indexed(architecture.names)
	module.walk(m, function(name, inner)
		local row, number = row_of(rows, name .. '.weight')
		local theirs = row and row[kind]
		if theirs then f(inner, ((number and theirs:format(number) or theirs):gsub('%.weight$', ''))) end
	end)
end

-- The tensors of the model under the names of `kind`, and these names in order; ours, a table, receives name there -> name here.
function place.state(m, architecture, o, kind, ours)
	local rows, all, order = indexed(architecture.names), {}, {}
	for name, value in pairs(m:state()) do
		local row, number = row_of(rows, name)
		local theirs = name:find '%.order$' and order_of(rows, name, kind)
		if not theirs and (not row or not row[kind]) then base.fail('save: %s: wanted a tensor that a %s has', name, architecture.title) end
		theirs = theirs or number and row[kind]:format(number) or row[kind]
		value = value:detach()
		all[theirs] = row and row.turn and row.turn(value, o, true) or value
		order[#order + 1] = theirs
		if ours then ours[theirs] = name end
	end
	return all, order
end

return place
