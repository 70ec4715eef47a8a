-- SPDX-License-Identifier: MIT
-- What the other files of the prelude share: errors raised at the user's line, options checked against their
-- documentation, and the list of what is documented in Lua (C code has struct ql_doc for it).
local _, internal = ...
local base = {}
local getinfo, error, is_own = debug.getinfo, error, internal.is_own
local LONGEST = 2000 -- characters of a message

-- The message: one line of UTF-8, control characters written out.
local function shown(format, ...)
	local words = table.pack(...)
	for i = 1, words.n do
		if type(words[i]) == 'string' then words[i] = internal.escape(words[i], LONGEST) end
	end
	return internal.escape(format:format(table.unpack(words, 1, words.n)), LONGEST)
end

-- Raises at the innermost line outside of the prelude, with that line's position.
function base.fail(format, ...)
	local level = 2
	local info
	repeat
		info = getinfo(level, 'S')
		level = level + 1
	until not info or info.what ~= 'C' and not is_own(info.source)
	error(shown(format, ...), info and level - 1 or 0)
end

-- Refuses what cannot be the name of a file or folder.
function base.check_path(what, path)
	if path == '' or path:find('\0', 1, true) then base.fail("%s: wanted a name, got '%.60s'", what, path) end
	return path
end

-- A path as the shell reads it: ~/ is the home folder.
function base.path(path)
	local home = os.getenv 'HOME'
	return home and path:find '^~/' and home .. path:sub(2) or path
end

