-- SPDX-License-Identifier: MIT
-- Joins along an axis.
local _, internal = ...
local qlinear = internal.import 'nn/onnx/qlinear'
local ops = {}

local function inputs_of(n)
	local inputs, dtype = {}, n:typed()
	for i = 1, n.count do inputs[i] = n:input(i, dtype) end
	return inputs
end

function ops.cat(n)
	local axis = n:axis(n:attr('axis', 1), n:rank(1))
	return qlinear.concat(n, axis) or n:emit('Concat', inputs_of(n), {axis = axis})
end

function ops.stack(n)
	local axis = n:axis(n:attr('axis', 1), n:rank(1) + 1)
	local inputs = inputs_of(n)
	for i, x in ipairs(inputs) do inputs[i] = n:unsqueeze(x, {axis}) end
	return n:emit('Concat', inputs, {axis = axis})
end

return ops
