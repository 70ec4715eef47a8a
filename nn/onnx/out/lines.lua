-- SPDX-License-Identifier: MIT
-- Softmax and normalization.
local _, internal = ...
local qlinear = internal.import 'nn/onnx/qlinear'
local linear = internal.import 'nn/onnx/out/linear'
local ops = {}

local function soft(op)
	return function(n)
		local axis, dtype = n:axis(n:attr('axis', -1), n:rank(1)), linear.precision(n)
		local made = op == 'Softmax' and qlinear.unary(n, 'QLinearSoftmax', {axis = axis, opset = 13})
		return made or n:cast(n:emit(op, {n:input(1, dtype)}, {axis = axis}), dtype, n:typed())
	end
end
ops.softmax, ops.logsoftmax = soft 'Softmax', soft 'LogSoftmax'

local function mean(n, x, axis) return n:reduce('ReduceMean', x, {axis}, true, 18) end

-- x over the root of the mean of its squares.
local function over_root(n, x, d, axis, eps, dtype)
	local root = n:emit('Sqrt', {n:emit('Add', {mean(n, n:emit('Mul', {d, d}), axis), n:number(eps, dtype)})})
	return n:emit('Div', {x, root})
end

local function with(n, y, dtype)
	if n.count > 1 then y = n:emit('Mul', {y, n:input(2, dtype)}) end
	if n.count > 2 then y = n:emit('Add', {y, n:input(3, dtype)}) end
	return n:cast(y, dtype, n:typed())
end

local function ones(n, dtype)
	local rank = n:rank(1)
	return n.count > 1 and n:input(2, dtype) or n.w:initializer(n.name .. '.weight', tensor.ones {dtype = dtype, n.shapes[1][rank]})
end

function ops.layernorm(n)
	local eps, dtype, axis = n:attr('eps', 1e-5) + 0.0, linear.precision(n), n:rank(1) - 1
	local x = n:input(1, dtype)
	if n.opset >= 17 then
		local inputs = {x, ones(n, dtype), n.count > 2 and n:input(3, dtype) or nil}
		return n:cast(n:emit('LayerNormalization', inputs, {axis = -1, epsilon = eps}), dtype, n:typed())
	end
	local d = n:emit('Sub', {x, mean(n, x, axis)})
	return with(n, over_root(n, d, d, axis, eps, dtype), dtype)
end

function ops.rmsnorm(n)
	local eps, dtype, axis = n:attr('eps', 1e-5) + 0.0, linear.precision(n), n:rank(1) - 1
	local x = n:input(1, dtype)
	if n.opset >= 23 then
		return n:cast(n:emit('RMSNormalization', {x, ones(n, dtype)}, {axis = -1, epsilon = eps}), dtype, n:typed())
	end
	return with(n, over_root(n, x, x, axis, eps, dtype), dtype)
end

function ops.batchnorm(n)
	if n:attr('training', false) then n:refuse 'training=true' end
	n:attr 'momentum'
	local inputs, dtype = {}, n:typed()
	for i = 1, 5 do inputs[i] = n:input(i, dtype) end
	return n:emit('BatchNormalization', inputs, {epsilon = n:attr('eps', 1e-5) + 0.0})
end

return ops
