-- SPDX-License-Identifier: MIT
-- A notebook as a value: {cells, metadata, file, format}. Opening reads a percent .lua or an .ipynb and runs nothing; what
-- was shown by the last run lies in a side file, nb.out.json, by a key of each cell: a hash of its text, of the
-- parameters, and of the keys of the cells above that wrote what it reads. So an output is known to belong to the text
-- that is there now.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local json = internal.import 'interp/prelude/json_write'
local ipynb = internal.import 'interp/notebook/ipynb'
local percent = internal.import 'interp/notebook/percent'
local effects = internal.import 'interp/notebook/effects'
local fail = base.fail

local notebook = {}
local VERSION = 1 -- of the side file

---------------------------------------------------------------- files

function notebook.read_file(file)
	local handle, problem = io.open(file, 'rb')
	if not handle then fail('%s', problem) end
	local text = handle:read 'a'
	handle:close()
	if not text then fail('%s: wanted a file, got something that cannot be read', file) end
	return text
end

local FORMATS = {lua = percent, ipynb = ipynb}

local function format_of(file)
	local ending = (file:match '%.(%w+)$' or ''):lower()
	if not FORMATS[ending] then fail("%s: wanted a notebook, a name that ends in .lua or .ipynb", file) end
	return ending
end

function notebook.open(file)
	local ending = format_of(file)
	local nb = FORMATS[ending].read(notebook.read_file(file), file)
	nb.file, nb.format = file, ending
	for i, cell in ipairs(nb.cells) do
		cell.index = i
		cell.tags = {}
		for _, tag in ipairs(type(cell.metadata.tags) == 'table' and cell.metadata.tags or {}) do cell.tags[tag] = true end
	end
	return nb
end

-- Writes the notebook in the format of the name.
function notebook.save(nb, file)
	internal.write_file(file, FORMATS[format_of(file)].write(nb))
end

function notebook.title(nb)
	for _, cell in ipairs(nb.cells) do
		local title = cell.kind == 'markdown' and ('\n' .. cell.source):match '\n#%s+([^\n]+)'
		if title then return (title:gsub('[*_`$]', ''):gsub('%s+', ' ')) end
	end
	return nb.file:match '[^/]*$'
end

local function blanked(text) return (text:gsub('[^\n]', ' ')) end

