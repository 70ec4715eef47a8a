-- SPDX-License-Identifier: MIT
-- Two results files side by side. Trials that differ in the seed only are samples of one cell; for each cell and result
-- the means, their difference b - a, and its confidence interval by Welch's t (B. L. Welch 1947; degrees of freedom
-- after Satterthwaite). Differences whose interval leaves out zero are marked.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local student = internal.import 'interp/prelude/student'
local fail = base.fail

-- Half the width of the interval; nil when there are too few samples.
local function half_width(a, b, va, vb, level)
	if not va or not vb then return nil end
	local sa, sb = va / #a, vb / #b
	if sa + sb == 0 then return 0.0 end
	local df = (sa + sb) ^ 2 / (sa ^ 2 / (#a - 1) + sb ^ 2 / (#b - 1))
	return student.quantile(level, df) * math.sqrt(sa + sb)
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
	local mean_x, var_x = student.moments(x)
	local mean_y, var_y = student.moments(y)
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
	return internal.import 'interp/prelude/report'(list), warnings_of(a, b, sa, sb)
end

return diff
