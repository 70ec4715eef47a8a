-- SPDX-License-Identifier: MIT
-- Rules: an ordered list of how to quantize layers; the first rule that matches a layer's name applies.
--   {pattern, spec or false, emit=}  {pattern, mode=, weight=, input=, output=, optional=, emit=}  function(name, module) -> spec, false, table or nil; of a graph function(node)
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local NAMES = {'mode', 'weight', 'input', 'output', 'optional', 'emit', 'method'}
local rules = {fields = NAMES}

local FIELDS = {}
for _, name in ipairs(NAMES) do FIELDS[name] = true end

local function check_field(i, key)
	if not FIELDS[key] then
		fail("rules: item %d: unknown field '%.40s'%s", i, tostring(key), base.near(key, NAMES))
	end
end

-- Classes of Perl and Lua, lazy quantifiers and non-capturing groups have no or another meaning in POSIX extended regular expressions:
-- glibc reads '.*?' as '(.*)?'. Returns what to write instead, or nil.
local INSTEAD = {d = '[0-9]', D = '[^0-9]', w = '[A-Za-z0-9_]', W = '[^A-Za-z0-9_]', s = '[[:space:]]', S = '[^[:space:]]', a = '[A-Za-z]',
	l = '[a-z]', u = '[A-Z]'}
local function foreign(pattern)
	local at = 1
	while at <= #pattern do
		local c, after = pattern:sub(at, at), pattern:sub(at + 1, at + 1)
		if c == '[' then
			at = pattern:find(']', at + (after == '^' and 3 or 2), true) or #pattern
			local class = pattern:find('^:%]%]', at - 1)
			at = class and at + 1 or at
		elseif (c == '\\' or c == '%') and after:find '%w' then
			return ("'%s%s' is none; write %s"):format(c, after, INSTEAD[after] or 'the characters themselves, [abc] or [[:alnum:]]')
		elseif c == '\\' then
			at = at + 1
		elseif c:find '[*+?}]' and after == '?' then
			return ("there are no lazy quantifiers; write '%s' without '?'"):format(c)
		elseif c == '(' and after == '?' then
			return "there are no groups that begin with '(?'"
		end
		at = at + 1
	end
end

-- The pattern that matches only this name.
function rules.pattern(name) return (name:gsub('[%.%[%]%(%)%*%+%?%^%$|\\{}]', '\\%0')) .. '$' end

-- The reason why a text is not a valid pattern, or nil.
function rules.no_pattern(pattern)
	if pattern:find('\0', 1, true) then return 'it holds a zero byte' end
	local good, reason = internal.matches(pattern, '')
	return foreign(pattern) or good == nil and reason or nil
end

local function check(rule, i)
	if type(rule) == 'function' then return end
	if type(rule) ~= 'table' or type(rule[1]) ~= 'string' then
		fail('rules: item %d: wanted {pattern, spec} or a function, got %s', i, describe(rule))
	end
	local reason = rules.no_pattern(rule[1])
	if reason then fail("rules: item %d: wanted a POSIX extended regular expression, got '%.60s': %s", i, rule[1], reason) end
	for key in next, rule do
		if key ~= 1 and key ~= 2 then check_field(i, key) end
	end
	if rule.optional ~= nil and type(rule.optional) ~= 'boolean' then
		fail('rules: item %d: optional: wanted true or false, got %s', i, describe(rule.optional))
	end
	if rule.emit ~= nil and type(rule.emit) ~= 'function' then
		fail('rules: item %d: emit: wanted a function(e, node), got %s', i, describe(rule.emit))
	end
	for _, name in ipairs {'mode', 'weight', 'input', 'output'} do
		if rule[2] == false and rule[name] then
			fail('rules: item %d: %s: wanted none beside false, which leaves the layer float, got %s', i, name, describe(rule[name]))
		end
	end
end

-- Whether a spec means plain float32.
function rules.is_float(spec) return spec ~= nil and spec.scheme == nil and spec.dtype == 'float32' end

