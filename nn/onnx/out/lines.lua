-- SPDX-License-Identifier: MIT
-- Softmax and normalization.
local _, internal = ...
local qlinear = internal.import 'nn/onnx/qlinear'
local linear = internal.import 'nn/onnx/out/linear'
local size = internal.import 'nn/graph/size'
local ops = {}

local function soft(op)
	return function(n)
		local axis, dtype = n:axis(n:attr('axis', -1), n:rank(1)), linear.precision(n)
		local made = op == 'Softmax' and qlinear.unary(n, 'QLinearSoftmax', {axis = axis, opset = 13})
		return made or n:cast(n:emit(op, {n:input(1, dtype)}, {axis = axis}), dtype, n:typed())
	end
end
ops.softmax, ops.logsoftmax = soft 'Softmax', soft 'LogSoftmax'

local function mean(n, x, axes) return n:reduce('ReduceMean', x, axes, true, 18) end

-- The last axes, of which a row is, from 0.
local function last_axes(n)
	local list, rank = {}, n:rank(1)
	for i = rank - n:attr('axes', 1), rank - 1 do list[#list + 1] = i end
	return list
end

-- x over the root of the mean of its squares.
local function over_root(n, x, d, axes, eps, dtype)
	local root = n:emit('Sqrt', {n:emit('Add', {mean(n, n:emit('Mul', {d, d}), axes), n:number(eps, dtype)})})
	return n:emit('Div', {x, root})
end

local function with(n, y, dtype)
	if n.count > 1 then y = n:emit('Mul', {y, n:input(2, dtype)}) end
	if n.count > 2 then y = n:emit('Add', {y, n:input(3, dtype)}) end
	return n:cast(y, dtype, n:typed())
end

local function constant(n, name, value, dtype, sizes)
	sizes.value, sizes.dtype = value, dtype
	return n.w:initializer(n.name .. name, tensor.full(sizes))
end

local function ones(n, axes, dtype)
	local sizes = {}
	for i, axis in ipairs(axes) do sizes[i] = n.shapes[1][axis + 1] end
	return n.count > 1 and n:input(2, dtype) or constant(n, '.weight', 1, dtype, sizes)
end

function ops.layernorm(n)
	local eps, dtype, axes = n:attr('eps', 1e-5) + 0.0, linear.precision(n), last_axes(n)
	local x = n:input(1, dtype)
	if n.opset >= 17 then
		local inputs = {x, ones(n, axes, dtype), n.count > 2 and n:input(3, dtype) or nil}
		return n:cast(n:emit('LayerNormalization', inputs, {axis = -#axes, epsilon = eps}), dtype, n:typed())
	end
	local d = n:emit('Sub', {x, mean(n, x, axes)})
	return with(n, over_root(n, d, d, axes, eps, dtype), dtype)
end

function ops.rmsnorm(n)
	local eps, dtype, axes = n:attr('eps', 1e-5) + 0.0, linear.precision(n), last_axes(n)
	local x = n:input(1, dtype)
	if n.opset >= 23 then
		return n:cast(n:emit('RMSNormalization', {x, ones(n, axes, dtype)}, {axis = -#axes, epsilon = eps}), dtype, n:typed())
	end
	return with(n, over_root(n, x, x, axes, eps, dtype), dtype)
end

-- Weight and bias of the channels, ones and zeros where they are missing.
local function of_channels(n, dtype)
	local channels = n.shapes[1][2]
	return n.count > 1 and n:input(2, dtype) or constant(n, '.weight', 1, dtype, {channels}),
		n.count > 2 and n:input(3, dtype) or constant(n, '.bias', 0, dtype, {channels})
end

function ops.instancenorm(n)
	local eps, dtype = n:attr('eps', 1e-5) + 0.0, linear.precision(n)
	return n:cast(n:emit('InstanceNormalization', {n:input(1, dtype), of_channels(n, dtype)}, {epsilon = eps}), dtype, n:typed())
end

-- Before opset 21, whose GroupNormalization has weights of channels: as instance norm of (n, groups, …).
function ops.groupnorm(n)
	local eps, dtype, groups, shape = n:attr('eps', 1e-5) + 0.0, linear.precision(n), n:attr 'groups', n.shapes[1]
	local x = n:input(1, dtype)
	if n.opset >= 21 then
		local weight, bias = of_channels(n, dtype)
		return n:cast(n:emit('GroupNormalization', {x, weight, bias}, {num_groups = groups, epsilon = eps}), dtype, n:typed())
	end
	local back, wide, inner = {0, shape[2]}, {shape[2]}, 1
	for i = 3, #shape do
		if size.is_affine(shape[i]) then n:refuse 'sizes that vary with the batch' end
		back[i], wide[i - 1], inner = shape[i], 1, inner * shape[i]
	end
	local rows = n:emit('Reshape', {x, n:ints {0, groups, shape[2] // groups * inner}})
	local each = n:emit('InstanceNormalization', {rows, constant(n, '.ones', 1, dtype, {groups}), constant(n, '.zeros', 0, dtype, {groups})}, {epsilon = eps})
	local y = n:emit('Reshape', {each, n:ints(back)})
	for i, op in ipairs {'Mul', 'Add'} do
		if n.count > i then y = n:emit(op, {y, n:emit('Reshape', {n:input(1 + i, dtype), n:ints(wide)})}) end
	end
	return n:cast(y, dtype, n:typed())
end

-- An even window has one more channel before than after, in ONNX after: the channels are turned around.
function ops.localresponsenorm(n)
	local dtype, size_of = linear.precision(n), n:attr 'size'
	local x = n:input(1, dtype)
	local function turned(v)
		if size_of % 2 == 1 then return v end
		return n:emit('Slice', {v, n:ints {-1}, n:ints {math.mininteger}, n:ints {1}, n:ints {-1}})
	end
	local y = n:emit('LRN', {turned(x)}, {size = size_of, alpha = n:attr('alpha', 1e-4) + 0.0, beta = n:attr('beta', 0.75) + 0.0, bias = n:attr('k', 1) + 0.0})
	return n:cast(turned(y), dtype, n:typed())
end

function ops.batchnorm(n)
	if n:attr('training', false) then n:refuse 'training=true' end
	n:attr 'momentum'
	local inputs, dtype = {}, n:typed()
	for i = 1, 5 do inputs[i] = n:input(i, dtype) end
	return n:emit('BatchNormalization', inputs, {epsilon = n:attr('eps', 1e-5) + 0.0})
end

return ops
