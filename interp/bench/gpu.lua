-- SPDX-License-Identifier: MIT
-- gpu: the part that returns a report.
local gpu, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'

base.doc {name = 'gpu.kernels', usage = 'gpu.kernels()',
	text = [[A report of the kernels of the plug-in (without a GPU: of the emulation): kernel, as quant.log names it; ops that it runs; family
(simt: plain code; dp4a, mma, wgmma: the instructions of its products; cublas, cudnn: calls a library); result (bits: those of the CPU;
tolerance: sums of products may be in another order); the compute capability that it needs; used (a device here may run it, and hw.force
allows it). A call that no kernel takes runs on the host, and quant.log says why.]],
	example = [[for _, row in ipairs(gpu.kernels():where{kernel='copy'}) do print(row.ops, row.result) end]]}

function gpu.kernels()
	local rows = internal.gpu_kernels()
	rows.columns = {'kernel', 'ops', 'family', 'result', 'capability', 'used'}
	return report(rows)
end
