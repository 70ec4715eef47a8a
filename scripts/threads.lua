-- SPDX-License-Identifier: MIT
-- Whether a second thread pays where there is little work: networks with one input, float, dynamic and static, on one
-- thread and on more, in turns within one run, so that both see the same load of the machine. `ratio` is the median of the
-- time with more threads over that with one, pair by pair: above 1 the threads lose.
--   quoll scripts/threads.lua [threads=2] [rounds=60] [--quick]
local given = ' ' .. table.concat(arg, ' ')
local quick = given:find '%-%-quick' ~= nil
local threads = tonumber(given:match ' threads=(%d+)') or 2
local rounds = tonumber(given:match ' rounds=(%d+)') or quick and 5 or 60
local here = arg[0]:match '^(.*/)' or ''
local tasks = dofile(here .. 'tasks.lua')(quick)
local before = tensor.threads()

-- Seconds of a call with so many threads: the mean over about 20 ms.
local function seconds(call, n, calls)
	tensor.threads(n)
	local start = hw.clock()
	for _ = 1, calls do call() end
	return (hw.clock() - start) / calls
end

local function median(list)
	table.sort(list)
	return list[(#list + 1) // 2]
end

local function compare(name, mode, call)
	for _ = 1, 3 do seconds(call, threads, 1) end
	local calls = math.max(1, math.floor(0.02 / seconds(call, 1, 3)))
	local one, more, ratio = {}, {}, {}
	for i = 1, rounds do
		one[i], more[i] = seconds(call, 1, calls), seconds(call, threads, calls)
		ratio[i] = more[i] / one[i]
	end
	return {name, mode, median(one) * 1e3, median(more) * 1e3, median(ratio)}
end

local rows = {columns = {'network', 'mode', 'one_ms', 'more_ms', 'ratio'}}
for _, name in ipairs {'resnet8', 'resnet9', 'resnet20', 'lstm', 'transformer', 'mlp'} do
	local task = tasks[name] and tasks[name]()
	if task then
		local input
		for x in task.test() do
			input = x:narrow(1, 1, 1):contiguous()
			break
		end
		task.model:calibrate(task.calibration, {input='uint8', batches=1})
		for _, mode in ipairs {'float32', 'dynamic', 'static'} do
			local m = mode == 'float32' and task.model or task.model:quantize {mode=mode, weight='int8/1'}
			rows[#rows + 1] = compare(name, mode, function() return m(input) end)
		end
	end
end
tensor.threads(before)
print(('%d threads against one, %d rounds'):format(threads, rounds))
print(report(rows))
