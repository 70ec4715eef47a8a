-- SPDX-License-Identifier: MIT
-- Convolutions; see linear.lua for codes.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local integer = internal.import 'nn/onnx/integer'
local linear = internal.import 'nn/onnx/out/linear'
local qlinear = internal.import 'nn/onnx/qlinear'
local window = internal.import 'nn/onnx/out/pool'.window
local activated = internal.import 'nn/onnx/out/arithmetic'.activated

-- A kernel whose rows are the outputs has its sizes as k=.
local function kernel(n, w, k)
	if not k then return w, {n.shapes[2][3], n.shapes[2][4]} end
	local h, v = k[1], k[2] or k[1]
	local rows, columns = n.shapes[2][1], n.shapes[2][2]
	return n:emit('Reshape', {w, n:ints {rows, columns // (h * v), h, v}}), {h, v}
end

local function attributes(n)
	local groups = n:attr('groups', 1)
	local a = window(n)
	a.kernel_shape = nil
	a.dilations, a.group = a.dilations, groups
	return a
end

local function integers(n, a)
	local x, w = linear.activation(n, 1, true), linear.weight(n, 2, 0)
	if not x or quant.dtype(x.type).min ~= 0 or not w or w.zeros or n:rank(2) ~= 4 then return nil end
	codes.write(n.w, w)
	local scale = w.axis and n.w:initializer(w.stem .. '.scales', w.scales:to 'float32':reshape(-1, 1, 1)) or w.scale
	local y = linear.scaled(n, n:emit('ConvInteger', {x.name, w.name, x.zero}, a), x, scale)
	if n.count > 2 then y = n:emit('Add', {y, n:emit('Reshape', {n:input(3, 'float32'), n:ints {-1, 1, 1}})}) end
	return activated(n, y, 'float32')
end

local function qlinear_conv(n, a)
	local x, w, act = qlinear.bytes_of(n, 1), linear.weight(n, 2, 0), n.node.attrs.act
	if not x or not x.number or x.axis or not w or n:rank(2) ~= 4 or act and act ~= 'relu' then return nil end
	if w.zeros and w.axis then return nil end
	local c = qlinear.target(n)
	if n.form ~= 'qoperator' or not c or c.type ~= x.type then return nil end
	local bias = qlinear.bias_codes(n, x, w, 3)
	if not bias then return nil end
	codes.write(n.w, w)
	n:attr 'act'
	local inputs = {x.name, x.scale, x.zero, w.name, qlinear.scales(n, x, w, c), w.zero, c.scale, c.zero, bias ~= true and bias or nil}
	return qlinear.result(n, c, n:emit('QLinearConv', inputs, a), act)
end

local function conv2d(n)
	if not quant.dtype(n:typed()).float then n:refuse 'plain integers' end
	local a, k = attributes(n), n:attr 'k'
	local made = integer.conv(n, a) or integers(n, a) or qlinear_conv(n, a)
	if made then return made end
	local dtype = linear.precision(n)
	local w = kernel(n, n:input(2, dtype), k)
	local y = n:emit('Conv', {n:input(1, dtype), w, linear.bias(n, 3, dtype)}, a)
	return n:cast(activated(n, y, dtype), dtype, n:typed())
end

-- The weight is (in, out / groups, h, w) there, too.
local function convtranspose2d(n)
	local a, dtype = attributes(n), linear.precision(n)
	local margin = n:attr 'outputpad'
	if margin then a.output_padding = type(margin) == 'table' and {margin[1], margin[2] or margin[1]} or {margin, margin} end
	local y = n:emit('ConvTranspose', {n:input(1, dtype), n:input(2, dtype), a.group == 1 and linear.bias(n, 3, dtype, 1) or n.count > 2 and n:input(3, dtype) or nil}, a)
	return n:cast(activated(n, y, dtype), dtype, n:typed())
end

return {conv2d = conv2d, convtranspose2d = convtranspose2d}
