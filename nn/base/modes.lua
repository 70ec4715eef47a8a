-- SPDX-License-Identifier: MIT
-- The forward of a quantized layer in each mode. q is the layer's field `quantized`:
--   mode, weight, input, output   specs (input and output nil: float); static ones have scale and zero_point
--   rows                          of a dynamic input as compressed-tensors has it: 'token', a scale for each row, or 'tensor', for all of them
-- A layer's class gives weights, a list of its fields that are quantized, and compute(m, x, weight, out).
local _, internal = ...
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local modes = module.modes

local function number(value) return type(value) == 'number' and value or value and value:item() or 0 end

-- The codes of x under the spec: x itself if it already has that spec, else newly quantized.
local function codes(x, spec)
	if not spec then return module.real(x) end
	if not x:quantized() then return x:quantize(spec) end
	local p = internal.params(x)
	if not like.same(p, spec) or p.axis or p.block then
		return x:dequantize():quantize(spec)
	end
	if not spec.scale or number(p.scale) == number(spec.scale) and number(p.zero_point) == number(spec.zero_point) then return x end
	return x:requantize(spec)
end
module.codes = codes

-- Codes below 8 bits are packed along one axis in groups: for a convolution with rows of 3 along the channels, if that wastes fewer
-- bits.
function module.weight_codes(weight, spec)
	local group, axis = quant.dtype(quant.spec(spec).dtype).packed, quant.spec(spec).axis
	local function padded(n) return (n + group - 1) // group * group end
	if weight:dim() ~= 4 or (axis or 1) ~= 1 or weight:size(2) * padded(weight:size(4)) <= weight:size(4) * padded(weight:size(2)) then return weight:quantize(spec) end
	return weight:permute(1, 3, 4, 2):contiguous():quantize(spec):permute(1, 4, 2, 3)
end

-- The result of a layer has the dtype of the input (static: float32, as codes pass between layers): sums, scales, bias and activation
-- are computed in float32 and rounded once. Returns the name of a 16-bit float dtype, else nil.
local function half(x)
	local d = quant.dtype(x:quantized() and internal.params(x).from or x:dtype())
	return d.float and d.bits == 16 and d.name or nil
end
module.half = half

-- The product of x, converted as the layer requires, and the integer weight; out is a spec, or nil for floats.
local function compute(m, given, x, weight, out)
	local class = module.class_of(m)
	if not class.no_input then return class.compute(m, x, weight, out or half(given)) end
	if out then return class.compute(m, x, weight, out) end
	local y = class.compute(m, x, weight)
	local rounds = quant.dtype(y:dtype()).bits < 16 -- of a table of float8, which is too coarse for what follows
	return y:to(half(weight) or rounds and 'float32' or y:dtype())
end

-- Whether products of x decode such weights in parts. A traced graph says what it decodes; float64 is the reference.
function module.decodes_in_parts(x, weight)
	return x:device() == 'cpu' and not (module.tracer or weight.functions) and x:dtype() ~= 'float64'
end

-- Whether a product is to take the weight as codes. The CPU decodes any codes in parts, if the class says that its product does
-- (in_parts: tensor/gemm/coded.h, tensor/conv/decoder.h), also the matrix of codes of a kernel (takes_flat). Devices multiply few rows with codes of 8 and 4 bits as fast as they read them
-- (gpu/kernels/gemv_f32.cu), while decoded weights take four to eight times the bytes. With 16-bit floats they take any number of rows
-- (gpu/kernels/gemm_f16_mma.cu).
local READ = {[4] = true, [8] = true}
local function reads_codes(m, q, x)
	local class, w, few = module.class_of(m), q.weight, x:nelem() <= 8 * m.weight:size(2)
	if x:device() == 'cpu' then return class.in_parts and not (q.shape and not class.takes_flat) and module.decodes_in_parts(x, w) end
	return class.reads_codes and (few or half(x)) and READ[quant.dtype(w.dtype).bits] and w.affine and
		not (w.outer or q.shape or module.tracer) and math.type(w.bits) -- a traced graph is for any number of rows
