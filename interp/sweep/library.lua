-- SPDX-License-Identifier: MIT
-- The global `sweep`: batch experiments that lose nothing. sweep.run makes the list of trials, leaves those alone that
-- the results file has, and runs the rest; the same script, run by it for one trial, ends inside of its own sweep.run.
local module, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local parse = internal.import 'interp/sweep/options'
local store = internal.import 'interp/sweep/store'
local rows = internal.import 'interp/sweep/rows'
local trial = internal.import 'interp/sweep/trial'
local fail, doc, describe = base.fail, base.doc, base.describe

doc {name = 'sweep', kind = 'module', usage = 'quoll sweep file.lua [name=value,value] [options]',
	text = [[Batch experiments. A script calls sweep.run with parameters and a function; each combination is a
trial, run in a process of its own, and its results are one row of a results file (SQLite). Running the same command
again runs only what is missing or failed, also after a crash. Run a script as `quoll file.lua` or `quoll sweep
file.lua` (which also takes a file that returns the table for sweep.run and prints the results); either ends with exit code 1 when trials
failed.

Options: bits=8,4 (these values of a parameter only) --jobs N --retry N --timeout 10m --memory 2G --device cuda
--fail-fast --keep-going --force --dry-run --shard i/n --db FILE --seeds N.

`quoll sweep report FILE [--html F]
[--csv F] [--md F] [--x COLUMN] [--y COLUMN]` shows a results file, `quoll sweep merge [--into FILE] FILE…` puts the
files of shards together, `quoll sweep diff A B` compares two. scripts/sweep_slurm.sh and scripts/sweep_parallel.sh
run the shards on several machines.

A trial is known by its parameters, the files named in data=, and its function with what that uses: its
code, upvalues, globals of the script, functions that it calls, files that it runs by constant names (dofile 'model.lua', require), all
by their contents, models and tensors too. When one of them changes, it is another trial; comments, what is done with the results, and
further values of a parameter change none. What has no contents to compare (open files, data sets that are read as they are used, names of files that are computed)
makes the text of the script above sweep.run count instead. Another version of Lua may compile to other code and run all again.]]}

---------------------------------------------------------------- the script

local function read_file(file)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a'
	if handle then handle:close() end
	return text
end

-- The file that this process was told to run: arg[0], or what follows a command. Nil at the prompt, with -e, from
-- stdin.
local function script_file()
	if type(arg) ~= 'table' or arg[-1] == nil then return nil end
	if read_file(tostring(arg[0])) then return arg[0] end
	for _, word in ipairs(arg) do
		if read_file(word) then return word end
	end
end

-- What the trials of results files of version 1 depend on besides their parameters: the text of the script and of the file of the function;
-- without files, the function's own code.
local function text_hash(run, file, data)
	local info = debug.getinfo(run, 'S')
	local own = info.source:sub(1, 1) == '@' and read_file(info.source:sub(2)) or
		info.what ~= 'C' and string.dump(run, true) or ''
	local script = file and read_file(file) or ''
	return internal.sha256(table.concat({internal.sha256(own), internal.sha256(script), data}, '\0'))
end

