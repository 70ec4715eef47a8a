-- SPDX-License-Identifier: MIT
-- inspect(name, value, text): prints what is known of a value of the user, for ?name at the prompt and in Jupyter. With `text`
-- the source of a function will follow. Tables are read raw.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local MOST = 40            -- fields that are listed
local BIG = 10000000       -- elements of a quantized tensor that are not decoded for its range

local function row(label, text) print(('  %-10s %s'):format(label, text)) end

local function bytes_text(n)
	if n < 1024 then return tostring(n) end
	return n < 1 << 20 and ('%d (%.1f KiB)'):format(n, n / 1024) or ('%d (%.1f MiB)'):format(n, n / (1 << 20))
end

local function number_text(v) return math.type(v) == 'integer' and tostring(v) or ('%.6g'):format(v) end

-- "lo to hi" of a number or a tensor; how many there are.
local function range_of(v)
	if type(v) == 'number' then return number_text(v), 1 end
	local lo, hi = v:min():item(), v:max():item()
	return lo == hi and number_text(lo) or ('%s to %s'):format(number_text(lo), number_text(hi)), v:nelem()
end

local function with_count(label, v, q)
	local range, n = range_of(v)
	local along = q.axis and (', along axis %d'):format(q.axis) or ''
	if q.block then along = (', one for %d along axis %d'):format(q.block, q.axis) end
	row(label, range .. (n > 1 and (' (%d of them%s)'):format(n, along) or ''))
end

---------------------------------------------------------------- tensors

local function print_params(t)
	local q = t:qparams()
	if not q then return end
	row('spec', tostring(t:spec()))
	row('scheme', q.scheme)
	if q.scale and (q.scale:quantized() or q.format) then row('scales in', tostring(q.scale:spec() or q.scale:dtype())) end
	if q.scale then with_count('scale', q.scale, q) end
	if q.zero_point then with_count('zero point', q.zero_point, q) end
	if q.minimum then with_count('minimum', q.minimum, q) end
	if q.min then row('codes', ('%s to %s'):format(number_text(q.min), number_text(q.max))) end
end

local function print_values(t)
	if t:nelem() == 0 or quant.dtype(t:dtype()).kind == 'bool' or t:quantized() and t:nelem() > BIG then return end
	local values = t:quantized() and t:dequantize() or t
	row('values', (range_of(values:detach())))
end

