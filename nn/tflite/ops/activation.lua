-- SPDX-License-Identifier: MIT
-- Functions of one operand. Codes take a table of all codes, bounds (RELU) move codes in fixed point, other functions decode.
local ops = {}

-- Whether LiteRT has a function of codes in fixed point that Quoll has, too (quant/integer/functions.h).
local function in_fixed_point(name, x, out)
	local bits = quant.dtype(out.dtype).bits
	if bits ~= quant.dtype(x:dtype()).bits then return false end
	if name == 'sigmoid' or name == 'tanh' then return bits == 16 and out.scale == 1 / 32768 end
	return name == 'leakyrelu' or name == 'hardswish' and bits == 8
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
ops.PRELU = decoded(function(n, x, is_image)
	local slope = is_image and n:real_image(2) or n:real_plain(2)
	return x:prelu(slope, {axis = slope:dim() == 1 and x:dim() > 1 and x:dim() or nil})
end)

-- Along the last axis of the file: the channels of images.
local function last(x, is_image) return is_image and 2 or x:dim() end

function ops.SOFTMAX(n)
	local x, is_image = n:any(1)
	local beta, out = n:option('beta', 0), x:quantized() and n:spec(nil, 'double')
	if out and (quant.dtype(x:dtype()).bits ~= 8 or quant.dtype(out.dtype).bits ~= 8 or out.scale ~= 1 / 256) then out = nil end
	if out and beta == 1 then return n.value(x:softmax {axis = last(x, is_image), out = out}, is_image) end
	x = n:real(1)
	if beta ~= 1 then x = x * beta end
	return n:give(x:softmax {axis = last(x, is_image)}, is_image)
end

ops.LOG_SOFTMAX = decoded(function(_, x, is_image) return x:logsoftmax {axis = last(x, is_image)} end)
ops.L2_NORMALIZATION = decoded(function(n, x, is_image)
	local length = x:square():sum {axis = last(x, is_image), keep = true}:sqrt()
	return n.under(x / length:maximum(1e-6), n:act())
end)

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
