-- SPDX-License-Identifier: MIT
-- LiteRT's integer arithmetic of ops of 8-bit codes (and some of 16), in ops on int64 tensors of codes less their zero points:
--   codes.of(x)                  those of a quantized tensor
--   codes.give(n, y, is_image)   the output with these codes, saturated
--   codes.scale(x)               the scale of a quantized tensor that has one
--   codes.spec(n, bits)          the output's spec where it has so many bits; nil: it has not, or floats
--   codes.wide(x, m)             x * m of a 64-bit x, whose multiplier has 16 bits (common.h); nil: no such factor
--   codes.inverse_root(x, more)  the factors of fixed.times for 2^more / sqrt of whole numbers (GetInvSqrtQuantizedMultiplierExp)
--   codes.softmax16(x, m)        softmax along the last axis of 16-bit codes whose scale is m * 10 / 65535, in units of 2^-15 (softmax.h)
local _, internal = ...
local fixed = internal.import 'nn/tflite/fixed'
local codes = {}

function codes.of(x)
	local p = x:qparams()
	local zero = p.zero_point and math.tointeger(p.zero_point:item()) or 0
	local y = x:codes():to 'int64'
	return zero ~= 0 and y - zero or y
end

function codes.scale(x) return x:qparams().scale:item() end

-- A float below 2^22 times the scale gives the code back when it is quantized.
function codes.give(n, y, is_image, i)
	local spec = n:spec(nil, nil, i)
	return n:give(y:clamp(-0x10000, 0x10000):to 'float32' * spec.scale, is_image, i)
end

-- The output's spec where it has codes of that many bits.
function codes.spec(n, bits)
	local spec = n:spec()
	return spec and quant.dtype(spec.dtype).bits == bits and spec or nil
end

function codes.wide(x, m)
	local multiplier, shift = internal.fixed(m)
	if shift > 14 then return nil end
	local reduced = multiplier < 0x7fff0000 and (multiplier + (1 << 15)) >> 16 or 0x7fff
	return (x * reduced + (1 << 14 - shift)):idiv(1 << 15 - shift)
end

---------------------------------------------------------------- 1 / sqrt(x)

-- Fractions with 31 bits after the sign: the high half of the doubled product, rounded.
local function product(a, b) return (a * b + (1 << 30)):idiv(1 << 31) end

local function whole(list)
	list.dtype = 'int64'
	return tensor(list)
end

-- The shift that brings x below 2^29 and at or above 2^27, in pairs of bits: left ones are positive. The pairs are counted along a new axis.
local function pairs_of(x)
	local below, above = {}, {}
	for k = 1, 14 do below[k] = 1 << 29 - 2 * k end
	for k = 1, 17 do above[k] = 1 << 27 + 2 * k end
	local sizes = {x:size()}
	sizes[#sizes + 1] = 1
	local wide = x:view(table.unpack(sizes))
	local function count(mask) return mask:to 'int64':sum {axis = #sizes} end
	return count(wide:lt(whole(below))), count(wide:ge(whole(above)))
end

-- The powers of 2 with these exponents of 0 to 40.
local function power(exponents)
	local sizes, powers = {exponents:size()}, {}
	for i = 0, 40 do powers[i + 1] = 1 << i end
	sizes[#sizes + 1] = 1
	return whole(powers):gathernd((exponents + 1):view(table.unpack(sizes)))
end

-- Five steps of Newton's method in fractions of 2^28 (3 bits before the point).
local function newton(x)
	local input = x:idiv(2)
	local half = fixed.divided(input, 1)
	local y = whole {1 << 28}
	for _ = 1, 5 do
		local cube = (product(product(y, y), y) * 64):clamp(-(1 << 31), (1 << 31) - 1)
		y = ((product(y, whole {(1 << 28) + (1 << 27)}) - product(half, cube)) * 8):clamp(-(1 << 31), (1 << 31) - 1)
	end
	return product(y, whole {1518500250})
end

-- x is below 2^31; 0 counts as 1.
function codes.inverse_root(x, more)
	local left, right = pairs_of(x)
	local tiny = x:le(1):to 'int64'
	local small = tiny + x * (1 - tiny)
	local multiplier = newton(small:idiv(power(right * 2)) * power(left * 2))
	local up = (left - right - 11):clamp(0, 40)
	local exponent = left - right - 11 - up -- of the result: at most 0
	multiplier = multiplier * power(up) * (1 - tiny) + ((1 << 31) - 1) * tiny
	exponent = exponent * (1 - tiny) + more
	local shift = (-exponent):clamp(0, 40)
	local is_right = shift:gt(0):to 'int64'
	return {multiplier = multiplier, left = power(exponent:clamp(0, 40)), right = power(shift), half = power((shift - 1):clamp(0, 40)) * is_right, any = is_right}
end

---------------------------------------------------------------- softmax of 16 bits

local function rounded(v) return v < 0 and math.ceil(v - 0.5) or math.floor(v + 0.5) end

-- f between `first` and `last` in units of 2^-15 at 513 places; half of the distance to the chord in its middle is taken away.
local function curve(f, first, last)
	local list, step = {}, (last - first) / 512
	for i = 0, 511 do
		local here, next = f(first + i * step) * 32768, f(first + (i + 1) * step) * 32768
		local middle = f(first + i * step + step / 2) * 32768
		local bend = rounded((next + rounded(here)) / 2) - rounded(middle)
		list[i + 1] = math.tointeger(math.max(-32768, math.min(32767, rounded(here) - rounded(bend / 2))))
	end
	list[513] = math.tointeger(math.max(-32768, math.min(32767, rounded(f(last) * 32768))))
	return list
end

-- Between the places of a curve, for x from -32768 to 32767.
local function between(list, x)
	local place = (x + 32768):idiv(128)
	local sizes = {x:size()}
	sizes[#sizes + 1] = 1
	local index = (place + 1):view(table.unpack(sizes))
	local steps = {}
	for i = 1, 512 do steps[i] = list[i + 1] - list[i] end
	local part = x + 32768 - place * 128
	return whole(list):gathernd(index) + (whole(steps):gathernd(index) * part + 64):idiv(128)
end

function codes.softmax16(x, m)
	local axis, powers = x:dim(), {}
	local below = fixed.times(x - x:max {axis = axis, keep = true}, fixed.factors {m})
	local e = between(curve(math.exp, -10, 0), (below + 32767):clamp(-32768, 32767))
	local sum = e:sum {axis = axis, keep = true}
	for k = 1, 30 do powers[k] = 1 << k end
	local log2 = sum:ge(whole(powers)):to 'int64':sum {axis = axis, keep = true}
	local above = (sum * power(30 - log2) + (1 << 13)):idiv(1 << 14) - (1 << 15) - (1 << 16)
	local share = between(curve(function(v) return 1 / (1 + v) end, 0, 1), above:clamp(-32768, 32767))
	return (e * share + power(log2 - 1)):idiv(power(log2)):clamp(0, 32767)
end

return codes
