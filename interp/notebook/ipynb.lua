-- SPDX-License-Identifier: MIT
-- Jupyter's notebooks: nbformat 4.0 to 4.5 is read, 4.5 is written as the nbformat library writes it (names sorted,
-- indentation of one blank, texts as lists of lines). Reading executes nothing. What a percent file says and a notebook
-- has no place for, its own manner of writing, is kept in metadata.quoll.text, and used as long as the cells are the
-- same. Jupyter knows no tag `raises`: "raises-exception" is written before it, so that front ends continue after the error,
-- and taken away again when that pair is read.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local json = internal.import 'interp/prelude/json_write'
local mime = internal.import 'interp/prelude/mime'
local percent = internal.import 'interp/notebook/percent'
local fail = base.fail

local ipynb = {}

---------------------------------------------------------------- reading

-- Text, or a list of its lines.
local function joined(value, where, name)
	if type(value) == 'string' then return value end
	if type(value) ~= 'table' then fail('%s: %s: wanted text, got %s', name, where, base.describe(value)) end
	for i, line in ipairs(value) do
		if type(line) ~= 'string' then fail('%s: %s: line %d: wanted text, got %s', name, where, i, base.describe(line)) end
	end
	return table.concat(value)
end

local function object(value, where, name)
	if value == nil then return {} end
	if type(value) ~= 'table' or value == json.NULL or value[1] ~= nil then
		fail('%s: %s: wanted an object, got %s', name, where, base.describe(value))
	end
	return value
end

-- A list of texts by mime type; JSON types stay values.
local function read_bundle(data, where, name)
	local bundle = {}
	for kind, value in pairs(object(data, where, name)) do
		local plain = type(value) ~= 'table' or value == json.NULL or kind:find '^application/json$' or kind:find '%+json$'
		if type(value) == 'string' then
			bundle[kind] = value
		elseif plain then
			bundle[kind] = value
		else
			bundle[kind] = joined(value, where .. ': ' .. kind, name)
		end
	end
	return bundle
end

local READERS = {
	stream = function(o, where, name)
		return {output_type = 'stream', name = o.name == 'stderr' and 'stderr' or 'stdout', text = joined(o.text, where, name)}
	end,
	display_data = function(o, where, name)
		return {output_type = 'display_data', data = read_bundle(o.data, where, name), metadata = object(o.metadata, where, name)}
	end,
	execute_result = function(o, where, name)
		local count = math.type(o.execution_count) == 'integer' and o.execution_count or nil
		return {output_type = 'execute_result', data = read_bundle(o.data, where, name),
			metadata = object(o.metadata, where, name), execution_count = count}
	end,
	error = function(o, where, name)
		local trace = {}
		for i, line in ipairs(type(o.traceback) == 'table' and o.traceback or {}) do
			trace[i] = joined(line, where .. ': traceback', name)
		end
		return {output_type = 'error', ename = tostring(o.ename), evalue = tostring(o.evalue), traceback = json.array(trace)}
	end,
}

function ipynb.read_outputs(list, where, name)
	local outputs = {}
	if list ~= nil and type(list) ~= 'table' then fail('%s: %s: wanted a list, got %s', name, where, base.describe(list)) end
	for i, o in ipairs(list or {}) do
		local place = ('%s: output %d'):format(where, i)
		local read = type(o) == 'table' and READERS[o.output_type]
		if not read then
			fail('%s: %s: wanted stream, display_data, execute_result or error, got %s', name, place,
				base.describe(type(o) == 'table' and o.output_type or o))
		end
		outputs[i] = read(o, place, name)
	end
	return outputs
end

local KINDS = {code = true, markdown = true, raw = true}
local MUST, MAY = 'raises', 'raises-exception'

local function has(list, value)
	for _, item in ipairs(list) do
		if item == value then return true end
	end
	return false
end

local function tags_from_jupyter(metadata)
	local tags = metadata.tags
	for i = type(tags) == 'table' and #tags or 0, 2, -1 do
		if tags[i] == MUST and tags[i - 1] == MAY then table.remove(tags, i - 1) end
	end
end

