-- SPDX-License-Identifier: MIT
-- The prompt without a terminal (quoll -i): what inputs mean, what is shown, what survives. tests/interp/repl/prompt.c
-- has the terminal.
local program = '"/proc/$PPID/exe"'

-- Runs the lines as inputs; returns output and errors without the prompts, and the exit code.
local function session(lines, arguments)
	local input = os.tmpname()
	local f = io.open(input, 'w')

	f:write(lines)
	f:close()
	local pipe = io.popen(('%s -i %s <%s 2>&1'):format(program, arguments or '', input))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	os.remove(input)
	assert(not out:find '\27', 'an escape byte without a terminal')
	return out:gsub('In %[%d+%]: ', ''):gsub(' *%.%.%.: ', ''), code
end

local function check(lines, wanted)
	local got = session(lines)

	if got ~= wanted then error(('%q: wanted %q, got %q'):format(lines, wanted, got), 2) end
end

describe('values', function()
	it('of expressions are shown, also several', function()
		check('1 + 1', 'Out[1]: 2\n')
		check('x = 3\nx', 'Out[2]: 3\n')
		check('1, nil, "a"', 'Out[1]: 1\tnil\t"a"\n')
		check('nil', 'Out[1]: nil\n')
		check('=2 * 3', 'Out[1]: 6\n')
		check('return 4, 5', 'Out[1]: 4\t5\n')
		check('(function() end)()', '')
	end)
	it('of the last statement are shown when it is a call or an expression', function()
		check('x = 1 ; math.max(x, 5)', 'Out[1]: 5\n')
		check('x = 1 y = 2 x + y', 'Out[1]: 3\n')
		check('local x = 7 x', 'Out[1]: 7\n')
		check('x = 5 -- nothing to show', '')
		check('print(1) print(2)', '1\n2\n')
		check('do local z = 1 end "s"', 'Out[1]: "s"\n')
		check('if true then x = 1 end x', 'Out[1]: 1\n')
		check('local t = {f = function(self) return 9 end} t:f()', 'Out[1]: 9\n')
	end)
	it('a call that continues the statement before is no value of its own', function()
		check('f = math.min\ndo x = f\n(3, 4) end 0', 'Out[2]: 0\n')
		check('do x = math.max\n(3, 4) end', '')
		check('do\nx = math.max\n(3, 4)\nend x', 'Out[1]: 4\n')
	end)
	it('a semicolon at the end keeps them back', function()
		check('1 + 1;', '')
		check('x = 1 x;', '')
		check('math.max(1, 2) ; -- note', '')
		check('"a;"', 'Out[1]: "a;"\n')
		check('{1;2;}', 'Out[1]: {1, 2}\n')
		check('5\n6;\n_', 'Out[1]: 5\nOut[3]: 5\n')
	end)
	it('of an assert that held are not', function()
		check('assert(1 < 2)', '')
		check('x = 1 assert(x == 1, "one")', '')
		check('assert(7)', 'Out[1]: 7\n')
		check('assert(true) == true', 'Out[1]: true\n')
		check('assert(true) and (1 < 2)', 'Out[1]: true\n')
		check('print(assert(1 == 1))', 'true\n')
	end)
	it('are kept in _ and Out, inputs in In', function()
		check('6 * 7\n_ + 1\nOut[1] + Out[2]\nIn[2]', 'Out[1]: 42\nOut[2]: 43\nOut[3]: 85\nOut[4]: "_ + 1\\n"\n')
		check('Out = nil\nIn = 1\n5', 'Out[3]: 5\n')
		check('local _, y = 1, 2\ny\n_', 'Out[2]: 2\nOut[3]: 2\n')
	end)
	it('of old inputs go, big tensors when nothing else holds them', function()
		local lines = ''

		for i = 1, 130 do lines = lines .. i .. ';\n' .. i .. '\n' end
		assert(session(lines .. 'Out[2], Out[258]'):find 'Out%[261%]: nil\t129\n$')
		check('tensor.zeros(1 << 20);\nb = tensor.zeros(1 << 19) b;\ntensor.zeros(1 << 19) == nil\n' ..
			'Out[3]\n0\ncollectgarbage()\n', 'Out[3]: false\nOut[4]: false\nOut[5]: 0\nOut[6]: 0\n')
	end)
end)

