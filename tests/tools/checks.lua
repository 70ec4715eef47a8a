-- SPDX-License-Identifier: MIT
-- Checks that several tests make: numbers within a bound, gradients against differences, same bits everywhere, refusals.
local checks = {}

-- Each number of the tensor `got` is that of the list, within the bound times at least 1.
function checks.near(got, want, bound)
	local a = got:contiguous():view(-1):totable()
	assert(#a == #want, #a)
	for i = 1, #want do
		local off = math.abs(a[i] - want[i])
		assert(off <= bound * math.max(1, math.abs(want[i])), ('%d: %.10g, not %.10g'):format(i, a[i], want[i]))
	end
end

-- Gradients of sum(f(…) * seed) by every operand against central differences in float64.
function checks.gradient(f, ...)
	local operands, size = {...}, {f(...):size()}
	local seed = #size > 0 and tensor.randn(table.unpack(size)):to 'float64' or tensor(1):to 'float64'
	for _, x in ipairs(operands) do x:requires_grad_() end
	f(...):backward(seed)
	for k, x in ipairs(operands) do
		local got, flat = x:grad():contiguous():view(-1):totable(), x:detach():view(-1)
		for i = 1, x:nelem() do
			local old, h, value = flat[i]:item(), 1e-5, {}
			for side = -1, 1, 2 do
				flat[i] = old + side * h
				value[side] = (f(...):detach() * seed):sum():item()
			end
			flat[i] = old
			local want = (value[1] - value[-1]) / (2 * h)
			local off = math.abs(got[i] - want)
			assert(off < 1e-6 * math.max(1, math.abs(want)), ('operand %d: %d: %g, not %g'):format(k, i, got[i], want))
		end
	end
end

-- Random numbers in float64.
function checks.wide(...) return tensor.randn(...):to 'float64' end

-- f gives the same bits on 1 and 2 threads, and on every instruction set.
function checks.bits(f, levels)
	local threads, level, want = tensor.threads(), hw.features().level
	for _, forced in ipairs(levels or {level, 'avx2', 'ref'}) do
		for n = 1, 2 do
			hw.force(forced)
			tensor.threads(n)
			local got = {f()}
			hw.force(level)
			tensor.threads(threads)
			want = want or got
			for i = 1, #got do assert(got[i]:eq(want[i]):all():item(), ('%s, %d threads, result %d'):format(forced, n, i)) end
		end
	end
end

-- The call fails with a message that has the text.
function checks.refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

return checks
