-- SPDX-License-Identifier: MIT
-- Codes of single weights that methods choose, for quant.search and quant.sensitivity: all choices of all layers of one pass of the
-- calibration data through the float model, whose statistics they share. Each layer's inputs are those of the float model, so what a
-- choice gives does not depend on the choices of other layers.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail = base.fail
local given = {}

local ALONE = {ranges = true, codes = true} -- phases that decide about one weight

-- A choice {spec, method=}: {weight=, method=, chain=, text=}; nil: it is a spec. what: of messages.
function given.choice(what, value)
	if type(value) ~= 'table' or getmetatable(value) or value.method == nil then return nil end
	for key in next, value do
		if key ~= 1 and key ~= 'method' then fail("%s: wanted {spec, method=}, got the field '%s'", what, base.word(key)) end
	end
	if value[1] == nil then fail('%s: wanted {spec, method=}, got no spec', what) end
	return given.of(what, value[1], value.method)
end

-- The same of a spec and a method.
function given.of(what, spec, asked)
	local layers, method = internal.import 'nn/quantize/layers', internal.import 'nn/quantize/method'
	local chain = method.chain(asked)
	for _, link in ipairs(chain) do
		if not ALONE[link.method.phase] then
			fail("%s: method: wanted methods that decide about one weight, got '%s', which changes others with it; m:quantize and quant.methods take it", what, link.name)
		end
	end
	local s = layers.check_spec(what, spec)
	return {weight = s, method = asked, chain = chain, text = tostring(s) .. ' ' .. method.label(chain)}
end

-- The calibration data of the options: calibration=, else data=.
function given.data(o) return o.calibration == nil and o.data or o.calibration end

-- name -> choice -> what stands for its method in rules (nn/quantize/learned.lua). float: the model with all layers float; choices: a list, in which
-- false and specs are passed over.
function given.learn(float, names, choices, o)
	local layers, learned, module = internal.import 'nn/quantize/layers', internal.import 'nn/quantize/learned', internal.import 'nn/base/module'
	local along = internal.import 'nn/quantize/quantize'.along_outputs
	local by_name, plan, any = layers.by_name(float), {}, false
	for _, name in ipairs(names) do
		plan[name] = {}
		for _, choice in ipairs(choices) do
			for _, field in ipairs(type(choice) == 'table' and choice.chain and module.weights(by_name[name]) or {}) do
				table.insert(plan[name], {name = name, layer = by_name[name], field = field, spec = along(by_name[name], choice.weight), chain = choice.chain,
					row = {}, choice = choice})
				any = true
			end
		end
	end
	local found = {}
	if any then internal.import('nn/quantize/learn').run(float, plan, names, {data = given.data(o), batches = o.calibration == nil and o.batches or math.huge, sequential = false, log = false}) end
	for name, list in next, plan do
		found[name] = {}
		for _, item in ipairs(list) do
			found[name][item.choice] = found[name][item.choice] or {}
			found[name][item.choice][item.field] = item.codes
		end
		for choice, codes in next, found[name] do found[name][choice] = learned.given(codes, choice.text) end
	end
	return found
end

-- What layers.quantized takes for a choice of a layer.
function given.pick(found, name, choice)
	if type(choice) ~= 'table' or not choice.chain then return choice end
	return {weight = choice.weight, given = found[name][choice]}
end

-- The same as a rule for m:quantize, which learns the codes again with its data=.
function given.rule(pattern, choice)
	if type(choice) ~= 'table' or not choice.chain then return {pattern, choice} end
	return {pattern, weight = choice.weight, method = choice.method}
end

return given
