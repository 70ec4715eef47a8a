-- SPDX-License-Identifier: MIT
-- Inputs of a prompt behind a pipe: session(lines), check(lines, wanted) and has(lines, parts …).
local program = '"/proc/$PPID/exe"'

-- Runs the lines as inputs of the prompt; returns what it prints without the prompts.
local function session(lines, arguments, environment)
	local input = os.tmpname()
	local file = io.open(input, 'w')
	file:write(lines)
	file:close()
	local pipe = io.popen(("%s %s -i %s <%s 2>&1"):format(environment or "", program, arguments or "", input))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	os.remove(input)
	return out:gsub("In %[%d+%]: ", ""):gsub(" *%.%.%.: ", ""):gsub("debug: ", ""), code
end

local function check(lines, wanted, arguments, environment)
	local got = session(lines, arguments, environment)
	if got ~= wanted then error(("%q: wanted %q, got %q"):format(lines, wanted, got), 2) end
end

local function has(lines, ...)
	local got = session(lines)
	for _, part in ipairs {...} do
		if not got:find(part, 1, true) then error(("%q: wanted %q in %q"):format(lines, part, got), 2) end
	end
end

return {session = session, check = check, has = has}
