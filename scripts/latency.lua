-- SPDX-License-Identifier: MIT
-- Study: how long each kernel takes, on every level of kernels that this machine has. First products of many shapes,
-- from a single row (a token of a language model) to large squares, by the type of the weights; then quantize,
-- dequantize and elementwise operations by the number of elements.
--   quoll scripts/latency.lua [--quick] [level=avx2] [dtype=int8]
--   quoll scripts/latency.lua shape=1x1024x1024     the products only; with op= or size= the rest only
-- Only honest alone: leave --jobs at 1 and the machine in peace (quoll sweep report latency.db --env shows load and
-- governor). Results: latency.db and latency_ops.db beside this file; pictures, latency.csv and latency_ops.csv in
-- ./out.
local given = ' ' .. table.concat(arg, ' ')
local quick = given:find '%-%-quick' ~= nil
local products, elements = not given:find ' op=' and not given:find ' size=', not given:find ' shape='

-- Levels that give other kernels than the one below them here.
local function levels()
	local before, list, seen = hw.force(), {}, {}
	for _, level in ipairs {'ref', 'avx2', 'avxvnni', 'avx512vnni', 'amx'} do
		hw.force(level)
		local used = {}
		for _, row in ipairs(hw.kernels():where {used=true}) do used[#used + 1] = row.family .. row.kernel end
		local key = table.concat(used, ' ')
		if not seen[key] then list[#list + 1] = level end
		seen[key] = true
	end
	hw.force(before)
	return list
end

-- What precedes a sweep runs again in each of its trials, so both come before what is made of them.
local shapes = quick and {'1x64x64', '16x64x48'} or {'1x512x512', '1x1024x1024', '1x4096x4096', '8x1024x1024',
	'32x1024x1024', '64x64x64', '128x128x128', '256x256x256', '512x512x512', '1024x1024x1024', '128x64x576',
	'1024x32x288', '100x1000x27', '127x129x131'}
local r = products and sweep.run {name = quick and 'latency_quick' or 'latency', timeout = '10m',
	grid = {level=levels(), shape=shapes, dtype=quick and {'float32', 'int8'} or
		{'float32', 'float16', 'int8', 'uint8', 'int16', 'int4/1', 'int4:32', 'uint4:32', 'binary/1'}},
	run = function(c)
		hw.force(c.level)
		local m, n, k = c.shape:match '^(%d+)x(%d+)x(%d+)$'
		if not m then error('shape: wanted m x n x k as 1x512x512, got ' .. c.shape) end
		local size = {math.tointeger(m), math.tointeger(n), math.tointeger(k)}
		local row = bench.matmul {sizes={size}, dtypes={c.dtype}, runs=quick and 2 or 20, timeout=quick and 0.2 or 5}
		return row:select {'input', 'ms', 'min', 'spread', 'gops', 'speedup', 'path', 'kernel'}
	end}

local ops = elements and sweep.run {name = quick and 'latency_ops_quick' or 'latency_ops', timeout = '10m',
	grid = {level=levels(), op={'quantize', 'dequantize', 'relu', 'add'},
		size=quick and {1000} or {100, 1000, 10000, 100000, 1000000, 10000000},
		dtype=quick and {'int8'} or {'int8', 'uint8', 'int16', 'int4', 'int4:32'}},
	run = function(c)
		hw.force(c.level)
		local row = bench.ops {ops={c.op}, sizes={c.size}, dtypes={c.dtype}, runs=quick and 2 or 20,
			timeout=quick and 0.2 or 5}
		return row:select {'ms', 'min', 'spread', 'gbs', 'path', 'kernel'}
	end}

os.execute 'mkdir -p out'
if r then
	r:save 'out/latency.csv'
	for _, shape in ipairs(shapes) do
		local of = r:where {shape=shape}
		if #of > 1 then
			of:plot {kind='bar', x='dtype', y='gops', group='level', title=shape, ylabel='10^9 operations per second',
				file='out/latency_' .. shape .. '.svg'}
		end
	end
	print(r:sort {'shape', 'dtype', 'ms'}:select {'shape', 'dtype', 'ms', 'gops', 'speedup', 'kernel'})
end
if ops then
	ops:save 'out/latency_ops.csv'
	print(ops:sort {'op', 'dtype', 'size', 'ms'})
end
