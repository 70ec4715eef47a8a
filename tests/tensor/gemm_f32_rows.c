/* SPDX-License-Identifier: MIT
 * Products with a matrix that was packed once: bit-equal to ql_gemm_f32 under every level, for all small sizes, several
 * panels and depths, both directions of B, rows of A and C that lie apart, also by a power of two.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"
#include "tests/check.h"

#define APART 3 /* numbers behind each row of A and C, which must not change */

static void fill(float *x, int64_t n, uint32_t seed)
{
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (float)(int32_t)seed * 0x1p-31f;
	}
}

/* Rows of A are `far` numbers apart. */
static void test_apart(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t far, bool transposed)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	size_t bytes = (size_t)(m * (n + APART)) * sizeof(float) + 1;
	float *a = malloc((size_t)(m * far) * sizeof(float) + 1), *b = malloc((size_t)(k * n) * sizeof(float) + 1);
	float *c = malloc(bytes), *wanted = malloc(bytes);
	int64_t row = transposed ? 1 : n, column = transposed ? k : 1;
	struct ql_gemm_f32_panels panels;

	fill(a, m * far, 1);
	fill(b, k * n, 2);
	fill(c, m * (n + APART), 3);
	memcpy(wanted, c, bytes);
	CHECK(ql_gemm_f32_pack(ctx, n, k, b, row, column, &panels) == QL_OK, "%s", ctx->err);
	ql_gemm_f32_rows(&panels, m, a, far, c, n + APART);
	CHECK(ql_gemm_f32(ctx, m, n, k, a, far, 1, b, row, column, wanted, n + APART) == QL_OK, "%s", ctx->err);
	CHECK(memcmp(c, wanted, bytes - 1) == 0, "m=%d n=%d k=%d %s", (int)m, (int)n, (int)k,
		transposed ? "transposed" : "");
	ql_scratch_release(ctx, mark);
	free(a);
	free(b);
	free(c);
	free(wanted);
}

static void test_size(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, bool transposed)
{
	test_apart(ctx, m, n, k, k + APART, transposed);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "native"};
	static const int64_t large[][3] = {{20, 800, 200}, {10, 100, 600}, {65, 129, 257}, {1, 70, 513}, {513, 3, 300}};
	struct ql_ctx *ctx = ql_ctx_new(2);

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		ql_kernels_force(levels[i]);
		ctx->kernels = ql_kernels_cpu();
		CASE("level %s", levels[i]);
		for (int64_t m = 0; m < 9; m++)
			for (int64_t n = 0; n < 9; n++)
				for (int64_t k = 0; k < 9; k++)
					for (int t = 0; t < 2; t++)
						test_size(ctx, m, n, k, t);
		for (size_t s = 0; s < sizeof(large) / sizeof(large[0]); s++)
			for (int t = 0; t < 2; t++)
				test_size(ctx, large[s][0], large[s][1], large[s][2], t);
		for (int t = 0; t < 2; t++) { /* blocks of A: several, and copied ones */
			test_apart(ctx, 530, 70, 1300, 2048, t);
			test_apart(ctx, 530, 70, 2300, 4096, t);
			test_apart(ctx, 30, 200, 900, 1024, t);
		}
	}
	ql_ctx_free(ctx);
	return check_end();
}
