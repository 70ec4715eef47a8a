/* SPDX-License-Identifier: MIT
 * Products of bfloat16 numbers: every entry of gemm_bf16 that this CPU can run, ref among them, against the definition in its head
 * comment, written in double: the product of two bfloat16 numbers is exact there. All tile sizes, numbers of pairs, bits of any
 * kind (nan, infinities, numbers that are not normal, results that become so), strided operands.
 */
#include <fenv.h>
#include <math.h>

#include "tensor/half.h"
#include "tests/tools/kernels.h"

enum fill { NEAR, BITS, SPECIAL, TINY, FILLS };

static uint16_t number(enum fill fill)
{
	static const uint16_t special[] = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
		0x7f81, 0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x00ff, 0x3f81};

	switch (fill) {
	case NEAR: return (uint16_t)((draw() & 0x80ff) | 0x3f00);
	case SPECIAL: return special[draw() % (sizeof(special) / sizeof(special[0]))];
	case TINY: return (uint16_t)((draw() & 0x83ff) | 0x1f00);
	default: return (uint16_t)draw();
	}
}

static float normal(float x)
{
	return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

/* x * y + sum with one rounding: the sum in double is made odd where it is inexact, so that the second rounding is the only one. */
static float once(float x, float y, float sum)
{
	double product = (double)normal(x) * (double)normal(y), a = sum, s = product + a, back = s - a;
	double error = (product - back) + (a - (s - back));
	uint64_t bits;

	memcpy(&bits, &s, sizeof(bits));
	if (isfinite(s) && error != 0 && !(bits & 1)) {
		bits = (error > 0) == (s > 0) ? bits + 1 : bits - 1;
		memcpy(&s, &bits, sizeof(s));
	}
	return normal((float)s);
}

static float wanted(int64_t pairs, const uint16_t *a, const uint32_t *column, int nr)
{
	float sum = 0;

	for (int64_t l = 0; l < pairs; l++) {
		uint32_t b = column[l * nr];

		sum = once(ql_of_bits((uint32_t)a[2 * l + 1] << 16), ql_of_bits(b & 0xffff0000u), sum);
		sum = once(ql_of_bits((uint32_t)a[2 * l] << 16), ql_of_bits(b << 16), sum);
	}
	return sum;
}

static void check_tile(const struct ql_gemm_bf16 *k, int rows, int columns, int64_t pairs, enum fill fill, bool add)
{
	int64_t lda = 2 * pairs + 3, ldc = columns + 5;
	uint16_t *a = take((size_t)(lda * rows) * 2 + 2);
	uint32_t *panel = take((size_t)(pairs * k->nr) * 4);
	size_t used = (size_t)(ldc * (rows - 1) + columns) * sizeof(float);
	float *c = take(used + 64), *before = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = number(fill);
	for (int64_t i = 0; i < pairs * k->nr; i++)
		panel[i] = (uint32_t)number(fill) << 16 | number(fill);
	for (int i = 0; add && i < rows; i++)
		for (int j = 0; j < columns; j++)
			c[i * ldc + j] = before[i * ldc + j] =
				fill == TINY ? ql_of_bits(draw() & 0x80ffffffu) : (float)draw() * 0x1p-30f;
	k->tile(rows, columns, pairs, a, lda, panel, c, ldc, add);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < ldc && i * ldc + j < ldc * (rows - 1) + columns; j++) {
			float *got = &c[i * ldc + j], w = wanted(pairs, a + i * lda, panel + j, k->nr);

			if (j >= columns) {
				good &= guarded(got, 0, sizeof(*got));
				continue;
			}
			w = add ? before[i * ldc + j] + w : w;
			good &= ql_bits(w) == ql_bits(*got) || (isnan(w) && isnan(*got));
		}
	CHECK(good, "%s: rows %d, columns %d, pairs %lld, fill %d%s", k->name, rows, columns, (long long)pairs, fill,
		add ? ", added" : "");
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(panel);
	free(c);
	free(before);
}

static void test_gemm_bf16(const void *kernel)
{
	static const int64_t depth[] = {0, 1, 2, 3, 8, 17, 256};
	const struct ql_gemm_bf16 *k = kernel;

	CHECK(k->nr % 16 == 0 && k->nr <= 64 && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
	for (int rows = 1; rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			check_tile(k, rows, columns, depth[(rows + columns) % 7], (enum fill)(columns % FILLS),
				columns & 4);
	for (int fill = 0; fill < FILLS; fill++)
		for (size_t d = 0; d < sizeof(depth) / sizeof(depth[0]); d++)
			for (int i = 0; i < 20; i++)
				check_tile(k, k->mr, k->nr, depth[d], (enum fill)fill, i & 1);
	CHECK(fegetround() == FE_TONEAREST && normal(ql_of_bits(1)) == 0 && ql_of_bits(3) * 0.5f != 0,
		"%s: changed the mode", k->name);
}

#define test_gemm_f32 NULL
#define test_gemm_coded NULL
#define test_gemm_i8 NULL
#define test_pack_i8 NULL
#define test_gemm_i16 NULL
#define test_gemm_b1 NULL
#define test_taps_i16 NULL
#define test_conv_i8 NULL
#define test_depth_i8 NULL
#define test_quantize NULL
#define test_dequantize NULL
#define test_simd NULL
#define test_limit NULL

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F

	test_kernels(families, sizeof(families) / sizeof(families[0]));
	return check_end();
}
