-- SPDX-License-Identifier: MIT
-- Study: what rounding after training costs, by scheme, bits, granularity and mode, for every trained model that is
-- here.
--   quoll scripts/ptq.lua [--quick] [model=lenet,transformer] [bits=4] [--jobs 2]     jobs: accuracy only, no timings
-- Killed and started again, it goes on. Results: ptq.db beside this file; pictures and ptq.csv in ./out.
local quick = table.concat(arg, ' '):find '%-%-quick' ~= nil
local here = arg[0]:match '^(.*/)' or ''
local tasks, files = dofile(here .. 'tasks.lua')(quick)
local names = {}
for name in pairs(tasks) do names[#names + 1] = name end
table.sort(names)
if #names == 0 then error 'no trained model with its data is here; --quick trains small ones' end

-- Weights in blocks have no integer product: only weight_only takes them. float32 is the base of every comparison.
local kinds = {{mode='float32', scheme='float', bits=32, block=false}}
for _, bits in ipairs(quick and {8, 2} or {8, 4, 3, 2}) do
	for _, scheme in ipairs {'symmetric', 'asymmetric'} do
		for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
			for _, block in ipairs(mode == 'weight_only' and {false, 16, 128} or {false}) do
				kinds[#kinds + 1] = {mode=mode, scheme=scheme, bits=bits, block=block}
			end
		end
	end
end

local function quantized(t, c)
	if c.mode == 'float32' then return t.model end
	local weight = {bits=c.bits, scheme=c.scheme, block=c.block or nil, axis=not c.block and 1 or nil}
	if c.mode == 'weight_only' then return t.model:quantize {mode=c.mode, weight=weight} end
	if c.mode == 'dynamic' then return t.model:quantize {mode=c.mode, weight=weight, input='uint8'} end
	t.model:calibrate(t.calibration, {input='uint8@mse', batches=8, log=false})
	return t.model:quantize {mode=c.mode, weight=weight}
end

local r = sweep.run {name = quick and 'ptq_quick' or 'ptq', grid = {model=names}, list = kinds, data = files,
	timeout = '30m',
	run = function(c)
		local t = tasks[c.model]()
		local measured = bench.models({q=quantized(t, c)}, {data=t.test, metric=t.metric, log=false})
		return measured:select {'metric', 'value', 'ms', 'bytes', 'weight_bytes', 'activation_bytes', 'peak'}
	end}

os.execute 'mkdir -p out'
r:save 'out/ptq.csv'
for _, name in ipairs(r:column 'model') do
	local of = r:where {model=name}
	if #of > 1 then
		of:plot {kind='scatter', x='weight_bytes', y='value', group='mode', title=name, ylabel=of[1].metric,
			file='out/ptq_' .. name .. '.svg'}
	end
end
-- What fits into a terminal; ptq.csv has the rest.
print(r:sort {'model', 'weight_bytes', 'value'}:select {'model', 'mode', 'scheme', 'bits', 'block', 'value', 'ms', 'weight_bytes'})
