-- SPDX-License-Identifier: MIT
-- The trials of a sweep: configurations from grid, zip, list and random draws, written as canonical JSON (names sorted,
-- every digit, integers and floats told apart) and named by the hash of that text and of the code. What cannot be
-- written so that it reads back equal is refused by its place: functions, tensors, NaN, cycles, text that is no UTF-8.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local decode = internal.import 'interp/prelude/json'
local fail, describe = base.fail, base.describe
local config = {}

local DEEPEST = 32

---------------------------------------------------------------- canonical JSON

local ESCAPES = {['"'] = '\\"', ['\\'] = '\\\\'}

local function text_json(text)
	return '"' .. text:gsub('[%c"\\\127]', function(c) return ESCAPES[c] or ('\\u%04x'):format(c:byte()) end) .. '"'
end

local function number_json(x, where)
	if math.type(x) == 'integer' then return tostring(x) end
	if x ~= x or x == math.huge or x == -math.huge then
		fail('sweep: %s: wanted a finite number, got %s', where, tostring(x))
	end
	local text = ('%.17g'):format(x)
	for digits = 15, 16 do
		local short = ('%.' .. digits .. 'g'):format(x)
		if tonumber(short) == x then
			text = short
			break
		end
	end
	return text:find '[.e]' and text or text .. '.0'
end

-- For messages: what is no UTF-8 in hexadecimal.
local function shown(text)
	return '"' .. text:sub(1, 40):gsub('[^\32-\126]', function(c) return ('\\x%02x'):format(c:byte()) end) .. '"'
end

local encode

