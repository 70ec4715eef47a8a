-- SPDX-License-Identifier: MIT
-- labels: full
-- Random calls of all ops on views of 2^31 to 2^62 elements of one number, and on empty tensors with huge axes: no crash, no
-- undefined behaviour (meant for the asan preset), no tensor whose sizes overflow, no print of all. The same of what shows, saves,
-- plots and lists them, and at a prompt. An op over 2^61 elements goes on for years, so each process has a limit in time, after
-- which the next one continues after that call.
-- QUOLL_FUZZ_SECONDS: how long, 8 unless set. QUOLL_FUZZ_SEED: where to begin.
local scratch = dofile 'tests/tools/scratch.lua'
local read, program = scratch.output, scratch.program
local seconds, seed = tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 8, math.tointeger(tonumber(os.getenv 'QUOLL_FUZZ_SEED') or 1)
local AT_ONCE, LIMIT = 400, 2

local at, done, tried, endless, lines = os.tmpname(), 0, 0, 0, 0
local start, told = os.time(), os.time()
local stop = start + seconds
local first, found, faults = 1, {}, 0

-- Runs the command; an unknown fault is printed with `what`.
local function watched(command, what)
	local text = read('env --default-signal=INT timeout 120 ' .. command .. ' 2>&1; echo "status $?"')
	local status = tonumber(text:match 'status (%d+)\n$')
	if status ~= 0 and status ~= 124 or text:find 'ERROR: ' or text:find 'runtime error' then
		local place = text:match '[^\n]*runtime error[^\n]*' or text:match '[^\n]*ERROR: [^\n]*' or text:match '[^\n]*'
		place = place:gsub('^=+%d+=+', ''):gsub('0x%x+', '')
		if not found[place] then
			print(('%s: HUGE_CALLS_VERBOSE=1 %s\n%s'):format(what(), command, text))
			found[place], faults = true, faults + 1
		end
	end
	endless = endless + (status == 124 and 1 or 0)
	return text
end

local function reached()
	local f <close> = assert(io.open(at))
	return math.tointeger(tonumber(f:read 'a')) or first
end

local function calls()
	local text = watched(('%s --memory 1024 --threads 2 --time %d tests/tools/huge_calls.lua %d %d %d %s'):format(program, LIMIT, seed, first, first + AT_ONCE - 1, at),
		function() return 'call ' .. reached() end)
	tried, done = tried + reached() - first + 1, done + (tonumber(text:match '^(%d+)\n') or 0)
	first = reached() + 1
end

local INPUTS = {'x', 'y', 'x, y', '{x, {y}}', 'x = H.operand()', 'y = H.operand()', 'x:nelem(), x:nbytes(), x:size()', 'x[1]', 'z = x[1] z', 'x:t()', 'y = x:t()', '%who',
	'%bench -n 1 -r 1 x:t()', '%bench -n 1 -r 1 y:sum()', '%timeit -n 1 -r 1 x:neg()', '%time x:nelem()', '%explain', '?x', '??x', 'x?', '%stale', 'print(x, y)', 'x + y', 'x .. y',
	'plot.line{x}', 'plot.hist{y}', 'plot.image{x}', 'plot.heat{y}', 'report{{a = x, b = x:nelem()}}', '%save %s x y', '%save -f %s', 'x:spec()', 'error(x)',
	'local l = x l + {}', 'error("d", 0)\n%debug\nbt\nvars\nx\nq', 'display(x)', 'for i, row in ipairs(x) do print(row) if i == 2 then break end end', '_', 'Out', 'x:hist()', 'who()'}

-- One session of a prompt with two huge tensors.
local function prompt(i)
	math.randomseed(seed, i)
	local list = {("H = dofile 'tests/tools/huge_values.lua' H.begin(%d, %d)"):format(seed, i), 'x, y = H.operand(), H.operand()'}
	for k = 3, 20 do list[k] = INPUTS[math.random(#INPUTS)]:gsub('%%s', at .. '.safetensors') end
	local f <close> = assert(io.open(at .. '.inputs', 'w'))
	f:write(table.concat(list, '\n'), '\n')
	f:close()
	local text = watched(('%s --memory 1024 --threads 2 --time %d -i <%s.inputs'):format(program, LIMIT, at), function() return 'inputs\n' .. table.concat(list, '\n') end)
	assert(#text < 4000000, 'a prompt printed all')
	lines = lines + #list
end

local round = 0
while os.time() < stop do
	round = round + 1
	if round % 3 == 0 then prompt(round) else calls() end
	if os.time() - told >= 60 then
		told = os.time()
		io.stderr:write(('%d s: %d calls, %d inputs, %d processes ended by time, %d faults\n'):format(told - start, tried, lines, endless, faults))
	end
end
print(('%d calls, %d processes ended by time'):format(tried, endless))  --> ... calls, ... processes ended by time
assert(tried > 0 and faults == 0, 'faults: ' .. faults)
