-- SPDX-License-Identifier: MIT
-- A Transformer of given shapes with random weights, for measurements: a Llama unless they say otherwise. Quantized layers are made one by
-- one, so that the model is never there in floats. o: weight= (a spec; nil: float32), mode=, input= of m:quantize.
local _, internal = ...
local initial = internal.import 'nn/base/initial'
local module = internal.import 'nn/base/module'

local LLAMA = {norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}

local function layer_of(inner, o)
	local class, made = module.class_of(inner).name, nil
	if class == 'Linear' then made = nn.Linear(inner.weight:size(2), inner.weight:size(1), {bias = inner.bias and true or false}) end
	if class == 'Embedding' then made = nn.Embedding(inner.weight:size()) end
	if not made then return nil end
	made.weight:detach():mul_(0.1 / made.weight:detach():narrow(1, 1, 1):abs():max():item())
	return nn.Sequential {made}:eval():quantize {mode = o.mode or 'dynamic', weight = o.weight, input = o.input}[1]
end

return function(shape, o, context)
	local options = {}
	for key, value in pairs(LLAMA) do options[key] = value end
	for key, value in pairs(shape) do options[key] = value end
	options.context = math.max(options.context or 0, context)
	if not o.weight then return nn.Transformer(options):eval() end
	options.tie = false
	local m = initial.unset(nn.Transformer, options):eval()
	module.walk(m, function(_, outer)
		for _, child in ipairs(module.children(outer)) do
			local made = layer_of(child.module, o)
			if made then module.replace(outer, child.name, made) end
		end
	end)
	module.each_tensor(m, function(_, x)
		if not x:quantized() then x:detach():fill_(1) end -- of norms and biases
	end)
	module.mark_codes(m)
	return m
end
