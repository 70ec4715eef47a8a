-- SPDX-License-Identifier: MIT
-- Activations with parameters, hyperbolic functions and others that are not functions of products. Where ONNX has the op in the opset of
-- the file that is written, else what it is made of.
local _, internal = ...
local linear = internal.import 'nn/onnx/out/linear'
local ops, functions = {}, {}

local function add(n, a, b) return n:emit('Add', {a, b}) end
local function mul(n, a, b) return n:emit('Mul', {a, b}) end
local function exp(n, x) return n:emit('Exp', {x}) end

for name, onnx in next, {sinh = 'Sinh', cosh = 'Cosh', asinh = 'Asinh', acosh = 'Acosh', atanh = 'Atanh', softsign = 'Softsign'} do
	functions[name] = function(n, x) return n:emit(onnx, {x}) end
end

function functions.elu(n, x) return n:emit('Elu', {x}, {alpha = n:attr('alpha', 1.0) + 0.0}) end
function functions.selu(n, x) return n:emit('Selu', {x}) end

-- Celu has floats of 32 bits only.
function functions.celu(n, x, dtype)
	local alpha = n:attr('alpha', 1.0) + 0.0
	if dtype == 'float32' then return n:emit('Celu', {x}, {alpha = alpha}) end
	local low = n:emit('Sub', {exp(n, n:emit('Div', {x, n:number(alpha, dtype)})), n:number(1.0, dtype)})
	return n:emit('Where', {n:emit('Greater', {x, n:number(0.0, dtype)}), x, mul(n, low, n:number(alpha, dtype))})
end

function functions.mish(n, x)
	if n.opset >= 18 then return n:emit('Mish', {x}) end
	return mul(n, x, n:emit('Tanh', {n:emit('Softplus', {x})}))
end

function functions.logsigmoid(n, x) return n:emit('Neg', {n:emit('Softplus', {n:emit('Neg', {x})})}) end

function functions.hardsigmoid(n, x)
	return n:emit('HardSigmoid', {x}, {alpha = n:attr('alpha', 1 / 6) + 0.0, beta = n:attr('beta', 0.5) + 0.0})
end

function functions.hardtanh(n, x, dtype)
	return n:emit('Clip', {x, n:number(n:attr('low', -1) + 0.0, dtype), n:number(n:attr('high', 1) + 0.0, dtype)})
end

function functions.shrink(n, x) return n:emit('Shrink', {x}, {lambd = n:attr('lambda', 0.5) + 0.0, bias = n:attr('bias', 0) + 0.0}) end

function functions.threshold(n, x, dtype)
	local most, value = n:attr('threshold', 1) + 0.0, n:attr('value', 0) + 0.0
	return n:emit('Where', {n:emit('LessOrEqual', {x, n:number(most, dtype)}), n:number(value, dtype), x})
end

function functions.silu(n, x, dtype)
	local alpha = n:attr('alpha', 1) + 0.0
	return mul(n, x, n:emit('Sigmoid', {alpha == 1 and x or mul(n, x, n:number(alpha, dtype))}))
end

function functions.softplus(n, x, dtype)
	local beta, most = n:attr('beta', 1) + 0.0, n:attr 'threshold'
	local times = beta == 1 and x or mul(n, x, n:number(beta, dtype))
	local y = n:emit('Softplus', {times})
	if beta ~= 1 then y = n:emit('Div', {y, n:number(beta, dtype)}) end
	return most and n:emit('Where', {n:emit('Greater', {times, n:number(most + 0.0, dtype)}), x, y}) or y
end

for name, f in next, functions do
	ops[name] = function(n)
		local dtype = linear.precision(n)
		return n:cast(f(n, n:input(1, dtype), dtype), dtype, n:typed())
	end
end

-- Slopes along an axis (default 2), or with the sizes that broadcast.
function ops.prelu(n)
	local dtype, axis, slope = linear.precision(n), n:attr('axis', 2), n:input(2, linear.precision(n))
	local rank, shape = n:rank(1), n.shapes[2]
	if #shape == 1 and shape[1] ~= 1 and rank > 1 then
		local sizes = {}
		for _ = n:axis(axis, rank) + 1, rank do sizes[#sizes + 1] = #sizes == 0 and shape[1] or 1 end
		slope = n:emit('Reshape', {slope, n:ints(sizes)})
	end
	return n:cast(n:emit('PRelu', {n:input(1, dtype), slope}), dtype, n:typed())
end

-- The angle of atan(y / x), in the half of the plane of x.
function ops.atan2(n)
	local dtype = linear.precision(n)
	local y, x = n:input(1, dtype), n:input(2, dtype)
	local function number(v) return n:number(v, dtype) end
	local zero = number(0.0)
	local side = n:emit('Where', {n:emit('Less', {y, zero}), number(-math.pi), number(math.pi)})
	local angle = n:emit('Atan', {n:emit('Div', {y, x})})
	angle = n:emit('Where', {n:emit('Less', {x, zero}), add(n, angle, side), angle})
	local both = n:emit('And', {n:emit('Equal', {x, zero}), n:emit('Equal', {y, zero})})
	return n:cast(n:emit('Where', {both, zero, angle}), dtype, n:typed())
end

return {ops = ops, functions = functions}
