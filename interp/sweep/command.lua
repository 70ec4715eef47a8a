-- SPDX-License-Identifier: MIT
-- quoll sweep file.lua …, and report, merge and diff of results files. Returns the exit code: 1 when a trial failed,
-- when files contradict each other, or after a wrong call.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local rows = internal.import 'interp/sweep/rows'
local store = internal.import 'interp/sweep/store'
local fail, describe = base.fail, base.describe

-- Words and options of a subcommand: `known` maps option -> 'flag' or 'value'.
local function read_arguments(args, command, known)
	local words, found, i = {}, {}, 2
	local names = {}
	for name in next, known do names[#names + 1] = '--' .. name end
	table.sort(names)
	while args[i] do
		local name, value = args[i]:match '^%-%-([^=]+)=?(.*)$'
		if not name then
			words[#words + 1] = args[i]
		elseif not known[name] then
			fail('sweep %s: --%s: no such option%s; known: %s', command, name, base.near('--' .. name, names),
				table.concat(names, ' '))
		elseif known[name] == 'flag' then
			found[name] = true
		else
			if not args[i]:find '=' then
				i = i + 1
				value = args[i]
			end
			if not value or value == '' then fail('sweep %s: --%s: wanted a value, got none', command, name) end
			found[name] = value
		end
		i = i + 1
	end
	return words, found
end

---------------------------------------------------------------- running a script

-- The global arg as if the script had been started without `sweep`.
local function shift_arguments()
	local shifted, lowest = {}, 0
	while arg[lowest - 1] ~= nil do lowest = lowest - 1 end
	for i = lowest, #arg do shifted[i - 1] = arg[i] end
	arg = shifted
end

local function run_script(args)
	local state = internal.import 'interp/sweep/options'.state
	local chunk, problem = loadfile(args[1])
	if not chunk then error(problem, 0) end
	state.strict = true
	shift_arguments()
	local result = chunk(table.unpack(args, 2))
	if type(result) == 'table' and not getmetatable(result) and result.run then
		result = sweep.run(result)
		print(result)
	end
	if #state.ran == 0 then
		fail('sweep: %s: wanted a script that calls sweep.run or returns a table for it, got neither', args[1])
	end
	return state.failures > 0 and 1 or 0
end

---------------------------------------------------------------- the subcommands

local commands = {}

function commands.report(args)
	local words, o = read_arguments(args, 'report', {study = 'value', html = 'value', csv = 'value', md = 'value',
		x = 'value', y = 'value', env = 'flag', all = 'flag'})
	if #words ~= 1 then fail('sweep report: wanted one results file, got %d', #words) end
	local db <close> = store.open(words[1], 'read')
	local study = store.study(db, words[1], o.study)
	local r = rows.report(db, study, o, '--all')
	for _, ending in ipairs {'csv', 'md'} do
		local file = o[ending]
		if file and not file:find('%.' .. ending .. '$') then
			fail('sweep report: --%s: wanted a name ending in .%s, got %s', ending, ending, describe(file))
		end
		if file then r:save(file) end
	end
	o.command = 'quoll sweep ' .. table.concat(args, ' ')
	if o.html then internal.import 'interp/sweep/page'.save(o.html, db, study, r, o) end
	if not (o.csv or o.md or o.html) then internal.import 'interp/sweep/page'.print(db, study, r, o) end
	return 0
end

function commands.merge(args)
	local words, o = read_arguments(args, 'merge', {into = 'value'})
	if #words == 0 then fail 'sweep merge: wanted results files, got none' end
	local counts, conflicts = internal.import 'interp/sweep/merge'(words, o.into)
	for _, conflict in ipairs(conflicts) do print('conflict: ' .. internal.import 'interp/sweep/show'.clean(conflict)) end
	print(('%s: %d trials from %d files, %d done, %d new here, %d conflicts'):format(counts.into, counts.trials,
		counts.files, counts.done, counts.taken, #conflicts))
	return #conflicts > 0 and 1 or 0
end

function commands.diff(args)
	local words, o = read_arguments(args, 'diff', {study = 'value', level = 'value'})
	if #words ~= 2 then fail('sweep diff: wanted two results files, got %d', #words) end
	if o.level then
		o.level = tonumber(o.level) or fail('sweep diff: --level: wanted a number, got %s', describe(o.level))
	end
	local r, warnings = internal.import 'interp/sweep/diff'(words[1], words[2], o)
	for _, warning in ipairs(warnings) do print('warning: ' .. internal.import 'interp/sweep/show'.clean(warning)) end
	print(r)
	return 0
end

-- A wrong call or file is told in one line; anything else keeps its traceback.
local function in_one_line(command, args)
	local good, result = pcall(command, args)
	if good then return result end
	local message = tostring(result)
	if not message:find '^sweep' then error(result, 0) end
	io.stderr:write('quoll: ', internal.import 'interp/sweep/show'.clean(message), '\n')
	return 1
end

return function(args)
	if not args[1] then
		io.stderr:write(internal.import 'interp/doc/subcommands'.usage 'sweep', '\n')
		return 1
	end
	local command = commands[args[1]]
	if command then return in_one_line(command, args) end
	if not internal.exists(args[1]) then
		fail('sweep: %s: no such script, and no report, merge or diff%s', args[1],
			base.near(args[1], {'report', 'merge', 'diff'}))
	end
	return run_script(args)
end
