-- SPDX-License-Identifier: MIT
-- "did you mean" for Lua's own errors about nil: a global, a field or a method whose name is near to one that exists.
-- Called by the
-- message handler (interp/trace/traceback.c) with the message and the line of the source; level 5 is the function that
-- failed (1: this one,
-- 2: suggest, 3: build, 4: the handler).
local _, internal = ...
local LEVEL = 5

local function add_keys(words, t)
	if type(t) ~= 'table' then return end
	for key in next, t do
		if type(key) == 'string' and key:find '^[%a_][%w_]*$' then words[#words + 1] = key end
	end
end

-- The value of a name where the error was raised. Called two functions below the one that C calls.
local function value_of(name)
	local found, value = false, nil
	for i = 1, 250 do
		local known, v = debug.getlocal(LEVEL + 2, i)
		if not known then break end
		if known == name then found, value = true, v end
	end
	if found then return value end
	local info = debug.getinfo(LEVEL + 2, 'f')
	for i = 1, info and 250 or 0 do
		local known, v = debug.getupvalue(info.func, i)
		if not known then break end
		if known == name then return v end
	end
	return rawget(_G, name)
end

-- Names that `object.` or `object:` could have been followed by.
local function members(value)
	local words = {}
	for _ = 1, 8 do -- along the metatables
		add_keys(words, value)
		local meta = debug.getmetatable(value)
		if type(meta) ~= 'table' then break end
		add_keys(words, rawget(meta, 'methods'))
		value = rawget(meta, '__index')
		if type(value) ~= 'table' then break end
	end
	return words
end

local function globals()
	local words = {}
	add_keys(words, _G)
	add_keys(words, internal.locals and internal.locals() or {})
	for i = 1, 250 do
		local name = debug.getlocal(LEVEL + 1, i)
		if not name then break end
		words[#words + 1] = name
	end
	return words
end

-- The path before ".name" or ":name" in the line, followed to its value.
local function owner(line, name)
	local path = line:match('([%a_][%w_%.]*)%s*[.:]%s*' .. name .. '%f[^%w_]')
	if not path then return line:find("['\"]%s*%)?%s*:%s*" .. name) and '' or nil end
	local first, rest = path:match '^([^.]+)(.*)$'
	local value = value_of(first)
	for field in rest:gmatch '[^.]+' do
		if type(value) ~= 'table' then return nil end
		value = rawget(value, field)
	end
	return value
end

-- dataloader and quantise: near to a name of PyTorch, and to none of the module itself.
local function near_habit(answers, name, value)
	local words = {}
	for word in next, answers do words[#words + 1] = word end
	local near = internal.nearest(name, table.concat(members(value), ' ')) == '' and internal.nearest(name, table.concat(words, ' ')):match "'(.*)'"
	return near and '; here: ' .. answers[near] or nil
end

-- What the name is here when PyTorch or Python has it: for a global by what follows it in the line, else by whose field it is.
local function habit(kind, name, value, line)
	local habits = internal.import 'interp/prelude/habits'
	if kind == 'global' then return habits.of_global(name, line:match('%f[%w_]' .. name .. '%.([%w_.]+)')) end
	local meta = debug.getmetatable(value)
	if type(meta) == 'table' and rawget(meta, '__name') == 'quoll.optimizer' then return habits.answer('optimizer', name) end
	for module, of in pairs {tensor = 'functions', nn = 'nn', optim = 'optim', quant = 'quant', plot = 'plot', data = 'data'} do
		if value ~= nil and rawequal(value, rawget(_G, module)) then return habits.answer(of, name) or near_habit(habits.kinds[of], name, value) end
	end
end

-- What looks right in Python, and is about strings here: patterns of messages.
local STRINGS = {
	{"attempt to add a 'string' with a '", "; texts are joined by .."},
	{"attempt to add a '%l+' with a 'string'", "; texts are joined by .."},
	{"attempt to mod a 'string' with a '", "; a text is filled in by ('%d'):format(3)"},
	{"attempt to mul a 'string' with a 'number'", "; a text is repeated by ('ab'):rep(3)"},
}

-- What to put after the message, or nil.
return function(message, line)
	for _, hint in ipairs(STRINGS) do
		if message:find(hint[1]) then return hint[2] end
	end
	if message:find 'attempt to get length of a nil value' and line:find '^%s*#' then return "; '--' begins a comment" end
	local kind, name = message:match "attempt to %l+ a nil value %((%l+) '([%a_][%w_]*)'%)"
	if not kind then kind, name = message:match "attempt to perform arithmetic on a nil value %((%l+) '([%a_][%w_]*)'%)" end
	local words, known
	if kind == 'global' then
		known = habit(kind, name, nil, line)
		words = globals()
	elseif kind == 'field' or kind == 'method' then
		local value = owner(line, name)
		if value == nil then return nil end
		known = habit(kind, name, value, line)
		words = members(value)
	else
		return nil
	end
	if known then return known end
	local near = internal.nearest(name, table.concat(words, ' '))
	return near ~= '' and near or nil
end
