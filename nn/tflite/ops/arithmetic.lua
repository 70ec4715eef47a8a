-- SPDX-License-Identifier: MIT
-- Elementwise ops of two operands, with broadcasting.
local _, internal = ...
local codes = internal.import 'nn/tflite/codes'
local fixed = internal.import 'nn/tflite/fixed'
local ops = {}

-- Both operands in one form: images if one of them is.
local function pair(n, decode)
	local is_image = n:is_image(1) or n:is_image(2)
	local get = decode and (is_image and n.real_image or n.real_plain) or is_image and n.image or n.plain
	return get(n, 1), get(n, 2), is_image
end

-- Of codes in integers.
local function coded(name)
	return function(n)
		local a, b, is_image = pair(n)
		local act = n:act()
		local out = a:quantized() and b:quantized() and n:spec(act, 'double')
		if out then return n.value(a[name](a, b, {out = out}), is_image) end
		a, b = pair(n, true)
		return n:give(n.under(a[name](a, b), act), is_image)
	end
end
ops.ADD, ops.SUB, ops.MUL = coded 'add', coded 'sub', coded 'mul'

local function plain(f)
	return function(n)
		local a, b, is_image = pair(n, true)
		return n:give(n.under(f(n, a, b), n:act()), is_image)
	end
end

-- Integers are divided towards 0.
ops.DIV = plain(function(n, a, b)
	if n.is_float(a) then return a:div(b) end
	return (a:sign() * b:sign()):to(a:dtype()) * a:abs():idiv(b:abs())
end)
-- The result has the type of the base.
ops.POW = plain(function(_, a, b)
	local y = a:pow(b)
	return y:dtype() == a:dtype() and y or y:to(a:dtype())
end)

for name, method in next, {FLOOR_DIV = 'idiv', FLOOR_MOD = 'mod', MAXIMUM = 'maximum', MINIMUM = 'minimum', LOGICAL_AND = 'band', LOGICAL_OR = 'bor'} do
	ops[name] = plain(function(_, a, b) return a[method](a, b) end)
end

-- Whether x has codes of so many bits.
local function has_bits(x, bits) return x:quantized() and quant.dtype(x:dtype()).bits == bits end

-- Codes of 8 bits as squared_difference.cc: 7 bits finer in units of twice the larger scale, squared, rescaled.
function ops.SQUARED_DIFFERENCE(n)
	local a, b, is_image = pair(n)
	local out = codes.spec(n, 8)
	if not out or not has_bits(a, 8) or not has_bits(b, 8) then
		a, b = pair(n, true)
		return n:give((a - b):square(), is_image)
	end
	local sa, sb = codes.scale(a), codes.scale(b)
	local unit = 2 * math.max(sa, sb)
	local difference = fixed.times(codes.of(a) * 128, fixed.factors {sa / unit}) - fixed.times(codes.of(b) * 128, fixed.factors {sb / unit})
	return codes.give(n, fixed.times(difference * difference, fixed.factors {unit * unit / ((1 << 14) * out.scale)}), is_image)
end

-- Codes as comparisons.cc: 8 bits finer, times their scale; of 16 bits it has so only (not) equal.
for name, method in next, {LESS = 'lt', LESS_EQUAL = 'le', GREATER = 'gt', GREATER_EQUAL = 'ge', EQUAL = 'eq', NOT_EQUAL = 'ne'} do
	ops[name] = function(n)
		local a, b, is_image = pair(n)
		local bits = method:find '^[en]' and a:quantized() and has_bits(a, 16) and 16 or 8
		if has_bits(a, bits) and has_bits(b, bits) then
			a, b = fixed.times(codes.of(a) * 256, fixed.factors {codes.scale(a)}), fixed.times(codes.of(b) * 256, fixed.factors {codes.scale(b)})
		else
			a, b = pair(n, true)
		end
		return n:give(a[method](a, b), is_image)
	end
end

function ops.ADD_N(n)
	local y, is_image = n:real(1)
	for i = 2, n.count do y = y + (is_image and n:real_image(i) or n:real_plain(i)) end
	return n:give(y, is_image)
end

return ops
