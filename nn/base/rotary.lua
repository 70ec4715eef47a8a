-- SPDX-License-Identifier: MIT
-- Scaled rotary positions: the frequency of each pair of numbers by the rules of transformers (modeling_rope_utils.py, 5.24), and tables of
-- cosines and sines for nn.rope. Pair i of n numbers turns by base^(-2i / n) for each position, unless a rule says otherwise.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local arguments = internal.import 'nn/base/arguments'
local rotary = {}

---------------------------------------------------------------- rules

-- Each rule: numbers that it wants (false: without a default), lists of a number for each pair, and pair(s, f, i, n, theta, long), the frequency
-- of pair i (from 0) whose plain one is f; amplitude(s), a factor of cosines and sines. s: the numbers. long: whether the call has a position
-- beyond the original context, of rules that ask (`lengths`).
local rules = {}
rotary.rules = rules

rules.linear = {numbers = {factor = false}, pair = function(s, f) return f / s.factor end}

-- Longer waves are stretched, shorter ones are not, those between gradually (Llama 3.1).
rules.llama3 = {numbers = {factor = false, lowfreqfactor = false, highfreqfactor = false, original = false},
	check = function(s)
		if not (s.highfreqfactor > s.lowfreqfactor) then return 'highfreqfactor: wanted a number above lowfreqfactor' end
	end,
	pair = function(s, f)
		local wave = 2 * math.pi / f
		if wave < s.original / s.highfreqfactor then return f end
		if wave > s.original / s.lowfreqfactor then return f / s.factor end
		local smooth = (s.original / wave - s.lowfreqfactor) / (s.highfreqfactor - s.lowfreqfactor)
		return (1 - smooth) * f / s.factor + smooth * f
	end}

-- The place at which a pair turns so many times within the original context.
local function place_of(s, turns, n, theta)
	return n * math.log(s.original / (turns * 2 * math.pi)) / (2 * math.log(theta))
end

-- YaRN (arXiv 2309.00071): a ramp along the pairs between plain and stretched frequencies.
rules.yarn = {numbers = {factor = false, original = false, betafast = 32, betaslow = 1, attentionfactor = 0, truncate = 1},
	pair = function(s, f, i, n, theta)
		local low, high = place_of(s, s.betafast, n, theta), place_of(s, s.betaslow, n, theta)
		if s.truncate ~= 0 then low, high = math.floor(low), math.ceil(high) end
		low, high = math.max(low, 0), math.min(high, n - 1)
		if low == high then high = high + 0.001 end
		local ramp = math.min(math.max((i - low) / (high - low), 0), 1)
		return f / s.factor * ramp + f * (1 - ramp)
	end,
	amplitude = function(s)
		if s.attentionfactor ~= 0 then return s.attentionfactor end
		return s.factor <= 1 and 1 or 0.1 * math.log(s.factor) + 1
	end}

-- LongRoPE (arXiv 2402.13753): a divisor for each pair, others for texts that are longer than the original context.
rules.longrope = {numbers = {factor = 1, original = false, attentionfactor = 0}, lists = {'short', 'long'}, lengths = true,
	check = function(s)
		if s.original <= 1 then return ('original: wanted a number above 1, got %g'):format(s.original) end
	end,
	pair = function(s, f, i, _, _, long) return f / (long and s.long or s.short)[i + 1] end,
	amplitude = function(s)
		if s.attentionfactor ~= 0 then return s.attentionfactor end
		return s.factor <= 1 and 1 or math.sqrt(1 + math.log(s.factor) / math.log(s.original))
	end}

-- A divisor for each pair, as .gguf files of Llama 3.1 have.
rules.factors = {numbers = {}, lists = {'factors'}, pair = function(s, f, i) return f / s.factors[i + 1] end}

---------------------------------------------------------------- options

