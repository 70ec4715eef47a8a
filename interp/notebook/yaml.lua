-- SPDX-License-Identifier: MIT
-- The header of a percent file: the part of YAML that Jupytext writes there, which is nested names with plain or quoted
-- values. Only `jupyter:` is taken apart; what else the header says is kept as text. Lists and block texts inside of
-- `jupyter:` are left out: they are for Jupytext.
local yaml = {}

local QUOTED = {['"'] = '^"(.*)"$', ["'"] = "^'(.*)'$"}

local function scalar(text)
	local quote = QUOTED[text:sub(1, 1)]
	local inner = quote and text:match(quote)
	if inner and text:sub(1, 1) == "'" then return (inner:gsub("''", "'")) end
	if inner then return (inner:gsub('\\(.)', {n = '\n', t = '\t', ['"'] = '"', ['\\'] = '\\'})) end
	if text == 'true' or text == 'false' then return text == 'true' end
	if text:find '^-?%d+$' then return math.tointeger(tonumber(text)) end
	return text
end

-- Lines (without the comment signs) into the table under `jupyter:` and the text of the other lines, or nil.
function yaml.read(lines)
	local metadata, rest, stack = {}, {}, nil
	for _, line in ipairs(lines) do
		local indent, name, value = line:match '^( *)([%w_.-]+):%s*(.-)%s*$'
		if line:find '^jupyter:%s*$' then
			stack = {{indent = -1, table = metadata}}
		elseif not line:find '^%s' then
			stack = nil
		end
		if not stack then
			rest[#rest + 1] = line
		elseif name and #indent > 0 then
			while stack[#stack].indent >= #indent do stack[#stack] = nil end
			local parent = stack[#stack].table
			if value == '' then
				parent[name] = {}
				stack[#stack + 1] = {indent = #indent, table = parent[name]}
			else
				parent[name] = scalar(value)
			end
		end
	end
	if type(metadata.jupytext) == 'table' then
		metadata.jupytext.text_representation = nil -- how that file was written
		if not next(metadata.jupytext) then metadata.jupytext = nil end
	end
	return metadata, #rest > 0 and table.concat(rest, '\n') or nil
end

local function scalar_text(value)
	local text = tostring(value)
	if type(value) == 'string' and (scalar(text) ~= value or tonumber(text) or not text:find '^[%w_.][%w_ ./()+-]*$') then
		return "'" .. text:gsub('%c', ' '):gsub("'", "''") .. "'"
	end
	return text
end

local function add(out, value, indent)
	local names = {}
	for name in next, value do
		if type(name) == 'string' and name:find '^[%w_.-]+$' then names[#names + 1] = name end
	end
	table.sort(names)
	for _, name in ipairs(names) do
		if type(value[name]) == 'table' then
			out[#out + 1] = indent .. name .. ':'
			add(out, value[name], indent .. '  ')
		else
			out[#out + 1] = indent .. name .. ': ' .. scalar_text(value[name])
		end
	end
end

local TEXT = {extension = '.lua', format_name = 'percent', format_version = '1.3'}

-- Lines of a header: the kernel where it is not Quoll's own, and `front`, the text of other lines. An empty list: none is
-- needed.
function yaml.write(metadata, front)
	local kernel, out = metadata.kernelspec, {}
	local foreign = type(kernel) == 'table' and kernel.name ~= 'quoll'
	if not foreign and not front then return out end
	out[1] = '---'
	for line in ((front or '') .. '\n'):gmatch '(.-)\n' do
		if front then out[#out + 1] = line end
	end
	if foreign then
		out[#out + 1] = 'jupyter:'
		add(out, {jupytext = {text_representation = TEXT}, kernelspec = kernel}, '  ')
	end
	out[#out + 1] = '---'
	return out
end

return yaml
