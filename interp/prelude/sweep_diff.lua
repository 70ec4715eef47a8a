-- SPDX-License-Identifier: MIT
-- Two results files side by side. Trials that differ in the seed only are samples of one cell; for each cell and result
-- the means, their difference b - a, and its confidence interval by Welch's t (B. L. Welch 1947; degrees of freedom
-- after Satterthwaite). Differences whose interval leaves out zero are marked.
local _, internal = ...
local base = internal.import 'base'
local config = internal.import 'sweep_config'
local store = internal.import 'sweep_store'
local fail = base.fail

---------------------------------------------------------------- Student's t

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
local function quantile(level, df)
	local lo, hi = 0.0, 1.0
	local function outside(t) return incomplete_beta(df / 2, 0.5, df / (df + t * t)) end
	while outside(hi) > 1 - level and hi < 1e12 do hi = hi * 2 end
	for _ = 1, 100 do
		local middle = (lo + hi) / 2
		if outside(middle) > 1 - level then lo = middle else hi = middle end
	end
	return (lo + hi) / 2
end

local function moments(list)
	local mean, sum = 0.0, 0.0
	for _, x in ipairs(list) do mean = mean + x / #list end
	for _, x in ipairs(list) do sum = sum + (x - mean) ^ 2 end
	return mean, #list > 1 and sum / (#list - 1) or nil
end

-- Half the width of the interval; nil when there are too few samples.
local function half_width(a, b, va, vb, level)
	if not va or not vb then return nil end
	local sa, sb = va / #a, vb / #b
	if sa + sb == 0 then return 0.0 end
	local df = (sa + sb) ^ 2 / (sa ^ 2 / (#a - 1) + sb ^ 2 / (#b - 1))
	return quantile(level, df) * math.sqrt(sa + sb)
end

---------------------------------------------------------------- the files

-- Cells of a study in their order: a list of {text=, values={name -> list}, names=}.
local function cells_of(db, study)
	local list, by_text = {}, {}
	for _, one in ipairs(store.trials(db, study)) do
		if one.state == 'done' then
			local values = {}
			for name, value in next, one.values do
				if name ~= 'seed' then values[name] = value end
			end
			local key = config.encode(values, 'config')
			if not by_text[key] then
				by_text[key] = {key = key, text = config.text(values), values = {}, names = {}}
				list[#list + 1] = by_text[key]
			end
			local cell = by_text[key]
			for _, result in ipairs(store.results(db, one.key)) do
				if type(result.value) == 'number' and result.value == result.value then
					if not cell.values[result.name] then
						cell.values[result.name] = {}
						cell.names[#cell.names + 1] = result.name
					end
					table.insert(cell.values[result.name], result.value)
				end
			end
		end
	end
	return list, by_text
end

-- The different values of a fact among the trials of a study.
local function facts(db, study, name)
	local list = {}
	for _, row in ipairs(db:rows([[SELECT DISTINCT e.value AS value FROM env e JOIN trial t ON t.key = e.trial
		WHERE t.study = ? AND t.code = ? AND e.name = ? ORDER BY 1]], study.key, study.code, name)) do
		list[#list + 1] = tostring(row.value)
	end
	return table.concat(list, ', ')
end

local function warnings_of(a, b, sa, sb)
	local list = {}
	for _, name in ipairs {'processor', 'level', 'threads', 'jobs', 'quoll', 'commit'} do
		local one, two = facts(a, sa, name), facts(b, sb, name)
		if one ~= two then
			list[#list + 1] = ('%s differs: %s and %s'):format(name, one ~= '' and one or 'none',
				two ~= '' and two or 'none')
		end
	end
	for _, study in ipairs {{a, sa}, {b, sb}} do
		local jobs = facts(study[1], study[2], 'jobs')
		if jobs ~= '' and jobs ~= '1' and jobs ~= '0' then
			list[#list + 1] = 'trials ran beside each other (jobs ' .. jobs .. '): do not compare times'
		end
	end
	return list
end

local function row_of(text, name, x, y, level)
	local mean_x, var_x = moments(x)
	local mean_y, var_y = moments(y)
	local row = {trial = text, result = name, a = mean_x, b = mean_y, difference = mean_y - mean_x, na = #x, nb = #y}
	local half = half_width(x, y, var_x, var_y, level)
	if half then
		row.lo, row.hi = row.difference - half, row.difference + half
		row.verdict = row.lo > 0 and 'b is higher' or row.hi < 0 and 'b is lower' or half == 0 and 'equal' or
			'may be equal'
	end
	return row
end

-- o: study, level. Returns a report and a list of warnings.
local function diff(file_a, file_b, o)
	local level = o.level or 0.95
	if not (level > 0 and level < 1) then fail('sweep: diff: level: wanted a number between 0 and 1, got %g', level) end
	local a <close> = store.open(file_a, 'read')
	local b <close> = store.open(file_b, 'read')
	local sa, sb = store.study(a, file_a, o.study), store.study(b, file_b, o.study)
	local cells, others = cells_of(a, sa), select(2, cells_of(b, sb))
	local list = {columns = {'trial', 'result', 'a', 'b', 'difference', 'lo', 'hi', 'verdict', 'na', 'nb'}}
	local alone = 0
	for _, cell in ipairs(cells) do
		local other = others[cell.key]
		others[cell.key] = nil
		alone = alone + (other and 0 or 1)
		for _, name in ipairs(other and cell.names or {}) do
			if other.values[name] then
				list[#list + 1] = row_of(cell.text, name, cell.values[name], other.values[name], level)
			end
		end
	end
	for _ in next, others do alone = alone + 1 end
	list.note = ('difference: b - a of the means over seeds (na, nb of them); lo to hi: its %g %% confidence ' ..
		'interval (Welch), with two seeds or more'):format(level * 100)
	if alone > 0 then list.note = ('%s; %d combinations are in one file only'):format(list.note, alone) end
	return internal.import 'report'(list), warnings_of(a, b, sa, sb)
end

return diff