end

-- Integer weights, float arithmetic: weights are decoded at each call, in parts where the product does it. An embedding decodes only
-- the rows that it needs.
function modes.weight_only(m, q, x)
	local class = module.class_of(m)
	if class.no_input then return compute(m, x, x, m.weight, q.output) end
	if reads_codes(m, q, x) then return class.compute(m, module.real(x), m.weight, nil, q.shape) end
	local weight = m.weight:dequantize()
	return class.compute(m, module.real(x), q.shape and weight:view(table.unpack(q.shape)) or weight)
end

local EPSILON = 2.0 ^ -23 -- the scale of zeros

-- Scales and zero points (rows) of x (rows, inputs), codes -128 to 127, by calculate_qparams of compressed-tensors 0.20: 127.5 is the code of the
-- largest absolute value.
local function row_scales(x, q)
	local function along(f) return q.rows == 'token' and f(x, {axis = 2, keep = true}) or f(x):view(1, 1) end
	local zero, scale
	if q.input.offset then
		local low, high = along(x.min):minimum(0), along(x.max):maximum(0)
		scale = (high - low) / 255
		scale = tensor.where(scale:eq(0), EPSILON, scale)
		zero = (-128 - low / scale):clamp(-128, 127):round()
	else
		scale = along(function(y, o) return y:abs():max(o) end) / 127.5
		scale = tensor.where(scale:eq(0), EPSILON, scale)
	end
	return scale, zero
end

-- The codes of x (rows, inputs); while a graph is traced, what they decode to, as its specs cannot follow from values.
local function row_codes(x, q)
	local scale, zero = row_scales(x, q)
	if module.tracer then
		local y = x / scale
		y = (zero and y + zero or y):round():clamp(-128, 127)
		return (zero and y - zero or y) * scale
	end
	local spec = {dtype = 'int8', scheme = q.input.scheme, quant_min = -128}
	if q.rows == 'token' then
		spec.axis, spec.scale, spec.zero_point = 1, scale:view(-1), zero and zero:view(-1):to 'int32'
	else
		spec.scale, spec.zero_point = scale:item(), zero and math.tointeger(zero:item())
	end
	return x:quantize(spec)
end

local function by_rows(m, q, given)
	local x = module.real(given)
	local sizes = {x:size()}
	local inputs = table.remove(sizes)
	local rows = x:reshape(x:nelem() // inputs, inputs):to 'float32'
	local weight = module.tracer and m.weight:dequantize() or m.weight
	if x:nelem() == 0 then return compute(m, given, x, m.weight:dequantize()) end
	sizes[#sizes + 1] = m.weight:size(1)
	return compute(m, given, row_codes(rows, q), weight):view(table.unpack(sizes))
end

-- Codes wait until the product packs them; fewer elements than this never do (tensor/encode_later.c). A traced graph has its own way.
function modes.dynamic(m, q, x)
	if q.rows then return by_rows(m, q, x) end
	local _ <close> = not module.tracer and x:nelem() >= 1 << 18 and internal.deferring() or nil
	return compute(m, x, codes(x, q.input), m.weight)
end

function modes.static(m, q, x)
	return module.class_of(m).compute(m, codes(x, q.input), m.weight, q.output)
end

-- A mode whose layers may have float columns beside their codes: both products are added before the activation.
local function with_floats(mode)
	return function(m, q, x)
		local class = module.class_of(m)
		if not (class.divide and rawget(m, 'outliers')) then return mode(m, q, x) end
		local act, inner, floats = m.act, class.divide(m, x)
		local y
		do
			local _ <close> = internal.fields {m, 'act', false}
			y = mode(m, q, inner) + floats
		end
		return act and y[act](y) or y
	end
end
modes.weight_only, modes.dynamic = with_floats(modes.weight_only), with_floats(modes.dynamic)

-- Integers in the forward pass; the gradient ignores rounding: the tape keeps the codes and decodes them for dX and dW.
function modes.train(m, q, x)
	return compute(m, x, codes(x, q.input), m.weight:quantize(q.weight))
end

return modes
