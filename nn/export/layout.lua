-- SPDX-License-Identifier: MIT
-- The layout of exported C: indentation by tabs, no line of code beyond 120 columns.
local layout = {}

-- Indents the lines of a block by the nesting of braces and loops.
function layout.indented(lines)
	local made, level, extra, stack = {}, 0, 0, {}
	for line in table.concat(lines, '\n'):gmatch '[^\n]*' do
		line = line:match '^%s*(.*)$'
		local opener = line:find '^}' and table.remove(stack)
		made[#made + 1] = line == '' and '' or ('\t'):rep((opener and opener.at or level + extra) + (#made > 0 and 1 or 0)) .. line
		if line:find '{$' then
			stack[#stack + 1] = {at = level + extra, level = level}
			level, extra = level + extra + 1, 0
		else
			level, extra = opener and opener.level or level, line:find '^for %(.*%)$' and extra + 1 or 0
		end
	end
	return table.concat(made, '\n')
end

local COLUMNS = 120 -- of source, a tab being 8

-- Breaks a long line of code after commas.
local function wrapped_line(line)
	local function width(text) return #text + 7 * select(2, text:gsub('\t', '')) end
	if width(line) <= COLUMNS or line:find '^%s*[#/*]' then return line end
	local tabs, list, rest = line:match '^\t*', {}, line
	while width(rest) > COLUMNS do
		local at
		for position in rest:gmatch '(), ' do
			if width(rest:sub(1, position)) > COLUMNS then break end
			at = position
		end
		if not at then break end
		list[#list + 1] = rest:sub(1, at)
		rest = tabs .. '\t' .. rest:sub(at + 2)
	end
	list[#list + 1] = rest
	return table.concat(list, '\n')
end

function layout.wrapped(text) return (text:gsub('[^\n]+', wrapped_line)) end

return layout
