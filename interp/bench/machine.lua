-- SPDX-License-Identifier: MIT
-- bench.machine: what this machine does at most, and Quoll's share of it for each family of kernels and size. A row is measured like
-- those of bench.time; its limit (interp/bench/limits.c) just before and after it, so that both see the same machine.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'
local fail, describe = base.fail, base.describe

local SECONDS = 60 -- default of the whole report
local LIMITS = {'fma', 'int8', 'read', 'copy', 'write', 'quantize', 'l2', 'l3'}
local UNITS = {'GFLOP/s', 'GOP/s'} -- of the first ones; others: GB/s
local MANY = 16 << 20

local function unit_of(limit)
	for i, name in ipairs(LIMITS) do
		if name == limit then return UNITS[i] or 'GB/s' end
	end
end

---------------------------------------------------------------- what is run

local function uniform(...) return tensor.rand(...) end
local function normal(...) return tensor.randn(...) end
local function codes(...) return uniform(...):quantize {dtype = 'uint8', scale = 1 / 255, zero_point = 3} end

-- What bounds a product of m rows, whose weights take so many bits each: reading these or multiplying.
local function bound(m, n, k, bits, unit)
	if m > 1 then return 2e-9 * m * n * k, unit end
	local bytes = n * k * bits / 8
	return bytes / 1e9, bytes < hw.features().l3 * 0.8 and 'l3' or 'read'
end

local function quantized(weight, mode)
	return function(m, n, k)
		local layer, x = nn.Sequential {nn.Linear(k, n)}:quantize {mode = mode, weight = weight}, uniform(m, k)
		return function() return layer(x) end
	end
end

-- family -> bits of a weight, the limit of its sums, and its function
local PRODUCTS = {
	{'float32', 32, 'fma', function(m, n, k)
		local x, w = uniform(m, k), uniform(n, k)
		return function() return x:linear(w) end
	end},
	{'int8', 8, 'int8', function(m, n, k)
		local x, w, b = codes(m, k), normal(n, k):quantize 'int8/1', uniform(n)
		return function() return x:linear(w, b) end
	end},
	{'int8 dynamic', 8, 'int8', quantized('int8/1', 'dynamic')},
	{'int4 dynamic', 4.5, 'int8', quantized('int4:32', 'dynamic')},
	{'int4 weights', 4.5, 'fma', quantized('int4:32', 'weight_only')},
}
local SIZES = {{256, 256, 256}, {1024, 1024, 1024}, {1, 4096, 4096}, {8, 4096, 4096}, {32, 4096, 4096}}

-- 3 x 3 with padding, batch 8: inputs, outputs, height (ResNet9)
local LAYERS = {{3, 64, 32}, {64, 128, 32}, {128, 256, 16}, {256, 512, 8}}

local CONVOLUTIONS = {
	{'conv float32', 'fma', function(i, o, h)
		local x, w, b = uniform(8, i, h, h), uniform(o, i, 3, 3), uniform(o)
		return function() return x:conv2d(w, b, {pad = 1}) end
	end},
	{'conv int8', 'int8', function(i, o, h)
		local x, w, b = codes(8, i, h, h), normal(o, i, 3, 3):quantize 'int8/1', uniform(o)
		local options = {pad = 1, out = {dtype = 'uint8', scale = 0.1, zero_point = 100}}
		return function() return x:conv2d(w, b, options) end
	end},
}

-- name, limit, bytes moved for each element, function
local PASSES = {
	{'quantize', 'per tensor, given scale', 'quantize', 5, function(x) return function() return x:quantize {dtype = 'int8', scale = 1 / 127} end end},
	{'quantize', 'per row', 'quantize', 5, function(x) return function() return x:quantize 'int8/1' end end},
	{'quantize', 'blocks of 32', 'quantize', 5, function(x) return function() return x:quantize 'int8:32' end end},
	{'quantize', 'int4 in blocks of 32', 'quantize', 4.5, function(x) return function() return x:quantize 'int4:32' end end},
	{'dequantize', 'per tensor', 'copy', 5, function(x)
		local q = x:quantize 'int8'
		return function() return q:dequantize() end
	end},
	{'elementwise', 'min and max', 'read', 8, function(x) return function() return x:min(), x:max() end end},
	{'elementwise', 'add', 'copy', 12, function(x) return function() return x + x end end},
	{'elementwise', 'gelu', 'copy', 8, function(x) return function() return x:gelu() end end},
	{'elementwise', 'softmax of 4096', 'copy', 8, function(x) return function() return x:softmax() end end},
}

