-- SPDX-License-Identifier: MIT
-- Ops that a graph has as several nodes, so that passes, forms and exported C need only one shape of them. Each function gives the steps
-- of a call as a list of {op, operands, attrs, results}, the last of which has the results of the call, or each one of them, or nil.
local _, internal = ...
local expand = {}

local ELLIPSIS = '%.%.%.'

-- The subscripts of the operands and of the result.
local function subscripts(equation)
	equation = equation:gsub('%s', '')
	local left, out = equation:match '^(.-)%->(.*)$'
	left = left or equation
	local terms, count, once = {}, {}, {}
	for term in (left .. ','):gmatch '(.-),' do terms[#terms + 1] = term end
	if out then return terms, out end
	for letter in left:gmatch '%a' do count[letter] = (count[letter] or 0) + 1 end
	for letter, n in next, count do
		if n == 1 then once[#once + 1] = letter end
	end
	table.sort(once)
	return terms, (left:find(ELLIPSIS) and '...' or '') .. table.concat(once)
end

-- The subscripts of the product of two terms: what later terms or the result use (tensor/ops/einsum.c).
local function joined(a, b, later)
	local done, term = {}, {(a .. b):find(ELLIPSIS) and '...' or nil}
	for letter in (a .. b):gmatch '%a' do
		if later:find(letter, 1, true) and not done[letter] then term[#term + 1] = letter end
		done[letter] = true
	end
	return table.concat(term)
end

-- Products of more than two operands, from left to right.
function expand.einsum(operands, attrs, results)
	if #operands < 3 then return end
	local terms, out = subscripts(attrs.equation)
	local term, product, steps = terms[1], operands[1], {}
	for i = 2, #operands do
		local last = i == #operands
		local result = last and out or joined(term, terms[i], table.concat(terms, ',', i + 1) .. out)
		local step = {op = 'einsum', operands = {product, operands[i]}, attrs = {equation = ('%s,%s->%s'):format(term, terms[i], result)}}
		step.results = last and results or {internal.op 'einsum'(step.attrs.equation, product, operands[i])}
		steps[#steps + 1], term, product = step, result, step.results[1]
	end
	return steps
end

-- Pieces along an axis as views of their own, of which each may keep codes.
function expand.split(operands, attrs, results)
	local x, steps, start = operands[1], {}, 1
	local axis = attrs.axis or 1
	axis = axis < 0 and x:dim() + 1 + axis or axis
	for i, part in ipairs(results) do
		steps[i] = {op = 'narrow', operands = {x}, attrs = {axis = axis, start = start, length = part:size(axis)}, results = {part}}
		start = start + part:size(axis)
	end
	return steps
end

return expand
