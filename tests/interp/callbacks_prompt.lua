-- SPDX-License-Identifier: MIT
-- The callbacks of tests/interp/callbacks.lua in processes of their own: inputs of a prompt, notebooks that `%run`, `quoll run` and
-- `quoll test` run, sweeps with workers. Each process must end by itself, without a report of a sanitizer, and a prompt must be
-- alive after all its inputs.
--
-- QUOLL_FUZZ_SECONDS: how long (1); QUOLL_FUZZ_SEED: the first seed. A failure names the seed and shows the inputs.
local seconds = tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 1
local first_seed = math.tointeger(tonumber(os.getenv 'QUOLL_FUZZ_SEED') or 1)
local random, program = math.random, '"/proc/$PPID/exe"'
local LIMIT = 120 -- seconds for a process

local base = os.tmpname()
local notebook, saved, database = base .. '.nb.lua', base .. '.safetensors', base .. '.db'
local function one_of(list) return list[random(#list)] end

local function write(name, text)
	local file <close> = assert(io.open(name, 'w'))
	file:write(text)
end

local BEGIN = [[
C = dofile 'tests/tools/callbacks.lua' C.begin(%d) C.fill() warn '@off'
complete = debug.getregistry()['quoll.internal'].import 'interp/repl/complete';
do local write, c = io.write, C function alive() c.finish() write('alive ', c.records() and 'true' or 'false', '\n') return 1 end end
]]

-- What both a cell and an input may be.
local LINES = {'C.hostile()', 'C.thing()', 'x = C.hostile()', 'x = C.thing()', 'y = C.tensor()', 'x', 'y', 'x, y, C.thing()', '{C.hostile(), {C.hostile()}}', 'C.call()',
	'C.call()', 'C.evil()', 'print(C.hostile())', 'print(C.thing(), x)', 'io.write(tostring(x))', 'local z <close> = C.hostile()', 'local w = C.thing()', 'w',
	'setmetatable({}, {__gc = function() C.evil() end}) collectgarbage()', 'function f() C.evil() return C.call() end', 'f()', 'co = coroutine.wrap(f) co()', 'co()',
	'error(C.hostile())', 'error()', 'local t = C.thing() y = t + x.a[1]', 'report{{a = C.hostile(), b = 1}, {a = 2, b = x}}', 'plot.line{{1, 2, C.tensor()}}',
	"#complete('x.', 2).matches", "#complete('x:call(', 7).matches", "#complete('_G[', 3).matches", '_', 'Out', 'In[1]', 'setmetatable(_G, {__index = function() C.evil() end})',
	'setmetatable(_G, nil)', 'tostring = function(v) C.evil() return "t" end', 'print = function(...) C.evil() io.write(tostring((...)), "\\n") end',
	'setmetatable(Out, {__newindex = function(t, k, v) C.evil() rawset(t, k, v) end})', 'debug.sethook(function() pcall(C.evil) end, "", 1000)', 'debug.sethook()',
	'%who', '%time C.call()', '%timeit -n 1 -r 1 C.evil()', '%bench -n 1 -r 1 C.call()', '%explain', '?x', '??x', '?f', '?*x*', '%forget x', 'help(x)', 'who()',
	'tensor.nograd(C.evil)', 'm = C.model()', 'm', 'm(C.tensor())', 'for k, v in pairs(x) do y = v end', 'if x == y then x = #x end', 'x.field = x[C.speaking "k"]',
	'display(x)', 'string.format("%s", x)', 'q = C.tensor():quantize{observer = function() C.evil() return -1, 1 end} q', 'hw.clock()'}
local INPUTS = {'%stale', '%run stale', 'error("d")\n%debug\nbt\nvars\nx\nC.evil()\nup\nx, y\nq', '%run above', '%run 3-5', '%history', '%save ' .. saved .. ' x y', '%load ' .. saved,
	'%run ' .. notebook, '%set width 40', '%set footer on', '%set stale off', '%set stale on', '%magics', '%journal', '!true', '%sh echo {x}'}

local function lines(n, more)
	local list = {}
	for i = 1, n do list[i] = more and random(4) == 1 and one_of(INPUTS) or one_of(LINES) end
	return list
end

local function cells(seed)
	return '-- %%\n' .. BEGIN:format(seed) .. '-- %% tags=["raises-exception"]\n' .. table.concat(lines(12), '\n-- %% tags=["raises-exception"]\n') .. '\n-- %%\nalive()\n'
end

local STUDY = [[
%s
local r = sweep.run{name = 's', db = '%s', jobs = 2, timeout = 100, memory = %s, grid = {x = {1, 2, 3}, y = {C.value()}}, retry = 1, run = function(c, log)
	C.begin(%d + c.x)
	C.fill()
	C.evil()
	log('a', C.one_of{1, C.tensor(), C.hostile()})
	C.call()
	local held <close> = C.hostile()
	return C.one_of{1, {a = 1}, {a = C.tensor()}, C.hostile(), report{{a = C.speaking 's'}}, C.lazy{b = 2}}
end}
print(r)
]]

-- Each returns a command, whether "alive" must be at its end, and the text of what it runs.
local ways = {
	function(seed)
		write(notebook, cells(seed))
		local text = BEGIN:format(seed) .. table.concat(lines(25, true), '\n') .. '\nalive()\n'
		write(base, text)
		return ('%s -i %s <%s'):format(program, one_of{'', '', '--strict'}, base), true, text
	end,
	function(seed)
		local text = cells(seed)
		write(notebook, text)
		return ('%s run %s --html %s.html'):format(program, notebook, base), true, text
	end,
	function(seed)
		local text = cells(seed):gsub('alive%(%)\n$', 'assert(alive())\n')
		write(notebook, text)
		return ('%s test %s'):format(program, notebook), false, text
	end,
	function(seed)
		local text = STUDY:format(BEGIN:format(seed), database, one_of{'nil', 'nil', '512'}, seed)
		-- a trial ends with its process, and finalizers make tensors while the state is closed
		write(notebook, text)
		os.remove(database)
		return ('env ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 %s %s --jobs=2'):format(program, notebook), false, text
	end,
}

local FAULTS = {'ERROR: ', 'runtime error', 'SUMMARY: ', 'Assertion', 'egmentation', 'ended by signal', 'dumped'}

local processes, inputs = 0, 0
local function once(seed)
	math.randomseed(seed)
	local way = ways[({1, 1, 1, 1, 2, 2, 3, 3, 4})[random(9)]]
	local command, lives, text = way(seed)
	local pipe = io.popen(('timeout -k 5 %d env HOME=%s.home QUOLL_DATA= %s 2>&1; echo "status $?"'):format(LIMIT, base, command))
	local out = pipe:read 'a'
	pipe:close()
	local status, fault = tonumber(out:match 'status (%d+)\n$'), nil
	for _, word in ipairs(FAULTS) do
		if out:find(word, 1, true) then fault = word end
	end
	if not status or status >= 124 then fault = ('status %s'):format(status) end
	if lives and not out:find('alive true', 1, true) then fault = 'the session did not reach its end' end
	processes, inputs = processes + 1, inputs + select(2, text:gsub('\n', ''))
	assert(not fault, ('seed %d: %s\n%s\n---- inputs\n%s\n---- output\n%s'):format(seed, fault, command, text, out:sub(-6000)))
end

it('callbacks do no harm at the prompt, in notebooks and in sweeps', function()
	local start, seed, told = os.time(), first_seed, os.time()
	repeat
		once(seed)
		seed = seed + 1
		if os.time() - told >= 60 then
			told = os.time()
			io.stderr:write(('%d s: %d processes, %d lines, seed %d\n'):format(told - start, processes, inputs, seed))
		end
	until os.time() - start >= seconds
	if os.getenv 'QUOLL_FUZZ_SECONDS' then print(('%d processes, %d lines'):format(processes, inputs)) end
end)
