-- SPDX-License-Identifier: MIT
-- ?name, ??name and ?*part*.
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local function first_sentence(text, most)
	text = (text or ''):gsub('%s+', ' ')
	text = text:match '^(.-[%w%)]%.) ' or text
	return (utf8.len(text) or #text) > most and text:sub(1, utf8.offset(text, most) - 1) .. '…' or text
end

-- Names that fit the pattern, then entries whose first sentence has it; below them the user's variables that fit.
local function apropos(pattern)
	local index = internal.import 'interp/help/help_index'
	local word = pattern:gsub('%*', ''):lower()
	local lua = '^' .. pattern:gsub('[%-%.%+%[%]%(%)%$%^%%]', '%%%0'):gsub('%*', '.*') .. '$'
	local seen, n = {}, 0
	local function say(title, text)
		n = n + 1
		print(('  %-26s %s'):format(title, text and first_sentence(text, math.max(30, internal.width() - 30)) or ''))
	end
	for _, entry in ipairs(index.glob(pattern)) do
		seen[entry.title] = true
		say(entry.title, entry.text)
	end
	for _, entry in ipairs(index.list) do
		local text = first_sentence(entry.text, math.huge)
		if word ~= '' and not seen[entry.title] and text:lower():find(word, 1, true) then
			seen[entry.title] = true
			say(entry.title, entry.text)
		end
	end
	local mine = {}
	for name in next, _G do
		if type(name) == 'string' and not base.is_given(name) and name:find(lua) then mine[#mine + 1] = name end
	end
	table.sort(mine)
	for _, name in ipairs(mine) do say(name, 'a variable of yours: ' .. (internal.describe(_G[name]) or type(_G[name]))) end
	if n == 0 then print(("nothing has '%s' in its name or first sentence"):format(pattern)) end
end

-- The value behind "cfg.lr" or "m.linear1" where the user made `cfg`; raw, so that no code of the user runs. Returns whether
-- there is one.
local function field_of(name)
	local first, rest = name:match '^([%a_][%w_]*)%.([%w_.]+)$'
	if not first or base.is_given(first) then return false end
	local value = internal.locals()[first]
	if value == nil then value = rawget(_G, first) end
	for key in (rest .. '.'):gmatch '([^.]*)%.' do
		if type(value) ~= 'table' then return false end
		local own = rawget(value, key)
		if own == nil then own = rawget(value, math.tointeger(tonumber(key))) end
		if own == nil and internal.import 'nn/base/module'.is_module(value) then
			local good, found = pcall(function() return value[key] end)
			own = good and found or nil
		end
		value = own
	end
	return value ~= nil, value
end

-- What is said of "cfg.lrr" where the user made `cfg` and it has no such field; nil: help is asked for the name.
local function no_field(name)
	local owner, key = name:match '^(.-)[.]([^.]+)$'
	local made, value
	if owner and owner:find '^[%a_][%w_]*$' then
		value = not base.is_given(owner) and (internal.locals()[owner] or rawget(_G, owner)) or nil
		made = value ~= nil
	elseif owner then
		made, value = field_of(owner)
	end
	if not made or type(value) ~= 'table' or getmetatable(value) then return nil end
	local keys = {}
	for k in next, value do keys[#keys + 1] = type(k) == 'string' and k:find '^[%a_][%w_]*$' and k or nil end
	table.sort(keys)
	return ("%s has no field '%s'%s"):format(owner, key, base.near(key, keys))
end

local LIBRARIES = {string = true, table = true, math = true, os = true, io = true, utf8 = true, coroutine = true, debug = true,
	package = true}
local BASIC, WORDS = {}, {}
for word in ('assert collectgarbage dofile error getmetatable ipairs load loadfile next pairs pcall print rawequal rawget rawlen ' ..
	'rawset require select setmetatable tonumber tostring type warn xpcall'):gmatch '%l+' do BASIC[word] = true end
for word in ('and break do else elseif end false for function goto if in local nil not or repeat return then true until ' ..
	'while'):gmatch '%l+' do WORDS[word] = true end
local MANUAL = 'https://www.lua.org/manual/5.4/manual.html#'

-- What is Lua's own and has no entry here: the place in its manual, or nil.
local function of_lua(name)
	local library, field = name:match '^(%l[%w]*)[.]([%w_]+)$'
	if WORDS[name] then return ('%s is a word of Lua: %s3'):format(name, MANUAL) end
	if BASIC[name] then return ('%s is a function of Lua: %spdf-%s'):format(name, MANUAL, name) end
	if LIBRARIES[name] then return ('%s is a library of Lua: %s6'):format(name, MANUAL) end
	if LIBRARIES[library] and rawget(_G[library] or {}, field) ~= nil then
		return ("%s belongs to Lua's library %s: %spdf-%s"):format(name, library, MANUAL, name)
	end
end

-- ?%word: what to type after it; nil: there is none.
local function of_magic(name)
	local word = name:match '^%%%%?(%l+)$'
	for _, magic in ipairs(word and internal.magics() or {}) do
		if magic[1] == word then return ('%%%s %s'):format(word, magic[2]):gsub(' $', '') .. '\n  ' .. magic[3] end
	end
end

-- name nil: help in general. own: the user made a variable of that name, whose value is `subject`.
return function(name, subject, own, with_source)
	if not name then return help() end
	if name:find('*', 1, true) then return apropos(name) end
	if not own then own, subject = field_of(name) end
	local missing = not own and no_field(name)
	if missing then
		print(missing)
		return
	elseif own then
		internal.import 'interp/help/inspect'(name, subject, with_source)
	elseif of_magic(name) or of_lua(name) and not internal.import 'interp/help/help_index'.by_title[name] then
		print(of_magic(name) or of_lua(name))
		return
	else
		local index = internal.import 'interp/help/help_index'
		local method = name:gsub('^([%a_][%w_]*)%.([%w_]+)$', '%1:%2') -- x.relu of a tensor x
		help(not index.find(name)[1] and index.find(method)[1] and method or name)
	end
	if not with_source then return end
	if own and type(subject) == 'function' then
		source(subject)
	elseif not own then
		local ok, message = pcall(source, name)
		if not ok then print('-- ' .. tostring(message):gsub('^.-source: ', 'no source: ')) end
	end
end
