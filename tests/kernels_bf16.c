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

/* The sums of tiles: of groups of pairs, even and odd products apart, added to the sum. */
static float wanted_tiles(int64_t pairs, const uint16_t *a, const uint32_t *column, int nr, float sum)
{
	for (int64_t l = 0; l < pairs; l += QL_BF16_GROUP) {
		float even = 0, odd = 0;

		for (int64_t p = l; p < l + QL_BF16_GROUP; p++) {
			uint32_t b = p < pairs ? column[p * nr] : 0, x = p < pairs ? a[2 * p] : 0,
				 y = p < pairs ? a[2 * p + 1] : 0;

			even = once(ql_of_bits(x << 16), ql_of_bits(b << 16), even);
			odd = once(ql_of_bits(y << 16), ql_of_bits(b & 0xffff0000u), odd);
		}
		sum = normal(normal(sum) + normal(even + odd));
	}
	return sum;
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
			w = k->tiles ? wanted_tiles(pairs, a + i * lda, panel + j, k->nr, add ? before[i * ldc + j] : 0)
			    : add    ? before[i * ldc + j] + w
				     : w;
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

/* Lines of B in place, of any number of k: the bits of `tile` with both as it wants them. */
static void check_few(const struct ql_gemm_bf16 *k, int rows, int columns, int64_t n, enum fill fill)
{
	int64_t pairs = (n + 1) / 2, lda = 2 * pairs, ldb = n + 3;
	uint16_t *a = take((size_t)(lda * rows) * 2), *b = take((size_t)(ldb * (columns - 1) + n) * 2);
	uint32_t *packed = take((size_t)(pairs * rows) * 4);
	uint32_t *panel = take((size_t)((pairs + 1) * k->nr) * 4); /* that begins with any of its columns */
	size_t used = (size_t)(columns * rows) * sizeof(float);
	float *c = take(used + 64), sum;
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = i % lda < n ? number(fill) : 0;
	for (int j = 0; j < columns; j++)
		for (int64_t l = 0; l < n; l++)
			b[j * ldb + l] = number(fill);
	for (int64_t l = 0; l < pairs; l++) {
		for (int i = 0; i < rows; i++)
			memcpy(packed + l * rows + i, a + i * lda + 2 * l, 4);
		for (int j = 0; j < columns; j++)
			panel[l * k->nr + j] =
				(2 * l + 1 < n ? (uint32_t)b[j * ldb + 2 * l + 1] << 16 : 0) | b[j * ldb + 2 * l];
	}
	k->few(rows, columns, n, packed, b, ldb, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			k->tile(1, 1, pairs, a + i * lda, lda, panel + j, &sum, 1, false);
			good &= ql_bits(sum) == ql_bits(c[j * rows + i]) || (isnan(sum) && isnan(c[j * rows + i]));
		}
	CHECK(good, "%s: %d rows, %d lines of %lld, fill %d", k->name, rows, columns, (long long)n, fill);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its sums", k->name);
	free(a);
	free(b);
	free(packed);
	free(panel);
	free(c);
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
	for (int rows = 1; k->few && rows <= QL_BF16_FEW; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			check_few(k, rows, columns, 1 + (rows * 37 + columns * 11) % 131, (enum fill)(columns % FILLS));
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

extern const struct ql_gemm_bf16 gemm_bf16_tiles_amx_model;

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F

	test_kernels(families, sizeof(families) / sizeof(families[0]));
	test_kernel(&(struct family){"gemm_bf16", test_gemm_bf16}, "tiles_amx on a model of its instructions",
		&gemm_bf16_tiles_amx_model);
	return check_end();
}
