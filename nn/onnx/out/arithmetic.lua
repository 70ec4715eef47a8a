-- SPDX-License-Identifier: MIT
-- Ops of two operands with broadcasting, and choices by conditions.
local _, internal = ...
local types = internal.import 'nn/onnx/types'
local unary = internal.import 'nn/onnx/out/unary'
local qlinear = internal.import 'nn/onnx/qlinear'
local requantize = internal.import 'nn/onnx/requantize'
local ops = {}

local function both(n, dtype) return n:input(1, dtype), n:input(2, dtype) end

-- The activation of a product or sum.
local function activated(n, y, dtype)
	local act = n:attr 'act'
	return act and unary.functions[act](n, y, dtype) or y
end

local requantized = {Add = true, Sub = true, Mul = true}

local function plain(op)
	return function(n)
		local made = qlinear.binary(n, op) or requantized[op] and requantize.binary(n, op)
		if made then return made end
		local dtype = n:typed()
		local a, b = both(n, dtype)
		return activated(n, n:emit(op, {a, b}), dtype)
	end
end
ops.add, ops.sub, ops.mul, ops.div = plain 'Add', plain 'Sub', plain 'Mul', plain 'Div'
ops.maximum, ops.minimum = plain 'Max', plain 'Min'

-- By way of int32 where the op has no narrow integers; its low bits are those of the result.
local function wide(n, f)
	local dtype = n:typed()
	local d, other = quant.dtype(dtype), types.wide(dtype)
	local a, b = both(n, other)
	local y = f(n, a, b, other, d)
	return other == dtype and y or n:emit('Cast', {y}, {to = n.w.TYPES[dtype]})
end

local function zero(n, dtype) return n:number(quant.dtype(dtype).float and 0.0 or 0, dtype) end

-- The remainder has the sign of the divisor.
local function remainder(n, a, b, dtype)
	if not quant.dtype(dtype).float then return n:emit('Mod', {a, b}) end
	local r = n:emit('Mod', {a, b}, {fmod = 1})
	local other = n:emit('Less', {n:emit('Mul', {n:emit('Sign', {r}), n:emit('Sign', {b})}), zero(n, dtype)})
	return n:emit('Where', {other, n:emit('Add', {r, b}), r})
end

-- floor of a quotient of integers is that of exact numbers.
local quotient = ops.div
function ops.div(n)
	local round = n:attr 'round'
	if not round then return quotient(n) end
	local dtype = n:typed()
	if not quant.dtype(dtype).float then n:refuse('round=%s of integers', round) end
	local a, b = both(n, dtype)
	local y = n:emit('Div', {a, b})
	return round == 'floor' and n:emit('Floor', {y}) or unary.functions.trunc(n, y, dtype)
end

function ops.fmod(n) return wide(n, function(_, a, b) return n:emit('Mod', {a, b}, {fmod = 1}) end) end
function ops.mod(n) return wide(n, remainder) end
function ops.idiv(n)
	return wide(n, function(_, a, b, dtype, d)
		if d.float then return n:emit('Floor', {n:emit('Div', {a, b})}) end
		return n:emit('Div', {n:emit('Sub', {a, remainder(n, a, b, dtype)}), b})
	end)
end

function ops.pow(n) return wide(n, function(_, a, b) return n:emit('Pow', {a, b}) end) end

-- Shifts by numbers that are known: products with a power of two, divisions rounded down.
local function shift(left)
	return function(n)
		local given, by = n.node.inputs[2], n:constant(2)
		local count = type(given) == 'number' and given or by and by:nelem() == 1 and by:view(-1):totable()[1]
		if not count then n:refuse 'numbers of bits that differ or are no constant' end
		return wide(n, function(_, a, _, dtype)
			if count < 0 or count > quant.dtype(dtype).bits - 2 then n:refuse('a shift by %d bits', count) end
			local factor = n:number(1 << count, dtype)
			if left then return n:emit('Mul', {a, factor}) end
			return n:emit('Div', {n:emit('Sub', {a, n:emit('Mod', {a, factor})}), factor})
		end)
	end
end
ops.shl, ops.shr = shift(true), shift(false)

local function bits(logical, bitwise)
	return function(n)
		local dtype = n:typed()
		local a, b = both(n, dtype)
		if types.is_bool(dtype) then return n:emit(logical, {a, b}) end
		n:needs(18)
		return n:emit(bitwise, {a, b})
	end
end
ops.band, ops.bor, ops.bxor = bits('And', 'BitwiseAnd'), bits('Or', 'BitwiseOr'), bits('Xor', 'BitwiseXor')

-- The dtype in which two operands are compared: a number takes that of the tensor if it has it.
local function common(n)
	local a, b = n:dtype(1), n:dtype(2)
	local function of(dtype, x)
		if quant.dtype(dtype).float or math.tointeger(x) and quant.dtype(dtype).min <= x and x <= quant.dtype(dtype).max then return dtype end
		return 'float64'
	end
	if not a or not b then return of(a or b, n.node.inputs[a and 2 or 1]) end
	if a == b then return a end
	local x, y = quant.dtype(a), quant.dtype(b)
	if x.float ~= y.float then return (x.float and a or b) == 'float64' and 'float64' or 'float32' end
	if x.float then return (a == 'float64' or b == 'float64') and 'float64' or 'float32' end
	return 'int64'
end

local function compare(op, negated)
	return function(n)
		local dtype = common(n)
		if not types.is_bool(dtype) then dtype = types.wide(dtype) end
		local function operand(i)
			local given = n.node.inputs[i]
			if type(given) == 'number' then return n:number(quant.dtype(dtype).float and given + 0.0 or math.tointeger(given), dtype) end
			return n:input(i, dtype)
		end
		local y = n:emit(op, {operand(1), operand(2)})
		return negated and n:emit('Not', {y}) or y
	end
end
ops.eq, ops.ne = compare 'Equal', compare('Equal', true)
ops.lt, ops.le, ops.gt, ops.ge = compare 'Less', compare 'LessOrEqual', compare 'Greater', compare 'GreaterOrEqual'

ops['where'] = function(n) return n:emit('Where', {n:input(1, 'bool'), n:input(2, n:typed()), n:input(3, n:typed())}) end

return {ops = ops, activated = activated}
