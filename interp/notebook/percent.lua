-- SPDX-License-Identifier: MIT
-- The percent format: a Lua file whose comments cut it into cells, as Jupytext (jupytext.org, "percent") reads and writes
-- it.
--
--   -- %%                              a cell of code begins
--   -- %% A title tags=["skip"] n=3    … with a title and metadata: name=JSON
--   -- %% [markdown]                   text: the comment lines that follow; [raw] likewise
--   -- %%% Deeper                      as many more % as cell_depth
--
-- A header `-- ---` … `-- ---` holds YAML, of which `jupyter:` is the notebook's metadata and the rest becomes a raw
-- cell. What precedes the first marker is a cell, too. In a cell of code `-- %word …` stands for the magic `%word …`
-- of a notebook, because the file must stay Lua; it runs when it is a word of the prompt.
--
-- A cell is {kind = code, markdown or raw, source, metadata, line = of its first line in the file, code = as it stands
-- there}. Metadata that only say how the file is written are named as Jupytext does: title, cell_depth, region_name,
-- lines_to_next_cell.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local json = internal.import 'interp/prelude/json_write'
local yaml = internal.import 'interp/notebook/yaml'

local percent = {}
local KINDS = {markdown = 'markdown', md = 'markdown', raw = 'raw'}

---------------------------------------------------------------- markers

