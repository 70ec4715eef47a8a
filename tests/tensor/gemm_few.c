/* SPDX-License-Identifier: MIT
 * Products with few rows: the bits of the same rows among many, under every level, fused and ordered, with 1 and 3
 * threads, for all small numbers of rows, columns around the widths of tiles and strips, depths around those of the
 * groups of a sum; B and C with longer rows, rows of A that a power of two separates, or not contiguous.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/few.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

#define FEW 33
#define MANY (FEW + 9)
#define APART 3 /* numbers behind each row of C, which must not change */

static float *new (int64_t n, uint32_t seed)
{
	float *x = malloc((size_t)n * sizeof(*x));

	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (float)(int32_t)seed * 0x1p-31f;
	}
	return x;
}

/* Element (l, j) of B is b[l * row + j * column], of A (i, l) a[i * a_row + l * a_column]. */
static void test_size(
	struct ql_ctx *ctx, int64_t n, int64_t k, int64_t row, int64_t column, int64_t a_row, int64_t a_column)
{
	int64_t ldc = n + APART;
	float *a = new (MANY * a_row + k * a_column, 1), *b = new (k * row + n * column, 2);
	float *many = new (MANY * ldc, 3), *c = new (MANY * ldc, 3);

	CHECK(ql_gemm_f32(ctx, MANY, n, k, a, a_row, a_column, b, row, column, many, ldc) == QL_OK, "%s", ctx->err);
	for (int64_t m = 1; m <= FEW; m += m < 14 ? 1 : 5) {
		if (left_out(m + n + k, 3))
			continue;
		CHECK(ql_gemm_f32(ctx, m, n, k, a, a_row, a_column, b, row, column, c, ldc) == QL_OK, "%s", ctx->err);
		CHECK(memcmp(c, many, (size_t)(m * ldc) * sizeof(*c)) == 0,
			"%s, %d threads: %d x %d x %d, strides of B %d %d, of A %d %d", ql_gemm_f32_name(ctx),
			ctx->threads, (int)m, (int)n, (int)k, (int)row, (int)column, (int)a_row, (int)a_column);
	}
	free(a);
	free(b);
	free(many);
	free(c);
}

static void check_all(struct ql_ctx *ctx)
{
	static const int64_t columns[] = {1, 15, 16, 17, 63, 64, 65, 130, 520, 2100};
	static const int64_t depths[] = {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 255, 256, 257, 300, 512, 523};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
			int64_t n = columns[i], k = depths[d], far = (k + 255) / 256 * 256;

			if ((n > 500 || ctx->threads > 1) && (d + i) % 3)
				continue;
			const int64_t strides[][4] = {{n, 1, k, 1}, {n + 5, 1, far, 1}, {1, k, k + 1, 1},
				{1, far, 1, MANY}, {2 * n, 2, far, 1}};

			for (size_t s = 0; s < sizeof(strides) / sizeof(strides[0]); s++)
				if (!left_out((int64_t)(i + d + s), 5))
					test_size(
						ctx, n, k, strides[s][0], strides[s][1], strides[s][2], strides[s][3]);
		}
}

/* A B that is larger than the caches. */
static void check_large(void)
{
	struct ql_ctx *ctx = ql_ctx_new(2);

	CASE("large");
	for (int ordered = 0; ordered < 2; ordered++) {
		ctx->kernels = ordered ? ql_kernels_ordered() : ql_kernels_cpu();
		test_size(ctx, 4099, 520, 4099, 1, 520, 1);
		test_size(ctx, 300, 7168, 300, 1, 7168, 1);
		test_size(ctx, 2101, 1030, 1, 1030, 1030, 1);
		test_size(ctx, 513, 4096, 1, 4096, 4096, 1);
		test_size(ctx, 2100, 1001, 1, 1003, 1, 70);
	}
	ql_kernels_force("avx2");
	ctx->kernels = ql_kernels_cpu();
	test_size(ctx, 4099, 520, 4099, 1, 520, 1);
	ql_ctx_free(ctx);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "native"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (int threads = 1; threads <= 3; threads += 2) {
			struct ql_ctx *ctx = ql_ctx_new(threads);

			CASE("level %s, %d threads", levels[i], threads);
			ql_kernels_force(levels[i]);
			ctx->kernels = ql_kernels_cpu();
			check_all(ctx);
			ctx->kernels = ql_kernels_ordered();
			check_all(ctx);
			ql_ctx_free(ctx);
		}
	check_large();
	return check_end();
}
