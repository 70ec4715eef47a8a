-- SPDX-License-Identifier: MIT
local function twice(x)
	return 2 * x
end
source(twice)          --> -- tests/interp/help/source.lua:2
                       --> local function twice(x)
                       -->   return 2 * x
                       --> end
local f = load 'local a = 1\nreturn function() return a end'
source(f())            --> -- [string "local a = 1..."]:2
                       --> return function() return a end
source(string.rep)     --> -- this function is written in C
source(hw.clock)       --> -- hw.clock is written in C; see help 'hw.clock'
source 'x:relu'        --> -- x:relu is written in C; see help 'x:relu'
source 'bench.nothing' --> error: source: wanted a function or its name, got 'bench.nothing'
source(3)              --> error: source: wanted a function or its name, got 3

it('shows the prelude', function()
	local lines = {}
	local print_before = print
	print = function(text) lines[#lines + 1] = text end
	source(bench.time)
	source 'report'
	source 'r:sort'
	source 'x:explain'
	print = print_before
	assert(lines[1]:find '^%-%- quoll/interp/bench/library.lua:%d+\nfunction module.time', lines[1])
	assert(lines[2]:find '^%-%- quoll/interp/prelude/report.lua:%d+\nlocal function report', lines[2])
	assert(lines[3]:find 'function methods.sort' and lines[4]:find 'function methods.explain')
end)
