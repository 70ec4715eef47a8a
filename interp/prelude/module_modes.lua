-- SPDX-License-Identifier: MIT
-- How a quantized layer runs in each mode. q is the layer's field `quantized`:
--   mode, weight, input, output   specs (input and output nil: float); static ones carry scale and zero_point
-- A layer's class gives weights, a list of its fields that are quantized, and compute(m, x, weight, out).
local _, internal = ...
local module = internal.import 'module'
local modes = module.modes

-- Codes that arrive are taken as they are: their own scale is at least as good as the calibrated one.
local function codes(x, spec)
	if not spec or x:quantized() then return x end
	return x:quantize(spec)
end

-- Integer weights, float arithmetic: they are decoded at each call. An embedding decodes the rows that it needs.
function modes.weight_only(m, q, x)
	local class = module.class_of(m)
	if class.no_input then return class.compute(m, x, m.weight) end
	local weight = m.weight:dequantize()
	return class.compute(m, module.real(x), q.shape and weight:view(table.unpack(q.shape)) or weight)
end

function modes.dynamic(m, q, x)
	return module.class_of(m).compute(m, codes(x, q.input), m.weight)
end

function modes.static(m, q, x)
	return module.class_of(m).compute(m, codes(x, q.input), m.weight, q.output)
end

-- Integers forward, the gradient as if nothing had been rounded: the tape keeps the codes, and decodes them for dX and dW.
function modes.train(m, q, x)
	return module.class_of(m).compute(m, codes(x, q.input), m.weight:quantize(q.weight))
end

return modes
