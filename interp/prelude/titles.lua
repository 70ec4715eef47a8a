-- SPDX-License-Identifier: MIT
-- The names under which functions are reached: members of the global tables, global functions, methods of objects.
local titles = {}

titles.MODULES = {'tensor', 'quant', 'nn', 'optim', 'data', 'graph', 'hw', 'gpu', 'bench', 'plot', 'sweep', 'jupyter'}
titles.FUNCTIONS = {'collectgarbage', 'report', 'help', 'source', 'who'} -- global functions; most are files of the prelude

-- Calls each(title, value) for what the modules and the objects hold.
function titles.each_member(each)
	for _, name in ipairs(titles.MODULES) do
		local module = _G[name]
		if type(module) == 'table' then
			for field, value in pairs(module) do each(name .. '.' .. field, value) end
		end
	end
	for _, name in ipairs(titles.FUNCTIONS) do
		if _G[name] ~= nil then each(name, _G[name]) end
	end
	for name, meta in pairs(debug.getregistry()) do
		local object = type(name) == 'string' and type(meta) == 'table' and name:match '^quoll%.(%l+)$'
		local methods = object and (rawget(meta, 'methods') or rawget(meta, '__index'))
		if type(methods) == 'table' then
			for field, value in next, methods do
				if type(field) == 'string' and not field:find '^__' then
					each((object == 'tensor' and 'x' or object) .. ':' .. field, value)
				end
			end
		end
	end
end

-- The title under which a function is reached, or nil. Of several those in `documented` (a set, may be nil) come first, then the
-- first in the alphabet.
function titles.title_of(value, documented)
	local found
	local function is_better(title)
		local a, b = documented and documented[title] ~= nil, documented and documented[found] ~= nil
		if not found or a ~= b then return not found or a end
		return title < found
	end
	titles.each_member(function(title, member)
		if rawequal(member, value) and is_better(title) then found = title end
	end)
	return found
end

return titles
