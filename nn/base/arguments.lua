-- SPDX-License-Identifier: MIT
-- Arguments of the constructors of modules: positions and options, checked numbers, and their printed form.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local arguments = {}

---------------------------------------------------------------- positions and options

-- The number of arguments of a function; one with `...` takes any.
function arguments.parameters(f)
	local info = debug.getinfo(f, 'u')
	return info.isvararg and math.huge or info.nparams
end

-- Moves what is given by position after the constructor's own arguments into the options that entry.positional names.
local function take_positional(class, given, n, options)
	local own, names = class.own, class.positional or {}
	if n > own + #names then base.surplus(class.name, own + #names, table.unpack(given, own + #names + 1, n)) end
	for i = own + 1, math.min(n, own + #names) do
		local name = names[i - own]
		if given[i] ~= nil and options[name] ~= nil then
			fail('%s: %s: wanted it once, got it as argument %d and as option', class.name, name, i)
		end
		options[name], given[i] = given[i] == nil and options[name] or given[i], nil
	end
	return given, math.min(n, own), base.options(class.doc, options)
end

-- Arguments of a constructor: those before the options, and the options.
function arguments.split(class, ...)
	local given, n = {...}, select('#', ...)
	if class.list then
		if type(given[1]) ~= 'table' or getmetatable(given[1]) then
			fail('%s: wanted a list, as in %s, got %s', class.name, class.doc.usage, describe(given[1]))
		end
		if n > 1 then base.surplus(class.name, 1, select(2, ...)) end
		return {}, 0, base.options(class.doc, given[1], true)
	end
	local last, options = given[n], {}
	if type(last) == 'table' and not getmetatable(last) and last[1] == nil then -- a list is no option
		for name, value in next, base.options(class.doc, last) do options[name] = value end
		given[n], n = nil, n - 1
	end
	return take_positional(class, given, n, options)
end

---------------------------------------------------------------- values

-- A positive integer argument of a constructor.
function arguments.size(class, what, value, least)
	local whole = type(value) == 'number' and math.tointeger(value)
	if not whole or whole < (least or 1) then
		fail('%s: %s: wanted an integer of at least %d, got %s', class, what, least or 1, describe(value))
	end
	return whole
end

-- A number from low to high of a constructor; `below`: high itself is none.
function arguments.number(class, what, value, low, high, below)
	if type(value) ~= 'number' or not (value >= low and value <= high) or below and value == high then
		local range = high == math.huge and (low == -high and 'a finite number' or 'a finite number of at least %g') or
			below and 'a number from %g to below %g' or 'a number from %g to %g'
		fail('%s: %s: wanted %s, got %s', class, what, range:format(low, high), describe(value))
	end
	return value
end

-- A number, {height, width} or, with `sides`, {top, bottom, left, right} of a constructor; gives what was given.
function arguments.window(class, what, value, least, sides)
	if type(value) == 'number' then return arguments.size(class, what, value, least) end
	local n = 0
	for _ in next, type(value) == 'table' and not getmetatable(value) and value or {} do n = n + 1 end
	if n ~= 2 and not (sides and n == 4) or #value ~= n then
		fail('%s: %s: wanted a number%s or {%s}, got %s', class, what, sides and ', {height, width}' or '',
			sides and 'top, bottom, left, right' or 'height, width', type(value) == 'table' and ('a table of %d'):format(n) or describe(value))
	end
	local list = {}
	for i = 1, n do list[i] = arguments.size(class, what, value[i], least) end
	return list
end

-- Padding of a window: as arguments.window with sides, or a word; gives pad and autopad, one of which is nil.
local WORDS = {same = true, same_upper = true, same_lower = true, valid = true}
function arguments.pad(class, value)
	if type(value) ~= 'string' then return value and arguments.window(class, 'pad', value, 0, true), nil end
	if not WORDS[value] then
		fail("%s: pad: wanted numbers, 'same', 'same_upper', 'same_lower' or 'valid', got '%.40s'", class, value)
	end
	return nil, value
end

-- The options stride, pad and dilation of a kind for (N, C, L): numbers; pad may be {left, right} or a word.
function arguments.along(class, options)
	local made = {stride = options.stride and arguments.size(class, 'stride', options.stride),
		dilation = options.dilation and arguments.size(class, 'dilation', options.dilation)}
	local pad = options.pad
	if type(pad) == 'table' and #pad == 2 and not getmetatable(pad) then
		made.pad = {arguments.size(class, 'pad', pad[1], 0), arguments.size(class, 'pad', pad[2], 0)}
	elseif type(pad) == 'string' then
		made.pad, made.autopad = arguments.pad(class, pad)
	elseif pad ~= nil then
		made.pad = arguments.size(class, 'pad', pad, 0)
	end
	return made
end

-- ', stride=2, pad={1,0}': the named fields that are not nil, with a comma before each.
function arguments.fields_text(fields, names)
	local text = ''
	for _, name in ipairs(names) do
		local value = fields[name]
		if value ~= nil then
			text = text .. (', %s=%s'):format(name, type(value) == 'table' and '{' .. table.concat(value, ',') .. '}' or tostring(value))
		end
	end
	return text
end

return arguments
