/* SPDX-License-Identifier: MIT
 * Few rows of float32 times halves whose columns are contiguous, the weights of linear: reading B takes longer than multiplying. A
 * few columns at a time are widened, QL_GEMM_DEPTH numbers of each, into lines that stay in the first-level cache, and turned in
 * registers (`turned` of gemm_f32) as few.c does with float32. The lines that come next are fetched meanwhile: hardware does not
 * follow so many.
 */
#include "tensor/gemm/half_few.h"

#include <string.h>

#include "tensor/gemm/half_pack.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define DEPTH QL_GEMM_DEPTH
#define LANES 16 /* at most */
#define PITCH (DEPTH + 16)
#define TASKS_PER_THREAD 4
#define VALUES_PER_NS 8 /* of B, roughly */
#define CACHE_LINE 32   /* halves */

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_f32 *kernel;
	int64_t m, n, k;
	const float *from;
	int64_t lda;
	const struct ql_matrix_float *b;
	const float *a; /* the numbers of each k adjacent */
	float *packed;  /* memory for it */
	float *c;
	int64_t ldc;
};

bool ql_gemm_half_is_few(const struct ql_ctx *ctx, int64_t m, const struct ql_matrix_float *b)
{
	return m <= QL_TURNED_ROWS && b->row == 1 && ctx->kernels->tiles->lanes;
}

/* item: k */
static void pack_a(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = 0; i < j->m; i++)
		for (int64_t l = begin; l < end; l++)
			j->packed[l * j->m + i] = j->from[i * j->lda + l];
}

static void widen(const struct job *j, int64_t first, int columns, int64_t l, int64_t depth, float *lines)
{
	int64_t ahead = ql_min64(DEPTH, j->k - l - depth);

	for (int i = 0; i < columns; i++) {
		int64_t at = (first + i) * j->b->column + l;

		for (int64_t p = 0; p < ahead; p += CACHE_LINE)
			__builtin_prefetch((const uint16_t *)j->b->data + at + DEPTH + p);
		ql_f32_line(j->ctx->kernels->simd->variant, j->b, at, 1, depth, lines + i * PITCH);
	}
}

/* item: `lanes` columns; missing ones are zeros, and their sums are left out */
static void columns_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int lanes = j->kernel->lanes;
	_Alignas(64) float lines[LANES * PITCH];
	float apart[QL_TURNED_ROWS * LANES];

	for (int64_t t = begin; t < end; t++) {
		int64_t first = t * lanes;
		int columns = (int)ql_min64(lanes, j->n - first);
		float *c = columns < lanes ? apart : j->c + first;
		int64_t ldc = columns < lanes ? lanes : j->ldc;

		memset(lines + columns * PITCH, 0, (size_t)(lanes - columns) * PITCH * sizeof(*lines));
		for (int64_t l = 0; l < j->k && !ql_stopped(j->ctx); l += DEPTH) {
			int64_t depth = ql_min64(DEPTH, j->k - l);

			widen(j, first, columns, l, depth, lines);
			j->kernel->turned(
				(int)j->m, depth, j->a + l * j->m, lines, PITCH, c, ldc, l ? QL_TILE_ADD : QL_TILE_NEW);
		}
		for (int64_t i = 0; columns < lanes && i < j->m; i++)
			memcpy(j->c + i * j->ldc + first, apart + i * lanes, (size_t)columns * sizeof(float));
	}
}

enum ql_status ql_gemm_half_few(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const struct ql_matrix_float *b, float *c, int64_t ldc)
{
	struct job j = {.ctx = ctx,
		.kernel = ctx->kernels->tiles,
		.m = m,
		.n = n,
		.k = k,
		.from = a,
		.lda = lda,
		.a = a,
		.b = b,
		.c = c,
		.ldc = ldc};
	int64_t items = ql_ceil_div(n, j.kernel->lanes);
	double work = (double)n * (double)k * ((double)m / j.kernel->rate + 1.0 / VALUES_PER_NS);
	enum ql_status status = QL_OK;

	if (m > 1) {
		j.a = j.packed = ql_gemm_take(ctx, m, ql_size_array(k, sizeof(float)));
		if (!j.packed)
			return QL_ERR_MEMORY;
		status = ql_parallel_for(ctx, k, 1024, m * k, pack_a, &j);
	}
	if (status)
		return status;
	return ql_parallel_for(ctx, items, ql_max64(1, items / ((int64_t)TASKS_PER_THREAD * ctx->threads)),
		work < 1e18 ? (int64_t)work : INT64_MAX, columns_body, &j);
}
