-- SPDX-License-Identifier: MIT
-- %%debug: the frames of the last error.
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

local LINES = 'local up = 7\nfunction inner(a) local b = a * 2 error("deep " .. up) end\nfunction outer(x) inner(x + 1) end\nouter(1)\n'

it('shows where it was, and the variables of each frame', function()
	local out = session(LINES .. '%debug\nvars\nup\nvars\ndown\nb + a\nwhere\nquit\n5')
	out = out:match '.*\n(In%[2%]:1: deep 7\n> .*)'
	assert(out and out:find '> %d  In%[2%]:1  in inner\n>   1 | function inner', out)
	assert(out:find '  a +2\n  b +4\n  up +7  %(upvalue%)\n', out)
	assert(out:find '> %d  In%[3%]:1  in outer\n  x +1\n', out)
	assert(out:find '\n6\n' and out:find 'in the main chunk' and out:find 'Out%[6%]: 5\n$', out)
end)

it('evaluates with the variables of the frame, and assigns them', function()
	local out = session(LINES .. '%debug\na = 10\na\nfresh = a\nprint(up)\nx.y\nlocal = 1\nquit\nfresh')
	assert(out:find '\n10\n7\n', out)
	assert(out:find "attempt to index a nil value" and out:find "expected near '='" and out:find 'Out%[6%]: 10\n$', out)
end)

it('ends at the ends', function()
	has(LINES .. '%debug\ndown\ndown\nup 9\nup\nup\nup\nquit', 'this is where the error was raised', 'this is the outermost frame')
	check('%debug', 'no error has been raised at this prompt\n')
	check('error "x"\n%debug drop\n%debug', (session 'error "x"') .. 'no error has been raised at this prompt\n')
	has('error "x"\n%debug\n\n1', 'Out[3]: 1')
end)

it('helps and lists', function() has(LINES .. '%debug\nhelp\nlist\nmessage', 'evaluated with the variables', '>   1 | function inner') end)

it('does not keep what an error about memory held', function()
	has('error "not enough memory"\n%debug', 'no error has been raised')
end)
