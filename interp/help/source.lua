-- SPDX-License-Identifier: MIT
-- The global `source`: prints the text of a function that is written in Lua, with where it is.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, doc, describe = base.fail, base.doc, base.describe

doc {name = 'source', usage = "source(f)  source 'bench.time'",
	text = [[Prints the Lua text of a function, given itself or by name, below a line with its file and line numbers. Large
parts of Quoll are written in Lua and can be read, copied and changed this way; a function of C says so.]],
	example = "function twice(x)\n  return 2 * x\nend\nsource(twice)  --> ...\n               --> function twice(x)\n" ..
		"               -->   return 2 * x\n               --> end"}

-- The value behind 'bench.time' or 'x:error'.
local function by_name(name)
	local object, method = name:match '^([%a_][%w_]*):([%w_]+)$'
	if object then
		local meta = debug.getregistry()['quoll.' .. (object == 'x' and 'tensor' or object == 'r' and 'report' or object)]
		return meta and meta.methods and meta.methods[method]
	end
	local value = _G
	for part in name:gmatch '[^.]+' do
		if type(value) ~= 'table' then return nil end
		value = value[part]
	end
	return value
end

-- A global function of the prelude is a small C function that loads its file: what that returns instead.
local function behind(f)
	local title = internal.import 'interp/help/help_index'.title_of(f)
	local file = title and _G[title] == f and internal.global_file(title)
	return file and internal.import(file) or f
end

-- The whole text that a function was compiled from, and its name for people; nil when it is not to be had.
local function text_of(info)
	local kind, rest = info.source:sub(1, 1), info.source:sub(2)
	if kind == '@' then
		local handle = io.open(rest, 'rb')
		local text = handle and handle:read 'a'
		if handle then handle:close() end
		return text, rest
	end
	if kind == '=' then
		local typed = debug.getregistry()['quoll.sources'] or {} -- what was typed at the prompt (interp/trace/traceback.c)
		return internal.source(info.source) or typed[info.source], rest
	end
	return info.source, info.short_src
end

-- For interp/help/inspect.lua: the whole text that a function was compiled from, or nil, and where it was.
function internal.source_of(f) return text_of(debug.getinfo(base.unsealed(f), 'S')) end

return function(f)
	local wanted = f
	if type(f) == 'string' then f = by_name(f) end
	if type(f) ~= 'function' then fail('source: wanted a function or its name, got %s', describe(wanted)) end
	local info = debug.getinfo(base.unsealed(f), 'S')
	if info.what == 'C' then info = debug.getinfo(base.unsealed(behind(f)), 'S') end
	if info.what == 'C' then
		local title = internal.import 'interp/help/help_index'.title_of(f)
		print(("-- %s is written in C%s"):format(title or 'this function', title and "; see help '" .. title .. "'" or ''))
		return
	end
	local text, name = text_of(info)
	if not text then
		print(('-- %s:%d: the text is not there any more'):format(name, info.linedefined))
		return
	end
	local lines, number = {}, 0
	local last = info.lastlinedefined > 0 and info.lastlinedefined or math.huge
	for line in (text:gsub('\n?$', '\n')):gmatch '(.-)\n' do
		number = number + 1
		if number >= info.linedefined and number <= last then lines[#lines + 1] = line end
	end
	print(('-- %s:%d\n%s'):format(name, info.linedefined, table.concat(lines, '\n')))
end
