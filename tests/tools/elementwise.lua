-- SPDX-License-Identifier: MIT
-- Values of an elementwise op by its name and numbers, 'elu 0.5': elementwise(op, x, want, tolerances) compares them in each dtype,
-- within that part of the value wanted.
local function close(op, x, want, dtype, tolerance)
	local got = x:to(dtype)
	local numbers = {}
	for word in op:gmatch ' (%S+)' do numbers[#numbers + 1] = tonumber(word) end
	got = got[op:match '%w+'](got, table.unpack(numbers)):to('float64'):totable()
	for i = 1, #want do
		local bound = tolerance * math.max(math.abs(want[i]), 1e-37)
		assert(math.abs(got[i] - want[i]) <= bound, ('%s %s: item %d: %.9g, wanted %.9g'):format(op, dtype, i, got[i], want[i]))
	end
end

return function(op, x, want, tolerances)
	describe(op, function()
		it('is right in float32 and float64', function()
			for dtype, tolerance in pairs(tolerances) do close(op, x, want, dtype, tolerance) end
		end)
	end)
end
