-- SPDX-License-Identifier: MIT
-- Reports as files. CSV (RFC 4180) and JSON keep every digit and the type of each cell, so that reading gives an
-- equal report: in CSV text that looks like something else is quoted, in JSON non-finite numbers are {"number": "nan"}
-- (JSON has none) and the note is kept. Markdown and HTML are for people; their text is escaped, and the page carries
-- a policy that allows neither scripts nor anything from elsewhere.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe

-- Numbers with every digit: integers as such, floats always with a point or an exponent.
local function exact(x)
	if math.type(x) == 'integer' then return tostring(x) end
	if x ~= x then return 'nan' end
	if x == math.huge or x == -math.huge then return x > 0 and 'inf' or '-inf' end
	local text = ('%.17g'):format(x)
	for digits = 15, 16 do
		local short = ('%.' .. digits .. 'g'):format(x)
		if tonumber(short) == x then
			text = short
			break
		end
	end
	return text:find '[.e]' and text or text .. '.0'
end

local NUMBERS = {nan = 0 / 0, inf = math.huge, ['-inf'] = -math.huge}

-- The value that an unquoted CSV field stands for.
local function plain_value(text)
	if text == '' then return nil end
	if text == 'true' or text == 'false' then return text == 'true' end
	if NUMBERS[text] then return NUMBERS[text] end
	if text:find '^[-+]?%.?%d' and not text:find '[xXpP_]' then return tonumber(text) or text end
	return text
end

---------------------------------------------------------------- CSV

local function csv_field(value)
	if value == nil then return '' end
	if type(value) == 'number' then return exact(value) end
	if type(value) == 'boolean' then return tostring(value) end
	if plain_value(value) ~= value or value:find '[",\r\n]' or value:find '^%s' or value:find '%s$' then
		return '"' .. value:gsub('"', '""') .. '"'
	end
	return value
end

local function to_csv(s)
	local lines, fields = {}, {}
	for i, name in ipairs(s.columns) do fields[i] = csv_field(name) end
	lines[1] = table.concat(fields, ',')
	for k, row in ipairs(s.rows) do
		for i, name in ipairs(s.columns) do fields[i] = csv_field(row[name]) end
		lines[k + 1] = table.concat(fields, ',')
	end
	return table.concat(lines, '\n') .. '\n'
end

