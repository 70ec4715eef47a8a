-- SPDX-License-Identifier: MIT
-- Reads JSON (RFC 8259) into Lua tables. Integers stay integers, null becomes nil, or keep.null; the tables of arrays get
-- the metatable keep.array. Raises a message with the place. A file may come from anywhere: nesting is limited, and
-- nothing is built before its text has been seen.
local DEEPEST = 64

local text, at, kept -- of the call in progress

local function wrong(wanted)
	local got = at > #text and 'the end' or "'" .. text:sub(at, at):gsub('%c', '?') .. "'"
	error(('wanted %s at byte %d, got %s'):format(wanted, at, got), 0)
end

local function blanks() at = text:find('[^ \t\r\n]', at) or #text + 1 end

local ESCAPED = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/'}

local function unicode()
	local hex = text:match('^\\u(%x%x%x%x)', at)
	if not hex then wrong 'four hexadecimal digits' end
	at = at + 6
	return tonumber(hex, 16)
end

local function escape()
	local c = text:sub(at + 1, at + 1)
	if c ~= 'u' then
		if not ESCAPED[c] then wrong 'an escape sequence' end
		at = at + 2
		return ESCAPED[c]
	end
	local code = unicode()
	if code >= 0xD800 and code < 0xE000 then
		if code >= 0xDC00 or not text:find('^\\u[dD][c-fC-F]', at) then wrong 'both halves of a surrogate pair' end
		code = 0x10000 + ((code - 0xD800) << 10) + (unicode() - 0xDC00)
	end
	return utf8.char(code)
end

local function string()
	local parts = {}
	at = at + 1
	while true do
		local stop = text:find('["\\%c]', at)
		if not stop then
			at = #text + 1
			wrong 'a closing quote'
		end
		parts[#parts + 1] = text:sub(at, stop - 1)
		at = stop
		local c = text:sub(at, at)
		if c == '"' then
			at = at + 1
			return table.concat(parts)
		end
		if c ~= '\\' then wrong 'a character that is no control character' end
		parts[#parts + 1] = escape()
	end
end

local function number()
	local from, to = text:find('^-?%d+%.?%d*[eE]?[-+]?%d*', at)
	local digits = from and text:sub(from, to)
	local value = digits and not digits:find '^-?0%d' and not digits:find '%.$' and not digits:find '%.[eE]' and tonumber(digits)
	if not value then wrong 'a value' end
	at = to + 1
	return value
end

local value

-- Items after an opening bracket, up to the closing one.
local function items(close, each)
	at = at + 1
	blanks()
	if text:sub(at, at) == close then
		at = at + 1
		return
	end
	while true do
		each()
		blanks()
		local c = text:sub(at, at)
		at = at + 1
		if c == close then return end
		if c ~= ',' then
			at = at - 1
			wrong("a comma or '" .. close .. "'")
		end
		blanks()
	end
end

local WORDS = {{'true', true}, {'false', false}, {'null', nil}}

function value(depth)
	blanks()
	local c = text:sub(at, at)
	if depth > DEEPEST then wrong(('at most %d levels'):format(DEEPEST)) end
	if c == '"' then return string() end
	if c == '[' then
		local list, n = {}, 0
		items(']', function()
			n = n + 1
			list[n] = value(depth + 1)
		end)
		return setmetatable(list, kept.array)
	end
	if c == '{' then
		local object = {}
		items('}', function()
			if text:sub(at, at) ~= '"' then wrong 'a name in quotes' end
			local name = string()
			blanks()
			if text:sub(at, at) ~= ':' then wrong 'a colon' end
			at = at + 1
			object[name] = value(depth + 1)
		end)
		return object
	end
	for _, word in ipairs(WORDS) do
		if text:sub(at, at + #word[1] - 1) == word[1] then
			at = at + #word[1]
			if word[1] == 'null' then return kept.null end
			return word[2]
		end
	end
	return number()
end

return function(input, keep)
	text, at, kept = input, 1, keep or {}
	local result = value(1)
	blanks()
	if at <= #text then wrong 'the end' end
	text = ''
	return result
end
