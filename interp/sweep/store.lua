-- SPDX-License-Identifier: MIT
-- The results file of sweeps: SQLite, WAL, synchronous=FULL. A trial goes pending -> running -> done or failed. Who
-- runs it holds a claim (a text that no other has); only the holder of the claim of a running trial can finish it, in
-- the one transaction that also writes its results, so that nothing is lost or counted twice whoever dies when. A
-- running trial whose worker is gone becomes pending again.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local fail, describe = base.fail, base.describe
local store = {}

local APPLICATION = 0x51756f6c -- "Quol", in the header of the file
local VERSION = 2 -- 1 named trials by the text of the script, and had no table code
local STALE = 300 -- seconds without a sign from a worker on another machine

-- What code was made of: the text of the script, and the hashes of the values that the function uses.
local CODE = 'CREATE TABLE IF NOT EXISTS code(code TEXT PRIMARY KEY, text TEXT NOT NULL, parts TEXT NOT NULL)'
local SCHEMA = {
	[[CREATE TABLE study(key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, code TEXT NOT NULL,
		created INTEGER NOT NULL)]],
	[[CREATE TABLE trial(key INTEGER PRIMARY KEY, study INTEGER NOT NULL REFERENCES study, id TEXT NOT NULL,
		code TEXT NOT NULL, position INTEGER NOT NULL, config TEXT NOT NULL,
		state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
		attempts INTEGER NOT NULL DEFAULT 0, claim TEXT, worker TEXT, host TEXT, pid INTEGER, born TEXT,
		heartbeat INTEGER, started INTEGER, seconds REAL, error TEXT, tail TEXT, UNIQUE(study, id))]],
	[[CREATE INDEX trial_state ON trial(study, state, position)]],
	[[CREATE TABLE result(trial INTEGER NOT NULL REFERENCES trial, position INTEGER NOT NULL, name TEXT NOT NULL,
		kind TEXT NOT NULL, value, PRIMARY KEY(trial, name))]],
	[[CREATE TABLE metric(trial INTEGER NOT NULL REFERENCES trial, position INTEGER NOT NULL, name TEXT NOT NULL, step,
		value REAL, PRIMARY KEY(trial, position))]],
	[[CREATE TABLE env(trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, value, PRIMARY KEY(trial, name))]],
	CODE,
	'PRAGMA application_id = ' .. APPLICATION,
	'PRAGMA user_version = ' .. VERSION,
}

-- What a column may hold; '?': or nothing. A file that was damaged holds anything: SQLite checks when it writes.
local STATES = {pending = true, running = true, done = true, failed = true}
local COLUMNS = {
	trial = {key = 'integer', id = 'string', code = 'string', position = 'integer', config = 'string', state = 'string',
		attempts = 'integer', host = 'string?', started = 'integer?', seconds = 'number?', error = 'string?', tail = 'string?'},
	result = {name = 'string', kind = 'string'},
	metric = {name = 'string', value = 'number?'},
	env = {name = 'string'},
	study = {key = 'integer', name = 'string', code = 'string', created = 'integer'},
}

local function is_a(value, wanted)
	if value == nil then return wanted:sub(-1) == '?' end
	wanted = wanted:gsub('%?', '')
	return type(value) == wanted or math.type(value) == wanted
end