-- The largest of 1, 1/2, … 1/128 by which the values of a table divide into integers of 8 bits (ql_grid_whole of tensor/grid.h), or nil.
function rules.unit(values)
	local unit = 1.0
	while unit >= 1 / 128 do
		local good = true
		for _, value in ipairs(values) do
			local x = value / unit
			good = good and x >= -128 and x <= 127 and x == math.floor(x)
		end
		if good then return unit end
		unit = unit / 2
	end
end

-- The same of a table as a weight of spec s: at most 64 values, whose codes have 6 bits. Not those of a formula with octaves, which are no grid.
function rules.table_unit(s, values)
	return values and not s.octaves and #values <= 64 and quant.dtype(s.dtype).bits <= 6 and rules.unit(values) or nil
end

-- Whether codes of the spec `input` are multiplied with a matrix of `per` columns of the spec `weight` by blocks of its rows
-- (quant/paths/linear_blocks.c): scales in blocks, minimums, or a table of integers.
function rules.sums_blocks(weight, per, input)
	local w, x = quant.dtype(weight.dtype), input and quant.dtype(input.dtype)
	local whole = rules.table_unit(weight, weight.values)
	if not (weight.block and weight.affine or weight.shift or whole) or w.kind == 'binary' or w.bits > 8 or type(weight.bits) == 'table' then return false end
	if not x or not input.affine or x.bits ~= 8 then return false end
	if (weight.block or per) > 16384 then return false end
	return weight.block and weight.block % 8 == 0 and (weight.axis or 2) == 2 or not weight.block and (weight.axis or 1) == 1
end

-- false means floats.
local function floats(fields)
	for _, key in ipairs {'weight', 'input', 'output'} do
		if fields[key] == false then fields[key] = 'float32' end
	end
	return fields
end

-- Fields that replace the defaults; false: leave float (with the emitter of the rule, if it has one).
local function choice(value, rule, i)
	if value == false then
		if type(rule) ~= 'table' or not rule.emit then return false end
		return {float = true, emit = rule.emit}
	end
	local fields = {}
	if type(value) == 'table' and not getmetatable(value) and (value.mode or value.weight ~= nil or value.input ~= nil or
		value.output ~= nil or value.emit) then
		for key, inner in next, value do
			check_field(i, key)
			fields[key] = inner
		end
	elseif value ~= nil then
		fields.weight = value
	end
	for key in next, FIELDS do
		if type(rule) == 'table' and rule[key] ~= nil then fields[key] = rule[key] end
	end
	return floats(fields)
end

local FORMER = {equalize = "method='equalize'", biascorrect = "method='biascorrect', data=…"}

-- Refuses options that have become methods; call: what has them.
function rules.refuse_former(options, call)
	for name, form in next, type(options) == 'table' and FORMER or {} do
		if options[name] ~= nil then fail('quantize: %s: wanted %s{%s}, got the option of an earlier version', name, call, form) end
	end
end

-- The options of a call, in which weight=, input= and output= may be false; the result is checked by base.options.
function rules.options(options)
	if type(options) ~= 'table' then return options end
	local copy = {}
	for key, value in next, options do copy[key] = value end
	return floats(copy)
end

-- The output= of a rule, else of the defaults `o`: nil if neither has one, false for floats.
function rules.output(chosen, o)
	local output = chosen.output or o.output
	return output and not rules.is_float(quant.spec(output)) and output or output and false
end

-- The mode requested by a rule (or the defaults `o`), given the spec of the weight. A float input spec implies weight_only; if another
-- mode is given as well, returns nil and the error.
function rules.mode(chosen, o, weight)
	local mode = chosen.mode or o.mode
	if mode ~= 'static' and mode ~= 'dynamic' and mode ~= 'auto' then return mode end
	local function named(field) return chosen[field] and chosen.mode or not chosen[field] and mode ~= 'auto' and mode or nil end
	local input = chosen.input or o.input
	input = input and quant.spec(input)
	for field, spec in next, {input = input or nil, weight = weight} do
		if not spec.scheme then
			if named(field) and named(field) ~= 'auto' then
				return nil, ("%s: wanted a spec of codes in mode '%s', got '%s'; mode='weight_only' computes with floats"):format(field,
					named(field), tostring(spec))
			end
			mode = 'weight_only'
		end
	end
	return mode