-- All rows: {family=, size=, make=, work= (10^9), limit=}
local function all_rows()
	local rows = {}
	for _, p in ipairs(PRODUCTS) do
		for _, s in ipairs(SIZES) do
			local work, limit = bound(s[1], s[2], s[3], p[2], p[3])
			rows[#rows + 1] = {family = p[1], size = ('%dx%dx%d'):format(s[1], s[2], s[3]), work = work, limit = limit,
				make = function() return p[4](s[1], s[2], s[3]) end}
		end
	end
	for _, c in ipairs(CONVOLUTIONS) do
		for _, l in ipairs(LAYERS) do
			local i, o, h = table.unpack(l)
			rows[#rows + 1] = {family = c[1], size = ('8 x %d-%d %dx%d'):format(i, o, h, h), work = 2e-9 * 8 * i * o * (3 * h - 2) ^ 2,
				limit = c[2], make = function() return c[3](i, o, h) end}
		end
	end
	for _, p in ipairs(PASSES) do
		rows[#rows + 1] = {family = p[1], size = p[2], work = p[4] * MANY / 1e9, limit = p[3],
			make = function() return p[5](uniform(MANY // 4096, 4096)) end}
	end
	return rows
end

local function families()
	local list, seen = {'limits'}, {}
	for _, row in ipairs(all_rows()) do
		if not seen[row.family] then list[#list + 1] = row.family end
		seen[row.family] = true
	end
	return list
end

---------------------------------------------------------------- measuring

-- The best rate of a limit so far on these threads, after another burst of it.
local function renew(known, name, seconds)
	local key = name .. tensor.threads()
	local rate, kernel = internal.limit(name, seconds)
	if rate and (not known[key] or rate > known[key].rate) then known[key] = {rate = rate, kernel = kernel} end
	return known[key]
end

local function measure(row, known, seconds)
	renew(known, row.limit, 0)
	local good, run = pcall(row.make)
	if not good then return nil, run end
	local r = bench.time(run, {runs = 100, warmup = 3, timeout = seconds})
	local best = renew(known, row.limit, 0)
	local result = {family = row.family, size = row.size, threads = tensor.threads(), ms = r.ms, min = r.min, spread = r.spread,
		rate = row.work / r.min * 1e3, unit = unit_of(row.limit), limit = row.limit, path = r.path, kernel = r.kernel}
	if best then result.most, result.share = best.rate, result.rate / best.rate end
	return result
end

local function check_rows(list)
	local known = families()
	for i, name in ipairs(base.list('machine: rows', list)) do
		local found = false
		for _, family in ipairs(known) do found = found or family == name end
		if not found then fail('machine: rows: item %d: wanted one of %s, got %s%s', i, table.concat(known, ', '), describe(name), base.near(name, known)) end
	end
	return list
end

local function counts_of(list)
	for i, n in ipairs(base.list('machine: threads', list)) do
		if math.type(n) ~= 'integer' or n < 1 or n > 256 then fail('machine: threads: item %d: wanted an integer from 1 to 256, got %s', i, describe(n)) end
	end
	return list
end

local machine = base.doc {name = 'bench.machine', usage = "bench.machine()  bench.machine{rows={'limits', 'int8'}, threads={1, 2}, time=20}",
	text = [[What this machine does at most, and Quoll's share of it, as a report: family and size of what ran, threads, the time (ms: the
median, min, spread), rate (of the fastest call, in unit), limit (its name), most (what the limit reached in the same seconds), share (rate / most),
path and kernel. The limits come first: fma and int8 (multiply-adds that stay in registers, with the instructions in force), read, copy, write and quantize
(4 bytes read and one written; memory), l2, l3. Products of one row are measured against reading their weights; a size that fits the caches of this
machine may exceed the limit of its memory. `quoll bench` prints it; plot it by r:plot.]],
	options = {{'rows', 'list', 'families: limits, float32, int8, int8 dynamic, int4 dynamic, int4 weights, conv float32, conv int8, quantize, dequantize, elementwise (default all)'},
		{'threads', 'list', 'numbers of threads (default: that in force)'}, {'time', 'number', 'seconds for the whole report (default 60)'}},
	example = [[r = bench.machine{rows={'limits'}, threads={1}, time=0.1}
print(r[1].family, r[1].size, r[1].most > 0)  --> limits fma true]]}

local function wanted_rows(list)
	local rows, wanted = {}, {}
	for _, name in ipairs(list) do wanted[name] = true end
	for _, row in ipairs(all_rows()) do
		if wanted[row.family] then rows[#rows + 1] = row end
	end
	return rows, wanted.limits
end

return function(options)
	local o = base.options(machine, options)
	local rows, limits = wanted_rows(check_rows(o.rows or families()))
	local counts, before = counts_of(o.threads or {tensor.threads()}), tensor.threads()
	local seed, position = internal.rng(20240229, 0)
	local _ <close> = setmetatable({}, {__close = function()
		internal.rng(seed, position)
		tensor.threads(before)
	end})
	local _ <close> = internal.nograd()
	local list = {columns = {'family', 'size', 'threads', 'ms', 'min', 'spread', 'rate', 'unit', 'limit', 'most', 'share', 'path', 'kernel'}}
	local refused, known = {}, {}
	-- a third of the time goes to making operands, warming up and the limits beside a row
	local each = 0.65 * (o.time or SECONDS) / #counts / math.max(1, #rows + (limits and #LIMITS or 0))
	for _, threads in ipairs(counts) do
		tensor.threads(threads)
		for _, name in ipairs(limits and LIMITS or {}) do
			local most = renew(known, name, each)
			if most then
				list[#list + 1] = {family = 'limits', size = name, threads = threads, unit = unit_of(name), most = most.rate, kernel = most.kernel}
			end
		end
		for _, row in ipairs(rows) do
			local result, why = measure(row, known, each)
			list[#list + 1] = result
			if not result then refused[#refused + 1] = ('%s %s: %s'):format(row.family, row.size, why) end
			collectgarbage()
		end
	end
	local f = hw.features()
	list.note = ('%s, %d cores, kernels %s, load %.1f'):format(f.name, f.cores, f.level, internal.load() or 0) ..
		(#refused > 0 and '; refused: ' .. refused[1] .. (#refused > 1 and (' (and %d more)'):format(#refused - 1) or '') or '')
	return report(list)
end
