-- SPDX-License-Identifier: MIT
-- What the other files of the prelude share: errors raised at the user's line, options checked against their
-- documentation, and the list of what is documented in Lua (C code has struct ql_doc for it).
local _, internal = ...
local base = {}
local getinfo, error = debug.getinfo, error

-- The message; a zero byte in a word is written out.
local function shown(format, ...)
	local words = table.pack(...)
	for i = 1, words.n do
		if type(words[i]) == 'string' then words[i] = words[i]:gsub('%z', '\\0') end
	end
	return format:format(table.unpack(words, 1, words.n))
end

-- Raises at the innermost line outside of the prelude, with that line's position.
function base.fail(format, ...)
	local level, info = 2, nil
	repeat
		info = getinfo(level, 'S')
		level = level + 1
	until not info or info.what ~= 'C' and info.source:sub(1, 9) ~= '=prelude/'
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

-- Documentation of one name, to be read by help and checked by tests/interp/help.lua:
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

local function describe(value)
	if type(value) == 'string' then return ("'%.40s'"):format((value:gsub('%z', '\\0'))) end
	if type(value) == 'number' or type(value) == 'boolean' then return tostring(value) end
	return type(value)
end
base.describe = describe

function base.is_type(word) return types[word] ~= nil end

-- Checks a table of options given to the function of this entry; nil counts as none. `lists`: items by position
-- are allowed and left to the caller. Returns the table.
function base.options(entry, given, lists)
	if given == nil then return {} end
	local name = entry.name:match '[^.:]+$'
	if type(given) ~= 'table' then base.fail('%s: wanted a table of options, got %s', name, describe(given)) end
	local known, names = {}, {}
	for _, option in ipairs(entry.options) do
		known[option[1]] = option
		names[#names + 1] = option[1]
	end
	for key, value in next, given do
		local option = known[key]
		if not option and not (lists and math.type(key) == 'integer') then
			base.fail("%s: unknown option '%.40s'%s%s%s", name, tostring(key), base.near(key, names),
				#names > 0 and '; known: ' or '; it takes none', table.concat(names, ' '))
		elseif option and not types[option[2]](value) then
			base.fail('%s: %s: wanted %s, got %s', name, option[1], option[2], describe(value))
		end
	end
	return given
end

return base