-- The metadata, or a copy with the tag that Jupyter knows.
local function with_jupyter_tags(metadata)
	local tags = type(metadata.tags) == 'table' and metadata.tags or {}
	if not has(tags, MUST) or has(tags, MAY) then return metadata end
	local copy, list = {}, json.array()
	for name, value in pairs(metadata) do copy[name] = value end
	for _, tag in ipairs(tags) do
		if tag == MUST and not has(list, MAY) then list[#list + 1] = MAY end
		list[#list + 1] = tag
	end
	copy.tags = list
	return copy
end

local function read_cell(given, i, name)
	local where = ('cell %d'):format(i)
	if type(given) ~= 'table' or not KINDS[given.cell_type] then
		fail('%s: %s: wanted code, markdown or raw, got %s', name, where,
			base.describe(type(given) == 'table' and given.cell_type or given))
	end
	local cell = {kind = given.cell_type, source = joined(given.source, where .. ': source', name):gsub('\r\n', '\n'),
		metadata = object(given.metadata, where .. ': metadata', name), number = i}
	cell.id = type(given.id) == 'string' and given.id:find '^[%w_-]+$' and #given.id <= 64 and given.id or nil
	cell.metadata.trusted = nil
	tags_from_jupyter(cell.metadata)
	if given.attachments ~= nil then
		cell.attachments = {}
		for file, data in pairs(object(given.attachments, where .. ': attachments', name)) do
			cell.attachments[file] = read_bundle(data, where .. ': attachments', name)
		end
	end
	if cell.kind == 'code' then
		cell.outputs = ipynb.read_outputs(given.outputs, where, name)
		cell.execution_count = math.type(given.execution_count) == 'integer' and given.execution_count or nil
	end
	return cell
end

-- A notebook {cells, metadata, text} of the text of a file; raises a message with the place.
function ipynb.read(text, name)
	local good, data = pcall(json.read, (text:gsub('^\239\187\191', '')))
	if not good then fail('%s: wanted a notebook in JSON: %s', name, data) end
	if type(data) ~= 'table' or data.nbformat == nil then
		fail('%s: wanted a notebook with nbformat, cells and metadata, got other JSON', name)
	end
	if data.nbformat ~= 4 then
		fail('%s: wanted nbformat 4, got %s; Jupyter converts: jupyter nbconvert --to notebook', name, base.describe(data.nbformat))
	end
	if type(data.cells) ~= 'table' then fail('%s: cells: wanted a list, got %s', name, base.describe(data.cells)) end
	local nb = {cells = {}, metadata = object(data.metadata, 'metadata', name)}
	for i, cell in ipairs(data.cells) do nb.cells[i] = read_cell(cell, i, name) end
	local own = nb.metadata.quoll
	own = type(own) == 'table' and own or {}
	nb.text = type(own.text) == 'string' and own.text or nil
	nb.header = type(own.header) == 'string' and own.header or nil
	nb.metadata.quoll = nil
	return nb
end

---------------------------------------------------------------- writing

local function lines_of(text)
	local lines = json.array()
	for line in text:gmatch '[^\n]*\n?' do
		if line ~= '' then lines[#lines + 1] = line end
	end
	return lines
end

local SPLIT = {['application/javascript'] = true, ['image/svg+xml'] = true}

-- A figure of ours is once in the file, as PNG where that was made: front ends do not show the SVG of a notebook that
-- its reader has not trusted.
local function is_doubled(data)
	return data['image/png'] and mime.is_figure(data['image/svg+xml'])
end

local function bundle_lines(data)
	local out, doubled = {}, is_doubled(data)
	for kind, value in pairs(data) do
		if kind ~= 'image/svg+xml' or not doubled then
			out[kind] = type(value) == 'string' and (kind:find '^text/' or SPLIT[kind]) and lines_of(value) or value
		end
	end
	return out
end

local WRITERS = {
	stream = function(o) return {output_type = 'stream', name = o.name, text = lines_of(o.text)} end,
	note = function(o) return {output_type = 'stream', name = 'stderr', text = lines_of(o.text .. '\n')} end,
	display_data = function(o)
		return {output_type = 'display_data', data = bundle_lines(o.data), metadata = o.metadata or {}}
	end,
	execute_result = function(o, count)
		return {output_type = 'execute_result', data = bundle_lines(o.data), metadata = o.metadata or {},
			execution_count = o.execution_count or count or json.NULL}
	end,
	error = function(o)
		return {output_type = 'error', ename = o.ename, evalue = o.evalue, traceback = json.array(o.traceback)}
	end,
}

function ipynb.write_outputs(outputs, count)
	local list = json.array()
	for i, o in ipairs(outputs or {}) do list[i] = WRITERS[o.output_type](o, count) end
	return list
end

-- An id for every cell: its own, else one that follows from its text, so that writing twice gives the same file.
local function ids_of(cells)
	local ids, used = {}, {}
	for i, cell in ipairs(cells) do
		if cell.id and not used[cell.id] then ids[i], used[cell.id] = cell.id, true end
	end
	for i, cell in ipairs(cells) do
		local n = 0
		while not ids[i] do
			local id = internal.hash(('%s %d %s'):format(cell.kind, n, cell.source)):sub(1, 8)
			if not used[id] then ids[i], used[id] = id, true end
			n = n + 1
		end
	end
	return ids
end

local function write_cell(cell, id)
	local out = {cell_type = cell.kind, id = id, metadata = with_jupyter_tags(cell.metadata), source = lines_of(cell.source)}
	if cell.attachments then
		out.attachments = {}
		for file, data in pairs(cell.attachments) do out.attachments[file] = bundle_lines(data) end
	end
	if cell.kind == 'code' then
		out.outputs = ipynb.write_outputs(cell.outputs, cell.execution_count)
		out.execution_count = cell.execution_count or json.NULL
	end
	return out
end

local LANGUAGE = {name = 'lua', version = _VERSION:match '[%d.]+', file_extension = '.lua', mimetype = 'text/x-lua',
	pygments_lexer = 'lua', codemirror_mode = 'lua'}

function ipynb.write(nb)
	local metadata, cells, ids = {}, json.array(), ids_of(nb.cells)
	for name, value in pairs(nb.metadata) do metadata[name] = value end
	metadata.kernelspec = metadata.kernelspec or {name = 'quoll', display_name = 'Quoll', language = 'lua'}
	metadata.language_info = metadata.language_info or LANGUAGE
	local own = {header = nb.header, text = nb.text and percent.canonical(nb) ~= nb.text and nb.text or nil}
	metadata.quoll = next(own) and own or nil
	for i, cell in ipairs(nb.cells) do cells[i] = write_cell(cell, ids[i]) end
	return json.write({cells = cells, metadata = metadata, nbformat = 4, nbformat_minor = 5}, ' ') .. '\n'
end

return ipynb