-- The names of the rules.
function rotary.known()
	local names = {}
	for name in pairs(rules) do names[#names + 1] = name end
	table.sort(names)
	return table.concat(names, ' ')
end

local function check_list(class, name, list, pairs_of)
	if type(list) ~= 'table' or #list ~= pairs_of then
		base.fail('%s: ropescaling: %s: wanted a list of %d numbers, got %s', class, name, pairs_of, type(list) == 'table' and 'another number of them' or base.describe(list))
	end
	local copy = {}
	for i, value in ipairs(list) do
		copy[i] = arguments.number(class, ('ropescaling: %s[%d]'):format(name, i), value, -math.huge, math.huge, true)
		if value == 0 then base.fail('%s: ropescaling: %s[%d]: wanted another number than 0', class, name, i) end
	end
	return copy
end

local function has_list(rule, name)
	for _, list in ipairs(rule.lists or {}) do
		if list == name then return true end
	end
	return false
end

-- A checked copy of {type=, …}; n: the numbers that are turned.
function rotary.check(class, given, n)
	if type(given) ~= 'table' or getmetatable(given) then base.fail('%s: ropescaling: wanted a table {type=, …}, got %s', class, base.describe(given)) end
	local rule = rules[given.type]
	if not rule then base.fail('%s: ropescaling: type: wanted one of %s, got %s', class, rotary.known(), base.describe(given.type)) end
	local s = {type = given.type}
	for name in pairs(given) do
		if name ~= 'type' and rule.numbers[name] == nil and not has_list(rule, name) then
			base.fail("%s: ropescaling: wanted options of '%s', got '%s'", class, given.type, base.word(tostring(name)))
		end
	end
	for name, default in pairs(rule.numbers) do
		local value = given[name]
		if type(value) == 'boolean' then value = value and 1 or 0 end
		if value == nil and default then value = default end
		local number = arguments.number(class, 'ropescaling: ' .. name, value, 0, math.huge, true) + 0.0
		if number == 0 and default ~= 0 and name ~= 'truncate' then base.fail('%s: ropescaling: %s: wanted a number above 0, got 0', class, name) end
		s[name] = number
	end
	for _, name in ipairs(rule.lists or {}) do s[name] = check_list(class, name, given[name], n // 2) end
	local wrong = rule.check and rule.check(s)
	if wrong then base.fail('%s: ropescaling: %s', class, wrong) end
	return s
end

---------------------------------------------------------------- tables

-- The frequencies of n / 2 pairs, and the factor of cosines and sines. s: nil for the plain ones.
function rotary.frequencies(s, theta, n, long)
	local list, rule = {}, s and rules[s.type]
	for i = 0, n // 2 - 1 do
		local f = theta ^ (-2.0 * i / n)
		list[i + 1] = rule and rule.pair(s, f, i, n, theta, long) or f
	end
	return list, rule and rule.amplitude and rule.amplitude(s) or 1
end

-- Calls f while nothing is recorded for graphs.
local function unrecorded(f)
	local recorder = internal.record(nil)
	local _ <close> = setmetatable({}, {__close = function() internal.record(recorder) end})
	local _ <close> = internal.nograd()
	return internal.unyieldable(f)
end

-- Tables (positions, n / 2) of positions 1 … count in float32 on the device.
local function compute(frequencies, amplitude, count, device)
	return unrecorded(function()
		local place, f = {dtype = 'float64', device = 'cpu'}, {dtype = 'float64', device = 'cpu'}
		for i = 1, count do place[i] = i - 1 end
		table.move(frequencies, 1, #frequencies, 1, f)
		local angle = tensor(place):view(count, 1) * tensor(f):view(1, #frequencies)
		return {(angle:cos() * amplitude):to 'float32':to(device), (angle:sin() * amplitude):to 'float32':to(device), count = count}
	end)
end

local FEWEST = 64
local made = setmetatable({}, {__mode = 'v'})    -- layers with the same frequencies share their tables
local of_layer = setmetatable({}, {__mode = 'k'}) -- device (and whether long) -> tables, by the layer's rule

local function longer(s, theta, n, count, device, long)
	local frequencies, amplitude = rotary.frequencies(s, theta, n, long)
	local key, most = ('%s %.17g %s'):format(device, amplitude, table.concat(frequencies, ' ')), FEWEST
	if not made[key] or made[key].count < count then
		while most < count do most = 2 * most end
		made[key] = compute(frequencies, amplitude, most, device)
	end
	return made[key]
end

-- Cosines and sines of positions start … start + t - 1. s is what rotary.check returned; last: the last position of the call, if these are
-- those of a whole cache.
function rotary.tables(s, theta, n, start, t, device, last)
	local mine, long = of_layer[s] or {}, rules[s.type].lengths and (last or start + t - 1) > s.original
	local key = long and device .. ' long' or device
	of_layer[s] = mine
	if not mine[key] or mine[key].count < start + t - 1 then mine[key] = longer(s, theta, n, start + t - 1, device, long) end
	return mine[key][1]:narrow(1, start, t), mine[key][2]:narrow(1, start, t)
end

return rotary
