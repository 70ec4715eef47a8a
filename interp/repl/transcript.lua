-- SPDX-License-Identifier: MIT
-- A piece of a session that was copied with its prompts, as an input: the prompts are cut off, outputs become blank lines, so that
-- lines keep their numbers. Only when the first line has a prompt. Called as transcript(text): returns nil when it has none, else
-- the text and the places (bytes before them) where another input of the session begins.
--
-- When other lines have prompts, too, lines without one are outputs; otherwise those are from `Out[3]:` on.

-- What begins an input and what its further lines; after it a blank or nothing, as In[3]:upper() is Lua.
local STYLES = {
	{'^%s*In ?%[%d+%]:', '^%s*%.%.%.+:'},
	{'^%s*quoll>', '^%s*%.%.%.+'},
	{'^%s*>>>', '^%s*%.%.%.'},
	{'^%s*>', '^%s*>>'},
}

-- What is after the prompt in the line, or nil.
local function behind(line, pattern)
	local _, last = line:find(pattern)
	local rest = last and line:sub(last + 1)
	if rest and (rest == '' or rest:find '^%s') then return (rest:gsub('^ ', '')) end
end

-- The line without a prompt, and whether an input begins there; nil: it has none.
local function without(line, style)
	local rest = behind(line, style[2])
	if rest then return rest, false end
	rest = behind(line, style[1])
	if rest then return rest, true end
end

local function split(text)
	local lines = {}
	for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
	if text:find '\n$' then lines[#lines] = nil end
	return lines
end

local function style_of(lines)
	for _, line in ipairs(lines) do
		if line:find '%S' then
			for _, style in ipairs(STYLES) do
				if behind(line, style[1]) then return style end
			end
			return nil
		end
	end
end

return function(text)
	local lines = split(text)
	local style = style_of(lines)
	if not style then return nil end
	local prompts, cuts, at, shown, first = 0, {}, 0, false, true
	for _, line in ipairs(lines) do prompts = prompts + (without(line, style) and 1 or 0) end
	for i, line in ipairs(lines) do
		local rest, begins = without(line, style)
		shown = shown or line:find '^%s*Out ?%[%d+%]:' ~= nil
		if rest then
			if begins and not first then cuts[#cuts + 1] = at end
			shown, first = false, false
		end
		lines[i] = rest or (prompts > 1 or shown) and '' or line
		at = at + #lines[i] + 1
	end
	return table.concat(lines, '\n') .. (text:find '\n$' and '\n' or ''), cuts
end
