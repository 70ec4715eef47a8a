-- SPDX-License-Identifier: MIT
-- Whether hw.recommend and hw.tune answer what is fastest: each beside all ways, levels and numbers of threads, measured at once by the best
-- of many interleaved calls. A ratio of 1.10 or more is named. Only on a machine that does nothing else.
--   quoll scripts/recommended.lua [rounds]
-- The user's cache of measurements is used as it is: XDG_CACHE_HOME=$(mktemp -d) begins anew.
local measured = debug.getregistry()['quoll.internal'].import 'interp/bench/hw_measured'
local rounds = math.tointeger(tonumber(arg[1] or 20)) or 20

local WORKLOADS = {
	{op = 'matmul', m = 256, n = 256, k = 256},
	{op = 'matmul', m = 1, n = 4096, k = 4096},
	{op = 'conv2d', batch = 1, channels = 64, height = 32, width = 32, outputs = 128, kernel = 3}, -- ResNet9's second
}

-- Calls f under a level and number of threads.
local function under(level, threads, f)
	local force, count = hw.force(level), tensor.threads()
	tensor.threads(threads)
	local start = hw.clock()
	f()
	local took = hw.clock() - start
	hw.force(force)
	tensor.threads(count)
	return took * 1e3
end

-- Milliseconds of the fastest call of each row of hw.tune's second report, all in turn.
local function exhaustive(w, all)
	local best, calls = {}, {}
	for i, row in ipairs(all) do calls[i] = measured.call(w, {spec = row.spec, mode = row.mode}) end
	for _ = 1, rounds do
		for i, row in ipairs(all) do
			under(row.level, row.threads, calls[i]) -- packs what the level wants
			best[i] = math.min(best[i] or math.huge, under(row.level, row.threads, calls[i]))
		end
	end
	return best
end

local rows = {columns = {'workload', 'asked', 'answer', 'ms', 'fastest', 'best', 'ratio'}}
for _, w in ipairs(WORKLOADS) do
	local tuned, all = hw.tune(w)
	local recommended = hw.recommend(w)
	local best, level, threads = exhaustive(w, all), hw.features().level, tensor.threads()
	local function compare(asked, answer, at_level, on_threads, allowed)
		local least, own
		for i, row in ipairs(all) do
			if row.refused == '' and allowed(row) and (not least or best[i] < best[least]) then least = i end
			if row.spec == answer.spec and row.mode == answer.mode and row.level == at_level and row.threads == on_threads then own = i end
		end
		local function name(row) return ('%s %s, %s, %d'):format(row.spec, row.mode, row.level, row.threads) end
		rows[#rows + 1] = {measured.workload('tune', w), asked, name(all[own]), best[own], name(all[least]), best[least], best[own] / best[least]}
	end
	compare('tune', tuned, tuned.level, tuned.threads, function() return true end)
	compare('recommend', recommended, level, threads, function(row) return row.level == level and row.threads == threads end)
end
local r = report(rows)
r:show {width = 200}
for _, row in ipairs(r) do
	if row.ratio >= 1.1 then print(('%s: %s is off by %.0f %%'):format(row.workload, row.asked, 100 * (row.ratio - 1))) end
end
