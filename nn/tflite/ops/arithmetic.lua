-- SPDX-License-Identifier: MIT
-- Elementwise ops of two operands, with broadcasting.
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
ops.SQUARED_DIFFERENCE = plain(function(_, a, b) return (a - b):square() end)

for name, method in next, {FLOOR_DIV = 'idiv', FLOOR_MOD = 'mod', MAXIMUM = 'maximum', MINIMUM = 'minimum', LESS = 'lt', LESS_EQUAL = 'le',
	GREATER = 'gt', GREATER_EQUAL = 'ge', EQUAL = 'eq', NOT_EQUAL = 'ne', LOGICAL_AND = 'band', LOGICAL_OR = 'bor'} do
	ops[name] = plain(function(_, a, b) return a[method](a, b) end)
end

function ops.ADD_N(n)
	local y, is_image = n:real(1)
	for i = 2, n.count do y = y + (is_image and n:real_image(i) or n:real_plain(i)) end
	return n:give(y, is_image)
end

return ops
