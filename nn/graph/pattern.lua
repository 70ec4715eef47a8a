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

local function match_operands(e, node, p, found, first, second)
	local saved = {}
	for key, value in next, found do saved[key] = value end
	for i = 2, #p do
		local ref = node.inputs[i == 2 and first or i == 3 and second or i - 1]
		if not match(e, ref, p[i], found) then
			for key in next, found do found[key] = saved[key] end
			return false
		end
	end
	return true
end

local function match_node(e, ref, p, found)
	local node = type(ref) == 'string' and not ref:find(':', 1, true) and e.nodes[ref]
	if not node or node.op ~= p[1] or #node.inputs ~= #p - 1 or node.mode or node.attrs.out or node.attrs.act then return false end
	if p.if_ and not p.if_(node, e) then return false end
	return match_operands(e, node, p, found, 1, 2) or COMMUTES[p[1]] and match_operands(e, node, p, found, 2, 1)
end

local function bind(found, name, value)
	if found[name] ~= nil then return found[name] == value end
	found[name] = value
	return true
end

-- luacheck: ignore 431
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
	for _, one in ipairs(p.any or {}) do
		if match(e, ref, one, found) then return true end
	end
	return not p.any and match_node(e, ref, p, found)
end

-- What the names of the pattern stand for; nil if the value is another one.
function pattern.match(e, ref, p)
	local found = {}
	return match(e, ref, p, found) and found or nil
end

return pattern
