-- SPDX-License-Identifier: MIT
-- Study: which observer finds the best input ranges, by bits of the activations and number of batches seen, for every
-- trained model that is here. Weights stay at int8 by rows, so that differences come from the ranges.
--   quoll scripts/observers.lua [--quick] [model=resnet8] [observer=mse,entropy] [--jobs 2]
-- Results: observers.db beside this file; pictures and observers.csv in ./out.
local quick = table.concat(arg, ' '):find '%-%-quick' ~= nil
local here = arg[0]:match '^(.*/)' or ''
local tasks, files = dofile(here .. 'tasks.lua')(quick)
local names = {}
for name in pairs(tasks) do names[#names + 1] = name end
table.sort(names)
if #names == 0 then error 'no trained model with its data is here; --quick trains small ones' end

local r = sweep.run {name = quick and 'observers_quick' or 'observers', data = files, timeout = '30m',
	grid = {model=names, observer={'minmax', 'average', 'percentile', 'entropy', 'mse', 'adaptive'},
		bits=quick and {8, 4} or {8, 6, 4}, batches=quick and {2} or {1, 8}},
	run = function(c)
		local t = tasks[c.model]()
		local full = t.model:evaluate(t.test, {metric=t.metric, log=false})[t.metric]
		local start = hw.clock()
		t.model:calibrate(t.calibration, {input={bits=c.bits, scheme='asymmetric', observer=c.observer},
			batches=c.batches, log=false})
		local seconds = hw.clock() - start
		local q = t.model:quantize {mode='static', weight='int8/1'}
		local value = q:evaluate(t.test, {metric=t.metric, log=false})[t.metric]
		return report {columns={'metric', 'value', 'float32', 'change', 'calibration_ms'},
			{t.metric, value, full, math.floor((value - full) * 1e4 + 0.5) / 1e4, 1000 * seconds}}
	end}

os.execute 'mkdir -p out'
r:save 'out/observers.csv'
local most = quick and 2 or 8
for _, name in ipairs(names) do
	local of = #r > 0 and r:where {model=name, batches=most} or r
	if #of > 1 then
		of:plot {x='bits', y='value', group='observer', title=name, ylabel=of[1].metric,
			file='out/observers_' .. name .. '.svg'}
	end
end
-- What fits into a terminal; observers.csv has the rest.
print(r:sort {'model', 'bits', 'batches', 'value'}:select {'model', 'bits', 'batches', 'observer', 'value', 'float32', 'change'})
