-- SPDX-License-Identifier: MIT
-- Functions of one operand. `functions` are those of floats: name(n, x, dtype) -> y; the activations of products are among them.
local _, internal = ...
local types = internal.import 'nn/onnx/types'
local functions, ops = {}, {}

for name, onnx in next, {sigmoid = 'Sigmoid', tanh = 'Tanh', exp = 'Exp', log = 'Log', sqrt = 'Sqrt', reciprocal = 'Reciprocal', erf = 'Erf',
	sin = 'Sin', cos = 'Cos', tan = 'Tan', asin = 'Asin', acos = 'Acos', atan = 'Atan', relu = 'Relu', softplus = 'Softplus', abs = 'Abs',
	neg = 'Neg', floor = 'Floor', ceil = 'Ceil', round = 'Round', sign = 'Sign'} do
	functions[name] = function(n, x) return n:emit(onnx, {x}) end
end

local function times(n, x, y) return n:emit('Mul', {x, y}) end

function functions.square(n, x) return times(n, x, x) end
function functions.rsqrt(n, x) return n:emit('Reciprocal', {n:emit('Sqrt', {x})}) end
function functions.exp2(n, x, dtype) return n:emit('Pow', {n:number(2.0, dtype), x}) end
function functions.expm1(n, x, dtype) return n:emit('Sub', {n:emit('Exp', {x}), n:number(1.0, dtype)}) end
function functions.log1p(n, x, dtype) return n:emit('Log', {n:emit('Add', {x, n:number(1.0, dtype)})}) end
function functions.log2(n, x, dtype) return times(n, n:emit('Log', {x}), n:number(1 / math.log(2), dtype)) end
function functions.log10(n, x, dtype) return times(n, n:emit('Log', {x}), n:number(1 / math.log(10), dtype)) end
function functions.silu(n, x) return times(n, x, n:emit('Sigmoid', {x})) end
function functions.trunc(n, x) return times(n, n:emit('Sign', {x}), n:emit('Floor', {n:emit('Abs', {x})})) end
function functions.relu6(n, x, dtype) return n:emit('Clip', {x, n:number(0.0, dtype), n:number(6.0, dtype)}) end

function functions.hardswish(n, x, dtype)
	if n.opset >= 14 then return n:emit('HardSwish', {x}) end
	return times(n, x, n:emit('HardSigmoid', {x}, {alpha = 1 / 6, beta = 0.5}), dtype)
end

function functions.gelu(n, x, dtype)
	local approximate = n:attr('approximate', 'none')
	if n.opset >= 20 then return n:emit('Gelu', {x}, {approximate = approximate}) end
	local function number(y) return n:number(y, dtype) end
	local inner
	if approximate == 'tanh' then
		local cube = times(n, times(n, x, x), x)
		inner = n:emit('Tanh', {times(n, n:emit('Add', {x, times(n, cube, number(0.044715))}), number((2 / math.pi) ^ 0.5))})
	else
		inner = n:emit('Erf', {times(n, x, number(0.5 ^ 0.5))})
	end
	return times(n, times(n, x, number(0.5)), n:emit('Add', {inner, number(1.0)}))
end

function functions.leakyrelu(n, x) return n:emit('LeakyRelu', {x}, {alpha = n:attr('slope', 0.01) + 0.0}) end

---------------------------------------------------------------- other dtypes

local WHOLE = {floor = true, ceil = true, round = true, trunc = true} -- integers stay as they are

-- Of integers: by way of int32, whose low bits are those of the result.
local function integers(n, name, dtype)
	if WHOLE[name] then return n:input(1) end
	local wide = types.wide(dtype)
	local x = n:input(1, wide)
	local y
	if name == 'relu' then
		y = n:emit('Max', {x, n:number(0, wide)})
	elseif name == 'relu6' then
		y = n:emit('Clip', {x, n:number(0, wide), n:number(6, wide)})
	elseif name == 'square' then
		y = times(n, x, x)
	else
		y = functions[name](n, x, wide)
	end
	return wide == dtype and y or n:emit('Cast', {y}, {to = n.w.TYPES[dtype]})
end

local ELSEWHERE = {silu = true, softplus = true} -- ops with parameters (activation.lua); as parts of products they have none

for name, f in next, functions do
	ops[name] = not ELSEWHERE[name] and function(n)
		local dtype = n:typed()
		if not types.is_float(dtype) then return integers(n, name, dtype) end
		return f(n, n:input(1, dtype), dtype)
	end or nil
end

-- In integers the bounds are the whole numbers within them.
function ops.clamp(n)
	local dtype, low, high = n:typed(), n:attr 'low', n:attr 'high'
	local float, wide = types.is_float(dtype), types.wide(dtype)
	local d = not float and quant.dtype(wide)
	local function bound(x, round)
		if not x then return nil end
		if float then return n:number(x + 0.0, dtype) end
		local whole = math.tointeger(x) or x ~= x and 0 or x > d.max and d.max or x < d.min and d.min or round(x)
		return n:number(math.max(d.min, math.min(d.max, whole)), wide)
	end
	if not low and not high then return n:input(1, dtype) end
	local y = n:emit('Clip', {n:input(1, wide), bound(low, math.ceil), bound(high, math.floor)})
	if low and high and low > high then y = n:emit('Expand', {bound(high, math.floor), n:emit('Shape', {y})}) end
	return n:cast(y, wide, dtype)
end

function ops.bnot(n)
	if types.is_bool(n:typed()) then return n:emit('Not', {n:input(1)}) end
	n:needs(18)
	return n:emit('BitwiseNot', {n:input(1)})
end

function ops.isnan(n) return n:emit('IsNaN', {n:input(1)}) end
local function magnitude(op)
	return function(n)
		local dtype = n:dtype(1)
		return n:emit(op, {n:emit('Abs', {n:input(1)}), n:number(math.huge, dtype)})
	end
end
ops.isfinite = magnitude 'Less'
function ops.isinf(n)
	local sign = n:attr('sign', 0)
	if sign == 0 then return magnitude 'Equal'(n) end
	return n:emit('Equal', {n:input(1), n:number(sign * math.huge, n:dtype(1))})
end

local function same(n) return n:input(1) end
ops.clone, ops.contiguous = same, same

function ops.to(n)
	local target = n:attr 'target'
	if not n.w.TYPES[target] then return n:input(1) end -- a device
	return n:cast(n:input(1), n:dtype(1), target)
end

return {ops = ops, functions = functions}
