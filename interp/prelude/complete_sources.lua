-- SPDX-License-Identifier: MIT
-- Where completions come from: names, specs, values of options, files, help. Each gives a list of {text =, kind =,
-- doc =}; those that fit the end of a longer word also say how many bytes of it they leave alone.
local _, internal = ...
local index = internal.import 'help_index'
local guess = internal.import 'complete_guess'
local sources = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
while]]):gmatch '%a+' do
	KEYWORDS[#KEYWORDS + 1] = word
end

local function of_kind(kind)
	local list = {}
	for _, entry in ipairs(index.list) do
		if entry.kind == kind then
			list[#list + 1] = {text = entry.bare, kind = kind, doc = guess.doc_of(entry.title)}
		end
	end
	table.sort(list, function(a, b) return a.text < b.text end)
	return list
end

---------------------------------------------------------------- names

-- Variables of the session, and names that the input itself has used before.
function sources.names(list, tokens)
	for name, value in next, internal.locals and internal.locals() or {} do
		list[#list + 1] = {text = name, kind = 'local', doc = guess.describe(value)}
	end
	for name, value in next, _G do
		if type(name) == 'string' and name:find '^[%a_][%w_]*$' then
			local doc = guess.doc_of(name)
			list[#list + 1] = {text = name, kind = type(value) == 'function' and 'function' or 'global',
				doc = doc ~= '' and doc or guess.describe(value)}
		end
	end
	for i, token in ipairs(tokens) do
		local before = i > 1 and tokens[i - 1].text
		if token[1] == 'name' and before ~= '.' and before ~= ':' then
			list[#list + 1] = {text = token.text, kind = 'name', doc = 'in this input'}
		end
	end
	for _, word in ipairs(KEYWORDS) do list[#list + 1] = {text = word, kind = 'keyword', doc = ''} end
end

-- What help knows.
function sources.titles()
	local list = {}
	for title, entry in pairs(index.by_title) do
		list[#list + 1] = {text = title, kind = entry.kind or 'help', doc = guess.doc_of(title)}
	end
	table.sort(list, function(a, b) return a.text < b.text end)
	return list
end

---------------------------------------------------------------- specs, dtypes, values

-- dtype[/axis][:block][@observer]: the part that is being written.
function sources.specs(content)
	local list, head = {}, content:match '^.*[@/:]' or ''
	local mark = head:sub(-1)
	if mark == '@' then return of_kind 'observer', #head end
	local function add(text, doc) list[#list + 1] = {text = text, kind = 'spec', doc = doc} end
	if mark == '/' then
		for axis = 1, 4 do add(tostring(axis), ('one scale for each index of axis %d'):format(axis)) end
		return list, #head
	elseif mark == ':' then
		for _, block in ipairs {16, 32, 64, 128, 256} do
			add(tostring(block), ('one scale for %d elements'):format(block))
		end
		return list, #head
	end
	for dtype in ('int8 int4 int16 uint8 uint4 uint16 binary float16 bfloat16 float32'):gmatch '%w+' do
		add(dtype, guess.doc_of(dtype))
	end
	add('int8/1', 'one scale for each index of axis 1')
	add('int4:32', 'one scale for 32 elements')
	for _, observer in ipairs(of_kind 'observer') do add('uint8@' .. observer.text, observer.doc) end
	return list, 0
end

local SPEC_OPTIONS = {weight = true, input = true, output = true, out = true, quant = true, spec = true}
function sources.is_spec(option) return option[2] == 'spec' or SPEC_OPTIONS[option[1]] or false end

local MODES = 'auto static dynamic weight_only qat train'

-- The values of an option {name, type, text, choices} where they are a closed list.
function sources.values(option)
	local list = {}
	local choices = option[4] or option[1] == 'mode' and MODES
	for word in (choices or ''):gmatch '%S+' do
		list[#list + 1] = {text = word, kind = 'value', doc = option[3] or ''}
	end
	if choices then return list end
	if option[2] == 'dtype' or option[1] == 'dtype' then return of_kind 'dtype' end
	if option[1] == 'scheme' then return of_kind 'scheme' end
	if option[1] == 'observer' then return of_kind 'observer' end
	return list
end

---------------------------------------------------------------- files

-- Entries of the folder that the path ends in; folders end in a slash.
function sources.files(path)
	local folder = path:match '^.*/' or ''
	local hidden, list = path:sub(#folder + 1, #folder + 1) == '.', {}
	for _, entry in ipairs(internal.entries(folder == '' and '.' or internal.import 'base'.path(folder)) or {}) do
		if hidden or entry[1]:sub(1, 1) ~= '.' then
			list[#list + 1] = {text = entry[1] .. (entry[2] and '/' or ''), kind = entry[2] and 'folder' or 'file', doc = ''}
		end
	end
	table.sort(list, function(a, b) return a.text < b.text end)
	return list, #folder
end

-- What may stand behind %set: names, then values.
function sources.settings(name)
	local list = {}
	for _, s in ipairs(internal.list_settings()) do
		if not name then
			list[#list + 1] = {text = s[1], kind = 'setting', doc = s[5]}
		elseif s[1] == name and not s[4]:find '^%-?%d' then
			for value in s[4]:gmatch '%S+' do list[#list + 1] = {text = value, kind = 'value', doc = s[5]} end
		end
	end
	return list
end

---------------------------------------------------------------- arguments

local SPECS = {quantize = true, requantize = true, fake = true, spec = true, observer = true, compare = true,
	estimate = true, params = true, lsq = true}

-- Matches for a string among the arguments of a documented function; nil: nothing special, file names.
function sources.argument(entry, content)
	local name = entry.bare
	if entry.title == 'help' then return sources.titles(), 0 end
	if entry.title == 'quant.dtype' or entry.title == 'x:to' or entry.title == 'module:to' then
		local list = of_kind 'dtype'
		if name == 'to' then table.move(of_kind 'device', 1, #of_kind 'device', #list + 1, list) end
		return list, 0
	end
	if SPECS[name] and entry.title:find '[.:]' and not entry.title:find '^module:' then return sources.specs(content) end
	if entry.title == 'quant.fallback' then
		return {{text = 'silent', kind = 'value', doc = ''}, {text = 'warn', kind = 'value', doc = ''},
			{text = 'error', kind = 'value', doc = ''}}, 0
	end
end

return sources