-- Adds the words of `text` to `out` in lines of at most `width` characters that begin with `indent`. Words end at blanks,
-- or at the separator, a class of characters.
function base.wrap(out, text, indent, width, separator)
	local function length(s) return utf8.len(s) or #s end
	local line = indent
	for word in text:gmatch(separator and '[^' .. separator .. ']+' or '%S+') do
		if line ~= indent and length(line) + 1 + length(word) > width then
			out[#out + 1], line = line, indent
		end
		line = line == indent and line .. word or line .. ' ' .. word
	end
	if line ~= indent then out[#out + 1] = line end
end

-- Whether the list has the value.
function base.one_of(value, list)
	for _, other in ipairs(list) do
		if value == other then return true end
	end
	return false
end

-- "; did you mean 'x'?", or '' when no word of the list is near.
function base.near(word, words)
	return internal.nearest(tostring(word), table.concat(words, ' '))
end

-- Documentation of one name, to be read by help and checked by tests/interp/help/help.lua:
--   name     'bench.time', 'report:sort' (a method), 'spec' (a concept)
--   kind     'function' by default; 'method', 'module', 'concept'
--   usage, text, example    as in struct ql_doc
--   options  list of {name, type, text}; a type is one of those below
base.docs = {}
function base.doc(entry)
	entry.kind = entry.kind or entry.name:find(':', 1, true) and 'method' or 'function'
	entry.options = entry.options or {}
	base.docs[#base.docs + 1] = entry
	return entry
end

---------------------------------------------------------------- surplus arguments

-- Lua drops arguments that a function has no parameter for, so `nn.Linear(3, 4, x)` would build another layer than was asked
-- for. Each documented function with a fixed number of parameters is wrapped in one that refuses more; surplus nils pass.
-- Functions of C: interp/bind/surplus.c.
local function surplus(name, most, ...)
	for i = 1, select('#', ...) do
		local value = select(i, ...)
		if value ~= nil then base.fail('%s: wanted no argument %d, got %s', name, most + i, base.describe(value)) end
	end
end
base.surplus = surplus

-- By number of parameters; tail calls, so that no frame is between the caller and the function.
local LIMIT = {
	[0] = function(f, name)
		return function(...)
			if ... ~= nil then surplus(name, 0, ...) end
			return f()
		end
	end,
	function(f, name)
		return function(a, ...)
			local x, y = ...
			if x ~= nil or y ~= nil then
				if a == nil and type(x) == 'string' then base.fail('%s: %s', name, x) end -- nil and why, as data.find gives
				surplus(name, 1, ...)
			end
			return f(a)
		end
	end,
	function(f, name)
		return function(a, b, ...)
			local x, y = ...
			if x ~= nil or y ~= nil then surplus(name, 2, ...) end
			return f(a, b)
		end
	end,
	function(f, name)
		return function(a, b, c, ...)
			local x, y = ...
			if x ~= nil or y ~= nil then surplus(name, 3, ...) end
			return f(a, b, c)
		end
	end,
	function(f, name)
		return function(a, b, c, d, ...)
			local x, y = ...
			if x ~= nil or y ~= nil then surplus(name, 4, ...) end
			return f(a, b, c, d)
		end
	end,
}

local inside = setmetatable({}, {__mode = 'k'}) -- function that checks -> the one it calls
local traceback_names = setmetatable({}, {__mode = 'k'})  -- the one it calls -> its name for tracebacks
debug.getregistry()['quoll.documented'] = traceback_names

-- The function as it was written, for who looks at its text or parameters.
function base.unsealed(f) return inside[f] or f end

-- The function, refusing more arguments than it has parameters; one with `...` checks them itself.
function base.limited(f, title)
	local name = title:match '[^.:]+$'
	local info = getinfo(f, 'uS')
	if info.what == 'C' or info.isvararg or inside[f] then return f end
	local checked = LIMIT[info.nparams](f, name)
	inside[checked] = f
	traceback_names[f] = title:find ':' and ("method '%s'"):format(name) or ("function '%s'"):format(title)
	return checked
end

-- Whether the global is what it was at the start, or unset: it is no variable of the user.
function base.is_given(name)
	local given, value = internal.baseline[name], rawget(_G, name)
	return given ~= nil and (given == true or value == nil or rawequal(value, given))
end

-- The table that holds what an entry documents, and its key: bench and time, the methods of reports and sort.
local function holder(name)
	local object, key = name:match '^(%l+):([%w_]+)$'
	if object then
		local meta = debug.getregistry()['quoll.' .. (object == 'x' and 'tensor' or object)]
		return meta and (rawget(meta, 'methods') or rawget(meta, '__index')), key
	end
	object, key = name:match '^(%l+)%.([%w_]+)$'
	return object and rawget(_G, object), key
end

local sealed = 0 -- entries of base.docs before this one are done
local waiting = {}

-- Called after every file of the prelude (prelude.c) with its name and what it returned, which is returned again: wraps the
-- functions that the file documents in their checks.
function base.seal(global, result)
	for i = sealed + 1, #base.docs do
		local entry = base.docs[i]
		if entry.kind == 'function' or entry.kind == 'method' then waiting[entry.name] = true end
	end
	sealed = #base.docs
	for name in next, waiting do
		local list, key = holder(name)
		local f = type(list) == 'table' and rawget(list, key)
		if type(f) == 'function' then
			list[key] = base.limited(f, name)
			waiting[name] = nil
		elseif name == global and type(result) == 'function' then
			result = base.limited(result, name)
			waiting[name] = nil
		end
	end
	return result
end

---------------------------------------------------------------- options

local is_tensor = internal.is_tensor
base.is_tensor = is_tensor

local types = {
	integer = function(value) return math.type(value) == 'integer' or type(value) == 'number' and value % 1 == 0 end,
	['positive integer'] = function(value) return type(value) == 'number' and value % 1 == 0 and value >= 1 end,
	number = function(value) return type(value) == 'number' end,
	text = function(value) return type(value) == 'string' end,
	['true or false'] = function(value) return type(value) == 'boolean' end,
	list = function(value) return type(value) == 'table' end,
	['function'] = function(value) return type(value) == 'function' end,
	tensor = is_tensor,
	spec = function(value)
		return type(value) == 'string' or type(value) == 'table' or type(value) == 'userdata' and not is_tensor(value)
	end,
	['text or list'] = function(value) return type(value) == 'string' or type(value) == 'table' end,
	any = function() return true end,
}

-- A key as a word of a message.
function base.word(key)
	return internal.escape(type(key) == 'string' and key or math.type(key) and tostring(key) or type(key), 40)
end

-- A value as what a message got: 'text', 3, float32(2, 3), table.
local function describe(value)
	if type(value) == 'string' then return ("'%s'"):format(internal.escape(value, 40)) end
	if type(value) == 'number' or type(value) == 'boolean' then return tostring(value) end
	local meta = getmetatable(value)
	if type(value) == 'table' and type(meta) == 'table' and not (meta.__tostring or meta.__brief) then return 'table' end
	return internal.describe(value) or type(value)
end
base.describe = describe

function base.is_type(word) return types[word] ~= nil end

-- Checks that a list has nothing beside its items, which would be dropped: names (with `names` they are the caller's), and items after
-- a gap, which # may or may not count. Returns the list.
function base.list(what, list, names)
	local n, other = 0, nil
	while rawget(list, n + 1) ~= nil do n = n + 1 end
	for key in next, list do
		local is_item = math.type(key) == 'integer' and key >= 1 and key <= n
		if not is_item and not (names and type(key) == 'string') and (not other or tostring(key) < tostring(other)) then other = key end
	end
	if math.type(other) == 'integer' and other > n then base.fail('%s: item %d: wanted no gap in the list, got none', what, n + 1) end
	if other ~= nil then base.fail('%s: wanted a list, got a field %s beside it', what, describe(other)) end
	return list
end

-- Checks a table of options given to the function of this entry; nil counts as none. `lists`: items by position
-- are allowed and left to the caller. Returns a copy: defaults that the function fills in stay out of the user's table, which may
-- serve the next call, too.
function base.options(entry, given, lists)
	if given == nil then return {} end
	local name = entry.name:match '[^.:]+$'
	if type(given) ~= 'table' then base.fail('%s: wanted a table of options, got %s', name, describe(given)) end
	local known, names = {}, {}
	for _, option in ipairs(entry.options) do
		known[option[1]] = option
		names[#names + 1] = option[1]
	end
	local unknown = {}
	for key in next, given do
		if not known[key] and not (lists and math.type(key) == 'integer') then unknown[#unknown + 1] = base.word(key) end
	end
	if #unknown > 0 then
		table.sort(unknown) -- the order of a table's keys changes from run to run
		base.fail("%s: unknown option '%s'%s%s%s", name, unknown[1], base.near(unknown[1], names),
			#names > 0 and '; known: ' or '; it takes none', table.concat(names, ' '))
	end
	for _, option in ipairs(entry.options) do
		local value = rawget(given, option[1])
		if value ~= nil and not types[option[2]](value) then
			base.fail('%s: %s: wanted %s, got %s', name, option[1], option[2], describe(value))
		end
	end
	if lists then base.list(name, given, true) end
	local copy = {}
	for key, value in next, given do copy[key] = value end
	return copy
end

return base
