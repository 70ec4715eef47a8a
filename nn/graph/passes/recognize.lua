-- SPDX-License-Identifier: MIT
-- Pass recognize: functions and norms that files of other programs spell out as several ops become the one op that computes them: silu,
-- gelu in both forms, hardswish, relu6, rmsnorm, layernorm. Values change in the last bits.
local _, internal = ...
local pattern = internal.import 'nn/graph/pattern'
local any, const, number = pattern.any, pattern.const, pattern.number

local SQRT2, TANH = math.sqrt(2), math.sqrt(2 / math.pi)

-- along the last axis, which stays
local function last(node, e)
	local axes, x = node.attrs.axis, type(node.inputs[1]) == 'string' and e:result_of(node.inputs[1])
	axes = type(axes) == 'number' and {axes} or axes
	return x and axes and #axes == 1 and axes[1] == #x.shape and node.attrs.keep == true
end

local function mean(p) return {'mean', p, if_ = last} end
local function halves(a, b) return any {{'mul', {'mul', 'x', a}, b}, {'mul', 'x', {'mul', a, b}}, {'mul', {'mul', 'x', b}, a}} end
local function square(p) return any {{'square', p}, {'mul', p, p}, {'pow', p, 2}} end
local function over(x, p) -- x over the root of p
	return any {{'mul', x, {'rsqrt', p}}, {'mul', x, {'reciprocal', {'sqrt', p}}}, {'div', x, {'sqrt', p}}}
end

local function clamps(low, high)
	return function(node) return node.attrs.low == low and node.attrs.high == high end
end

local erf = {'add', {'erf', any {{'div', 'x', SQRT2}, {'mul', 'x', 1 / SQRT2}}}, 1}
local cubic = {'add', 'x', any {{'mul', 0.044715, any {{'pow', 'x', 3}, {'mul', {'square', 'x'}, 'x'}, {'mul', {'mul', 'x', 'x'}, 'x'}}},
	{'mul', {'mul', {'mul', 0.044715, 'x'}, 'x'}, 'x'}}}
local tanh = {'add', {'tanh', {'mul', TANH, cubic}}, 1}
local centred = {'sub', 'x', mean 'x'}
local normal = over(centred, {'add', mean(square(centred)), number 'eps'})
local root = over('x', {'add', mean(square 'x'), number 'eps'})

-- Vectors of the last axis.
local function fits(e, found, names)
	local shape = e:result_of(found.x).shape
	for _, name in ipairs(names) do
		local value = found[name] and e.nodes[found[name]].value
		if value and (value:dim() ~= 1 or value:size(1) ~= shape[#shape] or value:dtype() ~= e:result_of(found.x).dtype) then return false end
	end
	return found.eps > 0
end

local PATTERNS = {
	{op = 'layernorm', {'add', {'mul', normal, const 'w'}, const 'b'}, operands = {'w', 'b'}},
	{op = 'rmsnorm', {'mul', root, const 'w'}, operands = {'w'}},
	{op = 'silu', {'mul', 'x', {'sigmoid', 'x'}}},
	{op = 'gelu', halves(0.5, erf)},
	{op = 'gelu', halves(0.5, tanh), attrs = function() return {approximate = 'tanh'} end},
	{op = 'hardswish', any {{'div', {'mul', 'x', {'clamp', {'add', 'x', 3}, if_ = clamps(0, 6)}}, 6},
		{'mul', 'x', {'clamp', {'add', {'mul', 'x', 1 / 6}, 0.5}, if_ = clamps(0, 1)}},
		{'mul', 'x', {'div', {'clamp', {'add', 'x', 3}, if_ = clamps(0, 6)}, 6}}}},
	{op = 'relu6', {'clamp', 'x', if_ = clamps(0, 6)}},
}

local function attrs_of(p, found)
	if p.operands then return {eps = found.eps} end
	return p.attrs and p.attrs() or {}
end

local function found_at(e, p, name)
	local found = pattern.match(e, name, p[1])
	return found and type(found.x) == 'string' and (not p.operands or fits(e, found, p.operands)) and found
end

local function replace(e, p, node, found)
	local inputs = {found.x}
	for i, operand in ipairs(p.operands or {}) do inputs[i + 1] = found[operand] end
	e:change(node, {op = p.op, inputs = inputs, attrs = attrs_of(p, found)})
end

-- Names of the nodes by op, in order.
local function by_op(e)
	local lists = {}
	for _, name in ipairs(e.order) do
		local op = e.nodes[name].op
		local list = lists[op]
		if not list then
			list = {}
			lists[op] = list
		end
		list[#list + 1] = name
	end
	return lists
end

-- Larger patterns come first: a part of one may be another.
return {group = 'layers', text = 'functions and norms that are spelled out become one op', run = function(e, say)
	local lists = by_op(e)
	for _, p in ipairs(PATTERNS) do
		for _, op in ipairs(pattern.possible(p[1], lists) and pattern.roots(p[1]) or {}) do
			for _, name in ipairs(lists[op] or {}) do
				local node = e.nodes[name]
				local found = node.op == op and #node.results == 1 and not node.mode and found_at(e, p, name)
				if found then
					say(name, ('%s and what it uses become %s'):format(node.op, p.op))
					replace(e, p, node, found)
				end
			end
		end
	end
end}