-- The rows, checked; errors name the first column, in the order of the alphabet, that is wrong.
local function checked_rows(name, rows)
	local columns = {}
	for column in next, COLUMNS[name] do columns[#columns + 1] = column end
	table.sort(columns)
	for i, row in ipairs(rows) do
		for _, column in ipairs(columns) do
			local wanted = COLUMNS[name][column]
			if not is_a(row[column], wanted) then
				fail('sweep: the results file is damaged: row %d of table %s: %s: wanted %s, got %s', i, name, column,
					wanted:gsub('%?', ' or nothing'), describe(row[column]))
			end
		end
		if row.state and not STATES[row.state] then
			fail('sweep: the results file is damaged: row %d of table %s: state: wanted pending, running, done or failed, got %s',
				i, name, describe(row.state))
		end
	end
	return rows
end

---------------------------------------------------------------- opening

-- Runs fn between BEGIN and COMMIT; anything else than a return undoes it.
local function transaction(db, fn)
	db:run 'BEGIN IMMEDIATE'
	local undo <close> = setmetatable({}, {__close = function(self)
		if not self.done then pcall(db.run, db, 'ROLLBACK') end
	end})
	local result = fn()
	db:run 'COMMIT'
	undo.done = true
	return result
end
store.transaction = transaction

local function pragma(db, name) return db:rows('PRAGMA ' .. name)[1][name] end

-- 'new', 'ours', or raises.
local function check(db, file)
	local application, version = pragma(db, 'application_id'), pragma(db, 'user_version')
	if application == 0 and db:rows 'SELECT count(*) AS n FROM sqlite_master'[1].n == 0 then return 'new' end
	if application ~= APPLICATION then
		fail('sweep: %s: wanted a results file of sweeps, got another SQLite file', file)
	end
	if version > VERSION then
		fail('sweep: %s: the file is of version %d, made by a newer Quoll; this one reads %d', file, version, VERSION)
	end
	return 'ours'
end

-- Raises what SQLite says at the line of the user.
local function checked(fn, ...)
	local good, result = pcall(fn, ...)
	if good then return result end
	fail('%s', (tostring(result):gsub('^[^:]*:%d+: sweep:', 'sweep:')))
end

-- A file whose folder cannot be written (its mode, a file system that is read-only or full), which SQLite's log needs. It is read as
-- it stands, unless the log holds more.
local function open_frozen(file)
	local log = io.open(file .. '-wal', 'rb')
	local rest = log and log:read(1)
	if log then log:close() end
	if rest then return nil end
	local uri = 'file:' .. file:gsub('[^%w/._-]', function(c) return ('%%%02x'):format(c:byte()) end) .. '?immutable=1'
	local good, db = pcall(internal.sqlite_open, uri, 'frozen')
	return good and pcall(pragma, db, 'user_version') and db or nil
end

-- A connection that may only read would leave SQLite's two side files behind; this one only refuses to write.
local function open_to_read(file)
	local good, db = pcall(internal.sqlite_open, file, 'write')
	local readable, problem = good, db
	if good then readable, problem = pcall(pragma, db, 'user_version') end
	if not readable then
		local text = tostring(problem)
		local unwritable = text:find 'readonly' or text:find 'unable to open' or text:find 'disk I/O' or text:find 'full'
		db = unwritable and open_frozen(file) or error(problem, 0)
	end
	db:run 'PRAGMA query_only = 1'
	return db
end

-- What SQLite refuses at once instead of waiting: the change to WAL while another process opens the same new file.
local function patiently(fn, ...)
	for _ = 1, 200 do
		local good, result = pcall(fn, ...)
		if good then return result end
		if not tostring(result):find 'locked' then error(result, 0) end
		os.execute 'sleep 0.05'
	end
	return fn(...)
end

local function begin_writing(db)
	db:rows 'PRAGMA journal_mode = WAL'
	db:run 'PRAGMA synchronous = FULL'
end

local function open_to_write(file, mode)
	local db = internal.sqlite_open(file, mode)
	patiently(begin_writing, db)
	return db
end

-- mode: 'create', 'write' or 'read'
function store.open(file, mode)
	if mode ~= 'create' and not internal.exists(file) then fail('sweep: %s: there is no such results file', file) end
	local db = checked(mode == 'read' and open_to_read or open_to_write, file, mode)
	if checked(patiently, check, db, file) == 'new' then
		if mode ~= 'create' then fail('sweep: %s: the file holds no study', file) end
		transaction(db, function()
			if check(db, file) == 'ours' then return end -- another process was faster
			for _, statement in ipairs(SCHEMA) do db:run(statement) end
		end)
	elseif mode ~= 'read' and pragma(db, 'user_version') < VERSION then
		transaction(db, function()
			db:run(CODE)
			db:run('PRAGMA user_version = ' .. VERSION)
		end)
	end
	return db
end

---------------------------------------------------------------- who works

local function read_text(file)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a'
	if handle then handle:close() end
	return text
end

-- When a process was started, in ticks since the machine was: tells two with the same number apart. Nil: it is gone.
local function born(pid)
	local text = read_text(('/proc/%d/stat'):format(pid))
	local rest = text and text:match '^.*%) (.*)$'
	if not rest then return nil end
	local fields = {}
	for field in rest:gmatch '%S+' do fields[#fields + 1] = field end
	return fields[1] ~= 'Z' and fields[20] or nil
end

-- This process as a worker.
function store.worker()
	local pid, name, space = internal.process_self()
	local boot = (read_text '/proc/sys/kernel/random/boot_id' or ''):gsub('%s', '')
	local random = (read_text '/proc/sys/kernel/random/uuid' or tostring(math.random(0))):gsub('%s', '')
	return {pid = pid, born = born(pid) or '', host = ('%s %s %s'):format(name, boot, space), token = random,
		claims = 0}
end

local function is_gone(row, me)
	if row.host ~= me.host then return os.time() - (row.heartbeat or 0) > STALE end
	return not internal.process_alive(row.pid) or born(row.pid) ~= row.born
end

-- Makes pending what nobody runs any more, of the trials of this run; returns how many.
function store.requeue(db, study, me)
	local count = 0
	local list = db:rows([[SELECT key, claim, host, pid, born, heartbeat FROM trial WHERE study = ?
		AND state = 'running'
		AND worker <> ? AND id IN (SELECT id FROM mine)]], study, me.token)
	for _, row in ipairs(list) do
		if is_gone(row, me) then
			count = count + db:run([[UPDATE trial SET state = 'pending', claim = NULL WHERE key = ?
				AND state = 'running'
				AND claim = ?]], row.key, row.claim)
		end
	end
	return count
end

function store.beat(db, me)
	db:run("UPDATE trial SET heartbeat = ? WHERE worker = ? AND state = 'running'", os.time(), me.token)
end

---------------------------------------------------------------- a study and its trials

-- Trials that a file of version 1 named by the same text get their names of today.
local function adopt(db, study, identity, trials)
	if not db:rows('SELECT 1 AS found FROM trial WHERE study = ? AND code = ? LIMIT 1', study, identity.text)[1] then return end
	for _, trial in ipairs(trials) do
		db:run('UPDATE OR IGNORE trial SET id = ?, code = ? WHERE study = ? AND id = ?', trial.id, identity.code, study, trial.old_id)
	end
end

-- Enters the study and those of its trials that are not there yet, and makes failed ones (with force: all) of this run
-- pending. The temporary table `mine` holds the ids of this run. identity: {code=, text=, parts=}. Returns the study's key.
function store.enter(db, name, identity, trials, force)
	local code = identity.code
	db:run 'CREATE TEMP TABLE IF NOT EXISTS mine(id TEXT PRIMARY KEY)'
	return transaction(db, function()
		db:run([[INSERT INTO study(name, code, created) VALUES(?, ?, ?) ON CONFLICT(name) DO UPDATE
			SET code = excluded.code]], name, code, os.time())
		local study = db:rows('SELECT key FROM study WHERE name = ?', name)[1].key
		db:run('INSERT OR REPLACE INTO code VALUES(?, ?, ?)', code, identity.text, config.encode(identity.parts or {}, 'parts'))
		adopt(db, study, identity, trials)
		db:run 'DELETE FROM mine'
		for _, trial in ipairs(trials) do
			db:run('INSERT INTO mine VALUES(?)', trial.id)
			db:run([[INSERT INTO trial(study, id, code, position, config) VALUES(?, ?, ?, ?, ?)
				ON CONFLICT(study, id) DO UPDATE SET position = excluded.position]], study, trial.id, code,
				trial.position, trial.json)
		end
		db:run([[UPDATE trial SET state = 'pending', claim = NULL, error = NULL, tail = NULL WHERE study = ?1 AND
			(state = 'failed' OR ?2 AND state = 'done') AND id IN (SELECT id FROM mine)]], study, force and 1 or 0)
		return study
	end)
end

-- Names of the values that differ from those of finished trials with the same text of the script, and the number of these; nil: there are none.
function store.changed(db, study, identity)
	local row = db:rows([[SELECT c.parts AS parts, count(*) AS n FROM trial t JOIN code c ON c.code = t.code WHERE t.study = ? AND t.state = 'done'
		AND c.text = ? AND c.code <> ? GROUP BY c.code ORDER BY n DESC LIMIT 1]], study, identity.text, identity.code)[1]
	local old, names = row and config.decode(row.parts) or {}, {}
	for i, part in ipairs(identity.parts or {}) do
		if old[i] and old[i][2] ~= part[2] then names[#names + 1] = part[1] end
	end
	if #names > 0 then return names, row.n end
end

-- Rows {code, text, parts} of the codes; a file of version 1 has none.
function store.codes(db)
	if pragma(db, 'user_version') < 2 then return {} end
	return db:rows 'SELECT code, text, parts FROM code'
end

-- The states of the trials of this run: {pending=, running=, done=, failed=, total=}.
function store.counts(db, study)
	local counts = {pending = 0, running = 0, done = 0, failed = 0, total = 0}
	for _, row in ipairs(db:rows([[SELECT state, count(*) AS n FROM trial WHERE study = ?
		AND id IN (SELECT id FROM mine)
		GROUP BY state]], study)) do
		counts[row.state] = row.n
		counts.total = counts.total + row.n
	end
	return counts
end

-- Takes the first pending trial of this run: one statement, so that two workers never get the same. Nil: there is none.
function store.claim(db, study, me)
	me.claims = me.claims + 1
	local now = os.time()
	return db:rows([[UPDATE trial SET state = 'running', attempts = attempts + 1, claim = ?, worker = ?, host = ?,
		pid = ?, born = ?, heartbeat = ?, started = ?, seconds = NULL, error = NULL, tail = NULL
		WHERE key = (SELECT key FROM trial WHERE study = ? AND state = 'pending' AND id IN (SELECT id FROM mine)
			ORDER BY position LIMIT 1) AND state = 'pending'
		RETURNING key, id, config, position, claim]], me.token .. ':' .. me.claims, me.token, me.host, me.pid, me.born,
		now, now,
		study)[1]
end

-- Gives a claimed trial back.
function store.release(db, claimed)
	db:run([[UPDATE trial SET state = 'pending', claim = NULL WHERE key = ? AND claim = ? AND state = 'running']],
		claimed.key, claimed.claim)
end

local function clear(db, key)
	for _, name in ipairs {'result', 'metric', 'env'} do
		db:run(('DELETE FROM %s WHERE trial = ?'):format(name), key)
	end
end

-- Parameters and values of `each` (a list of lists) into a table.
local function insert(db, name, n, each)
	local statement = ('INSERT INTO %s VALUES(%s)'):format(name, ('?'):rep(n, ','))
	for _, values in ipairs(each) do db:run(statement, table.unpack(values, 1, n)) end
end

local function env_rows(key, env)
	local list = {}
	for name, value in next, env do list[#list + 1] = {key, name, value} end
	return list
end

local function write_all(db, key, results, steps, env)
	local list, logged = {}, {}
	for i, one in ipairs(results) do list[i] = {key, i, one.name, one.kind, one.value} end
	for i, one in ipairs(steps) do logged[i] = {key, i, one.name, one.step, one.value} end
	clear(db, key)
	insert(db, 'result', 5, list)
	insert(db, 'metric', 5, logged)
	insert(db, 'env', 3, env_rows(key, env))
end

-- Everything about a finished trial in one transaction; false: the claim was lost, and nothing is written.
function store.finish(db, claimed, seconds, results, steps, env)
	return transaction(db, function()
		local changed = db:run([[UPDATE trial SET state = 'done', seconds = ?, error = NULL, tail = NULL WHERE key = ?
			AND claim = ? AND state = 'running']], seconds, claimed.key, claimed.claim)
		if changed == 1 then write_all(db, claimed.key, results, steps, env) end
		return changed == 1
	end)
end

-- What a trial logged before it failed.
function store.keep_steps(db, claimed, steps, env)
	transaction(db, function()
		local held = db:rows("SELECT 1 AS held FROM trial WHERE key = ? AND claim = ? AND state = 'running'",
			claimed.key, claimed.claim)
		if held[1] then write_all(db, claimed.key, {}, steps, env) end
	end)
end

-- Marks a claimed trial that did not finish; 'pending' for another attempt. Returns its state: 'done' when it had
-- finished.
function store.fail(db, claimed, state, seconds, why, tail)
	db:run([[UPDATE trial SET state = ?, claim = NULL, seconds = ?, error = ?, tail = ? WHERE key = ? AND claim = ? AND
		state = 'running']], state, seconds, why, tail, claimed.key, claimed.claim)
	return db:rows('SELECT state FROM trial WHERE key = ?', claimed.key)[1].state
end

---------------------------------------------------------------- reading

function store.studies(db) return checked_rows('study', db:rows 'SELECT key, name, code, created FROM study ORDER BY key') end

-- The study of this name, or the only one.
function store.study(db, file, name)
	local list = store.studies(db)
	local names = {}
	for i, study in ipairs(list) do
		names[i] = study.name
		if study.name == name then return study end
	end
	if not name and #list == 1 then return list[1] end
	if #list == 0 then fail('sweep: %s: the file holds no study', file) end
	fail('sweep: study: wanted one of %s of %s, got %s%s', table.concat(names, ', '), file,
		name and describe(name) or 'none', name and base.near(name, names) or '')
end

-- Trials of a study (all: also of earlier versions of the script), in their order, with values decoded.
function store.trials(db, study, all)
	local list = checked_rows('trial', db:rows([[SELECT key, id, code, position, config, state, attempts, host, started,
		seconds, error, tail FROM trial
		WHERE study = ?1 AND (?2 OR code = ?3) ORDER BY position, key]], study.key, all and 1 or 0, study.code))
	for _, trial in ipairs(list) do trial.values = config.decode(trial.config) end
	return list
end

local function value_of(row)
	if row.kind == 'boolean' then return row.value ~= 0 end
	if row.kind == 'float' and row.value == nil then return 0 / 0 end
	if row.kind == 'float' and type(row.value) ~= 'number' then
		fail('sweep: the results file is damaged: result %s: wanted a number, got %s', describe(row.name), describe(row.value))
	end
	if row.kind == 'float' then return row.value + 0.0 end
	return row.value
end

-- Results of a trial in their order: a list of {name=, value=, kind=}.
function store.results(db, key)
	local list = checked_rows('result', db:rows('SELECT name, kind, value FROM result WHERE trial = ? ORDER BY position', key))
	for _, row in ipairs(list) do row.value = value_of(row) end
	return list
end

function store.env(db, key)
	local env = {}
	local list = checked_rows('env', db:rows('SELECT name, value FROM env WHERE trial = ? ORDER BY name', key))
	for _, row in ipairs(list) do env[row.name] = row.value end
	return env
end

function store.steps(db, key)
	local list = checked_rows('metric', db:rows('SELECT name, step, value FROM metric WHERE trial = ? ORDER BY position', key))
	for _, row in ipairs(list) do row.value = row.value or 0 / 0 end
	return list
end

store.write_all = write_all
return store
