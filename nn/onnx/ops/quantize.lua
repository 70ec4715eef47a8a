-- SPDX-License-Identifier: MIT
-- Codes. What QuantizeLinear gives is a quantized tensor, so that ops which move elements keep its codes. What DequantizeLinear gives are
-- floats; that its operand had codes is remembered (n:codes), and a pass lets ops that compute in integers take them (nn/graph/passes).
-- Constants of integers become quantized constants, which stay codes in memory. Integers that no scale belongs to, as those of
-- MatMulInteger, are codes under the scale 1.
local internal = select(2, ...)
local to, known = internal.import 'nn/onnx/node'.to, internal.import 'nn/onnx/node'.known
local ops = {}

local function is_plain(x) return not x:quantized() end

-- Sizes for a scale along one axis of x.
local function along(t, x, axis)
	if t:dim() == 0 then return t end
	if x:dim() == 0 or known(t) and t:nelem() == 1 then return t:reshape {} end
	local sizes = {}
	for i = 1, x:dim() do sizes[i] = i == axis and t:nelem() or 1 end
	return t:reshape(table.unpack(sizes))
end

-- The spec of codes of a dtype. Both ends of its range are used, so it has a zero point, be it 0.
local function spec_of(n, dtype, scale, zero, axis)
	local spec = {dtype = dtype, scheme = n.AFFINE}
	if scale:nelem() == 1 then
		spec.scale, spec.zero_point = n:number(scale, 'scale'), zero and n:number(zero, 'zero_point') or 0
		return spec
	end
	local zeros = {dtype = 'int32', value = 0, scale:nelem()}
	spec.axis, spec.scale = axis, to(scale, 'float32'):reshape(-1)
	spec.zero_point = zero and zero:to 'int32':reshape(-1) or tensor.full(zeros)
	return spec
end

-- Scales and zero points in blocks have the sizes of x but for one axis; the last block may be shorter.
local function check_blocks(n, x, axis, block, ...)
	if block < 0 or x:dim() == 0 then n:fail('block_size: wanted 1 and up for an operand with axes, got %d', block) end
	for _, t in ipairs {...} do
		local wanted, fits = {x:size()}, t:dim() == x:dim()
		wanted[axis] = (wanted[axis] + block - 1) // block
		for i, size in ipairs(wanted) do fits = fits and t:size(i) == size end
		if not fits then n:fail('scale, zero_point: wanted the sizes %s in blocks of %d, got %s', table.concat(wanted, ' x '), block, table.concat({t:size()}, ' x ')) end
	end
end

-- A scale for each block of an axis, repeated for its elements.
local function repeated(t, axis, block, size)
	local parts = {}
	for i = 1, size do parts[i] = (i - 1) // block end
	parts.dtype = 'int64'
	return t:indexselect(axis, tensor(parts) + 1)
end

local function floats(x, scale, zero, axis)
	local y = to(x, 'float32')
	if zero then y = y - along(to(zero, 'float32'), x, axis) end
	return y * along(to(scale, 'float32'), x, axis)
end

-- Constants as a quantized tensor; nil if there is no such spec.
local function quantized(n, x, scale, zero, axis, block)
	if block then
		if axis ~= x:dim() or x:dim() ~= 2 or x:size(2) % block ~= 0 then return nil end
		local real = to(x, 'float32')
		local s = to(scale, 'float32')
		if zero then real = real - repeated(to(zero, 'float32'), 2, block, x:size(2)) end
		real = real * repeated(s, 2, block, x:size(2))
		local spec = {dtype = x:dtype(), block = block, scheme = n.AFFINE, scale = s,
			zero_point = zero and zero:to 'int32' or tensor.full {value = 0, dtype = 'int32', s:size()}}
		return real:quantize(spec)
	end
	return floats(x, scale, zero, axis):quantize(spec_of(n, x:dtype(), scale, zero, axis))
end

-- A constant weight, from its decoded form or as codes.
local function decoded(n, q)
	local y = q:dequantize()
	n.machine.codes[y] = q
	return y
end

-- Whether the codes have these parameters.
local function has_params(n, x, scale, zero, axis)
	local p = x:qparams()
	if p.block or not n.known(scale) or zero and not n.known(zero) or p.scale:nelem() ~= scale:nelem() then return false end
	if p.axis and p.axis ~= axis or not to(scale, 'float32'):reshape(-1):eq(p.scale:reshape(-1)):all():item() then return false end
	local given = zero and zero:to 'int32':reshape(-1) or p.zero_point:to 'int32':reshape(-1) * 0
	return given:eq(p.zero_point:to 'int32':reshape(-1)):all():item()
