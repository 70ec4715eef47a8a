-- SPDX-License-Identifier: MIT
-- Products of matrices. Codes whose scale is found at each run are multiplied as integers (MatMulInteger), and so are all codes of 8 bits
-- with form='qoperator'; others are decoded.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local integer = internal.import 'nn/onnx/integer'
local qlinear = internal.import 'nn/onnx/qlinear'
local activated = internal.import 'nn/onnx/out/arithmetic'.activated
local types = internal.import 'nn/onnx/types'
local ops, linear = {}, {}
local MICROSOFT = 'com.microsoft'

-- The dtype of the sums.
local function precision(n) return n:typed() == 'float64' and 'float64' or 'float32' end

---------------------------------------------------------------- bias

-- The name of a bias: floats, or where codes become codes, int32 under the scales of both operands with its DequantizeLinear.
-- axis: that of the outputs in the weight.
function linear.bias(n, at, dtype, axis)
	if n.count < at then return nil end
	local x, w, bias = n:codes(1), n:codes(2), n:constant(at)
	local q, scales = nil, nil
	if x and w and bias and n.result.spec and w.affine and not w.block and (not w.axis or w.axis == (axis or 0)) then q, scales = qlinear.bias(x, w, bias) end
	if not q then return n:input(at, dtype) end
	local stem = n:value(at).made
	local one = scales:nelem() == 1
	return n:emit('DequantizeLinear', {n.w:initializer(stem, q, nil, true), n.w:initializer(stem .. '.scale', one and scales:reshape {} or scales)},
		not one and {axis = 0} or {})
end

---------------------------------------------------------------- integers

-- Codes of a constant in 8 bits with one scale, or one for each index of `axis`; nil: others.
function linear.weight(n, at, axis)
	local c = n:codes(at)
	if not c or not c.tensor or not c.affine or c.block or not types.byte_of(c.type) or c.axis and c.axis ~= axis then return nil end
	if types.is_byte(c.type) then return c end
	local made = {}
	for key, value in next, c do made[key] = value end
	made.type, made.name = types.byte_of(c.type), nil
	return made
end

-- Codes of an activation in 8 bits under one scale; `found`: only if it is found at each run.
function linear.activation(n, at, found)
	local c = n:codes(at)
	if not c or not c.affine or c.axis or c.block or not types.is_byte(c.type) or found and not c.found then return nil end
	return codes.write(n.w, c)
end

-- The sums of products of codes as floats; scale: of the second operand, in the shape of the outputs.
function linear.scaled(n, sums, x, scale)
	local y = n:emit('Cast', {sums}, {to = n.w.TYPES.float32})
	return n:emit('Mul', {y, n:emit('Mul', {x.scale, scale})})
end

-- As linear or matmul; w: codes (k, n).
local function integer_product(n, x, w)
	local zero = w.zeros and w.zero or not w.tensor and w.zero or nil
	return linear.scaled(n, n:emit('MatMulInteger', {x.name, w.name, x.zero, zero}), x, w.scale)
end

local function add_bias(n, y, at)
	if n.count < at then return y end
	return n:emit('Add', {y, n:input(at, 'float32')})
end

