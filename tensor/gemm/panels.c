/* SPDX-License-Identifier: MIT
 * Several float32 products with one packed B. Sums are divided along k as in f32.c, so the bits are the same.
 */
#include <string.h>

#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

int64_t ql_gemm_f32_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k)
{
	return ql_ceil_div(n, kernel->nr) * kernel->nr * k;
}

struct packing {
	const float *b;
	int64_t row, column, n, k;
	int nr, variant;
	float *to;
};

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;

	for (int64_t panel = begin; panel < end; panel++) {
		int64_t c = panel * p->nr;

		ql_gemm_panel_f32(p->variant, p->b + c * p->column, p->row, p->column, p->k,
			(int)ql_min64(p->nr, p->n - c), p->nr, p->to + c * p->k);
	}
}

struct ql_gemm_f32_panels ql_gemm_f32_panels_of(
	const struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col, float *memory)
{
	const struct ql_gemm_f32 *kernel = ctx->kernels->tiles;
	struct packing p = {.b = b,
		.row = b_row,
		.column = b_col,
		.n = n,
		.k = k,
		.nr = kernel->nr,
		.variant = ctx->kernels->simd->variant,
		.to = memory};

	pack_body(&p, 0, ql_ceil_div(n, kernel->nr));
	return (struct ql_gemm_f32_panels){kernel, n, k, memory};
}

enum ql_status ql_gemm_f32_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col,
	struct ql_gemm_f32_panels *out)
{
	const struct ql_gemm_f32 *kernel = ctx->kernels->tiles;
	int64_t panels = ql_ceil_div(n, kernel->nr);
	struct packing p = {.b = b,
		.row = b_row,
		.column = b_col,
		.n = n,
		.k = k,
		.nr = kernel->nr,
		.variant = ctx->kernels->simd->variant};
	uint64_t bytes;

	*out = (struct ql_gemm_f32_panels){.kernel = kernel, .n = n, .k = k};
	if (!ql_size_mul((uint64_t)k, ql_size_array(kernel->nr, sizeof(float)), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)k);
	out->data = p.to = ql_gemm_take(ctx, panels, bytes);
	if (!p.to)
		return QL_ERR_MEMORY;
	return ql_parallel_for(ctx, panels, 1, n * k / 2, pack_body, &p);
}

void ql_gemm_f32_rows(
	const struct ql_gemm_f32_panels *b, int64_t m, const float *a, int64_t a_row, float *c, int64_t ldc)
{
	int mr = b->kernel->mr, nr = b->kernel->nr;

	if (b->k == 0)
		for (int64_t i = 0; i < m; i++)
			memset(c + i * ldc, 0, (size_t)b->n * sizeof(*c));
	for (int64_t j = 0; j < b->n; j += nr)
		for (int64_t l = 0; l < b->k; l += QL_GEMM_DEPTH)
			for (int64_t i = 0; i < m; i += mr)
				b->kernel->tile((int)ql_min64(mr, m - i), (int)ql_min64(nr, b->n - j),
					ql_min64(QL_GEMM_DEPTH, b->k - l), a + i * a_row + l, a_row,
					b->data + j * b->k + l * nr, nr, c + i * ldc + j, ldc, l > 0);
}
