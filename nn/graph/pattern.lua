-- SPDX-License-Identifier: MIT
-- Trees of nodes that compute something known, for passes. A pattern is
--   'x'                   any value; the same one wherever the name stands again
--   0.5                   this number, also as a constant, within 1e-4 of it
--   {'add', p, q}         a node of that op with these operands; of add and mul in any order
--   {'mul', p, q, if_ = function(node) … end}   and whose node is accepted
--   pattern.any {p, q, …}     one of several
--   pattern.const 'w'     a constant; pattern.number 'eps' a single number
-- match(e, ref, p) gives what the names stand for: an edge, or a number.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local pattern = {}

local COMMUTES = {add = true, mul = true}

function pattern.any(list) return {any = list} end
function pattern.const(name) return {const = name} end
function pattern.number(name) return {number = name} end

-- The number of an operand; nil if it is none.
local function number_of(e, ref)
	if type(ref) == 'number' then return ref end
	local node = type(ref) == 'string' and e.nodes[ref]
	local value = node and node.op == 'const' and node.value
	if value and not value:quantized() and value:nelem() == 1 then return value:reshape {}:to 'float64':item() end
end
pattern.number_of = number_of

local match

-- What was bound since the n-th name is free again; found[1 ..] are the names in order.
local function free(found, n)
	for i = #found, n + 1, -1 do
		found[found[i]], found[i] = nil, nil
	end
end

local function match_operands(e, node, p, found, first, second)
	local bound = #found
	for i = 2, #p do
		local ref = node.inputs[i == 2 and first or i == 3 and second or i - 1]
		if not match(e, ref, p[i], found) then
			free(found, bound)
			return false
		end
	end
	return true
end

local function match_node(e, ref, p, found)
	local node = e.nodes[ref] -- further results ('split1:2') are no part of a pattern
	if not node or node.op ~= p[1] or #node.inputs ~= #p - 1 or node.mode or node.attrs.out or node.attrs.act then return false end
	if p.if_ and not p.if_(node, e) then return false end
	return match_operands(e, node, p, found, 1, 2) or COMMUTES[p[1]] and match_operands(e, node, p, found, 2, 1)
end

local function bind(found, name, value)
	if found[name] ~= nil then return found[name] == value end
	found[name], found[#found + 1] = value, name
	return true
end

function match(e, ref, p, found)
	if type(p) == 'string' then return ref ~= nil and bind(found, p, ref) end
	if type(p) == 'number' then
		local n = number_of(e, ref)
		return n ~= nil and math.abs(n - p) <= 1e-4 * math.abs(p)
	end
	if p.number then
		local n = number_of(e, ref)
		return n ~= nil and bind(found, p.number, n)
	end
	if p.const then
		local node = type(ref) == 'string' and e.nodes[core.split(ref)]
		return node and node.op == 'const' and not node.value:quantized() and bind(found, p.const, ref)
	end
	if not p.any then return match_node(e, ref, p, found) end
	for _, one in ipairs(p.any) do
		if match(e, ref, one, found) then return true end
	end
	return false
end

-- What the names of the pattern stand for; nil if the value is another one.
function pattern.match(e, ref, p)
	local found = {}
	return match(e, ref, p, found) and found or nil
end

-- Whether all ops of the pattern are among those present: {add=true, …}.
function pattern.possible(p, present)
	if type(p) ~= 'table' or p.const or p.number then return true end
	for _, one in ipairs(p.any or {}) do
		if pattern.possible(one, present) then return true end
	end
	if p.any or not present[p[1]] then return false end
	for i = 2, #p do
		if not pattern.possible(p[i], present) then return false end
	end
	return true
end

-- The ops that the outermost node of a match may be: a list.
function pattern.roots(p, into)
	into = into or {}
	for _, one in ipairs(p.any or {}) do pattern.roots(one, into) end
	if not p.any and not into[p[1]] then
		into[#into + 1], into[p[1]] = p[1], true
	end
	return into
end

return pattern
