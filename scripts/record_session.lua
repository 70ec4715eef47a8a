-- SPDX-License-Identifier: MIT
-- The session at the top of README.md, recorded: takes the inputs that are there after "In [n]: " (and "   ...:
-- "), gives them to the prompt of
-- this very program through a pipe, and writes what it showed in their place. The prompt does not echo what a pipe
-- gives it, so
-- the inputs are put back after their prompts; nothing else is changed. tests/interp/readme.lua compares without
-- writing.
--	quoll scripts/record_session.lua [README.md]      (in the root of the repository)
local record = {}

-- The first ``` block, and what is before and after it.
function record.split(text)
	local before, block, behind = text:match '^(.-```\n)(.-)(```\n.*)$'
	assert(block and block:find '^In %[1%]: ', 'no session in the first block')
	return before, block, behind
end

-- The inputs of a recorded session: lists of lines.
function record.inputs(block)
	local list = {}
	for line in block:gmatch '([^\n]*)\n' do
		local first, more = line:match '^In %[%d+%]: (.*)$', line:match '^ +%.%.%.: (.*)$'
		if first then
			list[#list + 1] = {first}
		elseif more then
			table.insert(list[#list], more)
		end
	end
	return list
end

-- What the prompt shows when it is given the inputs.
function record.run(inputs)
	local name = os.tmpname()
	local file = assert(io.open(name, 'w'))
	for _, lines in ipairs(inputs) do file:write(table.concat(lines, '\n'), '\n') end
	file:close()
	local pipe = io.popen('"/proc/$PPID/exe" --plot text -i <' .. name .. ' 2>&1')
	local output = pipe:read 'a'
	pipe:close()
	os.remove(name)
	local parts, at = {}, 1
	for i, lines in ipairs(inputs) do
		local prompt = ('In [%d]: '):format(i)
		local more = (' '):rep(#prompt - 5) .. '...: '
		local from, to = output:find(prompt, at, true)
		assert(from, 'no prompt ' .. prompt .. 'in ' .. output)
		parts[#parts + 1] = output:sub(at, from - 1)
		at = to + 1
		parts[#parts + 1] = prompt .. table.concat(lines, '\n' .. more) .. '\n'
		for _ = 2, #lines do
			assert(output:sub(at, at + #more - 1) == more, 'no prompt for more lines')
			at = at + #more
		end
	end
	parts[#parts + 1] = output:sub(at):gsub('In %[%d+%]: \n?$', '')
	return (table.concat(parts):gsub(' +\n', '\n'))
end

if not arg or not (arg[0] or ''):find 'record_session%.lua$' then return record end

local path = arg[1] or 'README.md'
local file = assert(io.open(path, 'rb'))
local before, block, behind = record.split(file:read 'a')
file:close()
file = assert(io.open(path, 'wb'))
file:write(before, record.run(record.inputs(block)), behind)
file:close()
