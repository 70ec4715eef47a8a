-- SPDX-License-Identifier: MIT
-- Elementwise ops of two and more operands, with broadcasting.
local internal = select(2, ...)
local scaled = internal.import 'nn/onnx/ops/quantize'.scaled
local ops = {}

for onnx, name in next, {Add = 'add', Sub = 'sub', Equal = 'eq', Less = 'lt', LessOrEqual = 'le', Greater = 'gt', GreaterOrEqual = 'ge',
	And = 'band', Or = 'bor', Xor = 'bxor', BitwiseAnd = 'band', BitwiseOr = 'bor', BitwiseXor = 'bxor'} do
	ops[onnx] = function(_, a, b) return a[name](a, b) end
end

function ops.Mul(n, a, b)
	return scaled(n, a, b) or scaled(n, b, a) or a:mul(b)
end

-- Integers are divided towards 0.
function ops.Div(n, a, b)
	if n.is_float(a) then return a:div(b) end
	local q = a:abs():idiv(b:abs())
	return (a:sign() * b:sign()):to(a:dtype()) * q:to(a:dtype())
end

-- fmod=0: the sign of the divisor, as mod; fmod=1: that of the dividend.
function ops.Mod(n, a, b)
	if n:attr('fmod', 0) == 0 then return a:mod(b) end
	local r = a:abs():mod(b:abs())
	return r * a:sign():to(r:dtype())
end

-- The result has the type of the base.
function ops.Pow(n, a, b)
	if n.known(b) and b:nelem() == 1 and b:dim() <= a:dim() then
		local power = n:list(b, 'exponent')[1]
		if power == 2 and n.is_float(a) then return a:square() end
		if power == 0.5 and n.is_float(a) then return a:sqrt() end
	end
	local y = a:pow(b)
	return y:dtype() == a:dtype() and y or y:trunc():to(a:dtype())
end

local function fold(name)
	return function(_, first, ...)
		for _, x in ipairs {...} do first = first[name](first, x) end
		return first
	end
end

ops.Max, ops.Min, ops.Sum = fold 'maximum', fold 'minimum', fold 'add'
function ops.Mean(n, ...)
	local count = select('#', ...)
	local y = ops.Sum(n, ...)
	return count == 1 and y or y / count
end

-- By a negative number all bits are shifted out.
function ops.BitShift(n, a, b)
	local left = n:given('direction', 'text') == 'LEFT'
	if quant.dtype(b:dtype()).signed and not (n.known(b) and n:quietly(function() return b:ge(0):all():item() end)) then
		b = tensor.where(b:lt(0), b * 0 + 64, b)
	end
	return left and a:shl(b) or a:shr(b)
end

return ops
