-- SPDX-License-Identifier: MIT
-- TensorFlow Lite's functions of fixed point (kernels/internal/common.h, quantization_util.cc) as its text has them:
--   oracle.times(rule, wide, sum, factor)                  MultiplyByQuantizedMultiplier; wide: of a 64-bit sum
--   oracle.code(rule, wide, sum, factor, dtype, zero)      that as a code, and whether it is not saturated
--   oracle.single(x), oracle.rint(x)                       rounded to float32; to a whole number, half to even
local oracle = {}

function oracle.single(x) return (string.unpack('<f', string.pack('<f', x))) end
function oracle.rint(x) return math.tointeger((x + 0x1.8p52) - 0x1.8p52) end

-- QuantizeMultiplier
local function multiplier(m)
	local shift = 0
	while m >= 1 do m, shift = m / 2, shift + 1 end
	while m < 0.5 do m, shift = m * 2, shift - 1 end
	local q = math.floor(m * 2.0 ^ 31 + 0.5)
	if q == 1 << 31 then q, shift = q // 2, shift + 1 end
	return math.tointeger(q), shift
end

-- SaturatingRoundingDoublingHighMul and RoundingDivideByPOT
local function high(a, b)
	local ab = a * b
	local nudged = ab + (ab >= 0 and 1 << 30 or 1 - (1 << 30))
	return nudged >= 0 and nudged // (1 << 31) or -(-nudged // (1 << 31))
end
local function rounded(x, exponent)
	local mask = (1 << exponent) - 1
	return x // (1 << exponent) + ((x & mask) > (mask >> 1) + (x < 0 and 1 or 0) and 1 or 0)
end

function oracle.times(rule, wide, sum, factor)
	if rule == 'exact' then -- FULLY_CONNECTED of LiteRT 2.3: std::round
		local v = sum * factor
		return math.tointeger(v < 0 and math.ceil(v - 0.5) or math.floor(v + 0.5))
	end
	local q, shift = multiplier(factor)
	if wide then
		local reduced = q < 0x7fff0000 and (q + (1 << 15)) // (1 << 16) or 0x7fff
		return (sum * reduced + (1 << (14 - shift))) // (1 << (15 - shift))
	elseif rule == 'single' then
		return (sum * q + (1 << (30 - shift))) // (1 << (31 - shift))
	end
	return rounded(high(sum * (1 << math.max(shift, 0)), q), math.max(-shift, 0))
end

function oracle.code(rule, wide, sum, factor, dtype, zero)
	local bits, unsigned = tonumber(dtype:match '%d+'), dtype:find '^u'
	local lo, hi = unsigned and 0 or -(1 << (bits - 1)), unsigned and (1 << bits) - 1 or (1 << (bits - 1)) - 1
	local code = oracle.times(rule, wide, sum, factor) + (zero or 0)
	return math.max(lo, math.min(hi, code)), code > lo and code < hi
end

return oracle
