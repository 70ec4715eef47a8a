-- SPDX-License-Identifier: MIT
-- bench.kernels: every kernel that this machine has is timed, beside ref.
it('has a row for each kernel', function()
	local r = bench.kernels {time = 1e-5}
	local timed, ref = {}, {}
	for _, row in ipairs(r) do
		timed[row.family .. row.kernel] = true
		assert(row.ns > 0 and row.rate > 0, row.family)
		if row.kernel == 'ref' then
			ref[row.family .. row.call] = row.rate
			assert(row.ratio == 1)
		end
	end
	for _, row in ipairs(r) do -- tiles differ in size, so rates; signed codes have tiles of their own on AMX only
		local least = ref[row.family .. row.call]
		assert(least and math.abs(row.ratio * least / row.rate - 1) < 1e-9 or not least and row.call == 'tile_s8' and not row.ratio)
	end
	for _, k in ipairs(hw.kernels()) do
		assert(not k.here or timed[k.family .. k.kernel] or k.kernel == 'blas', k.family .. ' ' .. k.kernel)
	end
	for _, family in ipairs {'gemm_f32', 'gemm_i8', 'quantize', 'limit'} do assert(#r:where {family = family, used = true} > 0, family) end
end)