-- The code of a cell with blanks in place of what is no Lua (%words, !commands): for those who read names in it.
function notebook.lua_of(cell, pieces)
	local code, parts, at = cell.code or cell.source, {}, 1
	for _, piece in ipairs(pieces or internal.pieces(code)) do
		if piece.magic then
			local to = piece.code and piece.code - 1 or piece.to
			parts[#parts + 1] = code:sub(at, piece.from - 1) .. blanked(code:sub(piece.from, to))
			at = to + 1
		end
	end
	return table.concat(parts) .. code:sub(at)
end

-- What the tags say of errors: they 'must' or 'may' come; nil: neither.
function notebook.fails(cell) return cell.tags.raises and 'must' or cell.tags['raises-exception'] and 'may' or nil end

-- Whether a run calls the cell: there is more in it than comments, and it is not to be skipped.
function notebook.runs(cell)
	if cell.kind ~= 'code' or cell.tags.skip then return false end
	local tokens = internal.tokens(cell.code or cell.source)
	for i = 1, #tokens, 3 do
		if tokens[i] ~= 'comment' then return true end
	end
	return false
end

local NAME = 59 -- bytes that Lua keeps of the name of a chunk: LUA_IDSIZE without the 0

-- What messages call the code of a cell, as for load, and its first line there.
function notebook.chunk(nb, cell)
	if nb.format == 'lua' then return '@' .. nb.file, cell.line end
	local number = ('[%d]'):format(cell.index)
	local room = NAME - #number
	return '=' .. (#nb.file > room and '...' .. nb.file:sub(3 - room) or nb.file) .. number, 1
end

---------------------------------------------------------------- keys

local function sorted(set)
	local list = {}
	for name in pairs(set) do list[#list + 1] = name end
	table.sort(list)
	return list
end

-- Sets cell.key of every cell of code; `parameters` is a text that stands for all that was given from outside.
function notebook.keys(nb, parameters)
	local writers = {} -- name -> keys of the cells that wrote it so far
	for _, cell in ipairs(nb.cells) do
		if cell.kind == 'code' then
			local parts, facts = {cell.source, cell.tags.parameters and parameters or ''}, effects(notebook.lua_of(cell))
			for _, name in ipairs(sorted(facts.reads)) do
				if writers[name] then parts[#parts + 1] = name .. '=' .. writers[name] end
			end
			cell.key = internal.hash(table.concat(parts, '\0'))
			for name in pairs(facts.writes) do
				writers[name] = internal.hash((writers[name] or '') .. cell.key)
			end
		end
	end
end

---------------------------------------------------------------- the side file

function notebook.side_name(file)
	return (file:gsub('%.%w+$', '') .. '.out.json')
end

local function read_number(value) return type(value) == 'number' and value or nil end

local function restore(cell, record, where, side)
	if type(record.outputs) ~= 'table' then return end
	local notes, plain = {}, json.array()
	for i, o in ipairs(record.outputs) do
		if type(o) == 'table' and o.output_type == 'note' and type(o.text) == 'string' then
			notes[i] = {output_type = 'note', text = o.text}
		else
			plain[#plain + 1] = o
		end
	end
	local outputs, at = ipynb.read_outputs(plain, where, side), 0
	cell.outputs = {}
	for i = 1, #record.outputs do
		if not notes[i] then at = at + 1 end
		cell.outputs[i] = notes[i] or outputs[at]
	end
	cell.kept, cell.seconds = true, read_number(record.seconds)
	cell.execution_count = math.type(record.count) == 'integer' and record.count or nil
	cell.failed = record.failed == true
end

-- The side file as a table; nil: there is none. A newer one, or one that is damaged, is an error: a run would replace it.
function notebook.read_side(side)
	if not internal.file_state(side) then return nil end
	local good, data = pcall(json.read, notebook.read_file(side))
	if not good or type(data) ~= 'table' or data.format ~= 'quoll outputs' or type(data.cells) ~= 'table' then
		fail('%s: wanted outputs of a notebook, got something else%s; move it away, or keep the outputs elsewhere with --out',
			side, good and '' or ' (' .. tostring(data) .. ')')
	end
	if math.type(data.version) ~= 'integer' or data.version > VERSION then
		fail('%s: wanted outputs of version %d, got version %s of a newer Quoll; keep the outputs elsewhere with --out', side,
			VERSION, tostring(data.version))
	end
	return data
end

-- Gives the cells the outputs that were kept for just this text. Returns whether every cell that would run has them.
function notebook.load_side(nb, side)
	local data = notebook.read_side(side)
	local records, all = {}, true
	for i, record in ipairs(data and data.cells or {}) do
		if type(record) == 'table' and type(record.key) == 'string' then
			records[record.key] = records[record.key] or {}
			table.insert(records[record.key], {record, i})
		end
	end
	for _, cell in ipairs(nb.cells) do
		local found = cell.kind == 'code' and cell.key and table.remove(records[cell.key] or {}, 1)
		if found then restore(cell, found[1], ('cell %d'):format(found[2]), side) end
		if notebook.runs(cell) and not (found and not cell.failed) then all = false end
	end
	return all
end

-- `parameters`: a text, for readers of the file.
function notebook.save_side(nb, side, parameters)
	local cells = json.array()
	for _, cell in ipairs(nb.cells) do
		if cell.kind == 'code' and cell.outputs and cell.key and (cell.kept or cell.ran) then
			local outputs = json.array()
			for i, o in ipairs(cell.outputs) do
				outputs[i] = o.output_type == 'note' and o or ipynb.write_outputs({o}, cell.execution_count)[1]
			end
			cells[#cells + 1] = {key = cell.key, cell = cell.index, line = cell.line, outputs = outputs, seconds = cell.seconds,
				peak = cell.peak, fallbacks = cell.fallbacks, count = cell.execution_count, failed = cell.failed or nil}
		end
	end
	internal.write_file(side, json.write({format = 'quoll outputs', version = VERSION, notebook = nb.file:match '[^/]*$',
		parameters = parameters, cells = cells}, ' ') .. '\n')
end

return notebook
