-- SPDX-License-Identifier: MIT
-- Parts of exported C that replace functions of the C library: remainders (exact), powers of 0, infinity and nan,
-- integer division and powers.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local vmath = internal.import 'nn/export/vmath'

local function functions(...)
	local needs = {}
	for i, name in ipairs {...} do needs[i] = {vmath.part('ql_' .. name)} end
	return needs
end

parts.add('fmod', {needs = functions('magnitude', 'signed', 'of_bits'), text = [[
/* The remainder with the sign of x: |y| times powers of 2 is taken from |x|, each step exact in double. */
static float q_fmod(float x, float y)
{
	double r = (double)q_magnitude(x), most = (double)q_magnitude(y), t = most;
	float v = x;

	if (x - x != 0.0f || y != y || y == 0.0f)
		return q_of_bits(0x7fc00000u);
	if (y - y == 0.0f) {
		while (2 * t <= r)
			t = 2 * t;
		for (; t >= most; t = 0.5 * t)
			r = r >= t ? r - t : r;
		v = q_signed((float)r, x);
	}
	return v;
}
]]})
parts.add('mod', {needs = {{'fmod'}}, text = [[
/* The remainder with the sign of y. */
static float q_mod(float x, float y)
{
	float v = q_fmod(x, y);

	return v != 0.0f && (v < 0.0f) != (y < 0.0f) ? v + y : v;
}
]]})

parts.add('power', {needs = functions('magnitude', 'signed', 'of_bits', 'pow', 'pow_sign'), text = [[
/* x to the power y; the ends are those of C99's powf. */
static float q_power(float x, float y)
{
	float infinity = q_of_bits(0x7f800000u), size = q_magnitude(x);

	if (y == 2.0f)
		return x * x;
	if (size > 0.0f && size < infinity && q_magnitude(y) < infinity)
		return q_pow(x, y);
	if (y == 0.0f || x == 1.0f)
		return 1.0f;
	if (x != x || y != y)
		return x + y;
	if (y - y != 0.0f)
		return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? infinity : 0.0f;
	size = (size == 0.0f) == (y < 0.0f) ? infinity : 0.0f;
	return q_pow_sign(y) < 0 ? q_signed(size, x) : size;
}
]]})

parts.add('wide_angle', {needs = functions('magnitude', 'sin', 'cos', 'sin_far', 'cos_far'), text = [[
/* Of an integer with more bits than a float has: by the rules for sums, of the floats that it is cut into. */
static void q_wide_angle(double a, double *sine, double *cosine)
{
	double s = 0, c = 1;
	int i;

	for (i = 0; i < 3; i++) {
		float x = (float)a;
		int near = q_magnitude(x) < 1048576.0f;
		double p = (double)(near ? q_sin(x) : q_sin_far(x)), q = (double)(near ? q_cos(x) : q_cos_far(x)), t = s * q + c * p;

		c = c * q - s * p;
		s = t;
		a -= (double)x;
	}
	*sine = s;
	*cosine = c;
}
]]})
for name, result in pairs {sin = 's', cos = 'c', tan = 's / c'} do
	parts.add('wide_' .. name, {needs = {{'wide_angle'}}, text = ([[
static float q_wide_%s(double a)
{
	double s, c;

	q_wide_angle(a, &s, &c);
	return (float)(%s);
}
]]):format(name, result)})
end

---------------------------------------------------------------- integers

parts.add('idivide', {text = [[
/* Rounded towards minus infinity; by 0, an error in Quoll, 0. */
static int64_t q_idivide(int64_t a, int64_t b)
{
	if (b == 0 || b == -1)
		return b ? (int64_t)(0 - (uint64_t)a) : 0;
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
]]})
parts.add('iremainder', {text = [[
/* With the sign of b; by 0, an error in Quoll, 0. */
static int64_t q_iremainder(int64_t a, int64_t b)
{
	int64_t r = b == 0 || b == -1 ? 0 : a % b;

	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
]]})
parts.add('iwhole', {text = [[
/* Rounded towards 0; by 0, an error in Quoll, 0. */
static int64_t q_iwhole(int64_t a, int64_t b)
{
	if (b == 0 || b == -1)
		return b ? (int64_t)(0 - (uint64_t)a) : 0;
	return a / b;
}
]]})
parts.add('irest', {text = [[
/* With the sign of a; by 0, an error in Quoll, 0. */
static int64_t q_irest(int64_t a, int64_t b)
{
	return b == 0 || b == -1 ? 0 : a % b;
}
]]})
parts.add('ipower', {text = [[
/* Wraps; a negative exponent, an error in Quoll, gives 0. */
static int64_t q_ipower(int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = b < 0 ? 0 : 1;

	for (; b > 0; b >>= 1) {
		y *= b & 1 ? x : 1;
		x *= x;
	}
	return (int64_t)y;
}
]]})
parts.add('shift', {text = [[
/* To the left by n, to the right by -n, where the sign is copied. */
static int64_t q_shift(int64_t a, int64_t n)
{
	if (n >= 0)
		return n > 63 ? 0 : (int64_t)((uint64_t)a << n);
	return a >> (n > -63 ? -n : 63);
}
]]})

return true
