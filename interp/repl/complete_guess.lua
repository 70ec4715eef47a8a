-- SPDX-License-Identifier: MIT
-- What the tokens before a place stand for, found without running anything: variables are looked up, fields are read
-- raw, and a call has the kind of result that its documentation lets expect. A "thing" is {value =} when the value is
-- known, or {object =} with the name of its class: 'tensor', 'module', 'string', …
local _, internal = ...
local index = internal.import 'interp/help/help_index'
local guess = {}

local MODULES = {'tensor', 'quant', 'nn', 'optim', 'data', 'graph', 'hw', 'gpu', 'bench', 'plot', 'sweep'}

---------------------------------------------------------------- values

local function variable(name)
	local locals = internal.locals and internal.locals() or {}
	if locals[name] ~= nil then return locals[name] end
	return rawget(_G, name)
end

local function module_name(value)
	for _, name in ipairs(MODULES) do
		if rawequal(rawget(_G, name), value) then return name end
	end
end

-- 'tensor', 'report', … of one of our objects, 'string' of a string.
local function class_of(value)
	if type(value) == 'string' then return 'string' end
	local meta = debug.getmetatable(value)
	local name = type(meta) == 'table' and rawget(meta, '__name')
	return type(name) == 'string' and name:match '^quoll%.(%l+)$' or nil
end

-- A field, also of the tables behind __index; functions there are not called.
local function field(value, name)
	for _ = 1, 10 do
		if type(value) ~= 'table' then return nil end
		local found = rawget(value, name)
		if found ~= nil then return found end
		local meta = debug.getmetatable(value)
		value = type(meta) == 'table' and rawget(meta, '__index')
	end
end

---------------------------------------------------------------- tokens

local OPENED = {[')'] = '(', ['}'] = '{', [']'] = '['}

-- The index of the bracket that opens the one at i.
local function opening(tokens, i)
	local depth = 0
	for k = i, 1, -1 do
		local text = tokens[k][1] == 'op' and tokens[k].text
		if OPENED[text] then depth = depth + 1 end
		if text == '(' or text == '{' or text == '[' then
			depth = depth - 1
			if depth == 0 then return k end
		end
	end
end

-- Methods and functions that return a number, a plain table or nothing.
local PLAIN = {}
for title in ([[x:item x:totable x:size x:dim x:nelem x:nbytes x:qparams x:split x:explain tensor.memory tensor.seed
tensor.threads module:evaluate observer:params]]):gmatch '%S+' do
	PLAIN[title] = true
end

local RESULTS = { -- pattern of a title -> class of what the call returns
	{'^nn%.%u', 'module'}, {'^nn%.module$', 'module'}, {'^nn%.llama$', 'module'}, {'^nn%.', 'tensor'},
	{'^quant%.spec$', 'spec'}, {'^quant%.observer$', 'observer'}, {'^quant%.', 'report'}, {'^optim%.', 'optimizer'},
	{'^data%.', 'dataset'}, {'^bench%.', 'report'}, {'^plot%.', 'figure'}, {'^report', 'report'},
	{'^x:error$', 'report'}, {'^x:dtype$', 'string'}, {'^x:device$', 'string'}, {'^x:spec$', 'spec'},
	{'^tensor', 'tensor'}, {'^x:', 'tensor'}, {'^module:', 'module'},
}

local function result_class(title)
	if PLAIN[title] then return nil end
	for _, rule in ipairs(RESULTS) do
		if title:find(rule[1]) then return rule[2] end
	end
end

-- The title of one of our functions. help_index.title_of asks pairs, which may be the user's.
local function title_of(value)
	for _, name in ipairs(MODULES) do
		local module = rawget(_G, name)
		for key, item in next, type(module) == 'table' and module or {} do
			local title = type(key) == 'string' and rawequal(item, value) and name .. '.' .. key
			if title and index.by_title[title] then return title end
		end
	end
	for name, entry in pairs(index.by_title) do
		if entry.kind == 'function' and rawequal(rawget(_G, name), value) then return name end
	end
end

local infer

-- The name token at i as a documented function: its entry, or nil.
local function entry_of_name(tokens, i)
	local name, before = tokens[i].text, i > 1 and tokens[i - 1].text
	if before ~= '.' and before ~= ':' then
		local value = variable(name)
		local title = type(value) == 'function' and title_of(value) or module_name(value)
		return title and index.find(title)[1]
	end
	local owner = i > 2 and infer(tokens, i - 2) or {}
	if owner.value ~= nil and module_name(owner.value) then
		return index.by_title[module_name(owner.value) .. '.' .. name]
	end
	local class = owner.object or class_of(owner.value)
	if class then return index.by_title[(class == 'tensor' and 'x' or class) .. ':' .. name] end
	local found = type(owner.value) == 'table' and field(owner.value, name)
	if type(found) == 'function' then
		local title = title_of(found)
		return title and index.find(title)[1]
	end
	if owner.value == nil and before == ':' then -- anything may have such a method
		return index.by_title['x:' .. name] or index.by_title['module:' .. name] or index.by_title['report:' .. name]
	end
end

