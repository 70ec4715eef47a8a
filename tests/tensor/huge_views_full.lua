-- SPDX-License-Identifier: MIT
-- labels: full
-- Random calls of all ops on views of 2^31 to 2^62 elements of one number, and on empty tensors with huge axes: no crash, no
-- undefined behaviour (meant for the asan preset), no tensor whose sizes overflow, no print of all. An op over 2^61 elements
-- goes on for years, so each process has a limit in time, after which the next one goes on behind that call.
-- QUOLL_FUZZ_SECONDS: how long, 20 unless set. QUOLL_FUZZ_SEED: where to begin.
local function read(command)
	local pipe = io.popen(command)
	local text = pipe:read 'a'
	pipe:close()
	return text
end
local program = read 'readlink /proc/$PPID/exe':gsub('\n', '')
local seconds, seed = tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 20, math.tointeger(tonumber(os.getenv 'QUOLL_FUZZ_SEED') or 1)
local AT_ONCE, LIMIT = 400, 2

local at, done, tried, endless = os.tmpname(), 0, 0, 0
local stop = os.time() + seconds
local first, found, faults = 1, {}, 0
while os.time() < stop do
	local command = ('%s --memory 1024 --threads 2 --time %d tests/tools/huge_calls.lua %d %d %d %s'):format(program, LIMIT, seed, first, first + AT_ONCE - 1, at)
	local text = read('env --default-signal=INT timeout 120 ' .. command .. ' 2>&1; echo "status $?"')
	local status = tonumber(text:match 'status (%d+)\n$')
	local f <close> = assert(io.open(at))
	local reached = math.tointeger(tonumber(f:read 'a')) or first
	if status ~= 0 and status ~= 124 or text:find 'ERROR: ' or text:find 'runtime error' then
		local place = text:match '[^\n]*runtime error[^\n]*' or text:match '[^\n]*ERROR: [^\n]*' or text:match '[^\n]*'
		place = place:gsub('^=+%d+=+', '')
		if not found[place] then
			print(('call %d: HUGE_CALLS_VERBOSE=1 %s\n%s'):format(reached, command, text))
			found[place], faults = true, faults + 1
		end
	end
	tried, done = tried + reached - first + 1, done + (tonumber(text:match '^(%d+)\n') or 0)
	endless = endless + (status == 124 and 1 or 0)
	first = reached + 1
end
print(('%d calls, %d processes ended by time'):format(tried, endless))  --> ... calls, ... processes ended by time
assert(tried > 0 and faults == 0, 'faults: ' .. faults)
