-- SPDX-License-Identifier: MIT
-- Quantiles of Student's t against a table (two-sided 95 %: 1, 2, 5, 10, 30, 120 degrees of freedom), through intervals of means.
local known = {[1] = 12.706205, [2] = 4.302653, [5] = 2.570582, [10] = 2.228139, [30] = 2.042272, [120] = 1.979930}
for df, t in pairs(known) do
	local rows, sum = {}, 0
	for i = 1, df + 1 do
		rows[i] = {x = (i * 37) % 11}
		sum = sum + rows[i].x
	end
	local mean, variance = sum / (df + 1), 0
	for _, row in ipairs(rows) do variance = variance + (row.x - mean) ^ 2 / df end
	local got, half, n = report(rows):mean 'x'
	assert(math.abs(got - mean) < 1e-12 and n == df + 1)
	assert(math.abs(half / (t * (variance / (df + 1)) ^ 0.5) - 1) < 1e-6, df)
end
local _, half = report{{x=1}, {x=2}, {x=4}}:mean('x', nil, {confidence=0.9})
assert(math.abs(half - 2.919986 * (7 / 9) ^ 0.5) < 1e-5) -- t(0.95, 2)