-- One field from `at`: its value, whether it was quoted, and where the separator is.
local function csv_take(text, at, file)
	if text:sub(at, at) ~= '"' then
		local stop = text:find('[,\r\n]', at) or #text + 1
		return text:sub(at, stop - 1), false, stop
	end
	local parts, from = {}, at + 1
	while true do
		local quote = text:find('"', from, true)
		if not quote then fail("load: %s: wanted a closing quote for the one at byte %d, got the end of the file", file, at) end
		parts[#parts + 1] = text:sub(from, quote - 1)
		if text:sub(quote + 1, quote + 1) ~= '"' then return table.concat(parts, '"'), true, quote + 1 end
		from = quote + 2
	end
end

-- Calls each(fields, n): fields[i] = {text=, quoted=}.
local function csv_records(text, file, each)
	local at = text:sub(1, 3) == '\239\187\191' and 4 or 1 -- byte order mark
	while at <= #text do
		local fields = {}
		local value, quoted
		repeat
			value, quoted, at = csv_take(text, at, file)
			fields[#fields + 1] = {text = value, quoted = quoted}
			local separator = text:sub(at, at)
			if separator ~= ',' and separator ~= '' and not separator:find '[\r\n]' then
				fail("load: %s: wanted a comma or the end of the line at byte %d, got '%s'", file, at, separator)
			end
			at = at + 1
		until separator ~= ','
		if text:sub(at - 1, at) == '\r\n' then at = at + 1 end
		if #fields > 1 or fields[1].quoted or fields[1].text ~= '' then each(fields) end
	end
end

local function from_csv(text, file)
	local list, columns = {}, nil
	csv_records(text, file, function(fields)
		if not columns then
			columns = {}
			for i, field in ipairs(fields) do columns[i] = field.text end
			return
		end
		if #fields > #columns then
			fail('load: %s: row %d: wanted %d fields, got %d', file, #list + 1, #columns, #fields)
		end
		local row = {}
		for i, field in ipairs(fields) do
			local value = field.text
			if not field.quoted then value = plain_value(value) end
			row[columns[i]] = value
		end
		list[#list + 1] = row
	end)
	if not columns then fail('load: %s: wanted a line with the names of the columns, got an empty file', file) end
	list.columns = columns
	return list
end

---------------------------------------------------------------- JSON

local ESCAPES = {['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t'}

local function json_text(text)
	if not utf8.len(text) then text = text:gsub('[\128-\255]', '?') end
	return '"' .. text:gsub('[%c"\\<>&\127]', function(c)
		return ESCAPES[c] or ('\\u%04x'):format(c:byte())
	end) .. '"'
end

local function json_value(value)
	if type(value) == 'string' then return json_text(value) end
	if type(value) == 'boolean' then return tostring(value) end
	local text = exact(value)
	return NUMBERS[text] and '{"number": "' .. text .. '"}' or text
end

local function to_json(s)
	local names, rows = {}, {}
	for i, name in ipairs(s.columns) do names[i] = json_text(name) end
	for k, row in ipairs(s.rows) do
		local cells = {}
		for _, name in ipairs(s.columns) do
			if row[name] ~= nil then cells[#cells + 1] = json_text(name) .. ': ' .. json_value(row[name]) end
		end
		rows[k] = '    {' .. table.concat(cells, ', ') .. '}'
	end
	return ('{\n  "columns": [%s],\n%s  "rows": [\n%s\n  ]\n}\n'):format(table.concat(names, ', '),
		s.note and '  "note": ' .. json_text(s.note) .. ',\n' or '', table.concat(rows, ',\n'))
end

local function json_cell(value, file, number)
	if type(value) == 'table' then
		local x = NUMBERS[value.number]
		if not x then fail('load: %s: row %d: wanted numbers, text and booleans, got a list or object', file, number) end
		return x
	end
	return value
end

local function from_json(text, file)
	local decode = internal.import 'interp/prelude/json'
	local good, data = pcall(decode, text)
	if not good then fail('load: %s: %s', file, data) end
	local rows = type(data) == 'table' and (data.rows or data)
	if type(rows) ~= 'table' then fail('load: %s: wanted a list of rows, got %s', file, describe(data)) end
	local list = {columns = data.columns, note = data.note}
	for i, row in ipairs(rows) do
		if type(row) ~= 'table' then fail('load: %s: row %d: wanted an object, got %s', file, i, describe(row)) end
		list[i] = {}
		for name, value in pairs(row) do list[i][name] = json_cell(value, file, i) end
	end
	return list
end

---------------------------------------------------------------- Markdown and HTML

local format = internal.import 'interp/prelude/report_format'

local function html_escape(text)
	return (text:gsub('%z', ''):gsub('[&<>"\']', function(c) return ('&#%d;'):format(c:byte()) end))
end

local function md_escape(text)
	return (html_escape(text:gsub('[\r\n]+', ' ')):gsub('[\\`*_%[%]|~$]', '\\%0'))
end

local function to_md(s)
	local names, marks, lines, columns = {}, {}, {}, format.columns(s, s.rows)
	for i, c in ipairs(columns) do
		names[i] = md_escape(c.name)
		marks[i] = c.number and '---:' or '---'
	end
	lines[1] = '| ' .. table.concat(names, ' | ') .. ' |'
	lines[2] = '| ' .. table.concat(marks, ' | ') .. ' |'
	for k in ipairs(s.rows) do
		local cells = {}
		for i, c in ipairs(columns) do cells[i] = md_escape(c.cells[k]) end
		lines[#lines + 1] = '| ' .. table.concat(cells, ' | ') .. ' |'
	end
	if s.note then lines[#lines + 1] = '\n' .. md_escape(s.note) end
	return table.concat(lines, '\n') .. '\n'
end

local files = {html_escape = html_escape}

-- The beginning of a page: all of it that is before the contents. A page ends with </body></html>.
function files.html_head(title) return internal.import 'interp/prelude/page':format(html_escape(title)) end

-- s: {columns=, rows=}; `rows`: only these of them; `note`: below the table; `class` of the table.
function files.html_table(s, rows, note, class)
	rows = rows or s.rows
	local columns = format.columns(s, rows)
	local lines = {('<div class="wide"><table%s>'):format(class and (' class="%s"'):format(class) or '')}
	local function add(tag, text_of)
		local cells = {}
		for i, c in ipairs(columns) do
			cells[i] = ('<%s%s>%s</%s>'):format(tag, c.number and ' class="n"' or '', html_escape(text_of(c)), tag)
		end
		lines[#lines + 1] = '<tr>' .. table.concat(cells) .. '</tr>'
	end
	lines[#lines + 1] = '<thead>'
	add('th', function(c) return c.name end)
	lines[#lines + 1] = '</thead><tbody>'
	for i in ipairs(rows) do
		add('td', function(c) return c.cells[i] end)
	end
	lines[#lines + 1] = '</tbody></table></div>'
	for line in (note or ''):gmatch '[^\n]+' do lines[#lines + 1] = '<p>' .. html_escape(line) .. '</p>' end
	return table.concat(lines, '\n')
end

local function to_html(s)
	return files.html_head 'Report' .. files.html_table(s, s.rows, s.note) .. '\n</body></html>\n'
end

---------------------------------------------------------------- by the ending

local writers = {csv = to_csv, json = to_json, md = to_md, html = to_html}
local readers = {csv = from_csv, json = from_json}

local function by_ending(name, table, file)
	if type(file) ~= 'string' then fail('%s: wanted the name of a file, got %s', name, describe(file)) end
	local known = {}
	for ending in next, table do known[#known + 1] = '.' .. ending end
	_G.table.sort(known)
	local found = table[(file:match '%.(%w+)$' or ''):lower()]
	if not found then fail("%s: wanted a name ending in %s, got '%s'", name, _G.table.concat(known, ' '), file) end
	return found
end

local MOST = 200 -- rows of a table within a notebook

-- Forms for a notebook (mime.lua): a table of the first rows.
function files.forms(s)
	local note = #s.rows > MOST and ('%d of %d rows'):format(MOST, #s.rows)
	if note and s.note then note = s.note .. '; ' .. note end
	return {['text/html'] = files.html_table(s, table.move(s.rows, 1, math.min(#s.rows, MOST), 1, {}), note or s.note)}
end

-- A row is a plain table, so anything may have been written into it.
local function check_cells(s)
	local savable = {number = true, string = true, boolean = true}
	for i, row in ipairs(s.rows) do
		for name, value in next, row do
			if not savable[type(value)] then
				fail("save: row %d: column '%s': wanted a number, text or boolean, got %s", i, name, type(value))
			end
		end
	end
end

function files.save(s, file)
	local write = by_ending('save', writers, file)
	check_cells(s)
	internal.write_file(file, write(s))
end

function files.load(file)
	local read = by_ending('load', readers, file)
	local handle, problem = io.open(file, 'rb')
	if not handle then fail('load: %s', problem) end
	local text = handle:read 'a'
	handle:close()
	if not text then fail('load: %s: wanted a file, got something that cannot be read', file) end
	return internal.import 'interp/prelude/report'(read(text, file))
end

return files
