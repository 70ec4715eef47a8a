-- SPDX-License-Identifier: MIT
-- Quoll as one of the peers of a comparison (scripts/peers.py): quoll scripts/bench_worker.lua <requests. Each line of stdin is a JSON object {case, item,
-- args, threads, budget}; the answer, one line, is {"t":[seconds, ...],"med":seconds,"cpu":seconds} with the times of
-- calls made in `budget` seconds (at least two; with a call over 1.5 s, one), or {"skip":"why"}. Data is built and
-- warmed up at the first request for an item and kept until another item is asked for. What is timed (scripts/bench_cases.lua) is
-- what a user would write, results and their collection included. args.cold: what the work needs has left the caches
-- before each call. The case 'limit' is answered by {"rate":number},
-- 10^9 operations or bytes a second (interp/bench/limits.c), 'version' by {"version":"Quoll ..."}.
local internal = debug.getregistry()['quoll.internal']
local json = internal.import 'interp/prelude/json' -- no JSON reader is public
local clock = hw.clock

local WARM = 0.15 -- seconds of calls before the first timed one: threads have spread, clocks are up
local COLD = 160 << 20 -- bytes read to empty the caches
local KEEP = 400 -- times reported at most, the fastest

local cases = dofile((arg[0]:match '^(.*)bench_worker.lua$' or '') .. 'bench_cases.lua')

local level = hw.force() -- a case may force another one

-- The requested work, ready and warm: its function and the calls it makes.
local function build(request)
	local items = cases[request.case]
	local make = items and (items[request.item] or items['*'])
	if not make then return nil end
	tensor.threads(request.threads)
	hw.force(level)
	local f, calls, reports = make(request.args or {})
	f()
	local stop = clock() + WARM
	while clock() < stop do f() end
	return {f = f, calls = calls or 1, reports = reports}
end

-- Reads more than the caches hold.
local block
local function evict()
	block = block or tensor.ones(COLD // 4)
	block:sum()
end

local function measure(work, budget, cold)
	local times, cpu, stop = {}, os.clock(), clock() + budget
	repeat
		if cold then evict() end
		local start = clock()
		local reported = work.f()
		times[#times + 1] = work.reports and reported or (clock() - start) / work.calls
	until (#times > 1 or times[1] * work.calls > 1.5) and clock() >= stop
	return times, os.clock() - cpu
end

local function answer(times, cpu)
	table.sort(times)
	local list, n = {}, #times
	for i = 1, math.min(n, KEEP) do list[i] = ('%.9g'):format(times[i]) end
	return ('{"t":[%s],"med":%.9g,"cpu":%.6g}'):format(table.concat(list, ','), times[(n + 1) // 2], cpu)
end

local function skip(why)
	return ('{"skip":"%s"}'):format(tostring(why):gsub('[%c"\\]', ' '):sub(1, 200))
end

local key, work
for line in io.lines() do
	local good, request = pcall(json, line)
	local reply
	if not good or type(request) ~= 'table' then
		reply = skip(good and 'wanted an object' or request)
	elseif request.case == 'limit' then
		tensor.threads(request.threads)
		local rate = internal.limit(request.item, request.budget)
		reply = rate and ('{"rate":%.6g}'):format(rate) or skip 'no such cache'
	elseif request.case == 'version' then
		reply = ('{"version":"Quoll %s"}'):format(internal.version)
	else
		local wanted = ('%s/%s/%s'):format(request.case, request.item, request.threads)
		local why
		if key ~= wanted then
			key, work = wanted, nil -- luacheck: ignore 311 (freed before the next is built)
			collectgarbage()
			good, work = pcall(build, request)
			if not good then work, why = nil, work end
		end
		reply = work and answer(measure(work, request.budget or 0.15, (request.args or {}).cold)) or skip(why or 'n/a')
	end
	io.write(reply, '\n')
	io.flush()
end