-- Where the JSON value that begins at `at` ends: strings and brackets as a whole, anything else up to a blank.
local function value_end(text, at)
	local c, depth = text:sub(at, at), 0
	if not c:find '["%[{]' then return (text:find('%s', at) or #text + 1) - 1 end
	while at <= #text do
		c = text:sub(at, at)
		if c == '"' then
			repeat
				at = text:find('["\\]', at + 1)
				local escaped = at and text:sub(at, at) == '\\'
				if escaped then at = at + 1 end
			until not at or not escaped
			if not at then return #text end
		elseif c:find '[%[{]' then
			depth = depth + 1
		elseif c:find '[%]}]' then
			depth = depth - 1
		end
		if depth == 0 then return at end
		at = at + 1
	end
	return #text
end

-- "tags=["skip"] n=3" into metadata; `wrong(format, …)` raises with the place.
local function read_options(text, metadata, wrong)
	local at = 1
	while true do
		local name, from = text:match('^%s*([%a_][%w_.-]*)=()', at)
		if not name then break end
		local to = value_end(text, from)
		local good, value = pcall(json.read, text:sub(from, to))
		if not good then
			wrong([[%s: wanted JSON, as in tags=["skip"], got %s]], name, text:sub(from, to) == '' and 'nothing' or
				text:sub(from, to))
		end
		metadata[name] = value
		at = to + 1
	end
	local rest = text:match('^%s*(.-)%s*$', at)
	if rest ~= '' then wrong([[wanted name=value, got '%s']], rest) end
end

-- What is after the signs: title, [kind], options. Returns the kind and the metadata.
local function read_marker(text, wrong)
	local metadata, kind = {}, 'code'
	local depth, rest = text:match '^(%%*)%s*(.-)%s*$'
	if #depth > 0 then metadata.cell_depth = #depth end
	local title, word, after = rest:match '^(.-)%s*%[([%a]+)%]%s*(.*)$'
	if title and not title:find '[%w_]=' then
		kind = KINDS[word]
		if not kind then
			wrong("wanted [markdown] or [raw], got [%s]%s", word, base.near(word, {'markdown', 'md', 'raw'}))
		end
		if word ~= kind then metadata.region_name = word end
	else
		title, after = rest, ''
		local at = (' ' .. rest):find '%s[%a_][%w_.-]*='
		if at then title, after = rest:sub(1, at - 1):gsub('%s+$', ''), rest:sub(at) end
	end
	if title ~= '' then metadata.title = title end
	read_options(after, metadata, wrong)
	return kind, metadata
end

---------------------------------------------------------------- reading

-- Lines of the text; line numbers of those that are comments of their own, by Lua's lexer: a marker in a long string is
-- none.
local function split(text)
	local lines, starts, comments = {}, {}, {}
	for from, line in text:gmatch '()([^\n]*)\n?' do
		if from > #text then break end
		lines[#lines + 1] = line:gsub('\r$', '')
		starts[from] = #lines
	end
	local tokens = internal.tokens(text)
	for i = 1, #tokens, 3 do
		if tokens[i] == 'comment' and starts[tokens[i + 1]] then comments[starts[tokens[i + 1]]] = true end
	end
	return lines, comments
end

local function uncomment(line) return line:match '^%-%- (.*)$' or line:match '^%-%-(.*)$' end

-- The header, when there is one from line `first` on: metadata, what else it says, the line after it. Jupytext writes a
-- line about the encoding before it where the file is not ASCII.
local function read_header(lines, first, name)
	if (lines[first] or ''):find '^%-%- %-%*%- coding' then first = first + 1 end
	if not (lines[first] or ''):find '^%-%- ?%-%-%-%s*$' then return {}, nil, first end
	local inner = {}
	for i = first + 1, #lines do
		local line = uncomment(lines[i])
		if not line then break end
		if line:find '^%-%-%-%s*$' then
			local metadata, rest = yaml.read(inner)
			return metadata, rest, i + 1
		end
		inner[#inner + 1] = line
	end
	base.fail('%s:%d: wanted the end of the header, -- ---, got %s', name, first, 'none')
end

-- The line of code as it runs: `-- %word …` is that word when there is one.
local words
local function runs_as(line)
	local word = line:match '^%-%- ?%%%%?(%a+)%f[%s\0]'
	if not word then return line end
	if not words then
		words = {}
		for _, magic in ipairs(internal.magics()) do words[magic[1]] = true end
	end
	return words[word] and line:gsub('^%-%- ?', '') or line
end

local function blank(line) return not line:find '%S' end

-- A cell of the lines from..to.
local function make_cell(kind, metadata, lines, from, to, name)
	local last, source, code = to, {}, {}
	while last >= from and blank(lines[last]) do last = last - 1 end
	for i = from, last do
		local line = lines[i]
		if kind == 'code' then
			source[#source + 1] = line:gsub('^%-%- ?(%%%%?%a)', '%1')
			code[#code + 1] = runs_as(line)
		else
			local inner = blank(line) and '' or uncomment(line)
			if not inner then
				base.fail('%s:%d: wanted a comment in a cell of %s, got code; a line `-- %%%%` begins a cell of code', name, i,
					kind == 'raw' and 'raw text' or kind)
			end
			source[#source + 1] = inner
		end
	end
	return {kind = kind, metadata = metadata, source = table.concat(source, '\n'), line = from, gap = to - last,
		code = kind == 'code' and table.concat(code, '\n') or nil}
end

-- Cells of the lines from `first` on. What precedes the first marker counts when it is not blank.
local function read_cells(lines, comments, first, name)
	local cells, kind, metadata, from = {}, 'code', {}, first
	local function close(to, marker)
		local cell = make_cell(kind, metadata, lines, from, to, name)
		cell.bare = from == first or nil
		if cell.bare and cell.source == '' then return end
		local wanted = marker and 1 or 0
		if cell.gap ~= wanted then cell.metadata.lines_to_next_cell = cell.gap end
		cells[#cells + 1] = cell
	end
	for i = first, #lines do
		local text = comments[i] and lines[i]:match '^%-%-%s?%%%%(.*)$'
		if text and text:find '^[%%%s]*$' or text and text:find '^%%*%s' then
			close(i - 1, true)
			kind, metadata = read_marker(text, function(format, ...)
				base.fail('%s:%d: ' .. format, name, i, ...)
			end)
			from = i + 1
		end
	end
	close(#lines, false)
	return cells
end

-- A notebook {cells, metadata, text} of the text of a file. Raises a message with the line.
function percent.read(text, name)
	local body = text:gsub('^\239\187\191', '')
	local shebang = body:match '^#![^\n]*'
	if shebang then body = '--' .. body:sub(3) end -- as many bytes, and a comment
	local lines, comments = split(body)
	local metadata, rest, first = read_header(lines, shebang and 2 or 1, name)
	while lines[first] and first > 1 and blank(lines[first]) do first = first + 1 end
	local cells = read_cells(lines, comments, shebang and first == 2 and 1 or first, name)
	if rest then
		table.insert(cells, 1, {kind = 'raw', metadata = {}, source = '---\n' .. rest .. '\n---', line = 1, front = true})
	end
	for _, cell in ipairs(cells) do cell.gap = nil end
	return {cells = cells, metadata = metadata, text = text, header = first > 1 and not shebang and
		table.concat(lines, '\n', 1, first - 1) or nil}
end

---------------------------------------------------------------- writing

local LAYOUT = {title = true, cell_depth = true, region_name = true, lines_to_next_cell = true}

local function option_lines(metadata)
	local names, parts = {}, {}
	for name in pairs(metadata) do
		if not LAYOUT[name] and name:find '^[%a_][%w_.-]*$' then names[#names + 1] = name end
	end
	table.sort(names)
	for i, name in ipairs(names) do parts[i] = name .. '=' .. json.write(metadata[name]) end
	return parts
end

local function marker_of(cell)
	local metadata, parts = cell.metadata, {}
	local depth = math.type(metadata.cell_depth) == 'integer' and math.min(metadata.cell_depth, 9) or 0
	parts[1] = '-- %%' .. ('%'):rep(depth)
	-- a title must be read back as one: no line breaks, nothing that looks like the rest of the marker
	local title = type(metadata.title) == 'string' and metadata.title:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', '')
	if title and title ~= '' then parts[2] = title:gsub('([%w_])=', '%1 ='):gsub('%[(%a+)%]', '(%1)') end
	if cell.kind ~= 'code' then
		local region = KINDS[metadata.region_name] == cell.kind and metadata.region_name or cell.kind
		parts[#parts + 1] = '[' .. region .. ']'
	end
	local options = option_lines(metadata)
	table.move(options, 1, #options, #parts + 1, parts)
	return table.concat(parts, ' ')
end

-- Nothing but comments: such a first cell needs no marker.
local function only_comments(source)
	local tokens = internal.tokens(source)
	for i = 1, #tokens, 3 do
		if tokens[i] ~= 'comment' then return false end
	end
	return #tokens > 0
end

local function source_lines(cell)
	local lines = {}
	if cell.source == '' then return lines end
	for line in (cell.source .. '\n'):gmatch '(.-)\n' do
		if cell.kind == 'code' then
			lines[#lines + 1] = line:gsub('^%%%%?%a', '-- %0')
		else
			lines[#lines + 1] = line == '' and '--' or '-- ' .. line
		end
	end
	return lines
end

local function is_default(metadata)
	for name in pairs(metadata) do
		if name ~= 'lines_to_next_cell' then return false end
	end
	return true
end

-- The header as it was read, when it still says the same, else a new one; with a blank line after it.
local function header_of(nb, front)
	if nb.header then
		local good, before = pcall(percent.read, nb.header .. '\n', '')
		local kernel = good and before.metadata.kernelspec
		local said = good and before.cells[1] and before.cells[1].source or nil
		if good and said == (front and '---\n' .. front .. '\n---') and
			json.write(kernel or nb.metadata.kernelspec) == json.write(nb.metadata.kernelspec) then
			return {nb.header}
		end
	end
	local header = yaml.write(nb.metadata, front)
	for i, line in ipairs(header) do header[i] = line == '' and '--' or '-- ' .. line end
	if #header > 0 then header[#header + 1] = '' end
	return header
end

-- The cells as a file, in the one form that percent.read gives back.
local function canonical(nb)
	local cells = nb.cells
	local front = cells[1] and cells[1].kind == 'raw' and cells[1].source:match '^%-%-%-\n(.*)\n%-%-%-$'
	local header = header_of(nb, front)
	local out = table.move(header, 1, #header, 1, {})
	local first = front and 2 or 1
	for i = first, #cells do
		local cell = cells[i]
		local bare = i == 1 and #header == 0 and cell.kind == 'code' and is_default(cell.metadata) and only_comments(cell.source)
		if not bare then out[#out + 1] = marker_of(cell) end
		local lines = source_lines(cell)
		table.move(lines, 1, #lines, #out + 1, out)
		local gap = cell.metadata.lines_to_next_cell
		gap = math.type(gap) == 'integer' and gap >= 0 and gap < 100 and gap or i < #cells and 1 or 0
		for _ = 1, gap do out[#out + 1] = '' end
	end
	return #out > 0 and table.concat(out, '\n') .. '\n' or ''
end

local function same_cells(a, b)
	if #a ~= #b then return false end
	for i, cell in ipairs(a) do
		if cell.kind ~= b[i].kind or cell.source ~= b[i].source or
			json.write(cell.metadata) ~= json.write(b[i].metadata) then
			return false
		end
	end
	return true
end

-- The text of the file: as it was read where the cells are still the same, so that its own manner is kept.
function percent.write(nb)
	if nb.text then
		local good, before = pcall(percent.read, nb.text, '')
		if good and same_cells(before.cells, nb.cells) then return nb.text end
	end
	return canonical(nb)
end

percent.canonical = canonical

return percent
