/* SPDX-License-Identifier: MIT
 * float32 product. A task is a block of rows times some columns. A part of the block's rows of A, some depths of DEPTH, stays in
 * the second-level cache while panels of B of these depths are packed and multiplied one after the other; tiles go through
 * all of the depths before the next rows, so that C is read from far away once for them. The next panel is fetched
 * meanwhile. A is read in place, unless its rows are not contiguous, or lie such that a block does not fit the cache's sets.
 * (1024^3 and 2048^3, two threads of AVX-512 with 2 MiB of second-level cache each: 0.91 and 0.93 of the time with
 * blocks of one depth in place.) few.c has products with few rows. Every element is a sum of sums
 * over DEPTH products, in order of k: the bits do not depend on the threads or the other rows and columns.
 */
#include "tensor/gemm/gemm.h"

#include <limits.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/gemm/few.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/slots.h"

#define DEPTH QL_GEMM_DEPTH /* k of a packed panel */
#define PANEL (DEPTH * 64)  /* numbers of a packed panel: nr <= 64 */
#define DEPTHS 4            /* of a block, at most */
#define ROWS 512            /* of a block, at most */
#define COLUMNS 1024        /* of a task, at most */
#define SHORT 128           /* with fewer rows a panel is read so few times that it is best small */
#define FEW_ROWS 12         /* up to this many rows reading B takes longer than the products */
#define TASKS 4             /* of a thread */
#define FEW_TASKS 2         /* where it has at most SMALL_NS of work, or each task copies a block of A */
#define SMALL_NS 200e3
#define APART 16 /* numbers between copied rows */
#define TASK_NS 50e6
#define BYTES_PER_NS 20 /* of B, with few rows */
#define COPY_ROWS 16
#define FETCH_ROWS 64  /* up to this many rows reading B is a good part of the time */
#define FAR (2 << 20)  /* numbers of a B that is larger than the caches that are fast */
#define LINE 16        /* numbers of a cache line */
#define SLAB 64        /* columns that make a library call worthwhile */
#define WHOLE_WORK 1e9 /* products per library call: interrupts are seen between calls */

struct matrix {
	const float *data;
	int64_t row, column;
};

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_f32 *kernel;
	int64_t m, n, k;
	struct matrix a, b;
	float *c;
	int64_t ldc;
	int64_t rows, columns; /* of a task */
	int64_t across;        /* tasks across the columns */
	int64_t depth;         /* numbers of k of a block of A, a multiple of DEPTH unless k is less */
	bool copies;           /* of the blocks of A */
	struct ql_slots slots; /* none with few rows */
};

extern const struct ql_gemm_f32 gemm_f32_ref;

const char *ql_gemm_f32_name(struct ql_ctx *ctx)
{
	return ctx->kernels->gemm_f32->name;
}

/* ---- copies of A ---- */

struct copy {
	struct matrix from;
	int64_t rows, columns, pitch;
	int variant;
	float *to;
};

/* COPY_ROWS rows at a time, so that adjacent columns are read together */
static void copy_body(void *arg, int64_t begin, int64_t end)
{
	const struct copy *c = arg;

	for (int64_t block = begin; block < end; block++) {
		int64_t first = block * COPY_ROWS, rows = ql_min64(COPY_ROWS, c->rows - first);
		const float *from = c->from.data + first * c->from.row;
		float *to = c->to + first * c->pitch;

		if (c->from.row == 1 && c->columns <= INT_MAX) {
			ql_gemm_panel_f32(c->variant, from, 1, c->from.column, rows, (int)c->columns, c->pitch, to);
			continue;
		}
		for (int64_t j = 0; j < c->columns; j++)
			for (int64_t i = 0; i < rows; i++)
				to[i * c->pitch + j] = from[i * c->from.row + j * c->from.column];
	}
}

/* Makes x (rows, columns) a copy with consecutive rows. The pitch avoids powers of two, which would map many rows
 * to the same few cache sets. */
static enum ql_status copy_rows(struct ql_ctx *ctx, int64_t rows, int64_t columns, struct matrix *x)
{
	struct copy c = {.from = *x,
		.rows = rows,
		.columns = columns,
		.pitch = columns + (columns % 512 ? 0 : 16),
		.variant = ctx->kernels->simd->variant};
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)c.pitch, sizeof(float), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)columns);
	c.to = ql_gemm_take(ctx, rows, bytes);
	if (!c.to)
		return QL_ERR_MEMORY;
	*x = (struct matrix){c.to, c.pitch, 1};
	return ql_parallel_for(
		ctx, ql_ceil_div(rows, COPY_ROWS), ql_max64(1, 4096 / columns), rows * columns, copy_body, &c);
}

