/* SPDX-License-Identifier: MIT
 * ql_gemm_half: the bits of ql_gemm_f32 with float32 copies of its operands, under every level, fused and ordered, with 1 and 3
 * threads: float16 and bfloat16, any strides and offsets, sizes around tiles, few rows and depths of sums, extreme values.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/half.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

#define APART 3 /* numbers behind each row of C, which must not change */

struct operand {
	struct ql_matrix_float x;
	void *memory;
	float *wide; /* the same matrix */
};

static uint32_t draw(void)
{
	static uint32_t seed = 1;

	return seed = seed * 1664525u + 1013904223u;
}

/* Some are denormal or large; none is infinite, or the sums would be. */
static struct operand make(unsigned dtype, int64_t n, int64_t first, int64_t row, int64_t column)
{
	struct operand o = {{NULL, dtype, row, column}, malloc((size_t)(n + first) * sizeof(float)),
		malloc((size_t)n * sizeof(float))};
	uint16_t *half = o.memory;
	float *single = o.memory;

	for (int64_t i = 0; i < n + first; i++) {
		float v = (float)(int32_t)draw() * 0x1p-31f, w;

		v *= i % 29 == 0 ? 0x1p-16f : i % 31 == 0 ? 0x1p10f : 1;
		if (dtype == QL_float32)
			single[i] = v;
		else
			half[i] = dtype == QL_float16 ? f16_of_f32(v) : bf16_of_f32(v);
		w = dtype == QL_float32 ? v : dtype == QL_float16 ? f32_of_f16(half[i]) : f32_of_bf16(half[i]);
		if (i >= first)
			o.wide[i - first] = w;
	}
	o.x.data = dtype == QL_float32 ? (void *)(single + first) : (void *)(half + first);
	return o;
}

static void drop(struct operand *o)
{
	free(o->memory);
	free(o->wide);
}

static void test_size(
	struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct operand *a, const struct operand *b)
{
	size_t bytes = (size_t)(m * (n + APART)) * sizeof(float);
	float *c = malloc(bytes), *wanted = malloc(bytes);
	int64_t ldc = n + APART, bad = 0;

	memset(c, 1, bytes);
	memset(wanted, 1, bytes);
	CHECK(ql_gemm_half(ctx, m, n, k, &a->x, &b->x, c, ldc) == QL_OK, "%s", ctx->err);
	CHECK(ql_gemm_f32(ctx, m, n, k, a->wide, a->x.row, a->x.column, b->wide, b->x.row, b->x.column, wanted, ldc) ==
			QL_OK,
		"%s", ctx->err);
	for (int64_t i = 0; i < m * ldc; i++)
		bad += ql_bits(c[i]) != ql_bits(wanted[i]);
	CHECK(!bad, "%s, %d threads: %d x %d x %d, dtypes %d %d, strides %d %d, %d %d", ctx->kernels->tiles->name,
		ctx->threads, (int)m, (int)n, (int)k, a->x.dtype, b->x.dtype, (int)a->x.row, (int)a->x.column,
		(int)b->x.row, (int)b->x.column);
	free(c);
	free(wanted);
}

static void test_layouts(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, unsigned da, unsigned db)
{
	const int64_t far = (k + 255) / 256 * 256;
	const int64_t as[][2] = {{k + 1, 1}, {1, m}, {far, 1}, {k, 1}};
	const int64_t bs[][3] = {/* first, row, column */
		{0, n, 1}, {1, n + 3, 1}, {0, 1, k}, {1, 1, k + 1}, {3, 1, far}, {1, 2 * n, 2}};

	for (size_t i = 0; i < sizeof(bs) / sizeof(bs[0]); i++) {
		struct operand a, b;

		if (left_out((int64_t)i + m + n + ctx->threads, 4))
			continue;
		a = make(da, as[i % 4][0] * m + as[i % 4][1] * k, (int64_t)i % 3, as[i % 4][0], as[i % 4][1]);
		b = make(db, bs[i][1] * k + bs[i][2] * n, bs[i][0], bs[i][1], bs[i][2]);

		test_size(ctx, m, n, k, &a, &b);
		drop(&a);
		drop(&b);
	}
}

static void check_all(struct ql_ctx *ctx)
{
	static const unsigned as[] = {QL_float32, QL_bfloat16, QL_float16}, bs[] = {QL_bfloat16, QL_float16};
	static const int64_t columns[] = {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 300};
	static const int64_t depths[] = {1, 2, 3, 16, 31, 255, 256, 257, 512, 523};
	int i = 0;

	for (int64_t m = 1; m <= 40; m += m < 14 ? 1 : 13)
		for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); n++, i++)
			test_layouts(ctx, m, columns[n], depths[i % 10], as[i % 3], bs[i % 2]);
	for (int d = 0; d < 10; d++)
		test_layouts(ctx, 3 + d, 66, depths[d], as[d % 3], bs[d % 2]);
	test_layouts(ctx, 530, 300, 70, QL_float32, QL_bfloat16);
	test_layouts(ctx, 1, 2100, 40, QL_float32, QL_float16);
}

static void check_empty(struct ql_ctx *ctx)
{
	struct ql_matrix_float x = {NULL, QL_float16, 1, 1};
	float c[4] = {1, 1, 1, 1};

	CHECK(ql_gemm_half(ctx, 0, 3, 2, &x, &x, c, 3) == QL_OK && ql_gemm_half(ctx, 2, 0, 2, &x, &x, c, 0) == QL_OK,
		"empty");
	CHECK(c[0] == 1, "empty");
	CHECK(ql_gemm_half(ctx, 1, 3, 0, &x, &x, c, 3) == QL_OK && c[0] == 0 && c[2] == 0 && c[3] == 1, "k = 0");
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "native"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (int threads = 1; threads <= 3; threads += 2) {
			struct ql_ctx *ctx = ql_ctx_new(threads);

			ql_kernels_force(levels[i]);
			for (int ordered = 0; ordered < 2; ordered++) {
				ctx->kernels = ordered ? ql_kernels_ordered() : ql_kernels_cpu();
				CASE("%s, %d threads%s", levels[i], threads, ordered ? ", ordered" : "");
				check_all(ctx);
				check_empty(ctx);
			}
			ql_ctx_free(ctx);
		}
	return check_end();
}
