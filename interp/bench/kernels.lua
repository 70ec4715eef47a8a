-- SPDX-License-Identifier: MIT
-- bench.kernels: every line of kernels.def beside ref, on one thread and data that stay in the cache (interp/bench/kernel_times.c).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'

local kernels = base.doc {name = 'bench.kernels', usage = 'bench.kernels()  bench.kernels{time=1}',
	text = [[Times every kernel that this machine has (hw.kernels) beside ref, on one thread and data that stay in the cache, as a report:
family, call (which of its functions), kernel, ns of a call (the fastest), rate (10^9 operations or elements a second), ratio (its rate
by ref's: how many times as fast; nil where ref has no such function), used (it is the one in force).]],
	options = {{'time', 'number', 'seconds for each kernel and call (default 0.02)'}},
	example = [[r = bench.kernels{time=1e-4}
print(r:where{family='gemm_i8', kernel='ref'}[1].ratio)  --> 1.0]]}

return function(options)
	local o = base.options(kernels, options)
	local used, ref = {}, {}
	for _, k in ipairs(internal.kernels()) do used[k.family .. k.kernel] = k.used end
	local rows = internal.kernel_times(o.time or 0.02)
	for _, row in ipairs(rows) do
		row.rate = row.work / row.ns
		if row.kernel == 'ref' then ref[row.family .. row.call] = row.rate end
	end
	for _, row in ipairs(rows) do
		local least = ref[row.family .. row.call]
		row.ratio, row.used = least and row.rate / least, used[row.family .. row.kernel]
	end
	rows.columns = {'family', 'call', 'kernel', 'ns', 'rate', 'ratio', 'used'}
	rows.note = ('one thread, data in the cache; rate: 10^9 operations (products) or elements a second; %s'):format(hw.features().name)
	for _, row in ipairs(rows) do row.work = nil end
	return report(rows)
end