/* ---- tasks ---- */

/* True if columns of B that are read for so few rows, each of them contiguous, come from beyond the caches. */
static bool fetches(const struct job *j, int64_t rows)
{
	return j->b.row == 1 && rows <= FETCH_ROWS && j->n > FAR / j->k;
}

static void fetch(const float *b, int64_t numbers)
{
	for (int64_t l = 0; l < numbers; l += LINE)
		__builtin_prefetch(b + l, 0, 2);
}

/* One panel of one depth times rows i..stop-1. The numbers of the next depth are fetched some for each tile. */
static void panel_product(const struct job *j, int64_t i, int64_t stop, int64_t column, int columns, int64_t l)
{
	int nr = j->kernel->nr;
	int64_t depth = ql_min64(DEPTH, j->k - l), fetched, share;
	struct matrix b = {j->b.data + l * j->b.row + column * j->b.column, j->b.row, j->b.column};
	_Alignas(64) float packed[PANEL];

	ql_gemm_panel_f32(j->ctx->kernels->simd->variant, b.data, b.row, b.column, depth, columns, nr, packed);
	fetched = fetches(j, stop - i) ? 0 : columns;
	share = ql_ceil_div(columns, ql_ceil_div(stop - i, j->kernel->mr));
	for (; i < stop; i += j->kernel->mr) {
		for (int64_t some = ql_min64(fetched + share, columns); fetched < some; fetched++)
			fetch(b.data + fetched * b.column + DEPTH, ql_min64(DEPTH, j->k - l - depth));
		j->kernel->tile((int)ql_min64(j->kernel->mr, stop - i), columns, depth, j->a.data + i * j->a.row + l,
			j->a.row, packed, nr, j->c + i * j->ldc + column, j->ldc, l > 0);
	}
}

/* True if reading B is a good part of the time. */
static bool is_few(const struct job *j)
{
	return ql_min64(j->rows, j->m) <= FEW_ROWS || fetches(j, j->rows);
}

/* Few rows: each column is read sequentially where reading dominates. */
static void few_rows(const struct job *j, int64_t i, int64_t stop, int64_t first, int64_t last)
{
	int nr = j->kernel->nr;

	if (stop - i <= FEW_ROWS)
		for (int64_t c = first; c < last && !ql_stopped(j->ctx); c += nr)
			for (int64_t l = 0; l < j->k; l += DEPTH)
				panel_product(j, i, stop, c, (int)ql_min64(nr, last - c), l);
	else
		for (int64_t l = 0; l < j->k && !ql_stopped(j->ctx); l += DEPTH)
			for (int64_t c = first; c < last; c += nr)
				panel_product(j, i, stop, c, (int)ql_min64(nr, last - c), l);
}

/* The part of a task that stays in the second-level cache: rows of A, of `depth` numbers, and one panel of B. */
struct block {
	const float *a;
	int64_t a_row, rows, depth, l;
	float *panel; /* memory */
};

/* Numbers of panels that lie after this one, one line of each row at a time; B's rows are too short and too far apart for
 * hardware to follow. */
static void fetch_lines(const struct job *j, const struct block *x, int64_t column, int64_t line, int64_t lines)
{
	int64_t across = j->kernel->nr / LINE;

	for (; lines > 0 && line < across * x->depth; lines--, line++)
		__builtin_prefetch(j->b.data + (x->l + line / across) * j->b.row + column + line % across * LINE, 0, 2);
}

/* One panel of B times the block. Tiles go through all depths one after the other, so that their part of C is in the
 * first-level cache for all but the first. */
static void block_product(const struct job *j, const struct block *x, float *c, int64_t column, int columns, bool more)
{
	int64_t nr = j->kernel->nr, mr = j->kernel->mr;
	int64_t share = ql_ceil_div(x->depth * nr / LINE, ql_ceil_div(x->rows, mr)), fetched = 0;
	const float *b = j->b.data + x->l * j->b.row + column * j->b.column;

	ql_gemm_panel_f32(j->ctx->kernels->simd->variant, b, j->b.row, j->b.column, x->depth, columns, nr, x->panel);
	for (int64_t i = 0; i < x->rows; i += mr, fetched += share) {
		if (more)
			fetch_lines(j, x, column + nr, fetched, share);
		for (int64_t l = 0; l < x->depth; l += DEPTH)
			j->kernel->tile((int)ql_min64(mr, x->rows - i), columns, ql_min64(DEPTH, x->depth - l),
				x->a + i * x->a_row + l, x->a_row, x->panel + l * nr, nr, c + i * j->ldc + column,
				j->ldc, x->l + l > 0);
	}
}

