/* SPDX-License-Identifier: MIT
 * The float32 functions of tensor/vmath/ against libm in double: every upper half of the 32 bits, with
 * lower halves that differ from one to the next, so denormals, infinities, NaN and the limits of overflow are
 * among them. Errors are counted in units in the last place of the exact result (slopes: of 1). The variants of all
 * instruction sets must agree in every bit.
 */
#include <math.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/vmath/act.h"
#include "tensor/vmath/arc.h"
#include "tensor/vmath/hyperbolic.h"
#include "tensor/vmath/log.h"
#include "tensor/vmath/slope.h"
#include "tensor/vmath/wide.h"
#include "tests/check.h"

#define ROW 1024 /* lower halves per upper half are ROW / 64 */

typedef void row_fn(int n, float *out, const float *x);

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double silu(double x)
{
	return x == -INFINITY ? 0 : x / (1 + exp(-x));
}

static double softplus(double x)
{
	return fmax(x, 0) + log1p(exp(-fabs(x))) + (isnan(x) ? x : 0);
}

static double mish(double x)
{
	double e = exp(fmin(x, 50)), n = e * (e + 2);

	return isnan(x) ? x : x == -INFINITY ? 0 : x > 50 ? x : x * (n / (n + 2));
}

static double mish_slope(double x)
{
	double e = exp(x), n = e * (e + 2);

	return fabs(x) > 300 ? (x > 0) : n / (n + 2) + 4 * x * e * (1 + e) / ((n + 2) * (n + 2));
}

static double gelu(double x)
{
	return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double gelu_tanh(double x)
{
	return x == -INFINITY ? 0 : x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)));
}

static double silu_slope(double x)
{
	return fabs(x) > 700 ? (x > 0) : sigmoid(x) * (1 + x * sigmoid(-x)) + (isnan(x) ? x : 0);
}

static double gelu_slope(double x)
{
	double density = 0.39894228040143267794 * exp(-0.5 * x * x);

	return fabs(x) > 50 ? (x > 0) : 0.5 * erfc(-x * 0.70710678118654752440) + x * density;
}

static double gelu_tanh_slope(double x)
{
	double z = 1.5957691216057307117 * (x + 0.044715 * x * x * x),
	       inner = 1.5957691216057307117 * (1 + 0.134145 * x * x);

	return fabs(x) > 50 ? (x > 0) : sigmoid(z) * (1 + x * sigmoid(-z) * inner);
}

/* Where they do not apply they are not asked. */
QL_INLINE float ql_sine(float x)
{
	return ql_sin_fits(x) ? ql_sin(x) : ql_sin_far(x);
}

QL_INLINE float ql_cosine(float x)
{
	return ql_sin_fits(x) ? ql_cos(x) : ql_cos_far(x);
}

QL_INLINE float ql_cube(float x)
{
	return ql_pow_fits(x, 3) ? ql_pow(x, 3) : NAN;
}

QL_INLINE float ql_root(float x)
{
	return ql_pow_fits(x, 0.3f) ? ql_pow(x, 0.3f) : NAN;
}

QL_INLINE float ql_turn(float x)
{
	return ql_atan2(x, -0.75f);
}

static double turn(double x)
{
	return atan2(x, -0.75);
}

static double cube(double x)
{
	return x != 0 && fabs(x) < INFINITY ? x * x * x : NAN;
}

static double root(double x)
{
	return x != 0 && fabs(x) < INFINITY ? pow(x, (double)0.3f) : NAN;
}

/* X(name, reference, bound in units in the last place) */
#define FUNCTIONS(X) \
	X(exp, exp, 1) \
	X(expm1, expm1, 1.5) \
	X(exp2, exp2, 1.1) \
	X(log, log, 1) \
	X(log2, log2, 1.6) \
	X(log10, log10, 2) \
	X(log1p, log1p, 1) \
	X(tanh, tanh, 1.5) \
	X(sigmoid, sigmoid, 2.5) \
	X(silu, silu, 3.5) \
	X(softplus, softplus, 2) \
	X(mish, mish, 3.5) \
	X(erf, erf, 1.5) \
	X(gelu, gelu, 4.5) \
	X(gelu_tanh, gelu_tanh, 250) \
	X(sine, sin, 2) \
	X(cosine, cos, 2) \
	X(cube, cube, 0.6) \
	X(root, root, 0.6) \
	X(asin, asin, 0.51) \
	X(acos, acos, 0.51) \
	X(atan, atan, 0.51) \
	X(turn, turn, 0.51) \
	X(sinh, sinh, 2) \
	X(cosh, cosh, 2) \
	X(asinh, asinh, 2) \
	X(acosh, acosh, 2) \
	X(atanh, atanh, 2)

/* The same with errors in units in the last place of 1. */
#define SLOPES(X) \
	X(silu_slope, silu_slope, 4) \
	X(mish_slope, mish_slope, 4) \
	X(gelu_slope, gelu_slope, 4) \
	X(gelu_tanh_slope, gelu_tanh_slope, 4)

#define X(name, reference, bound) \
	QL_SIMD(void, rows_##name, (int n, float *out, const float *x), { \
		for (int i = 0; i < n; i++) \
			out[i] = ql_##name(x[i]); \
	})
FUNCTIONS(X)
SLOPES(X)
#undef X

static const struct {
	const char *name;
	row_fn *const *rows;
	double (*reference)(double);
	double bound;
	bool of_one;
} functions[] = {
#define X(name, reference, bound) {#name, rows_##name, reference, bound, false},
	FUNCTIONS(X)
#undef X
#define X(name, reference, bound) {#name, rows_##name, reference, bound, true},
		SLOPES(X)
#undef X
};

