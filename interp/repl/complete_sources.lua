-- SPDX-License-Identifier: MIT
-- Where completions come from: names, specs, values of options, files, help. Each gives a list of {text =, kind =,
-- doc =}; those that fit the end of a longer word also say how many bytes of it they leave alone.
local _, internal = ...
local index = internal.import 'interp/help/help_index'
local guess = internal.import 'interp/repl/complete_guess'
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

sources.spec_fields = internal.spec_fields()

local function field(name)
	for _, option in ipairs(sources.spec_fields) do
		if option[1] == name then return option end
	end
end

-- Those that have a name: `function` stands for functions of the user.
local function observers()
	local list = {}
	for _, item in ipairs(of_kind 'observer') do list[#list + 1] = item.text ~= 'function' and item or nil end
	return list
end

-- dtype[/axis][:block][@observer]: the part that is being written.
function sources.specs(content)
	local list, head = {}, content:match '^.*[@/:]' or ''
	local mark = head:sub(-1)
	if mark == '@' then return observers(), #head end
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
	for dtype in field 'dtype'[4]:gmatch '%S+' do add(dtype, guess.doc_of(dtype)) end
	add('int8/1', 'one scale for each index of axis 1')
	add('int4:32', 'one scale for 32 elements')
	add('int4:32+min', 'one scale and one minimum for 32 elements')
	for _, observer in ipairs(observers()) do add('uint8@' .. observer.text, observer.doc) end
	return list, 0
end

local SPEC_OPTIONS = {weight = true, input = true, output = true, out = true, quant = true, spec = true}
function sources.is_spec(option) return option[2] == 'spec' or SPEC_OPTIONS[option[1]] or false end

-- The words of a text like "a b c (default b)", "a (default), b or c" or "'a' (default) or 'b'"; nil: it lists none.
local function listed(text)
	local words = {}
	for word in text:gmatch "'([%w_]+)'" do words[#words + 1] = word end
	if #words > 1 then return words end
	local head, usual = text:match '^([%w_ ]+) %(default ([%w_]+)%)'
	if not usual and text:find ' %(default%)' then
		head = text:gsub(' %(default%)', ''):gsub(',? or ', ' '):gsub(',', '')
		usual = text:match '([%w_]+) %(default%)'
	end
	if not usual or head:find '[^%w_ ]' or not (' ' .. head .. ' '):find(' ' .. usual .. ' ', 1, true) then return nil end
	words = {}
	for word in head:gmatch '%S+' do words[#words + 1] = word end
	return #words > 1 and words or nil
end

-- An option of another function of that name: of g:quantize where nothing says that g is no tensor.
function sources.namesake(entry, key)
	for _, other in ipairs(index.by_bare[entry.bare] or {}) do
		for _, option in ipairs(other.options or {}) do
			if option[1] == key then return option end
		end
	end
end

-- Functions of plot: the kinds.
local function plots()
	local list = {}
	for _, entry in ipairs(index.list) do
		if entry.kind == 'function' and entry.title:find '^plot%.' then
			list[#list + 1] = {text = entry.bare, kind = 'value', doc = guess.doc_of(entry.title)}
		end
	end
	return list
end

-- Words that have help of their own say that.
local function described(words, kind, doc)
	local list, known = {}, {}
	for _, one in ipairs(kind or {}) do
		for _, item in ipairs(of_kind(one)) do known[item.text] = known[item.text] or item.doc end
	end
	for _, word in ipairs(words) do
		if word ~= 'function' then list[#list + 1] = {text = word, kind = 'value', doc = known[word] or doc} end
	end
	return list
end

-- Devices that can be used; the first question looks for plug-ins.
local function devices()
	local list = {}
	for i, name in ipairs(gpu.devices()) do
		list[i] = {text = name, kind = 'device', doc = name == 'cpu' and guess.doc_of 'cpu' or name:find '^cudaemu' and 'kernels of GPUs, run on the CPU' or 'a GPU'}
	end
	return list
end

-- Methods of post-training quantization, with what they say first about themselves.
local function quantizers()
	local method, list = internal.import 'nn/quantize/method', {}
	for i, name in ipairs(method.names) do
		list[i] = {text = name, kind = 'value', doc = (method.find(name).text:gsub('%s+', ' '):gsub('%. .*', '.'))}
	end
	return list
end

local KINDS = {dtype = {'dtype', 'number format'}, scheme = {'scheme'}, observer = {'observer'}}

-- The values of an option {name, type, text, choices} where they are a closed list.
function sources.values(option)
	local name, choices = option[1], {}
	for word in (option[4] or ''):gmatch '%S+' do choices[#choices + 1] = word end
	if #choices > 0 then return described(choices, KINDS[name], option[3] or '') end
	if option[2] == 'dtype' or name == 'dtype' then return of_kind 'dtype' end
	if name == 'device' then return devices() end
	if name == 'method' and option[2] == 'any' then return quantizers() end
	if name == 'kind' and (option[3] or ''):find 'kind of plot' then return plots() end
	return option[2] == 'text' and described(listed(option[3] or '') or {}, nil, option[3]) or {}
end

---------------------------------------------------------------- files

-- Entries of the folder that the path ends in; folders end in a slash.
function sources.files(path)
	local folder = path:match '^.*/' or ''
	local hidden, list = path:sub(#folder + 1, #folder + 1) == '.', {}
	for _, entry in ipairs(internal.entries(folder == '' and '.' or internal.import 'interp/prelude/base'.path(folder)) or {}) do
		if hidden or entry[1]:sub(1, 1) ~= '.' then
			list[#list + 1] = {text = entry[1] .. (entry[2] and '/' or ''), kind = entry[2] and 'folder' or 'file', doc = ''}
		end
	end
	table.sort(list, function(a, b) return a.text < b.text end)
	return list, #folder
end

-- What may be after %set: names, then values.
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

local SPEC = {options = sources.spec_fields}
local SPEC_LIST = {items = SPEC, specs = 1}

-- Rules are {pattern, spec, fields …}; what the fields are is told where all layers take them.
local function rule_list()
	local options = {}
	for _, name in ipairs(internal.import 'nn/quantize/rules'.fields) do
		local found = {name, 'true or false', 'no error where there is no integer version'}
		for _, option in ipairs(index.by_title['module:quantize'].options) do
			if option[1] == name then found = option end
		end
		options[#options + 1] = found
	end
	return {items = {options = options, items = SPEC, specs = 2}}
end

-- {name, option=}, or a list of such and of names.
local function chain()
	local options, seen = {}, {}
	local method = internal.import 'nn/quantize/method'
	for _, name in ipairs(method.names) do
		for _, option in ipairs(method.find(name).options or {}) do
			if not seen[option[1]] then options[#options + 1], seen[option[1]] = {option[1], option[2], ('of %s: %s'):format(name, option[3])}, option end
		end
	end
	local list = {options = options, strings = quantizers}
	list.items = list
	return list
end

-- Choices of quant.search: specs, and {spec, method=}.
local function choices()
	local options = table.move(sources.spec_fields, 1, #sources.spec_fields, 1, {})
	options[#options + 1] = {'method', 'any', 'how its codes are chosen'}
	return {items = {options = options, specs = 1}, specs = 1}
end

-- What the table after some names is: see role in interp/repl/complete.lua.
function sources.list_of(name)
	if name == 'method' then return chain() end
	if name == 'choices' then return choices() end
	if name == 'rules' then return rule_list() end
end

local TAKES_SPEC = {quantize = true, requantize = true, fake = true, spec = true, observer = true, params = true, estimate = true}

-- What a table among the arguments of a documented function is: see role in interp/repl/complete.lua.
function sources.table_of(entry)
	if entry.title == 'quant.compare' then return SPEC_LIST end
	if TAKES_SPEC[entry.bare] and (entry.title:find '^x:' or entry.title:find '^quant%.') then
		return SPEC
	end
	if entry.title == 'graph:match' then return rule_list() end
	if entry.title == 'quant.methods' then return {options = entry.options, strings = quantizers, items = chain()} end
	return {options = entry.options}
end

-- Matches for a string among the arguments of a documented function; nil: nothing special, file names.
function sources.argument(entry, content)
	local name = entry.bare
	if entry.title == 'help' then return sources.titles(), 0 end
	if entry.title == 'quant.dtype' or entry.title == 'x:to' or entry.title == 'module:to' then
		local list = of_kind 'dtype'
		for _, device in ipairs(name == 'to' and devices() or {}) do list[#list + 1] = device end
		return list, 0
	end
	if entry.title == 'quant.formats' then return of_kind 'number format', 0 end
	if SPECS[name] and entry.title:find '[.:]' and not entry.title:find '^module:' then return sources.specs(content) end
	if entry.title == 'quant.fallback' or entry.title == 'gpu.fallback' then
		return {{text = 'silent', kind = 'value', doc = ''}, {text = 'warn', kind = 'value', doc = ''},
			{text = 'error', kind = 'value', doc = ''}}, 0
	end
end

return sources
