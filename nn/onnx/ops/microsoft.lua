-- SPDX-License-Identifier: MIT
-- Ops of com.microsoft that onnxruntime's quantizer writes: QLinear ops on codes, 4-bit weights in blocks, integer products with scales.
local internal = select(2, ...)
local quantize = internal.import 'nn/onnx/ops/quantize'
local operand, result = quantize.operand, quantize.result
local ops = {}

local function of(file, name) return internal.import('nn/onnx/ops/' .. file)[name] or internal.import('nn/onnx/ops/' .. file).ops[name] end

local function binary(name)
	return function(n, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero)
		local x, y = operand(n, a, a_scale, a_zero), operand(n, b, b_scale, b_zero)
		return result(n, x[name](x, y), c_scale, c_zero)
	end
end

ops.QLinearAdd, ops.QLinearMul = binary 'add', binary 'mul'

local function unary(file, name)
	return function(n, x, scale, zero, y_scale, y_zero) return result(n, of(file, name)(n, operand(n, x, scale, zero)), y_scale, y_zero) end
end

ops.QLinearSigmoid, ops.QLinearLeakyRelu = unary('activation', 'Sigmoid'), unary('activation', 'LeakyRelu')
ops.QLinearSoftmax = function(n, x, scale, zero, y_scale, y_zero)
	local o = setmetatable({opset = n:attr('opset', 13)}, {__index = n})
	return result(n, of('activation', 'Softmax')(o, operand(n, x, scale, zero)), y_scale, y_zero)
end

local function pool(name)
	return function(n, x, scale, zero, y_scale, y_zero)
		if n:attr('channels_last', 0) ~= 0 then n:fail 'channels_last: wanted 0, got another' end
		return result(n, of('pool', name)(n, operand(n, x, scale, zero)), y_scale, y_zero)
	end
end
ops.QLinearGlobalAveragePool, ops.QLinearAveragePool = pool 'GlobalAveragePool', pool 'AveragePool'

-- Inputs: the scale and zero point of the result, then tensor, scale, zero point of each part.
function ops.QLinearConcat(n, y_scale, y_zero, ...)
	local given, parts = {...}, {}
	for i = 1, #given, 3 do parts[#parts + 1] = operand(n, given[i], given[i + 1], given[i + 2]) end
	return result(n, of('join', 'Concat')(n, table.unpack(parts)), y_scale, y_zero)
end

function ops.QGemm(n, a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero)
	if n:attr('transA', 0) ~= 0 or n:attr('alpha', 1.0) ~= 1 then n:fail 'transA, alpha: wanted 0 and 1, got others' end
	local trans = n:attr('transB', 0) ~= 0
	local w = operand(n, b, b_scale, b_zero, trans and 1 or 2)
	if not trans then w = n:turned(w) end
	local bias = c and n:quietly(function() return c:reshape(-1):to 'float32' * a_scale * b_scale end)
	local x = operand(n, a, a_scale, a_zero)
	local y = bias and x:linear(w, bias) or x:linear(w)
	return y_scale and result(n, y, y_scale, y_zero) or y
end

-- a in 8 bits with a scale of its own values, b in codes of columns.
function ops.DynamicQuantizeMatMul(n, a, b, b_scale, b_zero, bias)
	local w = n:once('codes', function() return quantize.quantized(n, b, b_scale, b_zero, 2) end)
	local y = a:quantize 'uint8':matmul(w)
	return bias and y + bias or y
end

function ops.MatMulIntegerToFloat(n, a, b, a_scale, b_scale, a_zero, b_zero, bias)
	local y = of('quantize', 'MatMulInteger')(n, a, b, a_zero, b_zero):to 'float32' * (a_scale * b_scale)
	return bias and y + bias or y
end

---------------------------------------------------------------- 4 bits

-- Bytes of two codes each, the low one first, as codes: (rows, columns).
local function unpacked(bytes, rows, columns)
	local wide = bytes:to 'int64':reshape(rows, -1, 1)
	return tensor.cat({wide:band(15), wide:shr(4)}, {axis = 3}):reshape(rows, -1):narrow(2, 1, columns)
end

-- The weight (N, K) in codes of 4 bits with a scale for each block of a row. A negative scale is that of the codes counted from above.
local function four_bits(n, b, scales, zeros, rows, columns, block)
	local blocks = (columns + block - 1) // block
	local codes = unpacked(b:reshape(rows, -1), rows, blocks * block):narrow(2, 1, columns)
	local zero = zeros and (n.is_float(zeros) and n:fail 'zero_points: wanted packed codes, got floats' or unpacked(zeros:reshape(rows, -1), rows, blocks)) or
		tensor.full {rows, blocks, value = 8, dtype = 'int64'}
	local s = scales:to 'float32':reshape(rows, blocks)
	local below = s:lt(0):to 'int64'
	local function each(t) return t:unsqueeze(3):expand(rows, blocks, block):reshape(rows, blocks * block):narrow(2, 1, columns) end
	local real = (codes - each(zero)):to 'float32' * each(s)
	return real:quantize {dtype = 'uint4', block = block, scheme = n.AFFINE, scale = tensor.where(s:eq(0), s + 1, s:abs()),
		zero_point = (below * (15 - zero * 2) + zero):to 'int32'}
end

function ops.MatMulNBits(n, a, b, scales, zeros, g_idx, bias)
	local rows, columns, block = n:required('N', 'integer'), n:required('K', 'integer'), n:required('block_size', 'integer')
	if n:attr('bits', 4) ~= 4 then n:fail('bits: wanted 4, got %d', n:attr('bits', 4)) end
	if g_idx then n:fail 'g_idx: wanted none, got one' end
	local q = n:once('codes', function() return four_bits(n, b, scales, zeros, rows, columns, block) end)
	local w = quantize.decoded(n, q)
	if bias then return a:linear(w, bias) end
	return a:linear(w)
end

return {domain = 'com.microsoft', ops = ops, codes = {'QLinearAdd', 'QLinearMul', 'QLinearSigmoid', 'QLinearLeakyRelu', 'QLinearSoftmax',
	'QLinearGlobalAveragePool', 'QLinearAveragePool', 'QLinearConcat', 'QGemm'}}
