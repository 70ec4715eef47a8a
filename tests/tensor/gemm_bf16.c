/* SPDX-License-Identifier: MIT
 * ql_gemm_bf16 against sums of its tile, one element at a time, of operands that are rounded one by one: sizes around tiles, panels
 * and depths, operands of float32, float16 and bfloat16 of any strides, at odd addresses, 1 and 3 threads, under every level.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/half.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

#define APART 3 /* numbers behind each row of C, which must not change */

extern const struct ql_gemm_bf16 gemm_bf16_ref, gemm_bf16_tiles_ref;

static bool tiles;

struct operand {
	struct ql_matrix_float x;
	void *memory;
};

static struct operand make(unsigned dtype, int64_t n, int64_t first, int64_t row, int64_t column)
{
	static uint32_t seed = 1;
	size_t bytes = ql_dtypes[dtype].bits / 8;
	struct operand o = {{NULL, dtype, row, column}, malloc((size_t)(n + first) * bytes)};

	for (int64_t i = 0; i < n + first; i++) {
		float v;

		seed = seed * 1664525u + 1013904223u;
		v = (float)(int32_t)seed * 0x1p-31f;
		if (dtype == QL_float32)
			((float *)o.memory)[i] = v;
		else
			((uint16_t *)o.memory)[i] = dtype == QL_float16 ? f16_of_f32(v) : bf16_of_f32(v);
	}
	o.x.data = (char *)o.memory + first * (int64_t)bytes;
	return o;
}

static uint16_t element(const struct ql_matrix_float *x, int64_t i, int64_t j)
{
	int64_t at = i * x->row + j * x->column;
	const uint16_t *half = x->data;

	return x->dtype == QL_bfloat16
		       ? half[at]
		       : bf16_of_f32(x->dtype == QL_float16 ? f32_of_f16(half[at]) : ((const float *)x->data)[at]);
}

/* Sums of tiles do not depend on where they are cut. */
static float wanted(const struct ql_matrix_float *a, const struct ql_matrix_float *b, int64_t i, int64_t j, int64_t k)
{
	static uint32_t panel[QL_BF16_DEPTH / 2 * 64]; /* but for its first column it stays 0 */
	uint16_t row[QL_BF16_DEPTH];
	const struct ql_gemm_bf16 *ref = tiles ? &gemm_bf16_tiles_ref : &gemm_bf16_ref;
	float sum = 0;

	for (int64_t l = 0; l < k; l += QL_BF16_DEPTH) {
		int64_t depth = ql_min64(QL_BF16_DEPTH, k - l);

		for (int64_t d = 0; d < depth + depth % 2; d++) {
			uint32_t code = d < depth ? element(b, l + d, j) : 0;

			row[d] = d < depth ? element(a, i, l + d) : 0;
			panel[d / 2 * ref->nr] = d % 2 ? panel[d / 2 * ref->nr] | code << 16 : code;
		}
		ref->tile(1, 1, (depth + 1) / 2, row, 0, panel, &sum, 1, l > 0);
	}
	return sum;
}

static void test_size(
	struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct operand *a, const struct operand *b)
{
	int64_t ldc = n + APART;
	float *c = malloc((size_t)(m * ldc) * sizeof(*c));
	bool good = true;

	for (int64_t i = 0; i < m * ldc; i++)
		c[i] = 7;
	CHECK(ql_gemm_bf16(ctx, m, n, k, &a->x, &b->x, c, ldc) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < ldc; j++)
			/* all of the edges, and some of the rest */
			if (j >= n)
				good &= c[i * ldc + j] == 7;
			else if (i < 2 || i > m - 3 || j % 17 == 0 || j > n - 3) {
				float w = wanted(&a->x, &b->x, i, j, k);

				good &= ql_bits(w) == ql_bits(c[i * ldc + j]);
			}
	CHECK(good, "%s, %d threads: %d x %d x %d, dtypes %d %d, strides %d %d, %d %d", ctx->kernels->gemm_bf16->name,
		ctx->threads, (int)m, (int)n, (int)k, a->x.dtype, b->x.dtype, (int)a->x.row, (int)a->x.column,
		(int)b->x.row, (int)b->x.column);
	free(c);
}