/* Many rows; `memory` for a panel and, where rows collide, for a copy of the block. */
static void many_rows(const struct job *j, int64_t i, int64_t stop, int64_t first, int64_t last, float *memory)
{
	int64_t nr = j->kernel->nr;
	struct block x = {.rows = stop - i, .a_row = j->copies ? j->depth + APART : j->a.row, .panel = memory};
	float *copy = memory + j->depth * nr;

	for (; x.l < j->k && !ql_stopped(j->ctx); x.l += j->depth) {
		x.depth = ql_min64(j->depth, j->k - x.l);
		x.a = j->copies ? copy : j->a.data + i * j->a.row + x.l;
		for (int64_t r = 0; j->copies && r < x.rows; r++)
			memcpy(copy + r * x.a_row, j->a.data + (i + r) * j->a.row + x.l,
				(size_t)x.depth * sizeof(float));
		for (int64_t c = first; c < last; c += nr)
			block_product(j, &x, j->c + i * j->ldc, c, (int)ql_min64(nr, last - c),
				j->b.column == 1 && last - c >= 2 * nr);
	}
}

static void task_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int slot = 0;
	float *memory = j->slots.n ? ql_slots_enter(&j->slots, &slot) : NULL;

	for (int64_t t = begin; t < end; t++) {
		int64_t i = t / j->across * j->rows, first = t % j->across * j->columns;
		int64_t stop = ql_min64(i + j->rows, j->m), last = ql_min64(first + j->columns, j->n);

		if (memory)
			many_rows(j, i, stop, first, last, memory);
		else
			few_rows(j, i, stop, first, last);
	}
	if (memory)
		ql_slots_leave(&j->slots, slot);
}

static int64_t tasks_of(const struct job *j)
{
	return ql_ceil_div(j->m, j->rows) * ql_ceil_div(j->n, j->columns);
}

/* Half of the second-level cache is for a block of A: of all k if that leaves enough rows, else of as many as it holds of ROWS
 * rows. Rows a multiple of a power of two apart share sets of the cache: where these hold less than a block, it is copied. */
static void cut_block(struct job *j)
{
	int64_t numbers = (int64_t)ql_cpu()->l2 / 2 / (int64_t)sizeof(float), groups = ql_ceil_div(j->k, DEPTH), most;
	int64_t apart = j->a.row & -j->a.row;

	numbers = ql_max64(numbers, ROWS * DEPTH / 2);
	most = ql_min64(ql_max64(1, numbers / (ROWS * DEPTH)), DEPTHS);
	j->rows = ROWS;
	if (groups <= DEPTHS && numbers / j->k >= ROWS / 2) {
		j->rows = ql_min64(ROWS, numbers / j->k);
		most = groups;
	}
	groups = j->m < SHORT ? 1 : ql_ceil_div(groups, ql_ceil_div(groups, most));
	j->depth = ql_min64(groups * DEPTH, ql_ceil_div(j->k, LINE) * LINE);
	j->copies = apart > j->depth && ql_mul64(apart, ql_min64(j->rows, j->m)) > numbers;
}

