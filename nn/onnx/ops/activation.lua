-- SPDX-License-Identifier: MIT
-- Activations and functions of one operand.
local function same(name)
	return function(_, x) return x[name](x) end
end

local ops = {}
for onnx, name in next, {Relu = 'relu', Sigmoid = 'sigmoid', Tanh = 'tanh', Exp = 'exp', Log = 'log', Sqrt = 'sqrt', Reciprocal = 'reciprocal',
	Abs = 'abs', Neg = 'neg', Floor = 'floor', Ceil = 'ceil', Round = 'round', Sign = 'sign', Erf = 'erf', Sin = 'sin', Cos = 'cos', Tan = 'tan',
	Asin = 'asin', Acos = 'acos', Atan = 'atan', IsNaN = 'isnan', Sinh = 'sinh', Cosh = 'cosh',
	Asinh = 'asinh', Acosh = 'acosh', Atanh = 'atanh', Softsign = 'softsign', Mish = 'mish', HardSwish = 'hardswish', Not = 'bnot', BitwiseNot = 'bnot'} do
	ops[onnx] = same(name)
end

function ops.Identity(_, x) return x end
function ops.Dropout(n, x, ratio, training)
	if training and n:number(training, 'training_mode') ~= 0 and (not ratio or n:number(ratio, 'ratio') ~= 0) then
		n:fail 'training_mode: wanted false, got true'
	end
	if n.outputs > 1 then return x, tensor.ones {dtype = 'bool', table.unpack(n.shape(x))} end
	return x
end

function ops.LeakyRelu(n, x) return x:leakyrelu(n:attr('alpha', 0.01)) end
function ops.Softplus(_, x) return x:softplus() end
function ops.Gelu(n, x) return x:gelu {approximate = n:attr('approximate', 'none')} end
function ops.Swish(n, x)
	local alpha = n:attr('alpha', 1.0)
	if alpha == 1 then return x:silu() end
	return x * (x * alpha):sigmoid()
end

function ops.HardSigmoid(n, x) return x:hardsigmoid(n:attr('alpha', 0.2), n:attr('beta', 0.5)) end
function ops.Elu(n, x) return x:elu(n:attr('alpha', 1.0)) end
function ops.Celu(n, x) return x:celu(n:attr('alpha', 1.0)) end
function ops.Shrink(n, x) return n.to(x:shrink(n:attr('lambd', 0.5), n:attr('bias', 0.0)), x:dtype()) end
function ops.ThresholdedRelu(n, x) return x:threshold(n:attr('alpha', 1.0), 0) end

local ALPHA, GAMMA = 1.67326319217681884765625, 1.05070102214813232421875 -- float32, as in files

function ops.Selu(n, x)
	local alpha, gamma = n:attr('alpha', ALPHA), n:attr('gamma', GAMMA)
	if math.abs(alpha - ALPHA) < 1e-6 and math.abs(gamma - GAMMA) < 1e-6 then return x:selu() end
	return x:elu(alpha) * gamma
end

-- Slopes are aligned with the last axes of x.
function ops.PRelu(_, x, slope)
	if slope:dim() == 1 and slope:size(1) > 1 then return x:prelu(slope, {axis = x:dim()}) end
	return x:prelu(slope)
end

function ops.IsInf(n, x)
	local up, down = n:attr('detect_positive', 1) ~= 0, n:attr('detect_negative', 1) ~= 0
	if up and down then return x:isinf() end
	if not up and not down then return x:gt(math.huge) end
	return x:isinf(up and 1 or -1)
end

-- a, gated by b, through a Swish.
function ops.SwiGLU(n, a, b) return ops.Swish(n, a) * b end

-- Up to opset 12 all axes from `axis` on are one.
local function lines(n, x, f)
	local rank = x:dim()
	if n.opset >= 13 then return f(x, n:axis(n:attr('axis', -1), rank)) end
	local axis, sizes, rows, columns = n:axis(n:attr('axis', 1), rank), n.shape(x), 1, 1
	if axis == rank then return f(x, rank) end
	for i, size in ipairs(sizes) do
		if i < axis then rows = rows * size else columns = columns * size end
	end
	return f(x:contiguous():view(rows, columns), 2):view(table.unpack(sizes))
end

function ops.Softmax(n, x) return lines(n, x, function(y, axis) return y:softmax(axis) end) end
function ops.LogSoftmax(n, x) return lines(n, x, function(y, axis) return y:logsoftmax(axis) end) end

function ops.Clip(n, x, low, high)
	if x:quantized() then
		low, high = low and n:number(low, 'min'), high and n:number(high, 'max')
		return n.on_codes(x, function(y, value) return y:clamp {low = value(low), high = value(high)} end)
	end
	if low and not n.known(low) or high and not n.known(high) then
		x = low and x:maximum(low) or x
		return high and x:minimum(high) or x
	end
	low, high = n:given('min', 'float') or low and n:number(low, 'min'), n:given('max', 'float') or high and n:number(high, 'max')
	if not low and not high then return x end
	return x:clamp {low = low, high = high}
end

return {ops = ops, lines = lines, codes = {'Identity', 'Dropout', 'Clip'}}
