-- SPDX-License-Identifier: MIT
-- Trials of a results file as the rows of a report.
local _, internal = ...
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local rows = {}

-- Names in the order of first appearance.
local function collector()
	local list, seen = {}, {}
	return list, function(name)
		if not seen[name] then list[#list + 1] = name end
		seen[name] = true
	end, seen
end

-- Parameters by the alphabet, the seed last.
function rows.parameters(trials)
	local list, add, seen = collector()
	for _, one in ipairs(trials) do
		for name in next, one.values do
			if name ~= 'seed' then add(name) end
		end
	end
	table.sort(list)
	for _, one in ipairs(trials) do
		if one.values.seed ~= nil then add 'seed' end
	end
	return list, seen
end

-- A result with the name of a parameter is left out where it always equals it, else gets the ending _result.
local function renamed(found, is_parameter)
	local differs = {}
	for _, row in ipairs(found) do
		for _, result in ipairs(row.results) do
			if is_parameter[result.name] and config.cell(row.trial.values[result.name]) ~= result.value then
				differs[result.name] = true
			end
		end
	end
	return function(name)
		if not is_parameter[name] then return name end
		return differs[name] and name .. '_result' or nil
	end
end

-- What was recorded about the runs, into the cells of each row; a name that the row has already is left as it is.
local function add_env(found, list, add)
	for i, row in ipairs(found) do
		local env, names = store.env(row.db, row.trial.key), {}
		env.seconds = row.trial.seconds
		for name in next, env do names[#names + 1] = name end
		table.sort(names)
		for _, name in ipairs(names) do
			add(name)
			if list[i][name] == nil then list[i][name] = env[name] end
		end
	end
end

-- One row per finished trial: parameters, results and, when asked for, what was recorded about the run.
function rows.list(db, trials, with_env)
	local found, list = {}, {}
	for _, one in ipairs(trials) do
		if one.state == 'done' then found[#found + 1] = {db = db, trial = one, results = store.results(db, one.key)} end
	end
	local columns, add = collector()
	local parameters, is_parameter = rows.parameters(trials)
	for _, name in ipairs(parameters) do add(name) end
	local name_of = renamed(found, is_parameter)
	for i, row in ipairs(found) do
		list[i] = {}
		for name, value in next, row.trial.values do list[i][name] = config.cell(value) end
		for _, result in ipairs(row.results) do
			local name = name_of(result.name)
			if name then
				add(name)
				list[i][name] = result.value
			end
		end
	end
	if with_env then add_env(found, list, add) end
	list.columns = columns
	return list
end

function rows.note(trials)
	local counts = {done = 0, failed = 0, pending = 0, running = 0}
	for _, one in ipairs(trials) do counts[one.state] = counts[one.state] + 1 end
	if counts.done == #trials then return nil end
	return ('%d of %d trials are done, %d failed, %d are missing'):format(counts.done, #trials, counts.failed,
		counts.pending + counts.running)
end

-- What `how` would show beyond the trials of the last version of the script: nil when that is nothing.
function rows.earlier(db, study, how)
	local n = db:rows("SELECT count(*) AS n FROM trial WHERE study = ? AND code <> ? AND state = 'done'", study.key,
		study.code)[1].n
	if n == 0 then return nil end
	return ('%d finished trial%s of earlier versions of the script %s left out; %s shows them'):format(n,
		n == 1 and '' or 's', n == 1 and 'is' or 'are', how)
end

-- The study as a report; o: all, env of sweep.load. `how`: what the caller calls the option all; nil: no word of what
-- is left out.
function rows.report(db, study, o, how)
	local trials = store.trials(db, study, o.all)
	local list, notes = rows.list(db, trials, o.env), {}
	notes[1] = rows.note(trials)
	notes[#notes + 1] = how and not o.all and rows.earlier(db, study, how) or nil
	list.note = notes[1] and table.concat(notes, '\n') or nil
	return internal.import 'interp/prelude/report'(list)
end

return rows