describe('showing', function()
	it('tables with their contents', function()
		check('{}', 'Out[1]: {}\n')
		check('{1, 2.0, "x", true, nil, a = {b = {1}}, ["a b"] = 1, [10] = 2, [1.5] = 3, ["end"] = 4}',
			'Out[1]:\n{\n  1,\n  2.0,\n  "x",\n  true,\n  [1.5] = 3,\n  [10] = 2,\n  a = {b = {1}},\n' ..
			'  ["a b"] = 1,\n  ["end"] = 4\n}\n')
		assert(session('t = {} t.t = t t'):find '^Out%[1%]: {t = <table: 0x%x+>}\n$')
		assert(session('t = {} for i = 1, 100 do t[i] = i end t'):find '59,\n  60,\n  … %(40 more%)\n}')
		check('{{{{{{1}}}}}}', 'Out[1]: {{{{{{…}}}}}}\n')
	end)
	it('strings quoted, long ones cut', function()
		check([['a"\n\0\\é']], 'Out[1]: "a\\"\\n\\x00\\\\é"\n')
		assert(session('("é"):rep(5000)') == 'Out[1]: "' .. ('é'):rep(1000) .. '"… (10000 bytes)\n')
	end)
	it('objects by their tostring, and failing ones without failing', function()
		check('setmetatable({}, {__tostring = function() return "me" end})', 'Out[1]: me\n')
		assert(session('setmetatable({}, {__tostring = function() error "no" end})'):find
			'^Out%[1%]: <table that cannot be shown: .*no>\n$')
		assert(session('setmetatable({}, {__tostring = function() return {} end})'):find 'cannot be shown')
		assert(session('setmetatable({}, {__index = error, __pairs = error, __len = error})') == 'Out[1]: {}\n')
		assert(session('function f() end f'):find '^Out%[1%]: function: 0x%x+ %(In%[1%]:1%)\n$')
	end)
	it('tensors whole, inside of tables in one line', function()
		check('tensor{1, 2}', 'Out[1]: float32(2)  1  2\n')
		check('{x = tensor{1, 2}}', 'Out[1]: {x = <float32(2)>}\n')
		assert(session('tensor{{1, 2}}'):find '^Out%[1%]:\nfloat32%(1, 2%)\n')
	end)
end)

describe('several lines', function()
	it('are read until they are a whole', function()
		check('for i = 1, 2 do\nprint(i)\nend', '1\n2\n')
		check('function f(x)\n  return x\nend\nf(\n3)', 'Out[2]: 3\n')
		check('x = [[a\nb]]\nx', 'Out[2]: "a\\nb"\n')
		check('--[[ note\n]] 5', 'Out[1]: 5\n')
		check('1 +\n2', 'Out[1]: 3\n')
		check('a = 1 b =\n2 a + b', 'Out[1]: 3\n')
		check('{\n1,\n}', 'Out[1]: {1}\n')
		check('if true then\n\nprint "x"\nend', 'x\n')
	end)
	it('that never end are an error at the end', function()
		check('for', "In[1]:1: <name> expected near <eof>\n")
		check('x = [[abc', "In[1]:1: unfinished long string (starting at line 1) near <eof>\n")
	end)
	it('wrong ones are an error at once', function()
		check('x = = 1\n2', "In[1]:1: unexpected symbol near '='\nOut[2]: 2\n")
		check('end\n2', "In[1]:1: <eof> expected near 'end'\nOut[2]: 2\n")
		check('x y\n2', "In[1]:1: syntax error near 'y'\nOut[2]: 2\n")
		check('x = "abc\n2', "In[1]:1: unfinished string near '\"abc'\nOut[2]: 2\n")
		check("f('abc)\n2", "In[1]:1: unfinished string near ''abc)'\nOut[2]: 2\n")
		check('"abc', "In[1]:1: unfinished string near '\"abc'\n")
		check('x = "ab\\\nc"\nx', 'Out[2]: "ab\\nc"\n')
		check('x = "ab\\z\n  c"\nx', 'Out[2]: "abc"\n')
		check('\1Lua\n2', "In[1]:1: unexpected symbol near '<\\1>'\nOut[2]: 2\n")
	end)
	it('empty ones and comments have no number', function()
		check('\n   \n-- note\n7', 'Out[1]: 7\n')
	end)
end)