end

function ops.DequantizeLinear(n, x, scale, zero)
	local axis = x:dim() > 0 and n:attr('axis', 1) < x:dim() and n:axis(n:attr('axis', 1), x:dim()) or 1
	local block = n:attr('block_size', 0)
	if block ~= 0 then check_blocks(n, x, axis, block, scale, zero) end
	if not is_plain(x) then
		if block == 0 and n:quietly(function() return has_params(n, x, scale, zero, axis) end) then return decoded(n, x) end
		x = x:codes()
	end
	local info, code = quant.dtype(x:dtype()), n:attr('output_dtype', 0)
	local wanted = code == 0 and scale:dtype() or internal.onnx_dtype(code) or n:fail('output_dtype: wanted a type of floats, got number %d', code)
	block = block ~= 0 and block or nil
	if n.known(x) and n.known(scale) and not info.float and info.bits <= 16 and code == 0 then
		local q = n:once('codes', function() return quantized(n, x, scale, zero, axis, block) or false end)
		if q then return decoded(n, q) end
	end
	if block then
		local y, s = to(x, 'float32'), repeated(scale, axis, block, x:size(axis)):to 'float32'
		if zero then y = y - repeated(zero, axis, block, x:size(axis)):to 'float32' end
		return to(y * s, wanted)
	end
	return to(floats(x, scale, zero, axis), wanted)
end

local function target(n, zero)
	if zero and n.machine.file.float4[zero] then n:fail 'zero_point: wanted a type of codes, got float4' end
	if zero then return zero:dtype() end
	local code = n:attr('output_dtype', 0)
	return code == 0 and 'uint8' or internal.onnx_dtype(code) or n:fail('output_dtype: wanted a type of codes, got number %d', code)
end

-- A cast that saturates: the largest numbers of floats of 8 bits with a significand of so many binary digits.
local LARGEST = {[4] = 448, [3] = 57344}
local function limited(y, dtype)
	local most = LARGEST[quant.dtype(dtype).digits] or math.huge
	return y:clamp(-most, most):to(dtype)
end

function ops.QuantizeLinear(n, x, scale, zero)
	local axis = x:dim() > 0 and n:attr('axis', 1) < x:dim() and n:axis(n:attr('axis', 1), x:dim()) or 1
	local dtype, block = target(n, zero), n:attr('block_size', 0)
	local info = quant.dtype(dtype)
	if block ~= 0 then
		check_blocks(n, x, axis, block, scale, zero)
		local y = to(x, 'float32') / repeated(scale, axis, block, x:size(axis)):to 'float32'
		if info.float then return limited(y, dtype) end
		y = y:round()
		if zero then y = y + repeated(zero, axis, block, x:size(axis)):to 'float32' end
		return y:to(dtype)
	end
	if info.float or not n.known(scale) or zero and not n.known(zero) then
		local y = to(x, 'float32') / along(to(scale, 'float32'), x, axis)
		if info.float then return limited(y, dtype) end
		return (y:round() + (zero and along(to(zero, 'float32'), x, axis) or 0)):to(dtype)
	end
	return to(x, 'float32'):quantize(spec_of(n, dtype, scale, zero, axis))
end

---------------------------------------------------------------- codes whose scale is found at each run

