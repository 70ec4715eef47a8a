-- SPDX-License-Identifier: MIT
-- Writes Lua values as JSON text (RFC 8259), names sorted, so that equal values give equal text. A table is an array when
-- it has the metatable json.ARRAY or its first item, else an object. json.NULL is null; bytes that are no UTF-8 become
-- the replacement character. json.read reads in the same terms.
local _, internal = ...
local decode = internal.import 'interp/prelude/json'
local mime = internal.import 'interp/prelude/mime'

local json = {ARRAY = {__name = 'quoll.json'}}
json.NULL = setmetatable({}, {__name = 'quoll.json', __tostring = function() return 'null' end})

function json.array(list) return setmetatable(list or {}, json.ARRAY) end

function json.read(text) return decode(text, {null = json.NULL, array = json.ARRAY}) end

local ESCAPES = {['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['\b'] = '\\b',
	['\f'] = '\\f'}

local function string_text(value)
	return '"' .. mime.utf8(value):gsub('[%z\1-\31"\\]', function(c)
		return ESCAPES[c] or ('\\u%04x'):format(c:byte())
	end) .. '"'
end

-- JSON has no other numbers than finite ones.
local function number_text(value)
	if math.type(value) == 'integer' then return tostring(value) end
	if value ~= value or value == math.huge or value == -math.huge then return 'null' end
	for digits = 15, 17 do
		local text = ('%.' .. digits .. 'g'):format(value)
		if tonumber(text) == value then return text:find '[.e]' and text or text .. '.0' end
	end
end

local value_text

-- Items between brackets; on lines of their own when there is an indentation.
local function bracketed(open, close, items, indent, level)
	if #items == 0 then return open .. close end
	if not indent then return open .. table.concat(items, ', ') .. close end
	local feed = '\n' .. indent:rep(level + 1)
	return open .. feed .. table.concat(items, ',' .. feed) .. '\n' .. indent:rep(level) .. close
end

local function table_text(value, indent, level)
	local items = {}
	if getmetatable(value) == json.ARRAY or value[1] ~= nil then
		for i, item in ipairs(value) do items[i] = value_text(item, indent, level + 1) end
		return bracketed('[', ']', items, indent, level)
	end
	local names = {}
	for name in next, value do names[#names + 1] = name end
	table.sort(names)
	for i, name in ipairs(names) do
		items[i] = string_text(name) .. ': ' .. value_text(value[name], indent, level + 1)
	end
	return bracketed('{', '}', items, indent, level)
end

function value_text(value, indent, level)
	local kind = type(value)
	if value == json.NULL then return 'null' end
	if kind == 'table' then return table_text(value, indent, level) end
	if kind == 'string' then return string_text(value) end
	if kind == 'number' then return number_text(value) end
	return tostring(value)
end

-- In one line, or with each item on a line of its own after `indent` for each level.
function json.write(value, indent) return value_text(value, indent, 0) end

return json
