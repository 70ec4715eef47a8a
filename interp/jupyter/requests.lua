-- SPDX-License-Identifier: MIT
-- For the kernel of Jupyter: values as bundles of mime types, and what a front end asks about code that is not run,
-- completion and the page about a name. For the latter tables are read raw, so that no code of the user is called.
local _, internal = ...
local kernel = {}

---------------------------------------------------------------- values

-- The forms of a value (interp/prelude/mime.lua). Front ends save what they are sent: a figure is a PNG, which all of them show, also for
-- readers who have not trusted the notebook, and shrink to the width of a cell.
function kernel.bundle(value) return internal.import 'interp/prelude/mime'.bundle(value, {png = 'only'}) end

---------------------------------------------------------------- completion

-- {from=, to=, {text=, kind=}, …}: bytes from..to (counted from 0, `to` excluded) are what a match replaces.
function kernel.complete(text, position)
	local found = internal.import 'interp/repl/complete'(text, position)
	local list = {from = found.from, to = found.to}
	for i, match in ipairs(found.matches) do list[i] = {text = match.text, kind = match.kind} end
	return list
end

---------------------------------------------------------------- inspection

local NAME = '[%a_][%w_]*'

-- The name at the byte `position` (from 0), with what precedes it: 'tensor.zeros', 'x:quantize'.
local function name_at(text, position)
	local from = position + 1
	while from > 1 and text:sub(from - 1, from - 1):find '[%w_.:]' do from = from - 1 end
	local chain = text:match('^' .. NAME .. '[%w_.:]*', from)
	if not chain then -- after a call: the name before its bracket
		local head = text:sub(1, position):match('(' .. NAME .. '[%w_.:]*)%s*[({][^(){}]*$')
		return head
	end
	local stop = from + #chain - 1
	local last = text:find('[.:]', math.max(from, position + 1))
	if last and last <= stop then chain = text:sub(from, last - 1) end
	return (chain:gsub('[.:]+$', ''))
end

local function raw_field(value, key)
	if type(value) == 'table' then
		local own = rawget(value, key)
		if own ~= nil then return own end
	end
	local meta = debug.getmetatable(value)
	local index = type(meta) == 'table' and rawget(meta, '__index')
	for _ = 1, 10 do
		if type(index) ~= 'table' then break end
		local found = rawget(index, key)
		if found ~= nil then return found end
		meta = debug.getmetatable(index)
		index = type(meta) == 'table' and rawget(meta, '__index')
	end
	local methods = type(meta) == 'table' and rawget(meta, 'methods')
	return type(methods) == 'table' and rawget(methods, key) or nil
end

-- The value of a chain of names among locals of earlier inputs and globals; nil when it is not to be had.
local function value_of(chain)
	local value, locals = nil, internal.locals and internal.locals() or {}
	for separator, name in ('.' .. chain):gmatch('([.:])(' .. NAME .. ')') do
		if value == nil and separator == '.' then
			value = locals[name]
			if value == nil then value = rawget(_G, name) end
		else
			value = raw_field(value, name)
		end
		if value == nil then return nil end
	end
	return value
end

local function title_of(index, chain, value)
	if type(value) == 'function' and index.title_of(value) then return index.title_of(value) end
	if type(value) == 'table' and index.by_title[chain] then return chain end
	if value == nil or chain:find '[.:]' then
		local found = index.find(chain)[1]
		return found and found.title
	end
end

-- Prints the page about the name at `position`; detail 1: with the source of functions written in Lua. False: nothing
-- is known.
function kernel.inspect(text, position, detail)
	local index = internal.import 'interp/help/help_index'
	if text:find '%*' then
		help(text)
		return true
	end
	local chain = name_at(text, position)
	if not chain then return false end
	local value = value_of(chain)
	local title = title_of(index, chain, value)
	if value == nil and not title then return false end
	local is_function = type(value) == 'function'
	if value ~= nil and not (title and (is_function or type(value) == 'table')) then
		internal.import 'interp/help/inspect'(chain, value, is_function)
	end
	if title then help(title) end
	if is_function and (detail > 0 or not title and debug.getinfo(value, 'S').what ~= 'C') then source(value) end
	return true
end

return kernel