-- The entry of the function that is called by what follows the token at i, or nil.
function guess.callee(tokens, i)
	if i < 1 or tokens[i][1] ~= 'name' then return nil end
	return entry_of_name(tokens, i)
end

local function infer_name(tokens, i)
	local name, before = tokens[i].text, i > 1 and tokens[i - 1].text
	if before == ':' then return {} end
	if before ~= '.' then return {value = variable(name)} end
	local owner = i > 2 and infer(tokens, i - 2) or {}
	if class_of(owner.value) and class_of(owner.value) ~= 'module' then return {} end
	return {value = field(owner.value, name)}
end

-- A call, an index or something in parentheses that ends at i.
local function infer_bracket(tokens, i)
	local open = opening(tokens, i)
	local before = open and tokens[open - 1]
	if not open then return {} end
	if tokens[i].text == ']' then
		local owner = before and infer(tokens, open - 1) or {}
		return (owner.object or class_of(owner.value)) == 'tensor' and {object = 'tensor'} or {}
	end
	if before and before[1] == 'name' then
		local entry = entry_of_name(tokens, open - 1)
		return {object = entry and result_class(entry.title)}
	end
	if tokens[i].text == ')' and open == i - 2 and (not before or before[1] ~= 'op' or not OPENED[before.text]) then
		return infer(tokens, i - 1)
	end
	return {}
end

function infer(tokens, i)
	local token = tokens[i]
	if not token then return {} end
	if token[1] == 'name' then return infer_name(tokens, i) end
	if token[1] == 'string' then
		local entry = guess.callee(tokens, i - 1) -- f 'text'
		return {object = entry and result_class(entry.title) or not entry and 'string' or nil}
	end
	return token[1] == 'op' and OPENED[token.text] and infer_bracket(tokens, i) or {}
end

---------------------------------------------------------------- members

-- A few words about a value; no __tostring of the user is asked.
function guess.describe(value)
	if internal.is_tensor(value) then return internal.describe(value) end
	if type(value) == 'number' or type(value) == 'boolean' then return tostring(value) end
	if type(value) == 'string' then return ('%q'):format(value:sub(1, 40)):gsub('\\\n', '\\n') end
	return class_of(value) or type(value)
end

local function first_sentence(text)
	text = (text or ''):gsub('%s+', ' ')
	return text:match '^(.-[%w%)]%.) ' or text
end

function guess.doc_of(title)
	local entry = title and index.by_title[title]
	return entry and first_sentence(entry.text) or ''
end

-- The first that adds a name has the best text for it.
local function add(list, text, kind, doc)
	if type(text) ~= 'string' or not text:find '^[%a_][%w_]*$' or list.seen[text] then return end
	list.seen[text] = true
	list[#list + 1] = {text = text, kind = kind, doc = doc or ''}
end

local function add_titles(list, prefix, kind)
	for title in pairs(index.by_title) do
		local name = title:sub(1, #prefix) == prefix and title:sub(#prefix + 1)
		if name then add(list, name, kind, guess.doc_of(title)) end
	end
end

local function add_class(list, class)
	local prefix = (class == 'tensor' and 'x' or class) .. ':'
	add_titles(list, prefix, 'method')
	local meta = debug.getregistry()['quoll.' .. class]
	local methods = type(meta) == 'table' and (rawget(meta, 'methods') or rawget(meta, '__index'))
	for name, value in next, type(methods) == 'table' and methods or {} do
		if type(name) == 'string' and type(value) == 'function' and not name:find '^__' then
			add(list, name, 'method', guess.doc_of(prefix .. name))
		end
	end
end

local function add_fields(list, value, callable)
	for _ = 1, 10 do
		if type(value) ~= 'table' then return end
		for name, item in next, value do
			if not callable or type(item) == 'function' then
				add(list, name, type(item) == 'function' and 'function' or type(item) == 'table' and 'table' or 'field',
					guess.describe(item))
			end
		end
		local meta = debug.getmetatable(value)
		value = type(meta) == 'table' and rawget(meta, '__index')
	end
end

-- Matches for what may follow the token at i and a dot, or a colon when `callable`.
function guess.members(tokens, i, callable)
	local list, thing = {seen = {}}, infer(tokens, i)
	local value, class = thing.value, thing.object or class_of(thing.value)
	local module = value ~= nil and module_name(value)
	if module then add_titles(list, module .. '.', 'function') end
	if class == 'string' then
		add_fields(list, string, callable)
	elseif class then
		add_class(list, class)
	elseif value == nil and callable then -- a value of some later time: most likely a tensor
		add_class(list, 'tensor')
	end
	add_fields(list, value, callable)
	return list
end

-- Matches for a string in brackets after the token at i: t['key
function guess.keys(tokens, i)
	local list, value = {}, infer(tokens, i).value
	for key, item in next, type(value) == 'table' and value or {} do
		if type(key) == 'string' and not key:find "[%c'\"\\]" then
			list[#list + 1] = {text = key, kind = 'key', doc = guess.describe(item)}
		end
	end
	table.sort(list, function(a, b) return a.text < b.text end)
	return list
end

return guess
