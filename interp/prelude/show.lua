-- SPDX-License-Identifier: MIT
-- How the prompt shows a value: strings quoted, plain tables with their contents, objects by their tostring.

local _, internal = ...
local base = internal.import 'interp/prelude/base'

local WIDTH = 80   -- a table that fits is written in one line; %set width changes it
local ITEMS = 60   -- items shown of one table
local DEPTH = 5
local LONG = 2000  -- bytes shown of a string

local names = { ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['\\'] = '\\\\', ['"'] = '\\"' }

local function quoted(s)
	local cut = #s > LONG and ('… (%d bytes)'):format(#s) or ''

	if cut ~= '' then
		local last = LONG

		while last > LONG - 4 and s:find('^[\x80-\xBF]', last + 1) do
			last = last - 1 -- never half a character
		end
		s = s:sub(1, last)
	end
	s = s:gsub('[%c\\"]', function(c) return names[c] or ('\\x%02X'):format(c:byte()) end)
	return '"' .. s .. '"' .. cut
end

local keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true
	until while]]):gmatch '%a+' do
	keywords[word] = true
end

local function key_text(k, show)
	if type(k) == 'string' and k:find '^[%a_][%w_]*$' and not keywords[k] then
		return k
	end
	return '[' .. show(k) .. ']'
end

-- numbers before strings before the rest, each in order
local function before(a, b)
	local ta, tb = math.type(a) and 'a' or type(a), math.type(b) and 'a' or type(b)

	if ta ~= tb then
		return ta < tb
	end
	if ta == 'a' or ta == 'string' then
		return a < b
	end
	return tostring(a) < tostring(b)
end

-- Items 1..n without a gap come first and need no key.
local function keys_of(t)
	local keys, n = {}, 0

	while rawget(t, n + 1) ~= nil do
		n = n + 1
	end
	for k in next, t do
		if not (math.type(k) == 'integer' and k >= 1 and k <= n) then
			keys[#keys + 1] = k
		end
	end
	table.sort(keys, before)
	return n, keys
end

local show

local function table_text(t, seen, indent)
	if seen[t] then
		return '<' .. tostring(t) .. '>'
	end
	local n, keys = keys_of(t)
	local items, left = {}, n + #keys - ITEMS

	if n + #keys == 0 then
		return '{}'
	end
	if #seen >= DEPTH then
		return '{…}'
	end
	seen[t] = true
	seen[#seen + 1] = t
	for i = 1, math.min(n, ITEMS) do
		items[i] = show(t[i], seen, indent .. '  ')
	end
	for i = 1, math.min(#keys, ITEMS - #items) do
		local k = keys[i]
		local name = key_text(k, function(v) return show(v, seen, indent .. '  ') end)

		items[#items + 1] = name .. ' = ' .. show(rawget(t, k), seen, indent .. '  ')
	end
	seen[#seen] = nil
	seen[t] = nil
	if left > 0 then
		items[#items + 1] = ('… (%d more)'):format(left)
	end
	local line, width = '{' .. table.concat(items, ', ') .. '}', tonumber(internal.setting 'width')

	if #line + #indent <= (width > 0 and width or WIDTH) and not line:find '\n' then
		return line
	end
	return '{\n' .. indent .. '  ' .. table.concat(items, ',\n' .. indent .. '  ') .. '\n' .. indent .. '}'
end

-- Inside a table tensors and models are one line; at the top they are whole.
function show(v, seen, indent)
	local kind, meta = type(v), getmetatable(v)

	if kind == 'string' then
		return quoted(v)
	end
	if #seen > 0 then
		local line = internal.describe(v)

		if line then
			return '<' .. line .. '>'
		end
	end
	if kind == 'function' then
		local at = debug.getinfo(base.unsealed(v), 'S')

		return tostring(v) .. (at.what == 'Lua' and (' (%s:%d)'):format(at.short_src, at.linedefined) or '')
	end
	if kind == 'table' and not (type(meta) == 'table' and (meta.__tostring or meta.__name)) then
		return table_text(v, seen, indent)
	end
	return tostring(v)
end

return function(v) return show(v, {}, '') end
