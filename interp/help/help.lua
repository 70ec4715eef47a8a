-- SPDX-License-Identifier: MIT
-- The global `help`: prints what is known of a name, a function or a value, in lines of at most 80 characters.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, near = base.doc, base.near

local MODULE_ORDER = {'tensor', 'quant', 'nn', 'optim', 'data', 'graph', 'report', 'bench', 'plot', 'hw', 'gpu', 'sweep', 'jupyter'}

local function width() return math.min(80, internal.width()) end

local function length(text) return utf8.len(text) or #text end

local function pad(text, n) return text .. (' '):rep(n - length(text)) end

local function wrap(out, text, indent, separator) base.wrap(out, text, indent, width(), separator) end

-- The first sentence, cut to n characters.
local function summary(text, n)
	text = text:gsub('%s+', ' ')
	text = text:match '^(.-[%w%)]%.) ' or text
	if length(text) <= n then return text end
	local cut = text:sub(1, utf8.offset(text, n) - 1)
	return cut:gsub('%s+%S*$', '') .. '…'
end

---------------------------------------------------------------- one entry

local KINDS = {concept = 'a concept', module = 'a module', scheme = "a scheme of quant specs: scheme='%s'",
	observer = "an observer of quant specs: observer='%s' or '…@%s'", dtype = 'a dtype', kernel = 'a family of kernels',
	device = 'a device', format = 'a file format', ['number format'] = "a format of quant specs: x:quantize '%s'"}