-- DynamicQuantizeLinear, an integer product with its codes, a cast, and a product with scale and weight's scale are one product here,
-- of codes as x:quantize 'uint8' gives them. n:note(value) is {codes=, factor= (a scale times that)} of such a scale, or {codes=,
-- product= (function of the weight's scale)} of such integers. What they are otherwise is computed, too, and goes if nothing uses it.

-- The product of a value and a scale; nil if they are not such.
local function scaled(n, a, b)
	local x, y = n:note(a), n:note(b)
	if x and x.factor and n.known(b) then
		n:note(nil, {codes = x.codes, factor = x.factor * b})
	elseif x and x.product and y and y.factor and x.codes == y.codes then
		return x.product(y.factor)
	end
end

function ops.DynamicQuantizeLinear(n, x)
	local codes = n.is_float(x) and not n.known(x) and x:quantize 'uint8'
	local low, high = x:min():minimum(0), x:max():maximum(0)
	local scale = (high - low) / 255
	scale = tensor.where(scale:eq(0), scale + 1 / 255, scale)
	local zero = (low * -1 / scale):round():clamp(0, 255)
	local y = (x / scale):round() + zero
	y, zero = y:clamp(0, 255):to 'uint8', zero:to 'uint8'
	if codes then
		n:note(y, {codes = codes})
		n:note(scale, {codes = codes, factor = tensor.ones(1)})
		n:note(zero, {codes = codes, zero = true})
	end
	return y, scale, zero
end

-- Integers of a product with such codes.
local function noted(n, y, a, a_zero, product)
	local x, zero = n:note(a), a_zero and n:note(a_zero)
	if x and x.codes and not x.factor and not x.product and zero and zero.codes == x.codes then
		n:note(y, {codes = x.codes, product = function(factor) return product(x.codes, factor) end})
	end
	return y
end

---------------------------------------------------------------- integer products

-- Integers less their zero points, as floats whose products and sums of up to 2^24 are exact, or else as int64.
local function centred(x, zero, axis)
	local y = x:to 'int64'
	if zero then y = y - along(zero:to 'int64', x, axis) end
	return y
end

-- Codes under the scale 1 with that zero point.
local function as_codes(n, x, zero)
	local real = to(x, 'float32')
	if zero then real = real - to(zero, 'float32') end
	return real:quantize {dtype = x:dtype(), scheme = n.AFFINE, scale = 1, zero_point = zero and n:number(zero, 'zero_point') or 0}
end

local function one_number(zero) return not zero or zero:nelem() == 1 end

function ops.MatMulInteger(n, a, b, a_zero, b_zero)
	if one_number(a_zero) and one_number(b_zero) and (not a_zero or n.known(a_zero)) and (not b_zero or n.known(b_zero)) then
		return as_codes(n, a, a_zero):matmul(as_codes(n, b, b_zero)):to 'int32'
	end
	local y = centred(a, a_zero, a:dim() - 1):matmul(centred(b, b_zero, b:dim())):to 'int32'
	if not n.known(b) or b:dim() ~= 2 then return y end
	return noted(n, y, a, a_zero, function(codes, factor)
		return codes:matmul(n:quietly(function() return quantized(n, b, factor, b_zero, 2) end))
	end)
end

-- Sums of any size are exact: of codes, or in float64.
function ops.ConvInteger(n, x, w, x_zero, w_zero)
	local conv = internal.import 'nn/onnx/ops/conv'.ops.Conv
	if x:dim() < 5 and n.known(w) and (not x_zero or n.known(x_zero)) then -- volumes have no integer path
		local codes = one_number(w_zero) and as_codes(n, w, w_zero) or quantized(n, w, tensor.ones(w:size(1)), w_zero, 1)
		return to(conv(n, as_codes(n, x, x_zero), codes), 'int32')
	end
	local wide, rows = x:to 'float64', w:to 'float64'
	if x_zero then wide = wide - x_zero:to 'float64' end
	if w_zero then rows = rows - along(w_zero:to 'float64', w, 1) end
	local y = to(conv(n, wide, rows), 'int32')
	if not n.known(w) then return y end
	return noted(n, y, x, x_zero, function(given, factor)
		return conv(n, given, n:quietly(function() return quantized(n, w, factor, w_zero, 1) end))
	end)
end

-- The operand of a QLinear op as floats with codes.
local function operand(n, x, scale, zero, axis)
	if not is_plain(x) then
		if n:quietly(function() return has_params(n, x, scale, zero, axis or 1) end) then return decoded(n, x) end
		x = x:codes()
	end
	if n.known(x) then return decoded(n, n:quietly(function() return quantized(n, x, scale, zero, axis or 1) end)) end
	return decoded(n, floats(x, scale, zero, axis or 1):quantize(spec_of(n, x:dtype(), scale, zero, axis)))
end

local function result(n, y, scale, zero) return y:quantize(spec_of(n, zero and zero:dtype() or 'uint8', scale, zero)) end

function ops.QLinearMatMul(n, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
	local y = operand(n, a, a_scale, a_zero, a:dim() - 1):matmul(operand(n, b, b_scale, b_zero, b:dim()))
	return result(n, y, y_scale, y_zero)
end

function ops.QLinearConv(n, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)
	local conv = internal.import 'nn/onnx/ops/conv'.ops.Conv
	local bias = b and n:quietly(function() return to(b, 'float32') * x_scale * w_scale end)
	return result(n, conv(n, operand(n, x, x_scale, x_zero), operand(n, w, w_scale, w_zero, 1), bias), y_scale, y_zero)
end

return {ops = ops, codes = {'DequantizeLinear', 'QLinearMatMul', 'QLinearConv'}, scaled = scaled, operand = operand, result = result, quantized = quantized, decoded = decoded}