-- The names of a table in order; nil when it is a list. Holes and both kinds of keys together are refused.
local function names_of(value, where)
	local names, n = {}, #value
	for key in next, value do
		if type(key) == 'string' then
			if not utf8.len(key) then fail('sweep: %s: wanted names in UTF-8, got %s', where, shown(key)) end
			names[#names + 1] = key
		elseif math.type(key) ~= 'integer' or key < 1 or key > n then
			fail('sweep: %s: wanted names or a list without holes, got the key %s', where, describe(key))
		end
	end
	if #names > 0 and n > 0 then
		fail("sweep: %s: wanted names or a list, got both ('%.40s' and items)", where, names[1])
	end
	table.sort(names)
	return n == 0 and #names > 0 and names or nil
end

local function table_json(value, where, open, depth)
	if getmetatable(value) then
		fail('sweep: %s: wanted a plain table, got %s', where, getmetatable(value).__name or 'an object')
	end
	if open[value] then fail('sweep: %s: the table contains itself', where) end
	if depth > DEEPEST then fail('sweep: %s: wanted at most %d levels of tables', where, DEEPEST) end
	open[value] = true
	local names, parts = names_of(value, where), {}
	for i, name in ipairs(names or {}) do
		parts[i] = text_json(name) .. ':' .. encode(value[name], where .. '.' .. name, open, depth + 1)
	end
	for i = 1, names and 0 or #value do parts[i] = encode(value[i], ('%s[%d]'):format(where, i), open, depth + 1) end
	open[value] = nil
	return (names and '{%s}' or '[%s]'):format(table.concat(parts, ','))
end

function encode(value, where, open, depth)
	local kind = type(value)
	if kind == 'table' then return table_json(value, where, open, depth) end
	if kind == 'number' then return number_json(value, where) end
	if kind == 'boolean' then return tostring(value) end
	if kind ~= 'string' then
		fail('sweep: %s: wanted numbers, text, booleans or tables of them, got a %s%s', where,
			base.is_tensor(value) and 'tensor' or kind, kind == 'userdata' and not base.is_tensor(value) and
			'; a spec can be given as text' or '')
	end
	if not utf8.len(value) then fail('sweep: %s: wanted text in UTF-8, got %s', where, shown(value)) end
	return text_json(value)
end

-- Canonical text of a value; `where` names it in errors.
function config.encode(value, where) return encode(value, where, {}, 1) end
config.decode = decode

---------------------------------------------------------------- for people

local function value_text(value)
	if type(value) == 'table' then return config.encode(value, 'value') end
	if type(value) == 'number' and math.type(value) == 'float' then return ('%.6g'):format(value) end
	return tostring(value)
end

-- 'bits=8 scheme=symmetric'; names sorted, the seed last
function config.text(values)
	local parts = {}
	for name, value in next, values do
		if name ~= 'seed' then parts[#parts + 1] = name .. '=' .. value_text(value) end
	end
	table.sort(parts)
	if values.seed ~= nil then parts[#parts + 1] = 'seed=' .. value_text(values.seed) end
	return #parts > 0 and table.concat(parts, ' ') or '(no parameters)'
end

-- A value as the cell of a report.
function config.cell(value)
	if type(value) == 'table' then return config.encode(value, 'value') end
	return value
end

---------------------------------------------------------------- lists of configurations

local function sorted_names(table_of, option)
	local names = {}
	for name in next, table_of do
		if type(name) ~= 'string' then fail('sweep: %s: wanted parameters by name, got %s', option, describe(name)) end
		names[#names + 1] = name
	end
	table.sort(names)
	return names
end

local function check_values(values, where)
	if type(values) ~= 'table' or getmetatable(values) or #values == 0 then
		fail('sweep: %s: wanted a list of values, got %s', where,
			type(values) == 'table' and 'an empty one' or describe(values))
	end
	return values
end

-- All combinations; the last name in the alphabet changes fastest.
local function product(grid)
	local list = {{}}
	for _, name in ipairs(sorted_names(grid, 'grid')) do
		local longer = {}
		for _, so_far in ipairs(list) do
			for _, value in ipairs(check_values(grid[name], 'grid.' .. name)) do
				local one = {[name] = value}
				for known, its in next, so_far do one[known] = its end
				longer[#longer + 1] = one
			end
		end
		list = longer
	end
	return list
end

local function zipped(zip)
	local list, length, first = {}, nil, nil
	for _, name in ipairs(sorted_names(zip, 'zip')) do
		local values = check_values(zip[name], 'zip.' .. name)
		length, first = length or #values, first or name
		if #values ~= length then
			fail('sweep: zip: wanted lists of one length, got %d items of %s and %d of %s', length, first, #values,
				name)
		end
		for i, value in ipairs(values) do
			list[i] = list[i] or {}
			list[i][name] = value
		end
	end
	return list
end

local function rows(list)
	for i, row in ipairs(check_values(list, 'list')) do
		if type(row) ~= 'table' or #row > 0 then
			fail('sweep: list[%d]: wanted a table by names, got %s', i, describe(row))
		end
	end
	return list
end

-- splitmix64 (Steele, Lea, Flood 2014): the same draws on every machine and in every process.
local function generator(seed)
	local state = seed
	return function()
		state = state + 0x9E3779B97F4A7C15
		local z = state
		z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
		z = (z ~ (z >> 27)) * 0x94D049BB133111EB
		return ((z ~ (z >> 31)) >> 11) * 2.0 ^ -53
	end
end

-- One value of a list or of a range {min=, max=, log=}; whole numbers when both ends are.
local function draw(from, u, where)
	if type(from) ~= 'table' or from.min == nil then return check_values(from, where)[1 + math.floor(u * #from)] end
	local lo, hi = from.min, from.max
	if type(lo) ~= 'number' or type(hi) ~= 'number' or not (lo <= hi) or from.log and not (lo > 0) then
		fail('sweep: %s: wanted {min=, max=} with min <= max%s, got min %s and max %s', where,
			from.log and ' and min > 0' or '', tostring(lo), tostring(hi))
	end
	local whole = math.type(lo) == 'integer' and math.type(hi) == 'integer'
	local top = whole and hi + 1 or hi
	local value = from.log and lo * (top / lo) ^ u or lo + (top - lo) * u
	return whole and math.min(hi, math.floor(value)) or value
end

-- n different draws, or fewer when there are no more.
local function random(grid, n, seed)
	local next_u, list, seen, misses = generator(seed), {}, {}, 0
	local names = sorted_names(grid, 'grid')
	while #list < n and misses < 1000 do
		local one = {}
		for _, name in ipairs(names) do one[name] = draw(grid[name], next_u(), 'grid.' .. name) end
		local text = config.encode(one, 'grid')
		if seen[text] then
			misses = misses + 1
		else
			seen[text], list[#list + 1], misses = true, one, 0
		end
	end
	return list
end

local function merged(a, b, option)
	local one = {}
	for name, value in next, a do one[name] = value end
	for name, value in next, b do
		if one[name] ~= nil then fail("sweep: %s: '%.40s' is given twice", option, name) end
		one[name] = value
	end
	return one
end

local function times(list, others, option)
	local all = {}
	for _, a in ipairs(list) do
		for _, b in ipairs(others) do all[#all + 1] = merged(a, b, option) end
	end
	return all
end

local function seeds_of(seeds)
	local list = {}
	if math.type(seeds) == 'integer' and seeds >= 1 then
		for i = 1, seeds do list[i] = {seed = i} end
		return list
	end
	if type(seeds) ~= 'table' or #seeds == 0 then
		fail('sweep: seeds: wanted a number > 0 or a list, got %s', describe(seeds))
	end
	for i, seed in ipairs(seeds) do
		if math.type(seed) ~= 'integer' then fail('sweep: seeds: wanted integers, got %s', describe(seed)) end
		list[i] = {seed = seed}
	end
	return list
end

---------------------------------------------------------------- name=value of the command line

local function any_of(list, value)
	for _, one in ipairs(list) do
		if one == value then return true end
	end
	return false
end

-- A grid takes the given values in place of its own; of zip and list those rows stay that have one of them.
local function with_set(o, set)
	local grid, keep, seeds = {}, {}, o.seeds
	for name, values in next, o.grid or {} do grid[name] = values end
	for name, values in next, set do
		if grid[name] ~= nil then
			grid[name] = values
		elseif name == 'seed' and seeds then
			seeds = values
		else
			keep[name] = values
		end
	end
	return o.grid and grid, keep, seeds
end

local function filtered(list, keep)
	local kept, known = {}, {}
	for _, one in ipairs(list) do
		local fits = true
		for name in next, one do known[name] = true end
		for name, values in next, keep do fits = fits and any_of(values, one[name]) end
		if fits then kept[#kept + 1] = one end
	end
	local names = {}
	for name in next, known do names[#names + 1] = name end
	table.sort(names)
	for name in next, keep do
		if not known[name] then
			fail("sweep: %s=: wanted one of the parameters %s%s", name, table.concat(names, ' '),
				base.near(name, names))
		end
	end
	return kept
end

-- The name of a trial in results files.
function config.id(code, json) return internal.sha256(code .. '\0' .. json):sub(1, 32) end

-- The trials: a list of {position=, json=, values=, id=} without repetitions. o: options of sweep.run; set: lists of
-- values by name; code: what the ids depend on besides.
function config.trials(o, set, code)
	local grid, keep, seeds = with_set(o, set)
	if o.random and not grid then fail 'sweep: random: wanted a grid to draw from, got none' end
	local list = {{}}
	if o.list then list = times(list, rows(o.list), 'list') end
	if o.zip then list = times(list, zipped(o.zip), 'zip') end
	if grid then
		list = times(list, o.random and random(grid, o.random, o.random_seed or 1) or product(grid), 'grid')
	end
	if seeds then list = times(list, seeds_of(seeds), 'seeds') end
	list = filtered(list, keep)
	local trials, seen = {}, {}
	for _, one in ipairs(list) do
		local json = config.encode(one, 'config')
		if not seen[json] then
			seen[json] = true
			trials[#trials + 1] = {position = #trials + 1, json = json, values = one, id = config.id(code, json)}
		end
	end
	return trials
end

return config
