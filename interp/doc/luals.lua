-- SPDX-License-Identifier: MIT
-- Definitions for the Lua language server (its annotations: luals.github.io/wiki/annotations) and for luacheck, from the
-- documentation of help. Names of parameters come from the usage, types of options from their table.
local _, internal = ...
local index = internal.import 'interp/help/help_index'
local prelude_titles = internal.import 'interp/prelude/titles'

local luals = {}
local STOCK = {}
for name in ([[_G _VERSION assert collectgarbage coroutine debug dofile error getmetatable io ipairs load loadfile math next
os package pairs pcall print rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type
utf8 warn xpcall arg]]):gmatch '%S+' do
	STOCK[name] = true
end
local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
while]]):gmatch '%a+' do
	KEYWORDS[word] = true
end

local TYPES = {integer = 'integer', ['positive integer'] = 'integer', number = 'number', text = 'string', ['true or false'] = 'boolean', list = 'table',
	['function'] = 'function', tensor = 'quoll.Tensor', spec = 'string|table', ['text or list'] = 'string|table',
	integers = 'integer[]', axis = 'integer', dtype = 'string', any = 'any'}

-- Globals of the program, sorted.
function luals.globals()
	local names = {}
	for name in pairs(internal.baseline) do
		if not STOCK[name] and type(name) == 'string' and name:find '^[%a_][%w_]*$' then names[#names + 1] = name end
	end
	table.sort(names)
	return names
end

---------------------------------------------------------------- classes

local CLASS = {x = 'quoll.Tensor', report = 'quoll.Report', figure = 'quoll.Figure', module = 'quoll.Module'}
local function class_of(object)
	return CLASS[object] or 'quoll.' .. object:sub(1, 1):upper() .. object:sub(2)
end

local OPERATORS = {{'add', 'quoll.Tensor|number'}, {'sub', 'quoll.Tensor|number'}, {'mul', 'quoll.Tensor|number'},
	{'div', 'quoll.Tensor|number'}, {'idiv', 'quoll.Tensor|number'}, {'mod', 'quoll.Tensor|number'},
	{'pow', 'quoll.Tensor|number'}, {'unm'}}

local EXTRA = {
	['quoll.Tensor'] = function(out)
		for _, o in ipairs(OPERATORS) do
			out[#out + 1] = ('---@operator %s%s: quoll.Tensor'):format(o[1], o[2] and '(' .. o[2] .. ')' or '')
		end
		out[#out + 1] = '---@operator len: integer'
		out[#out + 1] = '---@field [integer] quoll.Tensor'
		out[#out + 1] = '---@field [table|string] quoll.Tensor'
	end,
	['quoll.Report'] = function(out)
		out[#out + 1] = '---@operator len: integer'
		out[#out + 1] = '---@field [integer] table<string, any>'
		out[#out + 1] = '---@field [string] any'
	end,
	['quoll.Module'] = function(out)
		out[#out + 1] = '---@operator call(quoll.Tensor): quoll.Tensor'
		out[#out + 1] = '---@field [integer] quoll.Module'
	end,
}

---------------------------------------------------------------- functions

-- Names of the parameters by the first form of the usage that has parentheses; nil when they are no plain names.
local function parameters_of(entry)
	local inner = (entry.usage or ''):match('%f[%w_]' .. entry.bare .. '%(([^()]*)%)')
	if not inner then return nil end
	local names, optional = {}, false
	for word in inner:gsub('%[', ''):gsub('%]', ''):gmatch '[^,]+' do
		local name = word:match '^%s*([%a_][%w_]*)%s*$'
		if not name or KEYWORDS[name] then return nil end
		names[#names + 1] = name
		optional = optional or inner:find('[', 1, true) and inner:find('[', 1, true) < inner:find(name, 1, true)
	end
	return names, optional
end

local function options_type(entry)
	if #entry.options == 0 then return nil end
	local fields = {}
	for _, option in ipairs(entry.options) do
		fields[#fields + 1] = ('%s?: %s'):format(option[1], TYPES[option[2]] or 'any')
	end
	return '{ ' .. table.concat(fields, ', ') .. ' }'
end

-- Ops give tensors; of the rest the text tells some.
local function result_of(entry, title)
	local text = entry.text or ''
	if entry.inplace ~= nil then return 'quoll.Tensor' end
	if title:find '^plot%.' then return 'quoll.Figure' end
	if title:find '^nn%.%u' then return 'quoll.Module' end
	if title == 'report' or text:find '^A report' or text:find '^A new report' then return 'quoll.Report' end
	return 'any'
end

local function add_text(out, text)
	for line in (text .. '\n'):gmatch '(.-)\n' do out[#out + 1] = line == '' and '---' or '--- ' .. line end
end

local function add_function(out, entry, title, target)
	out[#out + 1] = ''
	add_text(out, entry.text or '')
	if entry.usage then
		out[#out + 1] = '---'
		out[#out + 1] = '--- Usage: `' .. entry.usage:gsub('%s%s+', '`, `'):gsub('\n', '`, `') .. '`'
	end
	for _, option in ipairs(entry.options) do
		out[#out + 1] = ('--- * `%s` (%s): %s'):format(option[1], option[2], (option[3] or ''):gsub('%s+', ' '))
	end
	if entry.example then
		out[#out + 1] = '---'
		out[#out + 1] = '--- ```lua'
		add_text(out, entry.example)
		out[#out + 1] = '--- ```'
	end
	local names, options = parameters_of(entry), options_type(entry)
	local list = names or {}
	for _, name in ipairs(list) do out[#out + 1] = ('---@param %s? any'):format(name) end
	if options then
		out[#out + 1] = '---@overload fun(options: ' .. options .. '): ' .. result_of(entry, title)
	end
	out[#out + 1] = '---@param ... any'
	list = table.move(list, 1, #list, 1, {})
	list[#list + 1] = '...'
	out[#out + 1] = '---@return ' .. result_of(entry, title)
	out[#out + 1] = ('function %s(%s) end'):format(target, table.concat(list, ', '))
end

---------------------------------------------------------------- the file

-- title -> entry, for all functions: those that are documented, their aliases, and what else the modules hold.
local function all_titles()
	local titles = {}
	for _, entry in ipairs(index.list) do
		titles[entry.title] = titles[entry.title] or entry
		for _, alias in ipairs(entry.aliases) do titles[alias] = titles[alias] or entry end
	end
	prelude_titles.each_member(function(title)
		local bare = index.find(title)[1]
		titles[title] = titles[title] or bare
	end)
	return titles
end

function luals.luals()
	local titles, by_owner, owners = all_titles(), {}, {}
	local out = {'---@meta quoll', '-- Definitions of Quoll for the Lua language server: written by `quoll doc --luals`.'}
	for title, entry in pairs(titles) do
		local owner, sign, name = title:match '^([%a_][%w_]*)([.:])([%a_][%w_]*)$'
		if owner and not KEYWORDS[name] and (entry.kind == 'function' or entry.kind == 'method') then
			local key = sign == ':' and 'object ' .. owner or 'module ' .. owner
			if not by_owner[key] then
				by_owner[key] = {}
				owners[#owners + 1] = key
			end
			table.insert(by_owner[key], {name = name, title = title, entry = entry})
		end
	end
	table.sort(owners)
	for _, key in ipairs(owners) do
		local kind, owner = key:match '^(%a+) (.*)$'
		local target = kind == 'object' and class_of(owner):gsub('%.', '_') or owner
		out[#out + 1] = ''
		if kind == 'object' then
			out[#out + 1] = '---@class ' .. class_of(owner)
			if EXTRA[class_of(owner)] then EXTRA[class_of(owner)](out) end
			out[#out + 1] = ('local %s = {}'):format(target)
		else
			local page = index.by_title[owner]
			if page and page.text then add_text(out, page.text) end
			out[#out + 1] = '---@class quoll.module.' .. owner
			if owner == 'tensor' then out[#out + 1] = '---@overload fun(values: table): quoll.Tensor' end
			out[#out + 1] = owner .. ' = {}'
		end
		table.sort(by_owner[key], function(a, b) return a.name < b.name end)
		for _, f in ipairs(by_owner[key]) do
			add_function(out, f.entry, f.title, target .. (kind == 'object' and ':' or '.') .. f.name)
		end
	end
	for _, name in ipairs(luals.globals()) do
		local entry = index.by_title[name]
		if entry and entry.kind == 'function' then
			add_function(out, entry, name, name)
		elseif type(_G[name]) == 'table' and not by_owner['module ' .. name] then
			out[#out + 1] = '\n---@type table\n' .. name .. ' = {}'
		end
	end
	return table.concat(out, '\n') .. '\n'
end

---------------------------------------------------------------- luacheck

local HEAD = [[
-- SPDX-License-Identifier: MIT
-- What luacheck must know of Quoll: written by `quoll doc --luacheck`.
std = 'lua54'
read_globals = {%s}
max_line_length = false
-- 512: `for x in batches do … break end` takes the first. 581: `not (a < b)` is true of a NaN.
ignore = {'512', '581'}
-- what the program gives its libraries, the prompt and the files that it runs
files['interp'] = {globals = {'In', 'Out', 'arg', 'hw', 'io.write', 'os.exit'}}
files['interp/doctest'] = {globals = {'__fails', 'describe', 'it', 'pending', 'skip'}}
files['nn'] = {globals = {'graph', 'quant'}}
files['quant'] = {globals = {'quant'}}
-- notebooks and scripts make globals at their top level, as inputs of the prompt do
files['tutorials'] = {allow_defined = true, ignore = {'131', '213'}}
files['scripts'] = {allow_defined_top = true}
-- 431: many small cases in a file, each with an x of its own
files['tests'] = {read_globals = {'skip', 'pending', 'describe', 'it'}, allow_defined = true, ignore = {'131', '431'}}
]]

function luals.luacheck()
	local names, lines, line = luals.globals(), {}, ''
	for i, name in ipairs(names) do
		local word = "'" .. name .. "'" .. (i < #names and ',' or '')
		if #line + #word > 100 then lines[#lines + 1], line = line, '' end
		line = line == '' and word or line .. ' ' .. word
	end
	lines[#lines + 1] = line
	return HEAD:format(table.concat(lines, '\n\t'))
end

return luals
