-- SPDX-License-Identifier: MIT
-- %%debug: the frames of the last error.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

local LINES = 'local up = 7\nfunction inner(a) local b = a * 2 error("deep " .. up) end\nfunction outer(x) inner(x + 1) end\nouter(1)\n'

it('shows where it was, and the variables of each frame', function()
	local out = session(LINES .. '%debug\nvars\nup\nvars\ndown\nb + a\nwhere\nquit\n5')
	out = out:match '.*\n(In%[2%]:1: deep 7\n> .*)'
	assert(out and out:find '> %d  In%[2%]:1  in inner\n>   1 | function inner', out)
	assert(out:find '  a +2\n  b +4\n  up +7  %(upvalue%)\n', out)
	assert(out:find '> %d  In%[3%]:1  in outer\n>   1 | function outer%(x%) [^\n]*\n  x +1\n', out)
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
