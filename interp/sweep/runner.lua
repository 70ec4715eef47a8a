-- SPDX-License-Identifier: MIT
-- The scheduler of a sweep: claims trials from the results file, runs each in a process of its own (the same command
-- again, told by its environment which trial it is), watches time and memory, and writes down why one failed. Several
-- of these may work on one file at once; each waits for the others' trials and takes over those whose worker is gone.
local _, internal = ...
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local trial = internal.import 'interp/sweep/trial'
local show = internal.import 'interp/sweep/show'
local clock = hw.clock
local runner = {}

local LINES = 20      -- of a trial's output are kept
local BEAT = 10       -- seconds between two signs of life
local LOOK = 1        -- seconds between two looks at other workers
local GRACE = 3       -- seconds that an interrupted trial gets to say where it was
local SPARE = 256     -- MiB beyond `memory` for threads' stacks and libraries, in the limit of the system

---------------------------------------------------------------- the command of a child

local function read_all(file)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	return text
end

-- Without --threads, --memory and, where the sweep says devices, --device before the script: each trial gets its own by its environment.
local function arguments(run)
	local words, list, before, i = {}, {'/proc/self/exe'}, 0, 2
	for word in read_all '/proc/self/cmdline':gmatch '([^\0]*)\0' do words[#words + 1] = word end
	while arg[-before - 1] ~= nil do before = before + 1 end
	while i <= #words do
		local option, value = words[i]:match '^%-%-(%a+)(=?)'
		if i <= before and (option == 'threads' or option == 'memory' or option == 'device' and run.device) then
			i = i + (value == '=' and 1 or 2)
		else
			list[#list + 1], i = words[i], i + 1
		end
	end
	return list
end

-- The devices of CUDA_VISIBLE_DEVICES, one per slot in turn.
local function device_of(slot)
	local list = {}
	for device in (os.getenv 'CUDA_VISIBLE_DEVICES' or ''):gmatch '[^,]+' do list[#list + 1] = device end
	return #list > 1 and list[1 + (slot - 1) % #list] or nil
end

local function environment(run, claimed, slot)
	local told = {db = run.db_file, study = run.name, key = claimed.key, id = claimed.id, claim = claimed.claim,
		data = run.data, code = run.code, text = run.text, env = run.env}
	local list = {'QUOLL_SWEEP_TRIAL=' .. config.encode(told, 'trial'), 'QUOLL_THREADS=' .. run.threads}
	if run.memory then list[#list + 1] = 'QUOLL_MEMORY=' .. run.memory end
	if run.device then list[#list + 1] = 'QUOLL_DEVICE=' .. run.device[1 + (slot - 1) % #run.device] end
	local device = not run.device and device_of(slot)
	if device then list[#list + 1] = 'CUDA_VISIBLE_DEVICES=' .. device end
	return list
end

---------------------------------------------------------------- one running trial

local function free_slot(run)
	local taken = {}
	for _, one in ipairs(run.running) do taken[one.slot] = true end
	local slot = 1
	while taken[slot] do slot = slot + 1 end
	return slot
end

local function start(run, claimed)
	local slot = free_slot(run)
	local one = {claimed = claimed, slot = slot, text = config.text(config.decode(claimed.config)), start = clock(),
		output = '', told = ''}
	run.running[#run.running + 1] = one
	one.process = internal.process_start {arguments = arguments(run), environment = environment(run, claimed, slot),
		data = run.memory and (run.memory + SPARE + 8 * run.threads) << 20 or 0,
		cpu = run.timeout and math.ceil(run.timeout * run.threads + 60) or 0}
end

-- The last lines, from a buffer that is kept short.
local function last_lines(text, n)
	local lines = {}
	for line in (text:sub(-n * 500) .. '\n'):gmatch '([^\n]*)\n' do lines[#lines + 1] = line:match '[^\r]*$' end
	while lines[#lines] == '' do lines[#lines] = nil end
	return table.concat(lines, '\n', math.max(1, #lines - n + 1), #lines)
end

local function listen(one)
	one.output = one.output .. one.process:output()
	if #one.output > 40000 then one.output = one.output:sub(-20000) end
	one.told = (one.told .. one.process:status()):sub(-20000)
	local line = one.told:match '.*\n([^\n]+)\n$' or one.told:match '^([^\n]+)\n$'
	if line then
		local good, words = pcall(config.decode, line)
		if good and words.changed then
			one.changed = true
		elseif good and words.error then
			one.error = words.error
		elseif good then
			local value = tonumber(words[2])
			local at = words[3] ~= 'nil' and ' at ' .. words[3] or ''
			one.last = ('%s %s%s'):format(words[1], value and ('%.4g'):format(value) or words[2], at)
		end
	end
end

local SIGNALS = {[4] = 'illegal instruction', [6] = 'aborted', [7] = 'bus error', [8] = 'arithmetic error',
	[9] = 'killed', [11] = 'segmentation fault', [15] = 'terminated', [24] = 'processor time is up'}

-- Why a trial that is not done ended.
local function reason(one, how, code)
	if one.stopped or one.error then return one.stopped or one.error end
	if how == 'signal' then return ('signal %d (%s)'):format(code, SIGNALS[code] or 'of the system') end
	if code ~= 0 then return ('exit code %d'):format(code) end
	return 'the script ended without coming to this sweep'
end

-- Ends what runs for too long or has grown too big: first as Ctrl-C would, so that its traceback tells where it was.
local function watch(run, one)
	local now = clock()
	if not one.stopped then
		if run.timeout and now - one.start > run.timeout then
			one.stopped = ('more than %g s (timeout)'):format(run.timeout)
		elseif run.memory and one.process:resident() > run.memory << 20 then
			one.stopped = ('more than %d MiB (memory)'):format(run.memory)
		end
		if one.stopped then
			one.until_killed = now + GRACE
			one.process:kill 'interrupt'
		end
	elseif now > one.until_killed then
		one.process:kill()
	end
end

---------------------------------------------------------------- ends of trials

local function take_out(run, one)
	for i, other in ipairs(run.running) do
		if other == one then table.remove(run.running, i) end
	end
end

local function count(run)
	run.counts = store.counts(run.db, run.study)
	run.show.ended = run.counts.done + run.counts.failed
end

local function failed(run, one, why, tail)
	local key = one.claimed.key
	run.tries[key] = (run.tries[key] or 0) + 1
	local again = run.tries[key] <= run.retry
	local state = store.fail(run.db, one.claimed, again and 'pending' or 'failed', clock() - one.start, why, tail)
	if state == 'done' then return false end
	if not again then run.failures = run.failures + 1 end
	count(run)
	run.show:failed(one.text, why, tail, again)
	if not again and run.fail_fast then run.stopping = true end
	return true
end

-- The script has another text than when the sweep began, so it has none of the trials that are left: they would all fail.
local function changed(run, one)
	store.release(run.db, one.claimed)
	run.stopping, run.changed = true, true
	count(run)
end

-- A trial that is stopped tells where it was, as after Ctrl-C; what stopped it is the limit.
local function name_limit(one, text)
	if not one.stopped then return text end
	local named = ('\n' .. text):gsub('\nquoll: ([^\n]*)interrupted%f[\n\0]', function(where)
		return where == '' and '' or '\nquoll: ' .. where .. one.stopped
	end)
	return named:sub(2)
end

local function ended(run, one, how, code)
	repeat
		local before = #one.output
		listen(one)
	until #one.output == before
	take_out(run, one)
	if one.changed then return changed(run, one) end
	local row = run.db:rows('SELECT state, claim, seconds FROM trial WHERE key = ?', one.claimed.key)[1]
	local done = row.state == 'done' and row.claim == one.claimed.claim
	if not done then
		done = not failed(run, one, reason(one, how, code), name_limit(one, last_lines(one.output, LINES)))
	end
	count(run)
	if done then run.show:finished(one.text, row.seconds or 0, store.results(run.db, one.claimed.key)) end
end

local function step(run)
	local processes = {}
	for i, one in ipairs(run.running) do processes[i] = one.process end
	internal.process_poll(processes, 0.05)
	for _, one in ipairs(table.move(run.running, 1, #run.running, 1, {})) do
		listen(one)
		watch(run, one)
		local how, code = one.process:ended()
		if how then ended(run, one, how, code) end
	end
end

---------------------------------------------------------------- all of them

-- Trials that run when the sweep stops go back to the others. What cannot be written now is found out by the next run,
-- because this worker is gone then.
local function give_up(run)
	for _, one in ipairs(run.running) do
		if one.process then one.process:kill() end
	end
	for _, one in ipairs(run.running) do
		if one.process then one.process:stop() end
		pcall(store.release, run.db, one.claimed)
	end
	run.running = {}
end

local function fill(run)
	while not run.stopping and #run.running < run.jobs do
		local claimed = store.claim(run.db, run.study, run.me)
		if not claimed then return end
		start(run, claimed)
	end
end

local function look_around(run)
	local now = clock()
	if now - run.looked < LOOK then return end
	run.looked = now
	store.requeue(run.db, run.study, run.me)
	count(run)
	if now - run.beaten > BEAT then
		run.beaten = now
		store.beat(run.db, run.me)
	end
end

-- Whether there is nothing more to do or to wait for.
local function is_over(run)
	if #run.running > 0 then return false end
	if run.stopping then return true end
	count(run)
	return run.counts.pending == 0 and run.counts.running == 0
end

local function loop(run)
	repeat
		look_around(run)
		fill(run)
		step(run)
		run.show:draw(run.running, run.jobs, math.max(0, run.counts.running - #run.running))
	until is_over(run)
end

-- jobs=0: in this process.
local loop_here

local function wait_for_others(run)
	while not is_over(run) do
		internal.process_poll({}, 0.2)
		store.requeue(run.db, run.study, run.me)
		if run.counts.pending > 0 then return loop_here(run, run.options) end
	end
end

function loop_here(run, o)
	while not run.stopping do
		store.requeue(run.db, run.study, run.me)
		local claimed = store.claim(run.db, run.study, run.me)
		if not claimed then return wait_for_others(run) end
		local one = {claimed = claimed, text = config.text(config.decode(claimed.config)), start = clock(), slot = 1}
		run.running = {one}
		local seed, position = internal.rng(1, 0)
		local _ <close> = setmetatable({}, {__close = function() internal.rng(seed, position) end})
		local good, result = trial.run(o, run.db, claimed, run.env, function(name, value)
			one.last = ('%s %s'):format(name, value)
			run.show:draw(run.running, 1, 0)
		end)
		run.running = {}
		if good then
			count(run)
			run.show:finished(one.text, clock() - one.start, result)
		else
			failed(run, one, (result:match '^[^\n]*'), last_lines(result, LINES))
		end
	end
end

-- run: {db=, db_file=, study=, name=, me=, jobs=, threads=, timeout=, memory=, device=, retry=, fail_fast=,
-- log=, env=, data=}.
-- Returns the number of trials that failed for good, and why it stopped before its end, or nil.
function runner.work(run, o)
	run.running, run.tries, run.failures, run.looked, run.beaten = {}, {}, 0, -math.huge, clock()
	store.requeue(run.db, run.study, run.me)
	run.counts = store.counts(run.db, run.study)
	local view <close> = show.start(run.name, run.counts.total, run.counts.done, run.log,
		function() return run.failures end)
	run.show = view
	if run.log and run.counts.done > 0 then
		view:line(('%s: %d of %d trials were done before'):format(run.name, run.counts.done, run.counts.total))
	end
	local finished = false
	local _ <close> = setmetatable({}, {__close = function()
		give_up(run)
		if finished then return end
		view:line(('%s: stopped with %d of %d trials done; the same command goes on'):format(run.name, run.counts.done,
			run.counts.total))
	end})
	run.options = o
	if run.jobs == 0 then loop_here(run, o) else loop(run) end
	finished = true
	count(run)
	view:line(('%s: %d of %d trials are done, %d failed; results in %s'):format(run.name, run.counts.done,
		run.counts.total, run.counts.failed, run.db_file))
	local why = run.changed and 'the script or its data changed while it ran; the same command runs what they are now' or
		run.stopping and ('a trial failed (fail_fast); quoll sweep report %s shows why'):format(run.db_file)
	return run.failures, why or nil
end

return runner