end

-- Finds unused rules after `i` whose patterns match the name, too; `behind` records for each of them the rules that matched first and
-- the last name.
local function note_behind(list, used, i, name, also, behind)
	for k = i + 1, #list do
		local pattern = not used[k] and type(list[k]) == 'table' and list[k][1]
		if pattern and (internal.matches(pattern, name) or also and internal.matches(pattern, also)) then
			behind[k] = behind[k] or {}
			behind[k].name, behind[k][i] = name, true
		end
	end
end

-- 'item 1', 'items 1, 3'
local function takers(before, last, word)
	local list = {}
	for i = 1, last do list[#list + 1] = before[i] and tostring(i) or nil end
	return word .. (#list > 1 and 's ' or ' ') .. table.concat(list, ', ')
end

-- Rules without effect, for the notes of reports.
local function unused_text(list, used, behind)
	local none, late = {}, {}
	for i, rule in ipairs(list) do
		local name = type(rule) == 'table' and ("'%s'"):format(rule[1]) or 'function'
		if not used[i] and behind[i] then
			late[#late + 1] = ('; rule %d (%s) does nothing: %s before it took all that it matches'):format(i, name, takers(behind[i], i, 'rule'))
		elseif not used[i] then
			none[#none + 1] = ('%d (%s)'):format(i, name)
		end
	end
	return (#none > 0 and '; matched nothing: rule ' .. table.concat(none, ', ') or '') .. table.concat(late)
end

-- Returns an object: find(name, module, also) returns false, or fields (empty: no rule matched), and the index of the rule; unused()
-- describes the rules that matched no name, finish() refuses them. A pattern may match the name or `also`, if given. `given` converts
-- name and module to the arguments of functions (for graphs the node alone).
function rules.reader(list, given)
	given = given or function(name, module) return name, module end
	list = list or {}
	if type(list) ~= 'table' then fail('rules: wanted a list, got %s', describe(list)) end
	for key in next, list do
		if math.type(key) ~= 'integer' then fail('rules: wanted a list of {pattern, spec}, got a field %s', describe(key)) end
	end
	for i = 1, #list do check(list[i], i) end
	local used, behind = {}, {}
	local function taken(i, name, also)
		used[i] = true
		note_behind(list, used, i, name, also, behind)
	end
	return {
		find = function(name, module, also)
			for i, rule in ipairs(list) do
				if type(rule) == 'function' then
					local value = rule(given(name, module))
					used[i] = true
					if value ~= nil then
						taken(i, name, also)
						return choice(value, rule, i), i
					end
				elseif internal.matches(rule[1], name) or also and internal.matches(rule[1], also) then
					taken(i, name, also)
					return choice(rule[2], rule, i), i
				end
			end
			return {}
		end,
		unused = function() return unused_text(list, used, behind) end,
		finish = function(names)
			for i, rule in ipairs(list) do
				local wanted = not used[i] and type(rule) == 'table' and not rule.optional
				if wanted and behind[i] then
					fail("rules: item %d: wanted a pattern that is the first to match a layer, got '%.60s': it matches '%s', but %s before it took all \z
						that it matches; put it in front", i, rule[1], behind[i].name, takers(behind[i], i, 'item'))
				elseif wanted then
					fail("rules: item %d: wanted a pattern that matches a layer, got '%.60s'%s; layers: %s", i, rule[1],
						base.near(rule[1]:gsub('[^%w_]', ''), names), table.concat(names, ' ', 1, math.min(#names, 12)))
				end
			end
		end,
	}
end

return rules
