/* SPDX-License-Identifier: MIT
 * Divides a product into tasks. A block of packed rows fills at most a quarter of the second-level cache, so that
 * it stays there while the panels are processed. A thread claims a few large chunks of neighbouring tasks: a busy
 * core then delays the others little, and threads write to separate regions (claiming single tasks made 1024^3 a
 * fifth slower on two cores, because cache lines of C moved between them). Chunks are short enough for interrupts
 * and long compared with the cost of claiming one.
 */
#include "tensor/gemm/plan.h"

#include "tensor/cpu.h"
#include "tensor/scratch.h"

#define CHUNK_NS 50000.0      /* claiming a chunk costs far less */
#define LONGEST_NS 50000000.0 /* an interrupt is seen between chunks */
#define TASKS_PER_THREAD 8
#define BLOCK_TILES 8
#define CHUNKS_PER_THREAD 3
#define PANEL_BYTES_PER_NS 25.0 /* with few rows */

/* x truncated to an integer in lo..hi */
static int64_t clamp(double x, int64_t lo, int64_t hi)
{
	return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}

static int64_t grain_of(const struct ql_ctx *ctx, int64_t tasks, double task_ns)
{
	int64_t most = clamp(LONGEST_NS / task_ns, 1, tasks), least = clamp(CHUNK_NS / task_ns, 1, most);
	int64_t grain = ql_ceil_div(tasks, (int64_t)CHUNKS_PER_THREAD * ctx->threads);

	return ql_min64(most, ql_max64(least, grain));
}

struct ql_gemm_plan ql_gemm_plan_of(
	const struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_shape *s)
{
	size_t l2 = ql_cpu()->l2 ? ql_cpu()->l2 : (size_t)256 << 10;
	double row_ns = (double)s->nr * (double)k / s->rate; /* one row of A times one panel */
	double panel_ns = (double)s->nr * (double)s->row_bytes / PANEL_BYTES_PER_NS;
	struct ql_gemm_plan p = {.panels = ql_ceil_div(n, s->nr)};
	int64_t rows = clamp((double)(l2 / 4) / (double)ql_max64(1, s->row_bytes), s->mr, ql_max64(m, s->mr));
	double spread = (double)m * (double)p.panels / (TASKS_PER_THREAD * ctx->threads);

	rows = ql_min64(rows, clamp(spread, s->mr, rows));
	rows = ql_min64(rows, clamp(LONGEST_NS / (row_ns + 1), s->mr, rows));
	/* blocks of nearly equal size */
	p.blocks = ql_ceil_div(m, rows);
	p.row_block = ql_ceil_div(ql_ceil_div(m, p.blocks), s->mr) * s->mr;
	p.blocks = ql_ceil_div(m, p.row_block);
	p.grain = grain_of(ctx, p.blocks * p.panels, row_ns * (double)p.row_block + 1);
	p.work_ns = clamp((row_ns * (double)m + panel_ns) * (double)p.panels, 0, INT64_MAX / 2);
	return p;
}

/* Rows are divided when there are enough for all threads, so that each brings its own rows into the form of the tiles
 * once; else panels are. */
struct ql_gemm_split ql_gemm_split_of(
	const struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_shape *s, bool packed)
{
	size_t l2 = ql_cpu()->l2 ? ql_cpu()->l2 : (size_t)256 << 10;
	int64_t panels = ql_ceil_div(n, s->nr),
		most = clamp((double)(l2 / 4) / (double)ql_max64(1, s->row_bytes), s->mr, m);
	double panel_ns = (double)s->nr * (double)s->row_bytes / PANEL_BYTES_PER_NS; /* with few rows */
	double row_ns = (double)s->nr * (double)k / s->rate;                         /* one row times one panel */
	double work_ns = (row_ns * (double)m + panel_ns) * (double)panels;
	int64_t chunks = clamp(work_ns / CHUNK_NS, ctx->threads, (int64_t)CHUNKS_PER_THREAD * ctx->threads);
	bool few = m <= most && panels >= ctx->threads;
	struct ql_gemm_split p = {.block = m,
		.blocks = 1,
		.tiles = ql_ceil_div(m, s->mr),
		.mr = s->mr,
		.run = panels,
		.work_ns = clamp(work_ns, 0, INT64_MAX / 2)};

	p.packs = few && !packed;
	if (p.packs || (few && m < (int64_t)s->few * s->mr * ctx->threads)) {
		p.run = 1;
	} else {
		most = ql_min64(most, clamp(LONGEST_NS / (row_ns * (double)panels + 1), s->mr, m));
		/* more blocks than chunks, of eight tiles and more, come out even in the end */
		p.blocks = ql_max64(chunks, ql_min64(2 * chunks, m / ((int64_t)BLOCK_TILES * s->mr)));
		p.blocks = ql_max64(ql_min64(p.blocks, p.tiles), ql_ceil_div(m, most));
		p.block = ql_ceil_div(p.tiles, p.blocks) * s->mr;
		p.run = clamp(LONGEST_NS / (row_ns * (double)p.block + 1), 1, panels);
	}
	p.parts = ql_ceil_div(panels, p.run);
	p.grain = p.run == 1 ? ql_ceil_div(p.blocks * p.parts, chunks) : 1;
	p.grain = ql_min64(p.grain, clamp(LONGEST_NS / (row_ns * (double)p.block * (double)p.run + 1), 1, p.grain));
	return p;
}

void *ql_gemm_take(struct ql_ctx *ctx, int64_t count, uint64_t size)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)count, size, &bytes)) {
		ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: %lld elements of scratch: their bytes do not fit in 64 bits",
			(long long)count);
		return NULL;
	}
	return ql_scratch_take(ctx, bytes);
}