describe('local variables', function()
	it('survive, shared with closures', function()
		check('local x = 1 local function inc() x = x + 1 return x end\nx = 10\ninc()\nx', 'Out[3]: 11\nOut[4]: 11\n')
		check('local a, b = 1\na, b', 'Out[2]: 1\tnil\n')
		check('local x = 1\nlocal x = x + 1\nx', 'Out[3]: 2\n')
		check('local f\nfunction f() return 5 end\nf()\n_G.f', 'Out[3]: 5\nOut[4]: nil\n')
		check('local x = 1\nfunction get() return x end\nlocal x = 2\nget(), x', 'Out[4]: 1\t2\n')
		check('local x = 1\nco = coroutine.wrap(function() x = 2 coroutine.yield() x = 3 end)\nco()\nx\nco()\nx',
			'Out[4]: 2\nOut[6]: 3\n')
	end)
	it('hide globals only where they are mentioned', function()
		check('print = print\nlocal y = 1\nprint(t, ({y = 2}).y, y)', 'nil\t2\t1\n')
		check('x = 1\nlocal x = 2\nx, _G.x\n%forget x\nx', 'Out[3]: 2\t1\nOut[5]: 1\n')
	end)
	it('of inner blocks and functions do not', function()
		check('do local z = 1 end for i = 1, 1 do local w = 1 end function f() local v end\nz, w, v, i',
			'Out[2]: nil\tnil\tnil\tnil\n')
	end)
	it('survive a return, at the top or in a block', function()
		check('local a = 1 return a\na', 'Out[1]: 1\nOut[2]: 1\n')
		check('local a = 1 if a then local b = 2 return b end\na, b', 'Out[1]: 2\nOut[2]: 1\tnil\n')
		check('local f = function() return 3 end local c = f()\nc', 'Out[2]: 3\n')
		check('local a = 4 for i = 1, 9 do if i == 3 then return end end\na', 'Out[2]: 4\n')
	end)
	it('survive an error, by value', function()
		local out = session 'local a, b = 1, {2} local n <const> = 5 local c = 3 f() local d = 4\na, b, c, d'

		assert(out:find 'Out%[2%]: 1\t{2}\t3\tnil\n$', out)
		assert(session('do local q = 1 error "x" end local r = 5\nq, r'):find 'Out%[2%]: nil\tnil\n$')
	end)
	it('with attributes: constants by value, closed ones closed', function()
		check('local n <const>, t <const> = 5, {1}\nn, t\nn = 6\nn', 'Out[2]: 5\t{1}\nOut[4]: 6\n')
		check('local c <close> = setmetatable({}, {__close = function() print "closed" end})\ntype(c)',
			'closed\nOut[2]: "table"\n')
	end)
	it('may be many', function()
		local names, values = {}, {}

		for i = 1, 199 do names[i], values[i] = 'v' .. i, i end
		local all, list = table.concat(names, ','), table.concat(values, ',')
		check(('local %s = %s\nv1 + v199'):format(all, list), 'Out[2]: 200\n')
		check(('local %s = %s\nfunction f() return %s end\nselect("#", f())'):format(all, list, all), 'Out[3]: 199\n')
		check(('local w1, w2, w3 = 1, 2, 3\nlocal %s = %s\nlocal t = {%s, w1, w2, w3}\n#t'):format(all, list, all),
			'Out[4]: 202\n')
	end)
	it('that cannot be kept are named', function()
		local out = session 'do goto over end local z = 1 ::over::\nz'

		assert(out:find 'not kept: a label or goto prevents it\nOut%[2%]: nil\n$', out)
	end)
	it('cannot break out of their wrapper', function()
		check('local a = 1 end, function()', "In[1]:1: <eof> expected near 'end'\n")
		check('local save_0, save_1 = 1, 2\nsave_0 + save_1', 'Out[2]: 3\n')
	end)
	it('may be called like anything', function()
		check('local _ENV_ = 1 local self, arg = 2, 3\n_ENV_, self, arg', 'Out[2]: 1\t2\t3\n')
		check('local _ENV = {} x = 1\nprint(x)', 'nil\n')
	end)
	it('work with varargs, labels and loops', function()
		check('local n = select("#", ...) n', 'Out[1]: 0\n')
		check('local i = 1 ::top:: i = i + 1 if i < 5 then goto top end\ni', 'Out[2]: 5\n')
	end)
end)

