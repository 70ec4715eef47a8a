/* SPDX-License-Identifier: MIT
 * Cutting a product into tasks. A block of packed rows shall fill at most a quarter of the second-level
 * cache, so that it stays there while the panels pass; there shall be several tasks per thread, so that a
 * busy core does not hold up the rest; and no chunk shall be long against the wish to interrupt, nor short
 * against the cost of claiming it.
 */
#include "tensor/gemm_plan.h"

#include "tensor/cpu.h"
#include "tensor/scratch.h"

#define CHUNK_NS 50000.0   /* claiming a chunk costs far less */
#define TASK_NS 20000000.0 /* an interrupt is seen between tasks */
#define TASKS_PER_THREAD 8

/* x as a whole number within lo..hi */
static int64_t clamp(double x, int64_t lo, int64_t hi)
{
	return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}

struct ql_gemm_plan ql_gemm_plan_of(
        const struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_shape *s)
{
	size_t l2 = ql_cpu()->l2 ? ql_cpu()->l2 : (size_t)256 << 10;
	double row_ns = (double)s->nr * (double)k / s->rate; /* one row of A times one panel */
	struct ql_gemm_plan p = {.panels = ql_ceil_div(n, s->nr)};
	int64_t rows = clamp((double)(l2 / 4) / (double)ql_max64(1, s->row_bytes), s->mr, ql_max64(m, s->mr)),
	        tasks;
	double spread = (double)m * (double)p.panels / (TASKS_PER_THREAD * ctx->threads);

	rows = ql_min64(rows, clamp(spread, s->mr, rows));
	rows = ql_min64(rows, clamp(TASK_NS / (row_ns + 1), s->mr, rows));
	/* blocks of nearly one size */
	p.blocks = ql_ceil_div(m, rows);
	p.row_block = ql_ceil_div(ql_ceil_div(m, p.blocks), s->mr) * s->mr;
	p.blocks = ql_ceil_div(m, p.row_block);
	tasks = p.blocks * p.panels;
	p.grain = clamp(CHUNK_NS / (row_ns * (double)p.row_block + 1), 1,
	        ql_max64(1, tasks / (TASKS_PER_THREAD * ctx->threads)));
	p.work_ns = clamp(row_ns * (double)m * (double)p.panels, 0, INT64_MAX / 2);
	return p;
}

void *ql_gemm_take(struct ql_ctx *ctx, int64_t count, uint64_t size)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)count, size, &bytes)) {
		ql_fail(ctx, QL_ERR_OVERFLOW,
		        "matmul: %lld elements of scratch: their bytes do not fit in 64 bits",
		        (long long)count);
		return NULL;
	}
	return ql_scratch_take(ctx, bytes);
}
