/* SPDX-License-Identifier: MIT
 * Rows of 16-bit floats in every variant: all of them as float32, by their fields; float32 of all exponents, with fractions at and
 * beside the ties, as the nearest of them, by division in float64; infinities, nan and signed zeros.
 */
#include "tensor/half.h"

#include <math.h>

#include "tensor/cpu.h"
#include "tensor/dtype.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

struct form {
	unsigned dtype;
	const char *name;
	int mantissa, bias; /* bits, and of the exponent */
};

static const struct form forms[] = {{QL_float16, "float16", 10, 15}, {QL_bfloat16, "bfloat16", 7, 127}};

enum { ALL = 65536 };
static uint16_t codes[ALL];
static float numbers[ALL];

/* The value by its fields. */
static double value_of(const struct form *f, unsigned code)
{
	int exponent = (int)((code & 0x7fffu) >> f->mantissa), top = (0x7fff >> f->mantissa);
	double fraction = (double)(code & ((1u << f->mantissa) - 1)) / (double)(1 << f->mantissa), v;

	if (exponent == top)
		v = fraction > 0 ? NAN : INFINITY;
	else
		v = exponent ? ldexp(1 + fraction, exponent - f->bias) : ldexp(fraction, 1 - f->bias);
	return code & 0x8000u ? -v : v;
}

static void check_widened(int variant, const struct form *f)
{
	bool good = true;

	for (unsigned i = 0; i < ALL; i++)
		codes[i] = (uint16_t)i;
	ql_half_to_f32(variant, f->dtype, ALL - 1, codes + 1, numbers + 1);
	for (unsigned i = 1; i < ALL; i++) {
		double v = value_of(f, i), got = (double)numbers[i];

		good &= isnan(v) ? isnan(got) : v == got && !signbit(v) == !signbit(got);
	}
	CHECK(good, "%s as float32, variant %d", f->name, variant);
}

/* The nearest value with f's digits, ties to even. */
static double nearest(const struct form *f, double x)
{
	double most = ldexp(2 - ldexp(1, -f->mantissa), f->bias), unit;
	int exponent;

	if (isnan(x) || isinf(x) || x == 0)
		return x;
	frexp(x, &exponent);
	exponent = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
	unit = ldexp(1, exponent - f->mantissa);
	x = rint(x / unit) * unit;
	return fabs(x) > most ? copysign(INFINITY, x) : x;
}

static uint32_t fraction_of(int i)
{
	static const uint32_t near[] = {0, 1, 0x7fffff, 0x400000, 0x1000, 0xfff, 0x1001, 0x3000, 0x2fff, 0x3001, 0x8000,
		0x7fff, 0x8001, 0x18000, 0x17fff, 0x18001};

	return i < 16 ? near[i] : (uint32_t)i * 2654435761u >> 9;
}

static void check_narrowed(int variant, const struct form *f)
{
	bool good = true;

	for (unsigned i = 0; i < ALL; i++) { /* 256 exponents, 2 signs, 128 fractions */
		uint32_t bits = (i >> 8) << 23 | (i & 1u) << 31 | fraction_of((int)(i >> 1 & 127));

		memcpy(&numbers[i], &bits, sizeof(bits));
	}
	ql_half_from_f32(variant, f->dtype, ALL - 1, numbers + 1, codes + 1);
	for (unsigned i = 1; i < ALL; i++) {
		double want = nearest(f, (double)numbers[i]), got = value_of(f, codes[i]);

		good &= isnan(want) ? isnan(got) : want == got && !signbit(want) == !signbit(got);
	}
	CHECK(good, "float32 as %s, variant %d", f->name, variant);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avx512vnni"};

	for (int l = 0; l < 3; l++) {
		int variant;

		CHECK(ql_kernels_force(levels[l]), "level %s", levels[l]);
		variant = ql_kernels_cpu()->simd->variant;
		for (int f = 0; f < 2; f++) {
			CASE("%s at %s", forms[f].name, levels[l]);
			check_widened(variant, &forms[f]);
			check_narrowed(variant, &forms[f]);
		}
	}
	return check_end();
}