describe('errors', function()
	it('show the line of the input', function()
		assert(session('x = {}\ny = x.a.b'):find "^In%[2%]:1: attempt to index a nil value %(field 'a'%)\n" )
		assert(session('function f()\n  error "here"\nend\nf()'):find 'In%[1%]:2: here.*2 | error "here".*1 | f%(%)')
	end)
	it('show tensors and models of the failing function', function()
		local out = session('function f(m, n) local k = m:quantize "int8" return m.nothing end\nf(tensor{1, 2}, 3)')

		assert(out:find 'm = float32%(2%)' and out:find 'k = int8%(2%) symmetric' and out:find 'n = 3\n', out)
	end)
	it('name the function of Quoll that was called, and nothing inside of it', function()
		local out = session('m = nn.Sequential{nn.Linear(3, 2)}\nm:foward()')

		assert(out:find("^In%[2%]:1: Sequential: no field or method 'foward'; did you mean 'forward'%?\nstack traceback:\n" ..
			"\t%[Quoll%]: in metamethod 'index'\n\tIn%[2%]:1: in main chunk\n\t    1 | m:foward%(%)\n" ..
			"\t    m = Sequential, 8 parameters\n$"), out)
		out = session('m = nn.Linear(1, 1)\nfunction loss(y, t)\n  error "mine"\nend\n' ..
			'm:fit({{tensor.ones(1, 1), tensor.ones(1, 1)}}, {opt=optim.sgd(m), epochs=1, log=false, loss=loss})')
		assert(out:find("In%[2%]:2: in %l+ 'loss'\n.*\n\t%[Quoll%]: in method 'fit'\n\tIn%[3%]:1: in main chunk") and
			not out:find 'prelude', out)
	end)
	it('of Quoll itself show everything', function()
		local out = session "debug.getregistry()['quoll.internal'].import('interp/input/stale').new().list({})"
		assert(out:find '^quoll/interp/input/stale.lua:%d+: ' and out:find 'quoll/interp/input/stale.lua:%d+: in .*\n\t    %d+ | ', out)
	end)
	it('leave the session alive', function()
		assert(session('error()\n1'):find 'nil value%).*Out%[2%]: 1\n$')
		assert(session('("x"):rep(1 << 20):gsub("x", ("x"):rep(1 << 30))\n1', '--memory 256'):find 'not enough memory\nOut%[2%]: 1\n$')
		assert(session('local function f() return 1 + f() end f()\n1'):find 'stack overflow.*Out%[2%]: 1\n$')
		assert(session('error(setmetatable({}, {__tostring = error}))\n1'):find 'error object {}\n.*Out%[2%]: 1\n$')
	end)
end)

