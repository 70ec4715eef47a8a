-- SPDX-License-Identifier: MIT
-- Study: one row times a square weight of every number format, mode dynamic (8-bit activations) and weight_only (float32 sums):
--   quoll scripts/formats_speed.lua [size=4096] [rounds=40] [threads=2] [mode=dynamic] [format …]
-- Microseconds of the fastest call with the weight in the caches, and with many weights in turn, so that none is; the rate of the
-- latter as a share of the machine's read limit, measured before and after; both as ratios to float32.
local options, chosen = {size = 4096, rounds = 40, threads = 2}, {}
for _, word in ipairs(arg) do
	local key, value = word:match '^(%w+)=(.+)$'
	if key then options[key] = math.tointeger(value) or value else chosen[#chosen + 1] = word end
end
if #chosen == 0 then
	chosen = {'int8/1', 'int8:32', 'uint8:32+min', 'log8', 'log4', 'int6:32', 'int5:32', 'int4/1', 'int4:32', 'int4:64', 'int4:128',
		'uint4:32', 'int4:32+min', 'nf4:64:256', 'int3:32', 'int2:32', 'uint2:32', 'binary/1'}
	for _, row in ipairs(quant.formats()) do chosen[#chosen + 1] = row.name end
end
local SPECS = {log8={dtype='int8', scheme='log'}, log4={dtype='uint4', scheme='log'}}
local COLD = 192 << 20 -- bytes of all weights in turn: several times the caches
tensor.threads(options.threads)

local function read_limit()
	for _, row in ipairs(bench.machine {rows={'limits'}, threads={options.threads}, time=0.3}) do
		if row.family == 'limits' and row.size == 'read' then return row.most end
	end
end

-- The fastest of `calls` calls with the weights in turn.
local function best(list, x, calls)
	for _ = 1, 3 do for _, w in ipairs(list) do x:linear(w) end end
	local least = math.huge
	for i = 1, calls do
		local w, before = list[i % #list + 1], hw.clock()
		x:linear(w)
		least = math.min(least, hw.clock() - before)
	end
	return least * 1e6
end

local x, x8
local function times(w, only)
	local row, list = {}, {w}
	local count = math.max(2, math.ceil(COLD / w:nbytes()))
	for mode, a in pairs {weight_only=x, dynamic=x8} do
		local ok, y = pcall(function() return a:linear(w) end)
		ok = ok and (not only or only == mode) and (mode == 'weight_only' or y:explain():find 'path int8')
		row[mode] = ok and {cached=best({w}, a, options.rounds * 4)}
	end
	for i = 2, count do list[i] = w:clone() end
	for mode in pairs {weight_only=1, dynamic=1} do
		if row[mode] then
			row[mode].cold = best(list, mode == 'dynamic' and x8 or x, math.max(options.rounds, 2 * count))
			row[mode].rate = w:nbytes() / row[mode].cold / 1e3
		end
	end
	return row
end

x = tensor.randn(1, options.size)
x8 = x:quantize 'uint8'
local limit, base, rows = read_limit(), times(tensor.randn(options.size, options.size), 'weight_only').weight_only, {}
for i, spec in ipairs(chosen) do rows[i] = times(tensor.randn(options.size, options.size):quantize(SPECS[spec] or spec), options.mode) end
limit = math.max(limit, read_limit())
print(('%d x %d, %d threads; read limit %.1f GB/s; float32 %.1f us cached, %.1f cold (%.0f %%)'):format(options.size,
	options.size, options.threads, limit, base.cached, base.cold, base.rate / limit * 100))
for i, spec in ipairs(chosen) do
	for _, mode in ipairs {'dynamic', 'weight_only'} do
		local r = rows[i][mode]
		if r then
			print(('%-13s %-11s cached %7.1f us %5.2f of float32; cold %7.1f us %5.2f, %3.0f %% of the limit'):format(spec, mode,
				r.cached, r.cached / base.cached, r.cold, r.cold / base.cold, r.rate / limit * 100))
		end
	end
end
