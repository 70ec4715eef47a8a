-- SPDX-License-Identifier: MIT
-- internal.limit: what the machine does at most. No time is judged but that registers are not slower than memory by far.
local limit = debug.getregistry()['quoll.internal'].limit

it('measures registers and memory on the threads and kernels in force', function()
	local threads, level = tensor.threads(), hw.force()
	for _, n in ipairs {1, 2} do
		tensor.threads(n)
		for _, name in ipairs {'fma', 'int8', 'read', 'copy', 'write', 'quantize'} do
			local rate, kernel = limit(name, 0)
			assert(rate > 0.05 and rate < 1e6, name)
			assert(name == 'int8' or kernel:find '^limit_', kernel)
		end
		for _, name in ipairs {'l2', 'l3'} do
			local rate = limit(name, 0)
			assert(rate == nil or rate > 0.05, name)
		end
	end
	hw.force 'ref'
	print(select(2, limit('fma', 0)), select(2, limit('int8', 0)))  --> limit_ref imul
	assert(limit('l2', 0) == nil or limit('l2', 0) > 0.05)
	hw.force(level)
	tensor.threads(threads)
	print(tensor.memory().now < 1 << 20)  --> true
end)

it('refuses other names', function()
	print(select(2, pcall(limit, 'l4', 0)))  --> ...invalid option 'l4'...
end)