static void test_layouts(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, unsigned da, unsigned db)
{
	const int64_t even = k + k % 2;
	const int64_t b_stride[][3] = {/* first, row, column */
		{0, n, 1}, {1, n + 3, 1}, {0, 1, even}, {1, 1, even + 1}, {2, 1, even + 2}, {1, 2 * n, 2}};
	struct operand a = make(da, m * (k + 1), 0, k + 1, 1), turned = make(da, m * k, 1, 1, m);

	for (size_t i = 0; i < sizeof(b_stride) / sizeof(b_stride[0]); i++) {
		struct operand b;

		if (left_out((int64_t)i + m + n + ctx->threads, 4))
			continue;
		b = make(db, b_stride[i][1] * k + b_stride[i][2] * n, b_stride[i][0], b_stride[i][1], b_stride[i][2]);

		test_size(ctx, m, n, k, i % 2 ? &turned : &a, &b);
		free(b.memory);
	}
	free(a.memory);
	free(turned.memory);
}

static void check_all(struct ql_ctx *ctx)
{
	static const unsigned dtype[] = {QL_float32, QL_bfloat16, QL_float16};
	static const int64_t rows[] = {1, 2, 5, 6, 7, 13, 40}, columns[] = {1, 15, 16, 17, 63, 64, 65, 130, 300};
	static const int64_t depths[] = {1, 2, 3, 16, 31, 511, 512, 513, 514, 1030};
	int i = 0;

	for (size_t m = 0; m < sizeof(rows) / sizeof(rows[0]); m++)
		for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); n++, i++)
			test_layouts(ctx, rows[m], columns[n], depths[i % 10], dtype[i % 3], dtype[i / 3 % 3]);
	for (int d = 0; d < 10; d++)
		test_layouts(ctx, 9, 66, depths[d], dtype[d % 3], dtype[(d + 1) % 3]);
}

/* More than one block of rows, and several tasks. */
static void check_large(struct ql_ctx *ctx)
{
	test_layouts(ctx, 530, 600, 70, QL_bfloat16, QL_bfloat16);
}

static void check_empty(struct ql_ctx *ctx)
{
	struct ql_matrix_float x = {NULL, QL_bfloat16, 1, 1};
	float c[4] = {1, 1, 1, 1};

	CHECK(ql_gemm_bf16(ctx, 0, 3, 2, &x, &x, c, 3) == QL_OK && ql_gemm_bf16(ctx, 2, 0, 2, &x, &x, c, 0) == QL_OK,
		"empty");
	CHECK(c[0] == 1, "empty");
	CHECK(ql_gemm_bf16(ctx, 1, 3, 0, &x, &x, c, 3) == QL_OK && c[0] == 0 && c[2] == 0 && c[3] == 1, "k = 0");
}

int main(void)
{
	static const char *const levels[] = {
		"ref bf16", "avx2 bf16", "avx512vnni bf16", "ref bf16tiles", "avx2 bf16tiles", "amx bf16tiles"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (int threads = 1; threads <= 3; threads += 2) {
			struct ql_ctx *ctx = ql_ctx_new(threads);

			ql_kernels_force(levels[i]);
			ctx->kernels = ql_kernels_cpu();
			CASE("%s, %d threads", ql_kernels_level(), threads);
			tiles = strstr(levels[i], "tiles");
			CHECK(ctx->kernels->gemm_bf16->tiles == tiles && ctx->kernels->bf16 &&
					!ql_kernels_ordered()->bf16,
				"bf16");
			check_all(ctx);
			check_large(ctx);
			check_empty(ctx);
			ql_ctx_free(ctx);
		}
	return check_end();
}