-- QGemm, for rows of one axis before the last.
local function qgemm(n)
	local x, w = qlinear.bytes_of(n, 1), linear.weight(n, 2, 0)
	local act = n.node.attrs.act
	if not x or not x.number or x.axis or not w or n.result.spec and act and act ~= 'relu' then return nil end
	local c = n.result.spec and qlinear.target(n)
	if n.result.spec and (not c or c.type ~= x.type) then return nil end
	local bias = not c or qlinear.bias_codes(n, x, w, 3)
	if not bias then return nil end
	codes.write(n.w, w)
	local rank, shape = n:rank(1), n.shapes[1]
	local name, size = x.name, shape[rank]
	if rank ~= 2 then name = n:emit('Reshape', {name, n:ints {-1, size}}) end
	local inputs = {name, x.scale, x.zero, w.name, c and qlinear.scales(n, x, w, c) or w.scale, w.zero, bias ~= true and bias or '', c and c.scale or '', c and c.zero or ''}
	while inputs[#inputs] == '' do inputs[#inputs] = nil end
	local y = n:emit('QGemm', inputs, {transB = 1}, 1, MICROSOFT)
	if rank ~= 2 then y = n:reshape(y, n.result.shape, {}) end
	if not c then return activated(n, add_bias(n, y, 3), 'float32') end
	n:attr 'act'
	return qlinear.result(n, c, y, act)
end

-- A weight of 4 bits in blocks as bytes of two codes, with scales and zero points.
local function packed(t)
	local rows, columns = t:size()
	local pairs_of = t:to 'int32':reshape(rows, columns // 2, 2)
	return (pairs_of:select(3, 1) + pairs_of:select(3, 2) * 16):to 'uint8'
end

local function padded(t, multiple, value)
	local over = -t:size(2) % multiple
	return over > 0 and t:pad {sizes = {0, over}, value = value} or t
end

local function few_bits(n)
	local v = n:value(2)
	local c = v.decoded or v.codes
	if n.form ~= 'qoperator' or n:codes(1) or not c or not c.tensor or not c.affine or not c.block or n:typed() ~= 'float32' then return nil end
	if types.bits(c.type) ~= 4 or c.axis ~= 1 or c.block < 16 or c.block & c.block - 1 ~= 0 then return nil end
	local shift, rows, columns = quant.dtype(c.type).min < 0 and 8 or 0, c.tensor:size()
	local q = padded(c.tensor:to 'int32' + shift, c.block, 8)
	local b = packed(q):reshape(rows, q:size(2) // c.block, c.block // 2)
	local inputs = {n:input(1), n.w:initializer(c.stem, b), n.w:initializer(c.stem .. '.scale', c.scales:to 'float32')}
	if c.zeros then inputs[4] = n.w:initializer(c.stem .. '.zero_point', packed(padded(c.zeros:to 'int32' + shift, 2, 0))) end
	local y = n:emit('MatMulNBits', inputs, {N = rows, K = columns, bits = 4, block_size = c.block}, 1, MICROSOFT)
	return activated(n, add_bias(n, y, 3), 'float32')
end

---------------------------------------------------------------- linear

-- The weight turned: a constant's codes, or by Transpose.
local function turned(n, dtype)
	local v = n:value(2)
	local c = v.codes or v.decoded
	if c and c.tensor then
		return n:cast(codes.dequantize(n.w, c.stem .. '.t', codes.turned(n.w, c)), 'float32', dtype)
	end
	return n:emit('Transpose', {n:input(2, dtype)}, {perm = {1, 0}})
end

local function floats(n)
	local dtype = precision(n)
	local x, rank = n:input(1, dtype), n:rank(1)
	local y
	if rank == 2 then
		y = n:emit('Gemm', {x, n:input(2, dtype), linear.bias(n, 3, dtype)}, {transB = 1})
	else
		y = n:emit('MatMul', {x, turned(n, dtype)})
		if n.count > 2 then y = n:emit('Add', {y, linear.bias(n, 3, dtype)}) end
	end
	return n:cast(activated(n, y, dtype), dtype, n:typed())
end

function ops.linear(n)
	local made = integer.linear(n) or n.form == 'qoperator' and (few_bits(n) or qgemm(n))
	if made then return made end
	local x, w = linear.activation(n, 1, true), linear.weight(n, 2, 0)
	if not x or not w then return floats(n) end
	return activated(n, add_bias(n, integer_product(n, x, codes.turned(n.w, w)), 3), 'float32')
end

---------------------------------------------------------------- matmul

-- ONNX multiplies 32 bits and more.
local function product(n)
	local dtype, typed = precision(n), n:typed()
	local float = types.is_float(typed)
	if not float then dtype = types.wide(typed) end
	local y = n:emit('MatMul', {n:input(1, dtype), n:input(2, dtype)})
	if float then return n:cast(y, dtype, typed) end
	return dtype == typed and y or n:emit('Cast', {y}, {to = n.w.TYPES[typed]})
end

local function second(n)
	local w = linear.weight(n, 2, 1)
	if w and n:rank(2) == 2 then return codes.write(n.w, w) end
	local c = linear.activation(n, 2)
	return c and not c.tensor and c or nil
end

function ops.matmul(n)
	local made = integer.matmul(n)
	if made then return made end
	local x = n.form ~= 'float' and linear.activation(n, 1, n.form ~= 'qoperator')
	local w = x and second(n)
	if not w then return product(n) end
	local c = n.form == 'qoperator' and not x.found and not w.found and qlinear.target(n)
	if c and c.type == x.type then
		return qlinear.result(n, c, n:emit('QLinearMatMul', {x.name, x.scale, x.zero, w.name, w.scale, w.zero, c.scale, c.zero}))
	end
	return integer_product(n, x, w)
end

function ops.einsum(n)
	local inputs, dtype = {}, precision(n)
	for i = 1, n.count do inputs[i] = n:input(i, types.is_float(n:typed()) and dtype or n:typed()) end
	local equation = n:attr 'equation'
	local y = n:emit('Einsum', inputs, {equation = equation})
	return types.is_float(n:typed()) and n:cast(y, dtype, n:typed()) or y
end

function ops.dot(n)
	local dtype = n:typed()
	return n:emit('ReduceSum', {n:emit('Mul', {n:input(1, dtype), n:input(2, dtype)})}, {keepdims = 0})
end

-- Ids count from 1.
function ops.embedding(n)
	local ids = n:emit('Sub', {n:input(2, 'int64'), n:number(1, 'int64')})
	return n:emit('Gather', {n:input(1), ids}, {axis = 0})
end

linear.ops, linear.precision = ops, precision
return linear
