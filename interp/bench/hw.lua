-- SPDX-License-Identifier: MIT
-- hw: the parts that return reports.
local hw, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'
local doc = base.doc
internal.import 'interp/bench/hw_efficient'
internal.import 'interp/bench/hw_recommend'
internal.import 'interp/bench/hw_tune'

doc {name = 'hw', kind = 'module', usage = 'hw.features  hw.kernels  hw.force  hw.hints  hw.recommend  hw.efficient  hw.tune  hw.clock  hw.doctor',
	text = [[What the processor has and which kernels run on it.]]}

doc {name = 'hw.kernels', usage = 'hw.kernels()',
	text = [[A report of all kernels: family (help 'gemm_i8' and so on says what it computes), kernel (the instructions it is
written for), here (this machine can run it), used (it is the one in force for its family) and tile (rows x columns that a product
works on at once). See hw.force.]],
	example = [[r = hw.kernels()
print(#r:where{used=true, family='gemm_i8'}, r:where{family='gemm_i8'}[-1].kernel)  --> 1 ref]]}

function hw.kernels()
	local rows = internal.kernels()
	rows.columns = {'family', 'kernel', 'here', 'used', 'tile'}
	return report(rows)
end

doc {name = 'hw.doctor', usage = 'hw.doctor()',
	text = [[What was found on this machine and why not, as a report: part, item, state (ok, none: not there and not needed,
problem: should be there or is set wrongly) and detail. `quoll doctor` prints it and exits with 1 when there is a problem.]],
	example = [[r = hw.doctor()
print(r:where{item='Lua'}.state)  --> ok]]}

function hw.doctor() return internal.import 'interp/bench/doctor'.report() end