local function print_tensor(t)
	local sizes = {t:size()}
	row('dtype', t:dtype())
	local shape = ('%s (%d element%s)'):format(table.concat(sizes, ' x '), t:nelem(), t:nelem() == 1 and '' or 's')
	row('shape', #sizes == 0 and 'a single number' or shape)
	local strides = not t:iscontiguous() and ', a view with strides ' .. table.concat({t:stride()}, ' ') or ''
	row('bytes', bytes_text(t:nbytes()) .. strides)
	if t:device() ~= 'cpu' then row('device', t:device()) end
	print_params(t)
	local good = pcall(print_values, t)
	if not good then row('values', 'not to be had') end
	if t:requires_grad() then row('gradient', t:grad() and 'there is one' or 'wanted') end
end

---------------------------------------------------------------- functions

local function signature(name, f)
	f = base.unsealed(f)
	local info, names = debug.getinfo(f, 'u'), {}
	for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
	if info.isvararg then names[#names + 1] = '...' end
	return ('%s(%s)'):format(name, table.concat(names, ', '))
end

-- The lines of comment right above line `first` of the text.
local function comment_above(text, first)
	local lines, found = {}, {}
	for line in (text .. '\n'):gmatch '(.-)\n' do
		lines[#lines + 1] = line
		if #lines >= first then break end
	end
	for i = first - 1, 1, -1 do
		local line = lines[i] and lines[i]:match '^%s*%-%-+%s?(.*)$'
		if not line or lines[i]:find '^%-%- ?%%%%' then break end
		table.insert(found, 1, line)
	end
	return found
end

local function print_function(name, f, with_text)
	local info = debug.getinfo(base.unsealed(f), 'S')
	if info.what == 'C' then
		row('function', 'written in C')
		return
	end
	internal.import 'interp/help/source'
	local text, file = internal.source_of(f)
	row('call', signature(name, f))
	row('defined', ('%s:%d'):format(file, info.linedefined))
	local comment = text and comment_above(text, info.linedefined) or {}
	if #comment > 0 then print '' end
	for _, line in ipairs(comment) do print('  ' .. line) end
	print(with_text and '' or ('\n  ??%s shows its text.'):format(name))
end

---------------------------------------------------------------- tables and the rest

local function brief(value)
	if type(value) == 'string' then
		local text = ('%q'):format(value):gsub('\\\n', '\\n')
		return #text > 60 and text:sub(1, 57) .. '…"' or text
	end
	if type(value) == 'function' then
		local info = debug.getinfo(base.unsealed(value), 'S')
		return info.what == 'C' and 'a function written in C' or ('a function, %s:%d'):format(info.short_src, info.linedefined)
	end
	if type(value) == 'table' and not internal.describe(value) then
		local n = 0
		for _ in next, value do n = n + 1 end
		return ('a table of %d item%s'):format(n, n == 1 and '' or 's')
	end
	return internal.describe(value) or tostring(value)
end

local function before(a, b)
	local ta, tb = math.type(a) or type(a), math.type(b) or type(b)
	if ta ~= tb then return ta < tb end
	if type(a) == 'number' or type(a) == 'string' then return a < b end
	return tostring(a) < tostring(b)
end

local function key_text(key)
	if type(key) ~= 'string' then return ('[%s]'):format(tostring(key)) end
	return key:find '^[%a_][%w_]*$' and key or ('[%q]'):format(key)
end

-- The __name of a metatable, raw.
local function name_of(meta)
	local name = type(meta) == 'table' and rawget(meta, '__name')
	return type(name) == 'string' and name or nil
end

local function print_table(t)
	local keys, list = {}, rawlen(t)
	for key in next, t do keys[#keys + 1] = key end
	table.sort(keys, before)
	row('items', #keys .. (list > 0 and (', %d of them in a list'):format(list) or ''))
	local meta = debug.getmetatable(t)
	if type(meta) == 'table' then row('metatable', name_of(meta) or 'yes') end
	if #keys > 0 then print '' end
	for i = 1, math.min(#keys, MOST) do
		local key = keys[i]
		row(key_text(key), brief(rawget(t, key)))
	end
	if #keys > MOST then print(('  … and %d more'):format(#keys - MOST)) end
end

-- The page about such objects: 'tensor', 'module', 'report'.
local function page_of(value)
	local meta = debug.getmetatable(value)
	if internal.is_tensor(value) then return 'tensor' end
	if type(value) == 'table' and internal.import 'nn/base/module'.is_module(value) then return 'module' end
	local object = (name_of(meta) or ''):match '^quoll%.(%l+)$'
	local index = internal.import 'interp/help/help_index'
	return object and (index.by_title[object] or index.glob(object .. ':*')[1]) and object or nil
end

local function print_text(value)
	local n = 0
	for line in (tostring(value) .. '\n'):gmatch '(.-)\n' do
		n = n + 1
		if n <= MOST then print('  ' .. line) end
	end
	if n > MOST then print(('  … and %d more lines'):format(n - MOST)) end
end

local function print_object(value, page)
	local meta = debug.getmetatable(value)
	if page == 'module' then
		row('parameters', ('%d tensors, %s bytes'):format(#value:parameters(), bytes_text(value:nbytes())))
		print_text(value)
	elseif page == 'tensor' then
		print_tensor(value)
	elseif type(value) == 'table' and not page then
		print_table(value)
	elseif type(meta) == 'table' and (page or rawget(meta, '__tostring')) and tostring(value) ~= internal.describe(value) then
		print_text(value)
	end
end

return function(name, value, with_text)
	local line = internal.describe(value)
	if type(value) == 'function' then
		local title = internal.import 'interp/help/help_index'.title_of(value)
		if title then return help(value) end
		print(name .. ', a function')
		return print_function(name, value, with_text)
	end
	local kind = math.type(value) or type(value)
	if type(value) ~= 'table' and type(value) ~= 'userdata' then
		print(('%s, %s %s'):format(name, kind:find '^[ai]' and 'an' or 'a', kind))
		row('value', brief(value))
		if type(value) == 'string' then row('bytes', tostring(#value)) end
		return
	end
	local page = page_of(value)
	print(('%s, %s'):format(name, line or 'a table'))
	print_object(value, page)
	if not page then return end
	print(("\n  help '%s' describes it, help '%s:*' lists its methods."):format(page, page == 'tensor' and 'x' or page))
end
