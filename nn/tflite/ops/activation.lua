-- SPDX-License-Identifier: MIT
-- Functions of one operand. Codes take a table of all codes, bounds (RELU) move codes in fixed point, other functions decode.
local _, internal = ...
local codes = internal.import 'nn/tflite/codes'
local fixed = internal.import 'nn/tflite/fixed'
local ops = {}

-- Whether LiteRT has a function of codes in fixed point that Quoll has, too (quant/integer/functions.h): by the number of bits.
local FIXED = {sigmoid = {[16] = true}, tanh = {[16] = true}, leakyrelu = {[8] = true, [16] = true}, hardswish = {[8] = true}, abs = {[8] = true, [16] = true},
	sqrt = {[8] = true, [16] = true}, exp = {[16] = true}, log = {[8] = true, [16] = true}, rsqrt = {[16] = true}, gelu = {[16] = true}}
local function in_fixed_point(name, x, out)
	local bits = quant.dtype(out.dtype).bits
	local p = x:qparams()
	local zeros = bits == 8 or (out.zero_point or 0) == 0 and (not p.zero_point or p.zero_point:item() == 0)
	return bits == quant.dtype(x:dtype()).bits and zeros and FIXED[name] and FIXED[name][bits]
		and (name ~= 'sigmoid' and name ~= 'tanh' or out.scale == 1 / 32768)
end

-- By the op of that name.
local function same(name, attrs)
	return function(n)
		local x, is_image = n:any(1)
		local out = x:quantized() and n:spec()
		if out and in_fixed_point(name, x, out) then out = n:spec(nil, 'double') end
		if not out then return n:give(x[name](n:real(1), attrs and attrs(n)), is_image) end
		local o = attrs and attrs(n) or {}
		o.out = out
		return n.value(x[name](x, o), is_image)
	end
end

for name, method in next, {LOGISTIC = 'sigmoid', TANH = 'tanh', EXP = 'exp', LOG = 'log', SQRT = 'sqrt', RSQRT = 'rsqrt', SQUARE = 'square', NEG = 'neg',
	ABS = 'abs', SIN = 'sin', COS = 'cos', FLOOR = 'floor', CEIL = 'ceil', ROUND = 'round', SIGN = 'sign', HARD_SWISH = 'hardswish',
	LOGICAL_NOT = 'bnot', ELU = 'elu'} do
	ops[name] = same(name == 'LOGICAL_NOT' and 'bnot' or method)
end
ops.LEAKY_RELU = same('leakyrelu', function(n) return {slope = n:option('alpha', 0)} end)
ops.GELU = same('gelu', function(n) return {approximate = n:option('approximate', false) and 'tanh' or 'none'} end)

local function bounds(act)
	return function(n)
		local x, is_image = n:any(1)
		local out = x:quantized() and n:spec(act, 'double')
		if out then return n.value(x:requantize(out), is_image) end
		return n:give(n.under(n:real(1), act), is_image)
	end
end
ops.RELU, ops.RELU6, ops.RELU_N1_TO_1 = bounds 'relu', bounds 'relu6', bounds 'relu_n1_to_1'

local function decoded(f)
	return function(n)
		local x, is_image = n:real(1)
		return n:give(f(n, x, is_image), is_image)
	end
end
-- A slope of one axis is that of the last one.
function ops.PRELU(n)
	local x, is_image = n:any(1)
	local slope = is_image and n:image(2) or n:plain(2)
	local out = x:quantized() and slope:quantized() and n:spec(nil, 'double')
	if not out then x, slope = n:real(1), is_image and n:real_image(2) or n:real_plain(2) end
	local y = x:prelu(slope, {axis = slope:dim() == 1 and x:dim() > 1 and x:dim() or nil, out = out or nil})
	return out and n.value(y, is_image) or n:give(y, is_image)
end

-- Along the last axis of the file: the channels of images.
local function last(x, is_image) return is_image and 2 or x:dim() end

-- Of 16 bits with results in units of 2^-15 (softmax.h); nil: not of these.
local function softmax16(n, beta)
	local x, out = n:any(1), codes.spec(n, 16)
	if not out or not x:quantized() or quant.dtype(x:dtype()).bits ~= 16 or out.scale ~= 1 / 32768 or x:nelem() == 0 then return nil end
	x = n:plain(1)
	if x:size(x:dim()) > 65535 or beta <= 0 then return nil end
	return codes.give(n, codes.softmax16(codes.of(x), codes.scale(x) * beta / (10 / 65535)))
end

function ops.SOFTMAX(n)
	local x, is_image = n:any(1)
	local beta, out = n:option('beta', 0), x:quantized() and n:spec(nil, 'double')
	local wide = out and softmax16(n, beta)
	if wide then return wide end
	if out and (quant.dtype(x:dtype()).bits ~= 8 or quant.dtype(out.dtype).bits ~= 8 or out.scale ~= 1 / 256) then out = nil end
	if out and beta == 1 then return n.value(x:softmax {axis = last(x, is_image), out = out}, is_image) end
	x = n:real(1)
	if beta ~= 1 then x = x * beta end
	return n:give(x:softmax {axis = last(x, is_image)}, is_image)
end

ops.LOG_SOFTMAX = decoded(function(_, x, is_image) return x:logsoftmax {axis = last(x, is_image)} end)

-- Of codes in units of 1/128, by the exact sum of the squares (l2normalization.h).
local function l2_codes(n, x)
	local y = codes.of(x)
	local signed = (n:spec().zero_point or 0) == 0 -- else its zero point is 128
	local root = codes.inverse_root((y * y):sum {axis = y:dim(), keep = true}, signed and 7 or 0)
	return codes.give(n, fixed.times(signed and y or y * 128, root))
end

function ops.L2_NORMALIZATION(n)
	local x, is_image = n:any(1)
	local out = codes.spec(n, 8)
	local depth = x:size(last(x, is_image))
	if out and x:quantized() and quant.dtype(x:dtype()).bits == 8 and out.scale == 1 / 128 and not n:act() and depth * 65025 < 1 << 31 then
		return l2_codes(n, n:plain(1))
	end
	x = n:real(1)
	local length = x:square():sum {axis = last(x, is_image), keep = true}:sqrt()
	return n:give(n.under(x / length:maximum(1e-6), n:act()), is_image)
end

-- Over the last axis of the file, by the sum of the squares, not their mean.
ops.LOCAL_RESPONSE_NORMALIZATION = decoded(function(n, x, is_image)
	local radius = n:option('radius', 0)
	if radius < 0 or radius >= 1 << 30 then n:fail('radius: wanted 0 to 2^30, got %d', radius) end
	local size, shape = 2 * radius + 1, {x:size()}
	local rows = is_image and x or x:reshape(-1, shape[#shape])
	local y = nn.localresponsenorm(rows, size, {alpha = n:option('alpha', 0) * size, beta = n:option('beta', 0), k = n:option('bias', 0)})
	return is_image and y or y:reshape(table.unpack(shape))
end)

return ops
