-- SPDX-License-Identifier: MIT
-- The options of a sweep from two places: the table given to sweep.run, and the command line of the script, which wins.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local options = {}

-- Between `quoll sweep` and the calls of sweep.run in its script: strict, whether a mistyped option is an error;
-- failures, how many trials failed; ran, the studies that were run.
options.state = {strict = false, failures = 0, ran = {}}

local FLAGS = {['fail-fast'] = {'fail_fast', true}, ['keep-going'] = {'fail_fast', false},
	['dry-run'] = {'dry_run', true}, force = {'force', true}}
local VALUES = {jobs = 'number', retry = 'number', timeout = 'text', memory = 'text', shard = 'text', db = 'text',
	device = 'text', seeds = 'number'}

local function known_names()
	local names = {}
	for _, list in ipairs {FLAGS, VALUES} do
		for name in next, list do names[#names + 1] = name end
	end
	table.sort(names)
	return names
end

---------------------------------------------------------------- values

-- 8, 1e-3, true, int8/1; quotes make text of anything
local function word_value(word)
	if word == 'true' or word == 'false' then return word == 'true' end
	local quoted = word:match '^"(.*)"$' or word:match "^'(.*)'$"
	if quoted then return quoted end
	return word:find '^[-+]?%.?%d' and tonumber(word) or word
end

local function list_value(text)
	local list = {}
	for word in (text .. ','):gmatch '([^,]*),' do list[#list + 1] = word_value(word) end
	return list
end

local UNITS = {[''] = 1, s = 1, m = 60, h = 3600, d = 86400}

-- Seconds of 90, '90', '90s', '10m', '2h', '1d'.
function options.seconds(value)
	local number, unit = tostring(value):match '^(%d+%.?%d*)([smhd]?)$'
	local seconds = number and tonumber(number) * UNITS[unit]
	if not seconds or seconds <= 0 then
		fail("sweep: timeout: wanted seconds > 0 or text as '10m', got %s", describe(value))
	end
	return seconds
end

local SIZES = {[''] = 1, M = 1, G = 1024}

-- MiB of 512, '512', '512M', '2G'.
function options.mebibytes(value)
	local number, unit = tostring(value):match '^(%d+%.?%d*)([MG]?)$'
	local size = number and tonumber(number) * SIZES[unit]
	if not size or size < 1 then fail("sweep: memory: wanted MiB >= 1 or text as '2G', got %s", describe(value)) end
	return math.floor(size)
end

-- Names of 'cuda' or 'cuda:0,cuda:1', one for each trial that runs at the same time, in turn.
function options.devices(value)
	local list = {}
	for name in (value .. ','):gmatch '([^,]*),' do
		if not name:find '^[%a_][%w_:]*$' then fail("sweep: device: wanted names of devices as 'cuda' or 'cuda:0,cuda:1', got %s", describe(value)) end
		list[#list + 1] = name
	end
	return list
end

-- index and count of '3/16'
function options.shard(value)
	local index, count = tostring(value):match '^(%d+)/(%d+)$'
	index, count = math.tointeger(tonumber(index)), math.tointeger(tonumber(count))
	if not index or index < 1 or index > count then
		fail("sweep: shard: wanted i/n with i from 1 to n, got %s", describe(value))
	end
	return index, count
end

---------------------------------------------------------------- the command line

-- Takes args[i], when it is an option; returns the index after it, or nil.
local function take(args, i, found, strict)
	local name, value = args[i]:match '^%-%-([%w%-]+)=?(.*)$'
	if not name then return nil end
	if FLAGS[name] and not args[i]:find '=' then
		found[FLAGS[name][1]] = FLAGS[name][2]
		return i + 1
	end
	if not VALUES[name] then
		local near = base.near(name, known_names())
		if strict and near ~= '' then fail('sweep: --%s: no such option%s', name, near) end
		return nil
	end
	if not args[i]:find '=' then
		i = i + 1
		value = args[i]
	end
	if not value then fail('sweep: --%s: wanted a value, got none', name) end
	if VALUES[name] == 'number' then
		value = math.tointeger(tonumber(value)) or fail('sweep: --%s: wanted a whole number, got %s', name,
			describe(value))
	end
	found[name] = value
	return i + 1
end

-- Options and name=value among the arguments of a script: a table as sweep.run takes it, and lists of values by name.
-- What is neither belongs to the script; strict: but a name near one of ours is a mistake.
function options.parse(args, strict)
	local found, set, i = {}, {}, 1
	while args[i] do
		local behind = take(args, i, found, strict)
		local name, value = args[i]:match '^([%a_][%w_]*)=(.*)$'
		if not behind and name then set[name] = list_value(value) end
		i = behind or i + 1
	end
	return found, set
end

return options