local function heading(entry)
	local kind = KINDS[entry.kind]
	local parts = {entry.title .. (kind and ', ' .. kind:gsub('%%s', entry.bare) or '')}
	for _, alias in ipairs(entry.aliases) do
		parts[#parts + 1] = alias:find '_$' and 'in place ' .. alias or 'also ' .. alias
	end
	return table.concat(parts, ', ')
end

local function add_usage(out, usage)
	for one in (usage:gsub('%s%s+', '\n') .. '\n'):gmatch '(.-)\n' do
		if one ~= '' then wrap(out, one, '  ') end
	end
end

local function add_options(out, options)
	if #options == 0 then return end
	local names, types = 0, 0
	for _, o in ipairs(options) do
		names, types = math.max(names, #o[1]), math.max(types, #o[2])
	end
	out[#out + 1] = ''
	out[#out + 1] = 'Options'
	for _, o in ipairs(options) do
		local lines, text = {}, o[3] or ''
		if o[4] and not text:find(o[4]:match '%S+', 1, true) then text = text .. ' (' .. o[4] .. ')' end
		local head = '  ' .. pad(o[1], names) .. '  ' .. pad(o[2], types) .. '  '
		wrap(lines, text, (' '):rep(#head))
		lines[1] = head .. (lines[1] or ''):sub(#head + 1)
		table.move(lines, 1, #lines, #out + 1, out)
	end
end

local function names_below(index, prefix)
	local names = {}
	for _, entry in ipairs(index.glob(prefix .. '*')) do names[#names + 1] = entry.bare end
	return names
end

local function add_names(out, label, names)
	if #names == 0 then return end
	out[#out + 1] = ''
	out[#out + 1] = label
	wrap(out, table.concat(names, '  '), '  ')
end

local function add_members(out, index, entry)
	local object = entry.title == 'tensor' and 'x' or entry.title
	add_names(out, 'Functions', names_below(index, entry.title .. '.'))
	add_names(out, 'Methods', names_below(index, object .. ':'))
	if index.glob(entry.title .. '.*')[1] then
		out[#out + 1] = ''
		out[#out + 1] = ("help '%s.*' says a line about each%s."):format(entry.title,
			index.glob(object .. ':*')[1] and (", help '%s:*' about the methods"):format(object) or '')
	end
end

local function add_entry(out, index, entry)
	out[#out + 1] = heading(entry)
	if entry.usage and entry.kind ~= 'module' and entry.kind ~= 'concept' then
		out[#out + 1] = ''
		add_usage(out, entry.usage)
	end
	for paragraph in (entry.text .. '\n\n'):gmatch '(.-)\n\n+' do
		out[#out + 1] = ''
		if paragraph:find '^%s%s' then
			out[#out + 1] = paragraph
		else
			wrap(out, paragraph, '  ')
		end
	end
	add_options(out, entry.options)
	add_members(out, index, entry)
	if entry.example then
		out[#out + 1] = ''
		out[#out + 1] = 'Example'
		for line in (entry.example .. '\n'):gmatch '(.-)\n' do out[#out + 1] = '  ' .. line end
	end
	local related = entry.user and {} or index.related(entry)
	if #related > 0 then
		out[#out + 1] = ''
		wrap(out, 'See also ' .. table.concat(related, ', '), '')
	end
end

---------------------------------------------------------------- several entries

local function add_list(out, entries)
	local widest = 0
	for _, entry in ipairs(entries) do widest = math.max(widest, length(entry.title)) end
	widest = math.min(widest, 28)
	for _, entry in ipairs(entries) do
		out[#out + 1] = '  ' .. pad(entry.title, widest) .. '  ' .. summary(entry.text, width() - widest - 4)
	end
end

local function of_kind(index, kind)
	local names = {}
	for _, entry in ipairs(index.list) do
		if entry.kind == kind then names[#names + 1] = entry.title end
	end
	table.sort(names)
	return names
end

local function add_overview(out, index)
	local modules = {}
	for _, name in ipairs(MODULE_ORDER) do modules[#modules + 1] = index.by_title[name] end
	wrap(out, 'Quoll: tensors that know how they are quantized, in Lua 5.4. Everything below is a global name, in scripts ' ..
		"and at the prompt; require 'quoll' gives all of it in one table.", '')
	out[#out + 1] = ''
	add_list(out, modules)
	for _, kind in ipairs {'concept', 'scheme', 'number format', 'observer', 'dtype', 'format'} do
		add_names(out, (kind == 'format' and 'File formats') or kind:gsub('^%l', string.upper) .. 's', of_kind(index, kind))
	end
	out[#out + 1] = ''
	for _, line in ipairs {"help 'quantize'     a name: x:quantize, quant.spec, int8, spec",
		"help 'x:*'          names by a pattern, with a line each", "help 'round'        every entry that has the word",
		'help(quant.spec)    a function or a value', 'source(report)      the text of a function written in Lua'} do
		out[#out + 1] = '  ' .. line
	end
end

---------------------------------------------------------------- what is asked

local function all_titles(index)
	local titles = {}
	for title in pairs(index.by_title) do titles[#titles + 1] = title end
	for bare in pairs(index.by_bare) do titles[#titles + 1] = bare end
	table.sort(titles)
	return titles
end

local function add_search(out, index, text)
	local found = index.search(text)
	text = internal.escape(text, 80)
	local method = index.near_method(text)
	local hint = method and ("did you mean '%s'?"):format(method) or near(text, all_titles(index)):gsub('^; ', '')
	if hint ~= '' then out[#out + 1] = ("No name '%s': %s"):format(text, hint) end
	if #found == 0 then
		if hint == '' then out[#out + 1] = ("No help for '%s'; help() lists all topics."):format(text) end
		return
	end
	if hint ~= '' then out[#out + 1] = '' end
	out[#out + 1] = ("Entries with '%s'"):format(text)
	add_list(out, table.move(found, 1, math.min(#found, 40), 1, {}))
	if #found > 40 then out[#out + 1] = ('  … and %d more'):format(#found - 40) end
end

-- The entry of a format that quant.scheme made, or nil.
local function user_format(name)
	for _, f in ipairs(internal.formats()) do
		if f.user and f.name == name then
			local spec = quant.spec(name)
			local values = {}
			for i, v in ipairs(spec.values or {}) do values[i] = i <= 32 and ('%.6g'):format(v) or nil end
			local more = spec.values and #spec.values > #values and (' … (%d values)'):format(#spec.values) or ''
			local codes = spec.functions and 'Codes and values are made by functions of quant.scheme' or 'Values: ' .. table.concat(values, ' ') .. more
			return {user = true, kind = 'number format', title = name, bare = name, aliases = {}, options = {}, usage = ("x:quantize '%s'"):format(name),
				text = ('%s.\n\n%s. Codes of %d bits in %s, %s.'):format((f.what:gsub('%.$', '')), codes, spec.bits, f.storage,
					f.block and ('a scale per %d elements unless the spec says otherwise (%s:64)'):format(f.block, name)
					or ('a scale per tensor; %s/1 and %s:32 as with other dtypes'):format(name, name))}
		end
	end
end

local function add_text(out, index, text)
	if text:find '%*' then
		local found = index.glob(text)
		if #found > 0 then return add_list(out, found) end
	end
	local found, own = index.find(text), user_format(text)
	if own then found = table.move(found, 1, #found, 2, {own}) end
	if #found == 0 then return add_search(out, index, text) end
	add_entry(out, index, found[1])
	if #found > 1 then
		local others = {}
		for i = 2, #found do others[#others + 1] = found[i].title end
		out[#out + 1] = ''
		wrap(out, 'Of the same name: ' .. table.concat(others, ', '), '')
	end
end

-- What a value that is no text is documented as, or nil.
local function title_for(index, value)
	local meta = debug.getmetatable(value)
	local object = type(meta) == 'table' and type(meta.__name) == 'string' and meta.__name:match '^quoll%.(%l+)$'
	if type(value) == 'function' then return index.title_of(value) end
	if object == 'row' then return 'report' end
	if object then return object end
	for _, name in ipairs(MODULE_ORDER) do
		if rawequal(_G[name], value) then return name end
	end
end

doc {name = 'help', usage = "help()  help 'quantize'  help 'x:*'  help(bench.time)",
	text = [[Prints what is known: without an argument an overview, of a name its usage, options, an example that runs and
related names, of a pattern with * a line for each name that fits, of any other word the entries that have it. A function,
tensor, report or module may be given itself. At the prompt ?name does the same.]],
	example = "help 'tensor.threads'"}

return function(...)
	local index, out = internal.import 'interp/help/help_index', {}
	local value = ...
	if select('#', ...) > 1 then base.surplus('help', 1, select(2, ...)) end
	if select('#', ...) == 0 then
		add_overview(out, index)
	elseif type(value) == 'string' and value:find '%S' then
		add_text(out, index, value:match '^%s*(.-)%s*$')
	else
		local title = title_for(index, value)
		if title and index.find(title)[1] then
			add_text(out, index, title)
		elseif type(value) == 'function' then
			out[1] = "This function has no help; source(f) shows its text when it is written in Lua."
		elseif value == nil then
			out[1] = "The value is nil: a name is given as text, help 'name'."
		else
			out[1] = ('No help for a %s; help() lists all topics.'):format(type(value))
		end
	end
	print(table.concat(out, '\n'))
end
