-- SPDX-License-Identifier: MIT
-- The invariants of graphs, checked where one is built. A violation is a bug in this code or in a user's pass; the error
-- names the node.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local ops = internal.import 'nn/graph/ops'
local core = internal.import 'nn/graph/core'
local check = {}

local function wrong(node, format, ...)
	base.fail("graph: node '%s' (%s): " .. format, node.name, node.op, ...)
end

local function lists(users, name)
	for _, user in ipairs(users) do
		if user == name then return true end
	end
	return false
end

-- Every input exists, precedes the node, and lists the node among its users. at: position of the last user found of each node; users are
-- in order as a rule.
local function check_inputs(g, node, seen, at)
	local nodes = g.nodes
	for i, ref in ipairs(node.inputs) do
		if type(ref) == 'string' then
			local producer, k = ref, 1
			if not nodes[ref] then producer, k = core.split(ref) end
			if not nodes[producer] then wrong(node, "input %d: wanted a node, got '%s'", i, ref) end
			if not seen[producer] then wrong(node, "input %d: wanted a node that runs before, got '%s'", i, ref) end
			if not nodes[producer].results[k] then wrong(node, "input %d: wanted one of %d results, got '%s'", i, #nodes[producer].results, ref) end
			local users, last = g.users[producer], at[producer] or 0
			if users[last + 1] == node.name then
				at[producer] = last + 1
			elseif users[last] ~= node.name and not lists(users, node.name) then
				wrong(node, "input %d: '%s' does not list it as a user", i, producer)
			end
		elseif type(ref) ~= 'number' and not core.size.is_affine(ref) then
			wrong(node, 'input %d: wanted an edge or a number, got %s', i, base.describe(ref))
		end
	end
end

local function takes(g, name, producer)
	for _, ref in ipairs(g.nodes[name] and g.nodes[name].inputs or {}) do
		if ref == producer or type(ref) == 'string' and core.split(ref) == producer then return true end
	end
	return false
end

-- Every listed user has the node as an input; those up to `at` were found.
local function check_users(g, node, at)
	local users = g.users[node.name]
	for i = at + 1, #users do
		if not takes(g, users[i], node.name) then wrong(node, "'%s' is listed as a user but does not use it", users[i]) end
	end
end

local function has(list, at)
	for _, value in ipairs(list or {}) do
		if value == at then return true end
	end
	return false
end

-- Codes are passed only to ops that accept them, and to quantized nodes that require them.
local function check_operands(g, node)
	local form, info = ops.form(node.op, node), nil
	for i, ref in ipairs(node.inputs) do
		local given = type(ref) == 'string' and g:result_of(ref)
		local codes = given and given.spec ~= nil
		if codes and not node.mode and not node.traced and not (form and form.gives == 'same') then
			info = info or ops.info(node.op)
			if not info.native and not info.view then
				wrong(node, "input %d: wanted %s, got codes of %s from '%s'", i, 'floats', given.dtype, ref)
			end
		end
		if node.mode and node.mode ~= 'weight_only' and not codes and form and
			(has(form.inputs, i) or has(form.weights, i)) and given then
			wrong(node, "input %d: wanted codes, got %s from '%s'", i, given.dtype, ref)
		end
	end
end

-- Results are recorded as the inputs give them.
local function check_results(g, node)
	for i, result in ipairs(core.infer(g, node)) do
		local recorded = node.results[i]
		if recorded.dtype ~= result.dtype or (recorded.spec ~= nil) ~= (result.spec ~= nil) then
			wrong(node, 'result %d: recorded as %s%s, its inputs give %s%s', i, recorded.dtype, recorded.spec and ' codes' or '',
				result.dtype, result.spec and ' codes' or '')
		end
	end
end

-- Raises an error if an invariant is violated. keep_dead: nodes that no output needs are allowed; inferred: results were just made from
-- the inputs.
function check.check(g, keep_dead, inferred)
	local seen, needed, at, count = {}, {}, {}, 0
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if not node or node.name ~= name then base.fail("graph: wanted a node '%s' under its name", name) end
		if seen[name] then wrong(node, 'it appears twice in the order') end
		check_inputs(g, node, seen, at)
		seen[name] = true
		check_operands(g, node)
		if not inferred then check_results(g, node) end
		needed[name] = #g.users[name] > 0 or node.op == 'input'
		count = count + 1
	end
	for _, name in ipairs(g.order) do check_users(g, g.nodes[name], at[name] or 0) end
	core.each_output(g, function(leaf)
		local name = core.split(leaf.ref)
		if not seen[name] then base.fail("graph: output: wanted a node, got '%s'", leaf.ref) end
		needed[name] = true
	end)
	for name in next, g.nodes do
		if not seen[name] then base.fail("graph: node '%s' is missing from the order", name) end
		if not needed[name] and not keep_dead then wrong(g.nodes[name], 'an orphan: no node uses it') end
	end
	return count
end

return check
