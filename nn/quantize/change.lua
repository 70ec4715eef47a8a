-- SPDX-License-Identifier: MIT
-- Methods that change the whole model (phase 'model') before its weights are decided. They are taken back if, with data, the rounded model
-- is worse with than without them.
local _, internal = ...
local Block = internal.import 'nn/quantize/block'
local method = internal.import 'nn/quantize/method'
local module = internal.import 'nn/base/module'
local targets = internal.import 'nn/quantize/targets'
local change = {}

-- The links of phase 'model' in the plan's chains, each once.
function change.links(plan, names)
	local list, seen = {}, {}
	for _, name in ipairs(names) do
		for _, item in ipairs(plan[name] or {}) do
			for _, link in ipairs(method.of_phase(item.chain, 'model')) do
				if not seen[link] then list[#list + 1], seen[link] = link, true end
			end
		end
	end
	return list
end

local function forward(m, inputs)
	local list = {}
	for i, x in ipairs(inputs) do list[i] = (m(x)) end
	return list
end

-- The squared error of the model with rounded weights.
local function noise(m, plan, inputs, floats)
	local copy = m:clone()
	module.walk(copy, function(name, layer)
		for _, item in ipairs(plan[name] or {}) do
			local t = targets.new(name, item, {layer}, item.field)
			t:put(t.float:quantize(t.first_spec))
		end
	end)
	return Block.between(floats, forward(copy, inputs))
end

-- The tensors of a model as they are: a list of {module, field, copy}.
local function kept(m)
	local list, copies = {}, {}
	module.walk(m, function(_, inner)
		for _, field in ipairs(module.tensors(inner)) do
			local value = rawget(inner, field)
			if value and not value:quantized() then
				copies[value] = copies[value] or value:detach():clone()
				list[#list + 1] = {inner, field, copies[value]}
			end
		end
	end)
	return list
end

local function say(plan, why)
	for _, list in next, plan do
		for _, item in ipairs(list) do item.row.why = (item.row.why and item.row.why .. '; ' or '') .. why end
	end
end

local function apply(m, plan, names)
	for _, link in ipairs(change.links(plan, names)) do
		local why = link.method.run(m, link.options)
		if why then say(plan, why) end
	end
end

-- Runs the methods of phase 'model' of the plan, judged by the batches of inputs (nil: not judged). Returns whether the model has changed.
function change.run(m, plan, names, inputs)
	if #change.links(plan, names) == 0 then return false end
	if not inputs then
		apply(m, plan, names)
		return true
	end
	local floats, before = forward(m, inputs), kept(m)
	local rounded = noise(m, plan, inputs, floats)
	apply(m, plan, names)
	if noise(m, plan, inputs, floats) <= rounded then return true end
	for _, entry in ipairs(before) do module.set_tensor(table.unpack(entry, 1, 3)) end
	say(plan, 'methods of the whole model made it worse: left out')
	return false
end

return change
