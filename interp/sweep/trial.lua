-- SPDX-License-Identifier: MIT
-- One trial, in the process that runs it: seeds the random numbers, calls the user's function, turns what it returns
-- into results, and writes all of it in one transaction. In a child the process ends here.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local fail, describe = base.fail, base.describe
local trial = {}

---------------------------------------------------------------- results

local function result_of(name, value)
	if base.is_tensor(value) and value:nelem() == 1 then value = value:item() end
	local kind = type(value) == 'number' and math.type(value) or type(value)
	if kind == 'userdata' and not base.is_tensor(value) then kind, value = 'string', tostring(value) end
	if kind == 'string' then return {name = name, kind = 'text', value = value} end
	if kind == 'integer' or kind == 'float' or kind == 'boolean' then
		return {name = name, kind = kind, value = value}
	end
	fail('sweep: run: result %s: wanted a number, text or boolean, got %s', name, base.is_tensor(value) and
		('a tensor of %d'):format(value:nelem()) or kind)
end

-- Of a row of a report in its order, of a plain table by the alphabet, of one number under the name value.
function trial.results(given)
	if type(given) == 'number' then given = {value = given} end
	local meta = type(given) == 'table' and getmetatable(given)
	if meta and meta.__name == 'quoll.report' then
		if #given ~= 1 then fail('sweep: run: wanted results by name, got a report of %d rows; r[1] is one', #given) end
		given, meta = given[1], getmetatable(given[1])
	end
	if type(given) ~= 'table' then
		fail('sweep: run: wanted results by name, as return {accuracy=0.9}, got %s',
			given == nil and 'nothing' or describe(given))
	end
	local list, each, of = {}, next, given
	if meta then each, of = pairs(given) end -- the order of the columns
	for name, value in each, of do
		if type(name) ~= 'string' or not utf8.len(name) then
			fail('sweep: run: wanted results by name (UTF-8), got the key %s', describe(name))
		end
		list[#list + 1] = result_of(name, value)
	end
	if not meta then table.sort(list, function(a, b) return a.name < b.name end) end
	return list
end

---------------------------------------------------------------- running

local function first_line(file, pattern)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	return text:match(pattern)
end

-- What may explain a difference: recorded with every trial.
local function environment(given)
	local features = hw.features()
	local env = {processor = features.name, level = features.level, cores = features.cores, threads = tensor.threads(),
		load = internal.load(), quoll = internal.version, started = os.date '!%Y-%m-%dT%H:%M:%SZ',
		governor = first_line('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor', '%S+'),
		gpu = features.gpu and tostring(features.gpu) or nil}
	for name, value in next, given do env[name] = value end
	return env
end

-- The function that the user's code gets as its second argument.
local function logger(steps, tell)
	return function(name, value, step)
		if type(name) ~= 'string' or not utf8.len(name) then fail('log: wanted a name, got %s', describe(name)) end
		if base.is_tensor(value) and value:nelem() == 1 then value = value:item() end
		if type(value) ~= 'number' then fail('log: %s: wanted a number, got %s', name, describe(value)) end
		if step ~= nil and type(step) ~= 'number' then
			fail('log: %s: step: wanted a number, got %s', name, describe(step))
		end
		steps[#steps + 1] = {name = name, value = value, step = step}
		tell(name, value, step)
	end
end

-- Runs and stores a claimed trial. `tell` hears every logged value. Returns true, or false and the message; raises when
-- the results cannot be written.
function trial.run(o, db, claimed, env, tell)
	local values, steps = config.decode(claimed.config), {}
	local seed = values.seed or 1
	env = environment(env)
	tensor.seed(seed)
	math.randomseed(seed)
	local start = hw.clock()
	local good, result = xpcall(function() return trial.results(internal.unyieldable(o.run, values, logger(steps, tell))) end, internal.traceback)
	if not good then
		store.keep_steps(db, claimed, steps, env)
		return false, result
	end
	if not store.finish(db, claimed, hw.clock() - start, result, steps, env) then
		return false, 'the trial was given to another process meanwhile; this result is left out'
	end
	return true, result
end

---------------------------------------------------------------- in a child

-- What the sweep told this process: {db=, study=, key=, id=, claim=, data=, env=}; nil: this is no child.
local variable = os.getenv 'QUOLL_SWEEP_TRIAL'
trial.child = variable and config.decode(variable) or nil

-- The first line of a message, as text that every file takes.
local function printable(message)
	local line = message:match '^[^\n]*'
	return utf8.len(line) and line or (line:gsub('[\128-\255]', '?'))
end
trial.printable = printable

-- Never returns.
function trial.run_child(o, trials)
	local child = trial.child
	for _, one in ipairs(trials) do
		if one.id == child.id then child.config = one.json end
	end
	local pipe = assert(io.open('/proc/self/fd/3', 'w'))
	local function tell(name, value, step)
		pipe:write(config.encode({name, tostring(value), tostring(step)}, 'log'), '\n')
		pipe:flush()
	end
	if not child.config then
		pipe:write(config.encode({changed = true}, 'changed'), '\n')
		pipe:close()
		os.exit(1)
	end
	local db = store.open(child.db, 'write')
	internal.process_forget 'QUOLL_SWEEP_TRIAL' -- a sweep that the trial starts is none of this one
	local good, message = trial.run(o, db, child, child.env, tell)
	db:close()
	if not good then
		io.stderr:write(message, '\n')
		pipe:write(config.encode({error = printable(message)}, 'error'), '\n')
		pipe:close()
	end
	os.exit(good)
end

return trial
