-- SPDX-License-Identifier: MIT
-- Student's t distribution: quantiles, and confidence intervals of means.
local student = {}

local function log_gamma(x) -- Lanczos, g = 5, n = 6; relative error below 2e-10
	local sum, y = 1.000000000190015, x
	for _, c in ipairs {76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155,
		0.1208650973866179e-2, -0.5395239384953e-5} do
		y = y + 1
		sum = sum + c / y
	end
	local t = x + 5.5
	return (x + 0.5) * math.log(t) - t + math.log(2.5066282746310005 * sum / x)
end

-- Continued fraction of the incomplete beta function, by the modified Lentz method (DLMF 8.17.22).
local function beta_fraction(a, b, x)
	local tiny = 1e-300
	local c, d = 1.0, 1 - (a + b) * x / (a + 1)
	d = 1 / (math.abs(d) < tiny and tiny or d)
	local h = d
	for m = 1, 300 do
		local delta
		for half = 0, 1 do
			local factor = half == 0 and m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)) or
				-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
			d = 1 + factor * d
			d = 1 / (math.abs(d) < tiny and tiny or d)
			c = 1 + factor / c
			c = math.abs(c) < tiny and tiny or c
			delta = c * d
			h = h * delta
		end
		if math.abs(delta - 1) < 1e-14 then break end
	end
	return h
end

local function incomplete_beta(a, b, x)
	if x <= 0 or x >= 1 then return x <= 0 and 0.0 or 1.0 end
	local front = math.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * math.log(x) + b * math.log(1 - x))
	if x < (a + 1) / (a + b + 2) then return front * beta_fraction(a, b, x) / a end
	return 1 - front * beta_fraction(b, a, 1 - x) / b
end

-- The t that a share `level` of the distribution with `df` degrees of freedom does not exceed in size.
function student.quantile(level, df)
	local lo, hi = 0.0, 1.0
	local function outside(t) return incomplete_beta(df / 2, 0.5, df / (df + t * t)) end
	while outside(hi) > 1 - level and hi < 1e12 do hi = hi * 2 end
	for _ = 1, 100 do
		local middle = (lo + hi) / 2
		if outside(middle) > 1 - level then lo = middle else hi = middle end
	end
	return (lo + hi) / 2
end

-- Mean and variance (of n - 1; nil for fewer than two values) of a list.
function student.moments(list)
	local mean, sum = 0.0, 0.0
	for _, x in ipairs(list) do mean = mean + x / #list end
	for _, x in ipairs(list) do sum = sum + (x - mean) ^ 2 end
	return mean, #list > 1 and sum / (#list - 1) or nil
end

-- Half the width of the confidence interval of the mean of a list; nil for fewer than two values.
function student.half_width(list, level)
	local _, variance = student.moments(list)
	return variance and student.quantile(level, #list - 1) * math.sqrt(variance / #list)
end

return student