-- The script above the call of sweep.run, or all of the file of the function: for what has no hash of its own.
local function text_above(run)
	local level = 2
	local info
	repeat
		level = level + 1
		info = debug.getinfo(level, 'Sl')
	until not info or info.source:sub(1, 1) == '@'
	local own = debug.getinfo(run, 'S').source
	local text = read_file((info and info.source or own):sub(2)) or ''
	if not info then return text end
	local lines = {}
	for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
	return table.concat(lines, '\n', 1, math.min(#lines, math.max(0, info.currentline - 1)))
end

-- What the trials depend on besides their parameters: the function with what it uses, and the data. Returns the hash and its parts.
local function code_hash(run, data)
	local hash, parts, unknown = internal.import 'nn/base/identity'.of(run)
	parts[#parts + 1] = {'data', data}
	if #unknown > 0 then
		parts[#parts + 1] = {'the script above sweep.run (' .. table.concat(unknown, ', ') .. ')', internal.sha256(text_above(run))}
		hash = hash .. parts[#parts][2]
	end
	return internal.sha256(hash .. '\0' .. data), parts
end

local function data_hash(files)
	local parts = {}
	for i, file in ipairs(type(files) == 'table' and files or {files}) do
		if type(file) ~= 'string' then fail('run: data: wanted names of files, got %s', describe(file)) end
		local hash, problem = internal.sha256_file(file)
		if not hash then fail('run: data: %s: %s', file, problem) end
		parts[i] = hash
	end
	return internal.sha256(table.concat(parts, '\0'))
end

local function commit_of(folder)
	local quoted = "'" .. folder:gsub("'", "'\\''") .. "'"
	local pipe = io.popen(('{ cd %s && git rev-parse HEAD && git status --porcelain; } 2>/dev/null'):format(quoted))
	local text = pipe and pipe:read 'a' or ''
	if pipe then pipe:close() end
	local commit, changes = text:match '^(%x+)\n(.*)$'
	return commit and commit .. (changes ~= '' and ' and changes' or '') or nil
end

---------------------------------------------------------------- run

local run_doc = doc {name = 'sweep.run',
	usage = "sweep.run{name='ptq', grid={bits={8,4}}, run=function(c, log) … end}",
	text = [[Runs a function for every combination of parameters and returns a report with a row per finished trial:
parameters, then results. c is the table of the trial's parameters; run returns results by name (numbers, texts,
booleans), a row of a report, or one number. log(name, value, step) records a course over steps (read it with
sweep.steps). Each trial is a process of its own that runs this script again up to here, with random numbers started
from c.seed (1 without seeds), so code before sweep.run runs in every trial, code after it only once.
Finished trials are in the results file and are not run again, whatever ended the run; failed ones are tried again
by the next one. A crash, an endless loop (timeout) or too much memory costs one trial; its last 20 lines are shown
and kept. Two processes may work on one file. Options of the command line win, see sweep. With several jobs, threads
are shared among them: compare timings with jobs=1 only.]],
	options = {{'name', 'text', 'of the study (default: the name of the script)'},
		{'run', 'function', 'function(c, log): the trial'},
		{'grid', 'list', 'a list of values for each parameter: all combinations'},
		{'zip', 'list', 'lists of one length: first with first, second with second'},
		{'list', 'list', 'combinations one by one: a list of tables'},
		{'random', 'integer', 'so many different draws from grid, where {min=, max=, log=true} is a range'},
		{'random_seed', 'integer', 'of the draws (default 1)'},
		{'seeds', 'any', 'a number n for c.seed = 1 to n, or a list: each combination with each seed'},
		{'data', 'text or list', 'files that the results depend on, by their contents'},
		{'jobs', 'integer', 'trials at a time (default 1); 0: in this process, without limits, for the prompt'},
		{'timeout', 'any', "seconds, or text as '10m', that a trial may take"},
		{'memory', 'any', "MiB, or text as '2G', that a trial may use"},
		{'device', 'text', "where a trial makes its tensors: 'cuda', or 'cuda:0,cuda:1' for the jobs in turn (default: as --device of the program)"},
		{'retry', 'integer', 'further attempts for a trial that failed (default 0)'},
		{'fail_fast', 'true or false', 'the first failure ends the sweep with an error'},
		{'force', 'true or false', 'run finished trials again'},
		{'dry_run', 'true or false', 'only print what would run'},
		{'shard', 'text', "'i/n': only the i-th of n parts, in a results file of its own"},
		{'db', 'text', 'the results file (default: name.db beside the script)'},
		{'log', 'true or false', 'show how far it is (default true)'}},
	example = [[file = os.tmpname()
r = sweep.run{name='squares', grid={x={1,2,3}}, db=file, jobs=0, log=false,
  run=function(c) return {y=c.x^2} end}
print(r:where{x=3}.y, #sweep.load(file))  --> 9.0 3
os.remove(file)]]}

local function check_counts(o)
	for option, least in next, {jobs = 0, retry = 0, random = 1} do
		if o[option] and o[option] < least then fail('run: %s: wanted %d or more, got %s', option, least, o[option]) end
	end
end

-- The options of the table and of the command line as one table, and the lists of name=value.
local function all_options(given)
	local o = {}
	for name, value in next, base.options(run_doc, given) do o[name] = value end
	if not o.run then fail 'run: run: wanted a function, as in run=function(c) return {y=c.x} end, got none' end
	local found, set = {}, {}
	if type(arg) == 'table' and arg[-1] ~= nil then found, set = parse.parse(arg, parse.state.strict) end
	for name, value in next, found do o[name] = value end
	check_counts(o)
	o.timeout, o.memory = o.timeout and parse.seconds(o.timeout), o.memory and parse.mebibytes(o.memory)
	o.device = o.device and parse.devices(o.device)
	if o.device and o.jobs == 0 then fail 'run: device: wanted jobs=1 or more, got 0, which runs the trials in this process' end
	if o.name == '' then fail 'run: name: wanted a text, got an empty one' end
	return o, set
end

local function default_file(o, file)
	local folder = file and file:match '^(.*/)' or ''
	local part = o.shard and ('.%dof%d'):format(parse.shard(o.shard)) or ''
	return folder .. o.name:gsub('[^%w_.-]', '_') .. part .. '.db'
end

-- The trials of shard i of n: every n-th.
local function sharded(trials, shard)
	if not shard then return trials end
	local index, count = parse.shard(shard)
	local list = {}
	for i = index, #trials, count do list[#list + 1] = trials[i] end
	return list
end

-- What would run, without touching the results file: a report of the trials and their states.
local function plan(o, trials, identity)
	local states, list, pending = {}, {columns = {'state', 'trial'}}, 0
	if internal.exists(o.db) then
		local db <close> = store.open(o.db, 'read')
		for _, row in ipairs(db:rows([[SELECT t.id, t.state FROM trial t JOIN study s ON s.key = t.study
			WHERE s.name = ? AND t.code IN (?, ?)]], o.name, identity.code, identity.text)) do
			states[row.id] = row.state
		end
	end
	for _, one in ipairs(trials) do
		local state = states[one.id] or states[one.old_id] or 'new'
		local runs = state ~= 'done' or o.force
		pending = pending + (runs and 1 or 0)
		list[#list + 1] = {state = runs and state ~= 'new' and state .. ', runs again' or state,
			trial = config.text(one.values)}
	end
	list.note = ('%s: %d of %d trials would run; results in %s'):format(o.name, pending, #trials, o.db)
	return internal.import 'interp/prelude/report'(list), list
end

-- The same text with other values: why finished trials do not count.
local function tell_changed(o, names, count)
	if not names or o.log == false then return end
	io.stderr:write(('%s: the script is the same, but these values are not: %s; %d finished trial%s left out\n'):format(o.name,
		internal.import 'interp/sweep/show'.clean(table.concat(names, ', '), 200), count, count == 1 and ' is' or 's are'))
end

local function threads_of(jobs) return math.max(1, tensor.threads() // math.max(1, jobs)) end

local function finish(o, failures, stopped)
	parse.state.failures = parse.state.failures + failures
	if parse.state.failures > 0 then internal.exit_code(1) end
	if stopped then fail('run: %s: %s', o.name, stopped) end
end

local function work(o, trials, identity, data, file)
	local jobs = o.jobs or 1
	if jobs > 0 and os.getenv 'QUOLL_SANDBOX' then
		fail('sweep.run: jobs: wanted 0, which runs the trials in this process, for --sandbox starts no programs; got %d', jobs)
	end
	local db <close> = store.open(o.db, 'create')
	if #trials > 0 and jobs > 0 and not file then
		fail('run: jobs: each trial runs the script again, and there is none here (prompt, -e or stdin); %s',
			'jobs=0 runs them in this process')
	end
	local study = store.enter(db, o.name, identity, trials, o.force)
	tell_changed(o, store.changed(db, study, identity))
	local env = {jobs = jobs, script = file, commit = commit_of(file and file:match '^(.*)/' or '.'), shard = o.shard}
	local failures, stopped = internal.import 'interp/sweep/runner'.work({db = db, db_file = o.db, study = study,
		name = o.name, me = store.worker(), jobs = jobs, threads = threads_of(jobs), timeout = o.timeout,
		memory = o.memory, device = o.device, retry = o.retry or 0,
		fail_fast = o.fail_fast, log = o.log ~= false, env = env, data = data, code = identity.code, text = identity.text}, o)
	finish(o, failures, stopped)
	table.insert(parse.state.ran, {db = o.db, study = o.name})
	return rows.report(db, store.study(db, o.db, o.name), {})
end

function module.run(given)
	local o, set = all_options(given)
	local file = script_file()
	o.name = o.name or file and file:match '([^/]+)$':gsub('%.lua$', '')
	if not o.name then fail 'run: name: wanted a text, got none' end
	local child = trial.child
	-- A sweep before that of this trial: its results, which are there by now.
	if child and child.study ~= o.name then return module.load(o.db or default_file(o, file), {study = o.name}) end
	local data = child and child.data or data_hash(o.data or {})
	local text = text_hash(o.run, file, data)
	local code, parts
	if child and child.text == text then code = child.code else code, parts = code_hash(o.run, data) end
	local all = config.trials(o, set, code)
	for _, one in ipairs(all) do one.old_id = config.id(text, one.json) end
	if child then trial.run_child(o, all) end
	local trials = sharded(all, o.shard)
	o.db = o.db or default_file(o, file)
	local identity = {code = code, text = text, parts = parts}
	if not o.dry_run then return work(o, trials, identity, data, file) end
	local pending, list = plan(o, trials, identity)
	if given.dry_run then return pending end
	print 'state  trial'
	for _, row in ipairs(list) do -- all of them, whole
		print(('%-5s  %s'):format(row.state, internal.import 'interp/sweep/show'.clean(row.trial)))
	end
	print(list.note)
	-- asked for on the command line: the rest of the script has no results to go on with
	os.exit(0)
end

---------------------------------------------------------------- load, steps

-- The results file that a name means: a file, or the study's default file.
local function file_of(name, what)
	if type(name) ~= 'string' then
		fail("%s: wanted the name of a study or of a results file, got %s", what, describe(name))
	end
	local script = script_file()
	local plain = name:gsub('[^%w_.-]', '_') .. '.db'
	for _, file in ipairs {name, plain, (script and script:match '^(.*/)' or '') .. plain} do
		if internal.exists(file) then return file end
	end
	fail("%s: there is no results file '%s' or '%s'", what, name, plain)
end

local load_doc = doc {name = 'sweep.load', usage = "sweep.load 'ptq'  sweep.load('results.db', {study='ptq'})",
	text = [[The results of a study as a report, one row per finished trial: its parameters by the alphabet, then
its results. The name is that of the study (its file name.db is looked for here and beside the script) or of a file.
A result with the name of a parameter is left out where it always equals it, else its name ends with _result. Go on
with report:where, report:best, report:plot, report:save.]],
	options = {{'study', 'text', 'which one of a file with several'},
		{'env', 'true or false', 'also seconds, processor, level, threads, load, jobs, commit …'},
		{'all', 'true or false', 'also the results of earlier versions of the script; without it a note below the rows counts those'}},
	example = [[file = os.tmpname()
sweep.run{name='areas', grid={a={1,2}, b={3,4}}, db=file, jobs=0, log=false,
  run=function(c) return {area=c.a*c.b} end}
print(sweep.load(file):where{a=2})  --> a  b  area
                                    --> ──────────
                                    --> 2  3     6
                                    --> 2  4     8
os.remove(file)]]}

function module.load(name, options)
	local o = base.options(load_doc, options)
	local file = file_of(name, 'load')
	local db <close> = store.open(file, 'read')
	return rows.report(db, store.study(db, file, o.study), o, '{all=true}')
end

local steps_doc = doc {name = 'sweep.steps', usage = "sweep.steps('ptq', {where={bits=8}})",
	text = [[What the trials of a study recorded with log(name, value, step): a report with the parameters of the
trial, and name, step and value, one row for each call of log. Plot it with report:plot{x='step', y='value'}.]],
	options = {{'study', 'text', 'which one of a file with several'},
		{'where', 'list', 'only trials with these parameters, as in report:where'}},
	example = [[file = os.tmpname()
sweep.run{name='halves', grid={x={1.0}}, db=file, jobs=0, log=false, run=function(c, log)
  for i = 1, 3 do log('loss', c.x / 2^i, i) end
  return {loss=c.x/8}
end}
print(sweep.steps(file):best('value').step)  --> 3
os.remove(file)]]}

function module.steps(name, options)
	local o = base.options(steps_doc, options)
	local file = file_of(name, 'steps')
	local db <close> = store.open(file, 'read')
	local trials = store.trials(db, store.study(db, file, o.study))
	local list = {columns = rows.parameters(trials)}
	for _, column in ipairs {'name', 'step', 'value'} do list.columns[#list.columns + 1] = column end
	for _, one in ipairs(trials) do
		for _, step in ipairs(store.steps(db, one.key)) do
			local row = {}
			for parameter, value in next, one.values do row[parameter] = config.cell(value) end
			row.name, row.step, row.value = step.name, step.step, step.value
			list[#list + 1] = row
		end
	end
	local r = internal.import 'interp/prelude/report'(list)
	return o.where and r:where(o.where) or r
end

---------------------------------------------------------------- merge, diff

local merge_doc = doc {name = 'sweep.merge', usage = "sweep.merge({'s.1of2.db', 's.2of2.db'}, {into='s.db'})",
	text = [[Puts results files together, those of shards above all: returns {into=, files=, trials=, done=, taken=}
(taken: rows that were new) and a list of contradictions. A finished trial wins over one that is not; where two
finished ones have different results, the one that is there stays and a text names both. The same as `quoll sweep
merge`.]],
	options = {{'into', 'text', 'the file to write to (default: that of the shards, without the number)'}},
	example = [[a, b = os.tmpname(), os.tmpname()
for i, file in ipairs{a, b} do
  sweep.run{name='s', grid={x={i}}, db=file, jobs=0, log=false, run=function(c) return {y=1} end}
end
print(sweep.merge({b}, {into=a}).taken, #sweep.load(a, {all=true}))  --> 1 2
os.remove(a) os.remove(b)]]}

function module.merge(files, options)
	local o = base.options(merge_doc, options)
	if type(files) ~= 'table' or #files == 0 then
		fail('merge: wanted a list of results files, got %s', describe(files))
	end
	return internal.import 'interp/sweep/merge'(files, o.into)
end

local diff_doc = doc {name = 'sweep.diff', usage = "sweep.diff('old.db', 'new.db')",
	text = [[Compares the results of two files, combination by combination: a report with the means over seeds (a,
b), their difference b - a, and with two seeds or more its confidence interval (lo, hi; Welch's t) and a verdict;
and a list of warnings where processor, kernels, threads, jobs, version or commit differ. The same as `quoll sweep
diff`.]],
	options = {{'study', 'text', 'which one of files with several'}, {'level', 'number',
		'of confidence (default 0.95)'}},
	example = [[a, b = os.tmpname(), os.tmpname()
for i, file in ipairs{a, b} do
  sweep.run{name='s', seeds=3, db=file, jobs=0, log=false, run=function(c) return {y=10 * i + c.seed} end}
end
print(sweep.diff(a, b).difference, sweep.diff(a, b).verdict)  --> 10.0 b is higher
os.remove(a) os.remove(b)]]}

function module.diff(a, b, options)
	local o = base.options(diff_doc, options)
	return internal.import 'interp/sweep/diff'(file_of(a, 'diff'), file_of(b, 'diff'), o)
end

return module