static double error_in_ulp(float got, double want)
{
	int exponent;

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (isinf((float)want) || isinf(got)) /* the last step before infinity may round either way */
		return got == (float)want                                          ? 0
		       : fabs(want) > 3.40282e38 && fabs((double)got) > 3.40282e38 ? 1
										   : INFINITY;
	frexp(want, &exponent);
	return fabs((double)got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static double error_of(size_t f, float got, double want)
{
	if (functions[f].of_one && !isnan(want))
		return isnan(got) ? INFINITY : fabs((double)got - want) * 0x1p24;
	return error_in_ulp(got, want);
}

static int fill(uint32_t upper, float *x)
{
	uint32_t lower = upper * 2654435761u >> 22;

	for (int i = 0; i < ROW / 64; i++, lower += 4099)
		x[i] = ql_of_bits(upper << 16 | (lower & 0xffff));
	x[0] = ql_of_bits(upper << 16);
	return ROW / 64;
}

static void check_function(size_t f, int variants)
{
	float x[ROW], out[3][ROW];
	double worst = 0, error;
	float at = 0;

	for (uint32_t upper = 0; upper < 65536; upper += 64) {
		int n = 0;

		for (uint32_t i = 0; i < 64; i++)
			n += fill(upper + i, x + n);
		for (int v = 0; v < variants; v++)
			functions[f].rows[v](n, out[v], x);
		for (int i = 0; i < n; i++) {
			error = error_of(f, out[0][i], functions[f].reference((double)x[i]));
			if (error > worst) {
				worst = error;
				at = x[i];
			}
			for (int v = 1; v < variants; v++)
				CHECK(!memcmp(&out[v][i], &out[0][i], sizeof(float)) ||
						(isnan(out[0][i]) && isnan(out[v][i])),
					"variant %d of x = %a: %a, not %a", v, (double)x[i], (double)out[v][i],
					(double)out[0][i]);
		}
	}
	CHECK(worst <= functions[f].bound, "%.3f units in the last place at %a, allowed are %.1f", worst, (double)at,
		functions[f].bound);
}

/* Near whole quarter turns, where the reduction cancels most, and powers of any exponent. */
static void check_wide(void)
{
	static const float close[] = {0x1.f37c8ap95f, 0x1.47d0fep34f, 0x1.32ede2p85f, 0x1.628d4cp40f, 0x1.13093p76f,
		0x1.b08c4ap111f, 0x1p127f, 0x1.fffffep127f, 0x1p20f, 0x1.000002p20f};
	double worst_sin = 0, worst_far = 0, worst_log = 0, worst_pow = 0;
	uint64_t state = 1;

	for (int k = 1; k < 600000; k++) {
		float x = (float)(k * 1.57079632679489662);

		worst_sin = fmax(worst_sin, error_in_ulp(ql_sin(x), sin((double)x)));
		worst_sin = fmax(worst_sin, error_in_ulp(ql_cos(x), cos((double)x)));
	}
	CHECK(worst_sin < 2, "sin and cos: %.3f units in the last place", worst_sin);
	/* floats nearest to whole quarter turns (continued fractions of pi / 2 times powers of 2), and every exponent */
	for (size_t i = 0; i < sizeof(close) / sizeof(close[0]); i++) {
		worst_far = fmax(worst_far, error_in_ulp(ql_sin_far(close[i]), sin((double)close[i])));
		worst_far = fmax(worst_far, error_in_ulp(ql_cos_far(-close[i]), cos((double)close[i])));
	}
	CHECK(worst_far < 2, "sin and cos of large angles: %.3f units in the last place", worst_far);
	for (int i = 0; i < 100000; i++) {
		double x = ldexp(1 + 1e-5 * i, i % 3 == 0 ? 0 : i % 60 - 19), want = log(x);

		worst_log =
			fmax(worst_log, fabs(ql_log_f64(x) - want) / (nextafter(fabs(want), INFINITY) - fabs(want)));
	}
	CHECK(worst_log <= 2 && isnan(ql_log_f64((double)NAN)), "log in double: %.3f units in the last place",
		worst_log);
	for (int i = 0; i < 1000000; i++) {
		float x, y;

		state = state * 6364136223846793005u + 1442695040888963407u;
		x = ql_of_bits((uint32_t)(state >> 33) % 0x7f800000);
		y = ldexpf((float)(int32_t)(uint32_t)(state >> 8), -31) * (float)(i % 4 == 0 ? 100 : i % 4);
		if (i % 8 == 1) {
			x = -x;
			y = (float)((int)(state >> 40) % 21 - 10);
		}
		if (i % 4 == 3)
			x = 0.5f + ldexpf((float)(uint32_t)(state >> 33), -31);
		if (ql_pow_fits(x, y))
			worst_pow = fmax(worst_pow, error_in_ulp(ql_pow(x, y), pow((double)x, (double)y)));
	}
	CHECK(worst_pow < 0.6, "pow: %.3f units in the last place", worst_pow);
}

int main(void)
{
	uint32_t features = ql_cpu()->features;
	int variants = features & QL_CPU_AVX512 ? 3 : features & QL_CPU_AVX2 ? 2 : 1;

	if (variants < 3)
		SKIP("variants of AVX-512", "this CPU has none");
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		CASE("%s", functions[f].name);
		check_function(f, variants);
	}
	CASE("reduction and powers");
	check_wide();
	return check_end();
}
