-- SPDX-License-Identifier: MIT
-- Decides which products of a program (nn/graph/run.lua) read a constant's codes and decode them in parts that stay in the caches
-- (quant/paths/coded.c). The nodes that decode the whole constant before, dequantize and a view of its result, are then not run: no
-- memory holds the decoded weights, and the values are the same. Exported C does the same (nn/export/decode.lua).
local _, internal = ...
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local in_parts = {}

-- The constant that a dequantize decodes, if products on this device take it in parts.
local function constant_of(g, node)
	local from = node.op == 'dequantize' and not next(node.attrs) and g.nodes[core.split(node.inputs[1])]
	local x = from and from.op == 'const' and from.value
	return x and x:quantized() and x:device() == 'cpu' and not x:spec().functions and from.name or nil
end

-- place -> {name= of a constant, shape= that it was given, steps= that compute it}, for values that are such constants decoded.
local function decoded_places(g, steps)
	local found = {}
	for _, step in ipairs(steps) do
		local node = step.node
		local name, from = constant_of(g, node), found[step[1]]
		if name then
			found[step.results[1]] = {name = name, steps = {step}}
		elseif node.op == 'view' and from and not from.shape and #g:result_of(from.name).shape == 2 then
			found[step.results[1]] = {name = from.name, shape = node.results[1].shape, steps = {from.steps[1], step}}
		end
	end
	return found
end

local function is_float(result)
	local d = result and not result.spec and quant.dtype(result.dtype)
	return d and d.float and d.bits <= 32
end

-- Whether operand `at` of the node, a value of some axes, may be codes beside floats; `flat`: a matrix of codes that was given those axes.
local function takes(g, node, at, flat)
	local form, first = ops.form(node.op, node), type(node.inputs[1]) == 'string' and g:result_of(node.inputs[1])
	return form and form.in_parts and form.in_parts(at, #g:result_of(node.inputs[at]).shape) and is_float(first) and (not flat or form.takes_flat)
end

-- Calls each(step, at, place) for the operands that are values, the last step first: users come before what they use.
local function each_operand(steps, each)
	for i = #steps, 1, -1 do
		for at, place in ipairs(steps[i]) do
			if type(place) == 'number' then each(steps[i], at, place) end
		end
	end
end

-- Forgets places that something else reads: other ops, or the outputs of the graph.
local function keep_needed(g, steps, places, found)
	core.each_output(g, function(leaf) found[places[leaf.ref]] = nil end)
	each_operand(steps, function(step, at, place)
		local from, view = found[place], found[step.results[1]]
		if from and not view and not takes(g, step.node, at, from.shape ~= nil) then found[place] = nil end
	end)
	for place, from in next, found do -- a view of what is decoded all the same
		if from.shape and not found[from.steps[1].results[1]] then found[place] = nil end
	end
end

local function give_codes(step, at, place, shape)
	step[at] = place
	if not shape then return end
	local list, o = {n = step.arguments.n}, {k = {shape[3], shape[4]}}
	for key, value in next, step.arguments[list.n] or {} do o[key] = value end
	list.n = math.max(list.n, 1)
	list[list.n] = o
	step.arguments = list
end

-- The steps without those that decode a constant only for products; these have its codes as operands. places: ref -> place.
function in_parts.join(g, steps, places)
	local found, gone, left = decoded_places(g, steps), {}, {}
	keep_needed(g, steps, places, found)
	for _, from in next, found do
		for _, step in ipairs(from.steps) do gone[step] = true end
	end
	each_operand(steps, function(step, at, place)
		local from = found[place]
		if from and not gone[step] then give_codes(step, at, places[from.name], from.shape) end
	end)
	for _, step in ipairs(steps) do
		if not gone[step] then left[#left + 1] = step end
	end
	return left
end

return in_parts
