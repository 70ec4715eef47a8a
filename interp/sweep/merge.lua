-- SPDX-License-Identifier: MIT
-- Puts results files of shards together. A finished trial wins over one that is not; of two finished ones with
-- different results the one that is there already stays, and both are named.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local fail = base.fail

local RANK = {pending = 1, running = 1, failed = 2, done = 3}

-- The study in the target, made when it is not there; its code is that of the newest file.
local function enter_study(db, study)
	local known = db:rows('SELECT key, code, created FROM study WHERE name = ?', study.name)[1]
	if not known then
		db:run('INSERT INTO study(name, code, created) VALUES(?, ?, ?)', study.name, study.code, study.created)
	elseif known.code ~= study.code and study.created > known.created then
		db:run('UPDATE study SET code = ?, created = ? WHERE key = ?', study.code, study.created, known.key)
	end
	return db:rows('SELECT key FROM study WHERE name = ?', study.name)[1].key
end

local function same(a, b) return a == b and math.type(a) == math.type(b) or a ~= a and b ~= b end

-- The first result in which two trials differ: name and both values; nil when they agree.
local function difference(ours, theirs)
	local by_name = {}
	for _, one in ipairs(ours) do by_name[one.name] = one end
	for _, one in ipairs(theirs) do
		local other = by_name[one.name]
		if not other or not same(other.value, one.value) then return one.name, other and other.value, one.value end
		by_name[one.name] = nil
	end
	local name, one = next(by_name)
	if name then return name, one.value, nil end
end

local function copy_trial(db, study, from, one, known)
	local state = one.state == 'running' and 'pending' or one.state
	local key = known and known.key
	if known then
		db:run([[UPDATE trial SET state = ?, attempts = ?, host = ?, started = ?, seconds = ?, error = ?, tail = ?,
			claim = NULL WHERE key = ?]],
			state, one.attempts, one.host, one.started, one.seconds, one.error, one.tail, key)
	else
		db:run([[INSERT INTO trial(study, id, code, position, config, state, attempts, host, started, seconds, error,
			tail) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)]], study, one.id, one.code, one.position, one.config,
			state, one.attempts, one.host,
			one.started, one.seconds, one.error, one.tail)
		key = db:rows 'SELECT last_insert_rowid() AS key'[1].key
	end
	store.write_all(db, key, store.results(from, one.key), store.steps(from, one.key), store.env(from, one.key))
end

local function merge_trial(db, study, from, one, context)
	local known = db:rows('SELECT key, state FROM trial WHERE study = ? AND id = ?', study, one.id)[1]
	if not known or RANK[one.state] > RANK[known.state] and known.state ~= 'running' then
		copy_trial(db, study, from, one, known)
		context.taken = context.taken + 1
	elseif known.state == 'done' and one.state == 'done' then
		local name, ours, theirs = difference(store.results(db, known.key), store.results(from, one.key))
		if name then
			table.insert(context.conflicts, ('%s: %s: %s is %s in %s, and %s here'):format(context.study,
				config.text(one.values), name, tostring(theirs), context.file, tostring(ours)))
		end
	end
end

local function merge_file(db, file, context)
	local from <close> = store.open(file, 'read')
	context.file = file
	store.transaction(db, function()
		for _, row in ipairs(store.codes(from)) do
			db:run('INSERT OR IGNORE INTO code VALUES(?, ?, ?)', row.code, row.text, row.parts)
		end
		for _, study in ipairs(store.studies(from)) do
			local key = enter_study(db, study)
			context.study = study.name
			for _, one in ipairs(store.trials(from, study, true)) do merge_trial(db, key, from, one, context) end
		end
	end)
end

-- 'ptq.3of16.db' -> 'ptq.db'
local function default_target(files)
	local target
	for _, file in ipairs(files) do
		local name = file:gsub('%.%d+of%d+%.db$', '.db')
		if target and name ~= target then
			fail('sweep merge: --into: wanted the name of a file, because these are of %s and %s', target, name)
		end
		target = name
	end
	return target
end

-- Returns {into=, files=, trials=, done=, taken=} and the list of conflicts.
return function(files, into)
	into = into or default_target(files)
	for _, file in ipairs(files) do
		if not internal.exists(file) then fail('sweep merge: %s: there is no such file', file) end
	end
	for _, file in ipairs(files) do store.open(file, 'read'):close() end -- before the target is made: all can be read
	local db <close> = store.open(into, 'create')
	local context, merged = {taken = 0, conflicts = {}}, 0
	for _, file in ipairs(files) do
		if file ~= into then
			merge_file(db, file, context)
			merged = merged + 1
		end
	end
	local counts = db:rows "SELECT count(*) AS trials, coalesce(sum(state = 'done'), 0) AS done FROM trial"[1]
	return {into = into, files = merged, trials = counts.trials, done = counts.done, taken = context.taken},
		context.conflicts
end
