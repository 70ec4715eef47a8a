-- SPDX-License-Identifier: MIT
-- method= of m:quantize: names of nn/quantize/methods with their options, and chains of them.
--
-- A method is a file of nn/quantize/methods that returns {phase=, needs=, text=, options=, refuses=, run=}:
--   phase    model block ranges codes biases: what it decides, in the order in which methods follow each other
--   needs    nothing moments inputs gradients: what of the data it reads
--   refuses  function(target, options) -> why it cannot do this weight, or nil; asked before any data is read
--   run      function(target or block, options, context); see nn/quantize/learn.lua
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local method = {}

local PHASES = {'model', 'block', 'ranges', 'codes', 'biases'}
local RANK = {}
for i, phase in ipairs(PHASES) do RANK[phase] = i end

-- Names in the order of methods.def.
method.names = {}
for i, file in ipairs(internal.registry 'nn/quantize/methods') do method.names[i] = file:match '[^/]+$' end

-- The descriptor of a method; nil: there is none of that name.
function method.find(name)
	for _, known in ipairs(method.names) do
		if known == name then return internal.import('nn/quantize/methods/' .. name) end
	end
end

local function find(name, at)
	return method.find(name) or fail('quantize: method%s: wanted one of %s, got %s%s', at, table.concat(method.names, ' '), describe(name), base.near(name, method.names))
end

-- One link of a chain: {name=, method=, options=}.
local function link(value, at)
	local name, given = value, {}
	if type(value) == 'table' then
		name = value[1]
		for key, inner in next, value do
			if key ~= 1 then given[key] = inner end
		end
	end
	if type(name) ~= 'string' then fail("quantize: method%s: wanted a name or {name, option=}, got %s", at, describe(value)) end
	local m = find(name, at)
	return {name = name, method = m, options = base.options({name = 'quantize: method ' .. name, options = m.options or {}}, given)}
end

local function check_order(chain)
	for i = 2, #chain do
		local a, b = chain[i - 1], chain[i]
		local before, after = RANK[a.method.phase], RANK[b.method.phase]
		if before > after then
			fail("quantize: method: wanted '%s' before '%s', which decides %s, got them in the other order", b.name, a.name, a.method.phase)
		end
		if before == after and a.method.phase == 'codes' then
			fail("quantize: method: wanted one method that decides codes, got '%s' and '%s'", a.name, b.name)
		end
	end
end

-- The chain that method= asks for: a list of links, of which one decides codes (rtn, if none does).
function method.chain(value)
	local list = type(value) == 'string' and {value} or value
	if type(list) ~= 'table' then fail("quantize: method: wanted a name, {name, option=} or a list of them, got %s", describe(value)) end
	local chain, codes = {}, false
	if type(list[1]) == 'string' and type(list[2]) ~= 'string' and type(list[2]) ~= 'table' then list = {list} end -- {name, option=}
	for i, one in ipairs(list) do
		chain[i] = link(one, #list > 1 and (' %d'):format(i) or '')
		codes = codes or chain[i].method.phase == 'codes'
	end
	if #chain == 0 then fail 'quantize: method: wanted at least one name, got none' end
	check_order(chain)
	if not codes then
		local at = #chain + 1
		while at > 1 and RANK[chain[at - 1].method.phase] > RANK.codes do at = at - 1 end
		table.insert(chain, at, link 'rtn')
	end
	return chain
end

-- The links of a phase.
function method.of_phase(chain, phase)
	local list = {}
	for _, one in ipairs(chain) do
		if one.method.phase == phase then list[#list + 1] = one end
	end
	return list
end

-- Whether any link needs data.
function method.needs_data(chain)
	for _, one in ipairs(chain) do
		if one.method.needs ~= 'nothing' then return true end
	end
	return false
end

-- As a column of a report shows it.
function method.text(chain)
	local names = {}
	for i, one in ipairs(chain) do names[i] = one.name end
	return table.concat(names, ' ')
end

-- The same with the options that were given, for rows that are told apart by it.
function method.label(chain)
	local parts = {}
	for i, one in ipairs(chain) do
		local names, words = {}, {one.name}
		for name in next, one.options do names[#names + 1] = name end
		table.sort(names)
		for _, name in ipairs(names) do words[#words + 1] = one.options[name] == true and name or name .. '=' .. tostring(one.options[name]) end
		parts[i] = table.concat(words, ' ')
	end
	return table.concat(parts, ', ')
end

return method