describe('magics', function()
	it('%time reports the cost and shows the value', function()
		assert(session('%time 1 + 1'):find '^Out%[1%]: 2\ntime %d+%.%d+ %ws %(processor .*%), tensors %+0 B at the peak')
		assert(session('%time for i = 1, 2 do\nend\n5'):find '^time .*\nOut%[2%]: 5\n$')
		assert(session('%time local x = tensor.zeros(1024)\nx:size()'):find 'tensors %+%d+%.%d KiB.*Out%[2%]: 1024')
		check('%time\n1', 'usage: %time code\nOut[2]: 1\n')
	end)
	it('!command runs in the shell', function()
		check('!echo a b', 'a b\n')
		check('$ echo a b', 'a b\n')
		check('  $echo "a  b"', 'a  b\n')
		check('!exit 3', 'exit status 3\n')
	end)
	it('who lists the variables', function()
		check('who()', 'no variables yet\n')
		local out = session 'm = nn.Linear(2, 3) r = report{{a=1}} o = optim.sgd(m)\nwho()'

		assert(out:find 'm +Linear%(2, 3%), 9 parameters +36 B\n' and out:find 'r +report, 1 row: a\n' and
			out:find 'o +optim.sgd: [^\n]* 0 steps\n' and out:find 'tensors: 36 B here', out)
		out = session 'x = tensor.zeros(2, 3) local y = "abc" z = {1, 2}\nwho()'

		assert(out:find 'x +float32 +2x3 +24 B\n' and out:find 'y %(local%) +string +3 B\n' and
			out:find 'z +table +2 items\n' and out:find 'tensors: 24 B here', out)
		assert(session('local q = 1\n%who'):find 'q %(local%)')
	end)
	it('unknown ones suggest', function()
		check('%tmie 1', "%tmie: no such magic; did you mean 'time'?; %magics lists them\n")
		check('%histry', "%histry: no such magic; did you mean 'history'?; %magics lists them\n")
		check('%set prec 2', "set: no setting 'prec'; did you mean 'precision'?\n")
		local list = session '%magics'
		assert(list:find '%%forget' and list == session '%')
		for line in list:gmatch '[^\n]+' do assert(#line <= 80, line) end
		check('%forget nothing', 'nothing: no local variable of an earlier input; a global goes by nothing = nil\n')
	end)
	it('ops that fell back are counted', function()
		local out = session('q = tensor{1, 2}:quantize "int8"\n(q + 1);\nq + 1 q + 2;')

		assert(out:find '1 op fell back to float32; %%explain shows why\n', out)
	end)
end)

describe('leaving', function()
	it('with exit, quit or the end of the input', function()
		local out, code = session('exit\n1')

		assert(out == '' and code == 0)
		assert(session('quit\n1') == '' and session('exit = 5\nexit') == 'Out[2]: 5\n')
		assert(select(2, session('os.exit(4)')) == 4)
		assert(select(2, session('error "x"')) == 0)
	end)
	it('-i comes after a script, whose globals it has', function()
		assert(session('x', "-e 'x = 5'") == 'Out[1]: 5\n')
		assert(session('1', "-e 'error()'"):find 'nil value%).*Out%[1%]: 1\n$')
	end)
end)

it('exit and quit leave, also when they are called', function()
	for _, word in ipairs {'exit', 'quit', 'exit()', 'quit()'} do check('1\n' .. word .. '\n2', 'Out[1]: 1\n') end
	check('quit = function() return 5 end\nquit()', 'Out[2]: 5\n')
end)

it('a value whose __show gives no text is shown as what it is', function()
	check('setmetatable({}, {__show = function() return {} end})\n1', 'Out[1]: <table that cannot be shown: __show: wanted a text, got table>\nOut[2]: 1\n')
	check('setmetatable({}, {__show = function() end})', 'Out[1]: <table that cannot be shown: __show: wanted a text, got nil>\n')
	check('setmetatable({}, {__show = function() return 7 end})', 'Out[1]: 7\n')
	check('setmetatable({}, {__show = function() error {} end})', 'Out[1]: <table that cannot be shown: error in __tostring>\n')
end)

it('variables may have the names of the start, and all goes on', function()
	local names = {}
	for name in pairs(_G) do
		if name ~= 'print' and name ~= '_G' and name ~= 'tensor' then names[#names + 1] = name end
	end
	table.sort(names)
	local before = 'local o, b, p, n = quant.observer, bench.time, plot.line, nn\n'
	local after = 'x = tensor{1, 2}\nx:quantize "int8"\n%who\no "int8"\nn.Linear(2, 2)\n#p{{1, 2}}:text() > 9\n{1, {2}}\ny + 1\n'
	local function with(names) return before .. table.concat(names, ' = "mine"\n') .. ' = "mine"\n' .. after end
	local out = session(with(names))
	assert(out:find 'int8%(2%) symmetric' and out:find 'x +float32 +2' and out:find 'Linear%(2, 2%)' and out:find ': true' and out:find '{1, {2}}' and
		out:find "global 'y'", out)
	assert(not out:find 'cannot be shown', out)
end)

it('such variables are listed, kept and dropped as others', function()
	local out = session('data = tensor{1, 2}\ntable = 5\n%who\n?data\n%reset -f\n%who\ntable.concat{1, 2}')
	assert(out:find 'data +float32 +2' and out:find 'table +integer += 5' and out:find '2 variables dropped' and out:find 'no variables yet' and
		out:find '"12"', out)
	local file = os.tmpname() .. '.safetensors'
	assert(session(('data = 7\n%%save %s\ndata = 8\n%%load %s\ndata'):format(file, file)):find 'Out%[5%]: 7\n')
	os.remove(file)
end)