/* Starts with blocks that fit the caches, then shrinks them until every thread has several tasks and none is long. */
static void cut(struct job *j)
{
	int mr = j->kernel->mr, nr = j->kernel->nr;
	double ns = (double)j->k / j->kernel->rate;
	int64_t wanted;

	cut_block(j);
	wanted = j->copies || (double)j->m * (double)j->n * ns < SMALL_NS * j->ctx->threads ? FEW_TASKS : TASKS;
	wanted *= j->ctx->threads;
	j->rows = ql_ceil_div(j->m, ql_ceil_div(j->m, j->rows));
	j->columns = COLUMNS;
	while (j->columns > nr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->columns = ql_ceil_div(j->columns / 2, nr) * nr;
	while (j->rows > 8 * mr && tasks_of(j) < wanted)
		j->rows = (j->rows + 1) / 2;
	while (j->rows > mr && (double)j->rows * (double)j->columns * ns > TASK_NS)
		j->rows = (j->rows + 1) / 2;
	j->rows = ql_ceil_div(j->rows, mr) * mr;
	j->across = ql_ceil_div(j->n, j->columns);
}

/* Memory for the blocks of running tasks. */
static enum ql_status take_blocks(struct ql_ctx *ctx, struct job *j)
{
	int64_t numbers = ql_mul64(j->depth, j->kernel->nr);

	if (j->copies)
		numbers += ql_mul64(j->depth + APART, j->rows);
	return ql_slots_take(ctx, (uint64_t)ql_mul64(numbers, sizeof(float)), &j->slots);
}

/* True if lines of so many rows of A meet in a few sets of the cache. */
static bool rows_collide(const struct job *j)
{
	return j->m > j->kernel->mr && j->a.row % 256 == 0;
}

static enum ql_status by_tiles(struct ql_ctx *ctx, struct job *j)
{
	double work = (double)j->n * (double)j->k * ((double)j->m / j->kernel->rate + 4.0 / BYTES_PER_NS);
	struct ql_gemm_few p = {
		j->m, j->n, j->k, j->a.data, j->a.row, j->a.column, j->b.data, j->b.row, j->b.column, j->c, j->ldc};
	bool few = ql_gemm_is_few(j->kernel, &p);

	if (few && p.b_column != 1)
		return ql_gemm_few(ctx, j->kernel, &p);
	if ((j->a.column != 1 && j->k > 1) || (few && rows_collide(j))) {
		enum ql_status status = copy_rows(ctx, j->m, j->k, &j->a);

		if (status)
			return status;
	}
	if (few) {
		p.a = j->a.data;
		p.a_row = j->a.row;
		return ql_gemm_few(ctx, j->kernel, &p);
	}
	cut(j);
	if (!is_few(j)) {
		enum ql_status status = take_blocks(ctx, j);

		if (status)
			return status;
	}
	return ql_parallel_for(ctx, tasks_of(j), 1, work < 1e18 ? (int64_t)work : INT64_MAX, task_body, j);
}

/* ---- a library ---- */

/* True if rows or columns of x (rows, columns) are contiguous without overlap; strides of an axis of size one are
 * ignored. */
static bool is_dense(int64_t rows, int64_t columns, struct matrix *x)
{
	int64_t row = rows == 1 ? columns : x->row, column = columns == 1 ? rows : x->column;

	if ((columns == 1 || x->column == 1) && row >= columns && row <= INT_MAX) {
		*x = (struct matrix){x->data, row, 1};
		return true;
	}
	if ((rows == 1 || x->row == 1) && column >= rows && column <= INT_MAX) {
		*x = (struct matrix){x->data, 1, column};
		return true;
	}
	return false;
}

/* Columns of B and C per library call. */
static int64_t slab(const struct job *j, int threads)
{
	double columns = WHOLE_WORK / ((double)j->m * (double)j->k);
	int64_t step = columns < 1 ? 1 : columns > (double)j->n ? j->n : (int64_t)columns;

	return threads > 1 ? ql_min64(step, ql_max64(SLAB, ql_ceil_div(j->n, 2 * threads))) : step;
}

static void slab_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	j->kernel->whole(j->m, end - begin, j->k, j->a.data, j->a.row, j->a.column, j->b.data + begin * j->b.column,
		j->b.row, j->b.column, j->c + begin, j->ldc);
}

static enum ql_status by_library(struct ql_ctx *ctx, struct job *j)
{
	int threads = j->kernel->reentrant() ? ctx->threads : 1;
	double work = (double)j->m * (double)j->n * (double)j->k / j->kernel->rate;
	enum ql_status status = QL_OK;

	if (!is_dense(j->m, j->k, &j->a))
		status = copy_rows(ctx, j->m, j->k, &j->a);
	if (!status && !is_dense(j->k, j->n, &j->b))
		status = copy_rows(ctx, j->k, j->n, &j->b);
	if (status)
		return status;
	return ql_parallel_for(
		ctx, j->n, slab(j, threads), threads > 1 && work < 1e18 ? (int64_t)work : 0, slab_body, j);
}

enum ql_status ql_gemm_f32(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
	int64_t a_col, const float *b, int64_t b_row, int64_t b_col, float *c, int64_t ldc)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx,
		.kernel = ctx->kernels->gemm_f32,
		.m = m,
		.n = n,
		.k = k,
		.a = {a, a_row, a_col},
		.b = {b, b_row, b_col},
		.c = c,
		.ldc = ldc};
	bool fits = ql_max64(ql_max64(m, n), ql_max64(k, ldc)) <= INT_MAX - 16;
	enum ql_status status;

	if (m == 0 || n == 0)
		return QL_OK;
	if (k == 0) {
		for (int64_t i = 0; i < m; i++)
			memset(c + i * ldc, 0, (size_t)n * sizeof(*c));
		return QL_OK;
	}
	if (j.kernel->whole && !fits)
		j.kernel = &gemm_f32_ref;
	status = j.kernel->whole ? by_library(ctx, &j) : by_tiles(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
