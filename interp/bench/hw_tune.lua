-- SPDX-License-Identifier: MIT
-- hw.tune: the fastest way to run a layer over specs, levels of kernels and numbers of threads, by measurement (interp/bench/hw_measured.lua), within a
-- time. What was measured is kept: a second call answers at once, or goes on where the time was up.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail = base.doc, base.fail
local recommend = internal.import 'interp/bench/hw_recommend'

local OWN = {{'runs', 'positive integer', 'measurements of each way (default 5)'}, {'time', 'number', 'seconds for new measurements (default 60)'},
	{'gain', 'number', 'share of the time that another level or number of threads must win (default 0.05)'}}
local options = table.move(recommend.WORKLOAD, 1, #recommend.WORKLOAD, 1, {})
table.move(OWN, 1, #OWN, #options + 1, options)

local tune = doc {name = 'hw.tune', usage = "hw.tune{op='matmul', m=64, n=512, k=512}  hw.tune({op=, …}, {time=10, minsqnr=30})",
	text = [[As hw.recommend, and also over the levels of kernels up to the one in force (hw.force) and the numbers of threads up to
tensor.threads(); on a device over the families of its kernels (gpu.kernels): first all ways as the machine is set now, then, the fastest first, with other threads and levels, until time= is up. Gives a report
of one row: spec and mode for m:quantize, level (on a device: families) and threads for hw.force and tensor.threads, kernel, ms, speedup over float32 as it is set now, saving,
sqnr and why; a second result is a report of all that was measured. Another level or number of threads is named only where it wins
gain= of the time. Nothing is set. When none keeps what was asked for: nil, and the reason. Sizes of tiles belong to a kernel (hw.kernels), so
the level chooses them. Power is not measured.]],
	options = options,
	example = [[r, all = hw.tune({op='matmul', m=8, n=64, k=64}, {time=2, runs=3})
print(r.spec ~= nil, r.threads >= 1, #all >= 6)  --> true true true]]}

---------------------------------------------------------------- settings

-- Sets level and threads; they come back when it is closed.
local function set(level, threads)
	local force, count = hw.force(level), tensor.threads()
	tensor.threads(threads)
	return setmetatable({}, {__close = function()
		hw.force(force)
		tensor.threads(count)
	end})
end

-- The level, or on a device what is allowed of its families, that is in force.
local function level_now(device) return device == 'cpu' and hw.features().level or hw.force() end

-- On a device: each family of kernels with those that have kernels for everything.
local function families()
	local list, seen = {'simt'}, {simt = true}
	for _, kernel in ipairs(gpu.kernels()) do
		if not seen[kernel.family] then list[#list + 1] = 'simt ' .. kernel.family end
		seen[kernel.family] = true
	end
	return list
end

-- Levels up to the one in force, the best first, those that this machine has.
local function levels(device)
	if device ~= 'cpu' then return families() end
	local now, list, seen = hw.features().level, {}, {}
	for _, level in ipairs {'ref', 'avx2', 'avxvnni', 'avx512vnni', 'amx'} do
		local _ <close> = set(level, tensor.threads())
		local real = hw.features().level
		if not seen[real] then table.insert(list, 1, real) end
		seen[real] = true
		if real == now then break end
	end
	return list
end

local function thread_counts(device)
	if device ~= 'cpu' then return {tensor.threads()} end
	local list, n = {}, tensor.threads()
	while n >= 1 do
		list[#list + 1] = n
		n = n // 2
	end
	return list
end

---------------------------------------------------------------- candidates

-- One way under one setting; nil when it cannot run, false when there is no time to measure it.
local function row_of(measured, o, v, level, threads, stop)
	local _ <close> = set(level, threads)
	if not measured.has('tune', o, v) and hw.clock() >= stop then return false end
	local e = measured.get('tune', o, v, o.runs or 5)
	return e and {spec = v.spec, mode = v.mode, text = v.text, level = level, threads = threads, kernel = e.kernel, ms = e.ms, sqnr = e.sqnr,
		bytes = e.bytes, variant = v, refused = recommend.refusal(e, o) or ''} or nil
end

-- The rows of all ways as the machine is set now: float32 first, whatever the time.
local function present(measured, o, stop)
	local rows, left = {}, 0
	for i, v in ipairs(measured.variants) do
		local row = row_of(measured, o, v, level_now(measured.device(o)), tensor.threads(), i == 1 and math.huge or stop)
		if row then rows[#rows + 1] = row end
		left = left + (row == false and 1 or 0)
	end
	return rows, left
end

-- Those under other settings after them, of the ways that keep what is asked for, but for speed.
local function others(measured, o, rows, stop)
	local ways, left = {}, 0
	for _, row in ipairs(rows) do
		local e = {ms = 0, sqnr = row.sqnr, bytes = row.bytes, kernel = row.kernel}
		if not recommend.refusal(e, o) then ways[#ways + 1] = row end
	end
	table.sort(ways, function(a, b) return a.ms < b.ms end)
	local device = measured.device(o)
	local present_level, threads_now = level_now(device), tensor.threads()
	for _, level in ipairs(levels(device)) do
		for _, threads in ipairs(thread_counts(device)) do
			for _, way in ipairs(level == present_level and threads == threads_now and {} or ways) do
				local row = row_of(measured, o, way.variant, level, threads, stop)
				if row then rows[#rows + 1] = row end
				left = left + (row == false and 1 or 0)
			end
		end
	end
	return left
end

local function fastest(rows, allowed)
	local best
	for _, row in ipairs(rows) do
		if row.refused == '' and allowed(row) and (not best or row.ms < best.ms) then best = row end
	end
	return best
end

---------------------------------------------------------------- tune

local function reason(best, now, float, left)
	local text = ('%s takes %.3g ms with %d thread%s on %s, %.2f times as fast as float32 as it is set now (%.3g ms)'):format(best.text, best.ms,
		best.threads, best.threads == 1 and '' or 's', best.kernel, float.ms / best.ms, float.ms)
	if now and best ~= now then text = text .. ('; the best as it is set now, %s, takes %.3g ms'):format(now.text, now.ms) end
	if left > 0 then text = text .. ('; %d ways were not measured, the time was up'):format(left) end
	return text
end

function hw.tune(workload, more)
	local report, measured = internal.import 'interp/prelude/report', internal.import 'interp/bench/hw_measured'
	local o = {}
	for _, given in ipairs {workload == nil and {} or workload, more} do
		for key, value in next, base.options(tune, given) do o[key] = value end
	end
	measured.workload('tune', o)
	for _, field in ipairs {'time', 'gain'} do
		local value = o[field] or 0
		if not (value >= 0 and value < math.huge) then fail('tune: %s: wanted a number of at least 0, got %s', field, base.describe(value)) end
	end
	local stop = hw.clock() + (o.time or 60)
	local rows, left = present(measured, o, stop)
	local float, level, threads = rows[1], rows[1].level, rows[1].threads
	left = left + others(measured, o, rows, stop)
	local now = fastest(rows, function(row) return row.level == level and row.threads == threads end)
	local best = fastest(rows, function() return true end)
	if not best then
		local parts = {}
		for i, row in ipairs(rows) do parts[i] = ('%s (%s, %s, %d): %s'):format(row.spec, row.mode, row.level, row.threads, row.refused) end
		return nil, 'no way keeps what was asked for: ' .. table.concat(parts, '; ')
	end
	if now and best.ms > now.ms * (1 - (o.gain or 0.05)) then best = now end
	for _, row in ipairs(rows) do row.speedup, row.saving = float.ms / row.ms, 1 - row.bytes / float.bytes end
	rows.columns = {'spec', 'mode', 'level', 'threads', 'kernel', 'ms', 'speedup', 'saving', 'sqnr', 'refused'}
	rows.note = measured.workload('tune', o) .. (left > 0 and ('; %d ways not measured: the time was up'):format(left) or '')
	local one = {columns = {'spec', 'mode', 'level', 'threads', 'kernel', 'ms', 'speedup', 'saving', 'sqnr', 'why'}, {why = reason(best, now, float, left)}}
	for _, column in ipairs(one.columns) do one[1][column] = one[1][column] or best[column] end
	for _, row in ipairs(rows) do row.text, row.variant, row.bytes = nil, nil, nil end
	return report(one), report(rows)
end

return true
