-- SPDX-License-Identifier: MIT
-- form='integer': products as ConvInteger and MatMulInteger. The int32 sums, with the bias in them, become codes by the rule of g:run
-- (nn/onnx/requantize.lua), so the codes are those of g:run bit for bit, whatever a runtime fuses or not. Sums that stay floats are multiplied by float32 of sa * sw, then get their bias. All codes become uint8: kernels of onnxruntime saturate sums of uint8 * int8 on
-- processors without VNNI. Each function gives the codes (or floats) of the result, or nil where there is no such form.
local _, internal = ...
local activated = internal.import 'nn/onnx/out/arithmetic'.activated
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local requantize = internal.import 'nn/onnx/requantize'
local types = internal.import 'nn/onnx/types'
local integer = {}

local function copy(c)
	local made = {}
	for key, value in next, c do made[key] = value end
	made.name = nil
	return made
end

-- A constant as uint8 under one zero point; nil: it has several.
local function weight(c)
	local zero = c.zeros and c.zeros:to 'int32' or tensor {0, dtype = 'int32'}
	if c.block or not types.byte_of(c.type) or not zero:eq(zero:reshape(-1):narrow(1, 1, 1)):all():item() then return nil end
	local made, shift = copy(c), quant.dtype(c.type).min < 0 and 128 or 0
	made.stem = c.stem .. '.unsigned'
	made.tensor, made.type = (c.tensor:to 'int32' + shift):to 'uint8', 'uint8'
	made.zeros, made.middle = nil, zero:reshape(-1):narrow(1, 1, 1):item() + shift
	return made
end

-- Codes that are computed, as uint8.
local function activation(n, c)
	codes.write(n.w, c)
	if quant.dtype(c.type).min == 0 then return c end
	local made = copy(c)
	local wide = n:emit('Add', {n:emit('Cast', {c.name}, {to = n.w.TYPES.int32}), n:number(128, 'int32')})
	made.name = n:emit('Cast', {wide}, {to = n.w.TYPES.uint8})
	made.zero, made.type = n:number(c.zero_number + 128, 'uint8'), 'uint8'
	return made
end

-- The operands of a product, w with scales along `axis`, and the parameters of the result, false where it is floats; nil: others.
local function operands(n, axis)
	local x, w, act = n:codes(1), n:codes(2), n.node.attrs.act
	if n.form ~= 'integer' or not x or not w or not w.affine or not x.number or not types.is_byte(x.type) or x.axis then return nil end
	local c = n.result.spec and qlinear.target(n)
	if n.result.spec and (not c or act and act ~= 'relu') then return nil end
	if w.axis and w.axis ~= axis or not w.tensor and not (w.number and types.is_byte(w.type)) then return nil end
	local second = w.tensor and weight(w) or not w.tensor and activation(n, w)
	if not second then return nil end
	return x.tensor and weight(x) or activation(n, x), second, c
end

local function named(n, c)
	if not c.middle then return c.name, c.zero end
	return n.w:initializer(c.stem, c.tensor), n:number(c.middle, 'uint8')
end

-- The result of sums, with operand 3 as bias; the scales of w have `sizes`. nil: the bias has no form as int32.
local function result(n, sums, x, w, c, sizes)
	local scales = w.tensor and w.scales:to 'float32':reshape(-1) or tensor {w.number}
	local bias = n.count > 2 and n:constant(3)
	local q = c and bias and qlinear.bias(x, w, bias)
	if n.count > 2 and (not bias or c and not q) then return nil end
	if q then sums = n:emit('Add', {sums, requantize.constant(n, n:value(3).made .. '.codes', q, sizes)}) end
	if c then return requantize.sums(n, sums, c, scales:to 'float64' * x.number / c.number, sizes) end
	local factor = requantize.constant(n, n.name .. '.multiplier', scales * x.number, sizes)
	local y = n:emit('Mul', {n:emit('Cast', {sums}, {to = n.w.TYPES.float32}), factor})
	if bias then y = n:emit('Add', {y, requantize.constant(n, n:value(3).made, bias:to 'float32', sizes)}) end
	return activated(n, y, 'float32')
end

-- a: the attributes of Conv.
function integer.conv(n, a)
	if n:rank(2) ~= 4 then return nil end
	local x, w, c = operands(n, 0)
	if not x or not w.tensor then return nil end
	local name, zero = named(n, w)
	return result(n, n:emit('ConvInteger', {x.name, name, x.zero, zero}, a), x, w, c, {-1, 1, 1})
end

local function product(n, x, w)
	local a, a_zero = named(n, x)
	local b, b_zero = named(n, w)
	return n:emit('MatMulInteger', {a, b, a_zero, b_zero})
end

function integer.linear(n)
	local x, w, c = operands(n, 0)
	if not x or not w.tensor then return nil end
	w.tensor, w.stem = w.tensor:transpose(1, 2), w.stem .. '.t'
	return result(n, product(n, x, w), x, w, c, {-1})
end

function integer.matmul(n)
	local x, w, c = operands(n, n:rank(2) - 1)
	return x and result(n, product(n, x, w), x, w, c, {-1}) or nil
end

return integer
