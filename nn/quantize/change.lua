-- SPDX-License-Identifier: MIT
-- Methods that change the whole model (phase 'model') before its weights are decided. They are taken back if, with data, the rounded model
-- is worse with than without them.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local Block = internal.import 'nn/quantize/block'
local like = internal.import 'quant/like'
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

-- Asks the methods whether they can do the model, before any data is read.
function change.check(m, plan, names)
	for _, link in ipairs(change.links(plan, names)) do
		local why = link.method.refuses_model and link.method.refuses_model(m, link.options)
		if why then base.fail("quantize: method '%s': %s", link.name, why) end
	end
end

local function forward(m, inputs)
	local list = {}
	for i, x in ipairs(inputs) do list[i] = (m(x)) end
	return list
end

-- Hooks by which layers of m give their inputs to each(layer, x), which may return others.
local function hook(layers, each)
	local hooks = {}
	for layer in next, layers do
		table.move({layer, module.HOOK, function(self, x, ...)
			x = module.real(x)
			return module.run(self, each(self, x) or x, ...)
		end}, 1, 3, #hooks + 1, hooks)
	end
	return internal.fields(hooks)
end

-- layer -> spec by which it rounds its input; static ones get the scale of all batches.
local function input_specs(m, layers, inputs)
	local specs, observers = {}, {}
	for layer, item in next, layers do
		specs[layer] = quant.spec(item.input)
		if item.mode == 'static' and not specs[layer].scale then observers[layer] = quant.observer(specs[layer]) end
	end
	if next(observers) then
		local _ <close> = hook(observers, function(layer, x) observers[layer]:update(x) end)
		forward(m, inputs)
	end
	for layer, o in next, observers do
		local p = o:params()
		specs[layer] = like.spec(o.spec, {scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item()})
	end
	return specs
end

-- The squared error of the model with rounded weights and, if so asked, inputs.
local function noise(m, plan, inputs, floats, rounds)
	local copy, layers = m:clone(), {}
	module.walk(copy, function(name, layer)
		for _, item in ipairs(plan[name] or {}) do
			if rounds and item.input and item.mode ~= 'weight_only' then layers[layer] = item end
		end
	end)
	local specs = input_specs(copy, layers, inputs)
	module.walk(copy, function(name, layer)
		for _, item in ipairs(plan[name] or {}) do
			local t = targets.new(name, item, {layer}, item.field)
			t:put(t.float:quantize(t.first_spec))
		end
	end)
	local _ <close> = hook(layers, function(layer, x) return x:quantize(specs[layer]):dequantize() end)
	return Block.between(floats, forward(copy, inputs))
end

-- Takes parameters away that a module had not before.
local function forget_others(m, had)
	module.walk(m, function(_, inner)
		for _, field in ipairs(table.move(module.tensors(inner), 1, #module.tensors(inner), 1, {})) do
			if not had[inner][field] then
				module.forget(inner, field)
				rawset(inner, field, false)
			end
		end
	end)
end

-- The tensors of a model as they are: a list of {module, field, copy}, and the names of each module's.
local function kept(m)
	local list, copies, had = {}, {}, {}
	module.walk(m, function(_, inner)
		had[inner] = {}
		for _, field in ipairs(module.tensors(inner)) do
			had[inner][field] = true
			local value = rawget(inner, field)
			if value and not value:quantized() then
				copies[value] = copies[value] or value:detach():clone()
				list[#list + 1] = {inner, field, copies[value]}
			end
		end
	end)
	return list, had
end

local function say(plan, why)
	for _, list in next, plan do
		for _, item in ipairs(list) do item.row.why = (item.row.why and item.row.why .. '; ' or '') .. why end
	end
end

local function apply(m, plan, names)
	for _, link in ipairs(change.links(plan, names)) do
		local why = link.method.run(m, link.options, plan)
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
	local floats, rounds = forward(m, inputs), false
	for _, link in ipairs(change.links(plan, names)) do rounds = rounds or link.method.rounds_inputs end
	local before, had = kept(m)
	local rounded = noise(m, plan, inputs, floats, rounds)
	apply(m, plan, names)
	if noise(m, plan, inputs, floats, rounds) <= rounded then return true end
	for _, entry in ipairs(before) do module.set_tensor(table.unpack(entry, 1, 3)) end
	module.walk(m, function(_, inner)
		if module.class_of(inner).resized then inner:resized() end
	end)
	forget_others(m, had)
	say(plan, 'methods of the whole model made it worse: left out')
	return false
end

return change
