-- SPDX-License-Identifier: MIT
-- LiteRT's arithmetic of recurrent ops in ops on int64 tensors: products with multipliers, shifts, and gemmlowp's functions of 16 bits
-- (common.h, portable_tensor_utils.cc, fixedpoint.h). Numbers that are the same for all inputs are tensors that are made at load.
local _, internal = ...
local fixed = {}

local function single(x) return (string.unpack('<f', string.pack('<f', x))) end
fixed.single = single

-- A plain list or number as an int64 tensor.
local function whole(list) return type(list) == 'table' and tensor(list):to 'int64' or tensor {list}:to 'int64' end

local function negative(x) return x:lt(0):to 'int64' end

-- x / 2^n, halves away from 0.
local function divided(x, n)
	if n == 0 then return x end
	return (x + (1 << n - 1) - negative(x)):idiv(1 << n)
end
fixed.divided = divided

function fixed.clamp16(x) return x:clamp(-32768, 32767) end

-- Factors, one for each of the last axis of what they multiply (or one for all), for fixed.times.
function fixed.factors(list)
	local made = {multiplier = {}, left = {}, right = {}, half = {}, any = {}}
	for i, m in ipairs(list) do
		local multiplier, shift = internal.fixed(m)
		local right = math.max(-shift, 0)
		made.multiplier[i], made.left[i], made.right[i] = multiplier, 1 << math.max(shift, 0), 1 << right
		made.half[i], made.any[i] = right > 0 and 1 << right - 1 or 0, right > 0 and 1 or 0
	end
	for key, values in next, made do made[key] = whole(values) end
	return made
end

-- MultiplyByQuantizedMultiplier: the high half of the doubled product, rounded, then a rounding shift.
function fixed.times(x, f)
	local high = (x * f.left * f.multiplier + (1 << 30)):idiv(1 << 31)
	return (high + f.half - negative(high) * f.any):idiv(f.right)
end

---------------------------------------------------------------- functions of 16 bits

-- Fractions of 2^15: the high half of the doubled product, rounded.
local function product(a, b) return (a * b + (1 << 14)):idiv(1 << 15):clamp(-32768, 32767) end
local function left(x, n) return (x * (1 << n)):clamp(-32768, 32767) end

-- A constant of gemmlowp, which has 32 bits there.
local function constant(x) return math.tointeger((x + (1 << 15)) // (1 << 16)) end

-- exp(a) of a <= 0 with this many bits before the point, as a fraction.
local function exponential(a, bits)
	local fraction = 15 - bits
	local quarter = 1 << fraction - 2
	local part = a - a:idiv(quarter) * quarter - quarter
	local x = (bits > 0 and left(part, bits) or part) + (1 << 12)
	local x2 = product(x, x)
	local x3, x4 = product(x2, x), product(x2, x2)
	local term = divided(product(divided(x4, 2) + x3, constant(715827883)) + x2, 1)
	local y = (product(x + term, constant(1895147668)) + constant(1895147668)):clamp(-32768, 32767)
	local rest = part - a
	for power, factor in ipairs {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242} do
		local exponent = power - 3
		if bits > exponent then
			local bit = rest:idiv(1 << fraction + exponent):mod(2)
			y = y + bit * (product(y, constant(factor)) - y)
		end
	end
	if bits > 5 then y = y * a:ge(-(32 << fraction)):to 'int64' end
	local zero = a:eq(0):to 'int64'
	return y + zero * (32767 - y)
end

-- 1 / (half of 1 + a), in units of 2^-13, by three steps of Newton's method.
local function reciprocal(a)
	local half = (a + 32768):idiv(2)
	local x = product(half, constant(-1010580540)) + constant(1515870810)
	for _ = 1, 3 do
		local rest = (1 << 13) - product(half, x)
		x = x + left(product(x, rest), 2)
	end
	return x
end

-- sigmoid of numbers with `bits` bits before the point, in 2^-15.
local function sigmoid(a, bits)
	local y = left(reciprocal(exponential(-a:abs(), bits)), 1)
	local up, none = a:gt(0):to 'int64', a:eq(0):to 'int64'
	y = up * y + (1 - up) * (32767 - y)
	return y + none * (16384 - y)
end

local function tanh(a, bits)
	local y = left(reciprocal(exponential(-a:abs(), bits + 1)) - (1 << 13), 2)
	local down, none = negative(a), a:eq(0):to 'int64'
	return (y - 2 * down * y) * (1 - none)
end

-- The values for all codes of 16 bits, from the least on.
function fixed.table(name, bits)
	local a = tensor.arange(-32768, 32767):to 'int64'
	return (name == 'sigmoid' and sigmoid or tanh)(a, bits)
end

return fixed
