/* SPDX-License-Identifier: MIT
 * The float32 functions of tensor/vmath*.h against libm in double: every upper half of the 32 bits, with
 * lower halves that differ from one to the next, so denormals, infinities, NaN and the limits of overflow are
 * among them. Errors are counted in units in the last place of the exact result. The variants of all
 * instruction sets must agree in every bit.
 */
#include <math.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/vmath_act.h"
#include "tensor/vmath_log.h"
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

static double gelu(double x)
{
	return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double gelu_tanh(double x)
{
	return x == -INFINITY ? 0 : x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)));
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
	X(erf, erf, 1.5) \
	X(gelu, gelu, 4.5) \
	X(gelu_tanh, gelu_tanh, 250)

#define X(name, reference, bound) \
	QL_SIMD(void, rows_##name, (int n, float *out, const float *x), { \
		for (int i = 0; i < n; i++) \
			out[i] = ql_##name(x[i]); \
	})
FUNCTIONS(X)
#undef X

static const struct {
	const char *name;
	row_fn *const *rows;
	double (*reference)(double);
	double bound;
} functions[] = {
#define X(name, reference, bound) {#name, rows_##name, reference, bound},
	FUNCTIONS(X)
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
			error = error_in_ulp(out[0][i], functions[f].reference((double)x[i]));
			if (error > worst) {
				worst = error;
				at = x[i];
			}
			for (int v = 1; v < variants; v++)
				CHECK(!memcmp(&out[v][i], &out[0][i], sizeof(float)) ||
						(isnan(out[0][i]) && isnan(out[v][i])),
					"variant %d of x = %a: %a, not %a", v, (double)x[i],
					(double)out[v][i], (double)out[0][i]);
		}
	}
	CHECK(worst <= functions[f].bound, "%.3f units in the last place at %a, allowed are %.1f", worst,
		(double)at, functions[f].bound);
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
	return check_end();
}
