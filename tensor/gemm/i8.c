/* SPDX-License-Identifier: MIT
 * 8-bit integer product. The tiles multiply u8 by s8 codes, so codes of the other signedness are shifted by 128
 * together with their zero points (a' = a + 128, b' = b - 128: the top bit flips), but for signed codes of A where the kernel has a
 * tile for them, which then need no correction if their zero point is 0. With S = sum a' b':
 *
 *   sum (a' - za') (b' - zb') = S - za' sum b' - zb' (sum a' - k za')
 *
 * The column sums of B are an additional row of the product, with a row of ones.
 *
 * Narrow: k times the largest |a' - za'| |b' - zb'| stays below 2^31. Then everything is computed mod 2^32, and
 * intermediate wraps cancel. Wide: k is divided into chunks whose S cannot exceed 32 bits (32 768 * 255 * 128 <
 * 2^31); their sums and the corrections have 64 bits.
 *
 * One parallel loop: a task is a block of rows times a run of panels. The thread that runs it brings the block into
 * the form of the tiles in memory of its own, where it stays in the second-level cache while panels pass. With few
 * rows a task has all of them and packs its panels as well; else B is packed first, by all threads. A kernel with
 * `scaled_block` takes the block and several panels at once, where float32 results have one zero point for all rows.
 */
#include "tensor/gemm/gemm.h"

#include <stdatomic.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/gemm/i8_finish.h"
#include "tensor/gemm/i8_parts.h"
#include "tensor/gemm/matmul.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/gemm/strips.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHUNK 8192   /* groups of 4 k */
#define ROW_GRAIN 64 /* rows of A copied at a time */
#define LINE 64      /* bytes of a cache line */
#define FEW_TILES 8  /* for a thread; with fewer, the panels are divided */
#define FEW_BLOCKS 4 /* the same of a kernel's blocks, which are higher */
#define GROUP 8      /* panels packed at a time: rows of B are read by several lines, which the prefetchers need */

struct job {
	const struct ql_gemm_i8 *kernel;
	const struct ql_pack_i8 *pack;
	struct ql_gemm_split split;
	struct ql_gemm_operand a, b;
	uint8_t sign; /* 128 if A's codes are signed for the tile, else 0 */
	int64_t m, n, k, k4, lda, panels;
	const uint8_t *rows;   /* (m, lda): A, in place or copied as a whole; NULL: each block is copied by its task */
	uint8_t *copied;       /* the same when it is copied */
	const uint8_t *packed; /* (panels, k4, nr, 4); NULL: each panel is packed by its task */
	uint8_t *packing;      /* the same when B is packed here */
	const uint8_t *ones;   /* one chunk */
	int32_t *sum;          /* column sums written while packing; NULL: not wanted */
	int64_t *sum_wide;
	const int64_t *column_wide; /* (n): sum b'; NULL: the product is narrow */
	int64_t *rest;              /* (m): sum a' - k za'; NULL: not wanted */
	struct ql_gemm_i8_finish finish;
	bool formed;        /* blocks are multiplied at once, in the kernel's form of A, */
	int64_t form_pitch; /* with so many bytes for each row */
	int64_t span;       /* panels of such a block */
	uint8_t *slots; /* memory of the running tasks: a block of A, then a panel of B, then what formed blocks need */
	_Atomic char *taken;
	uint64_t block_bytes, panel_bytes, slot_bytes;
	int threads;
};

/* ---- rows of A ---- */

static void sum_rows(const struct job *j, int64_t i, int64_t rows, const uint8_t *a)
{
	for (int64_t r = 0; r < rows && j->rest; r++)
		j->rest[i + r] = ql_gemm_row_rest(a + r * j->lda, j->k, ql_gemm_zero_of(&j->a, i + r), j->sign);
}

static void copy_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;

	for (int64_t g = begin; g < end; g++) {
		int64_t i = g * ROW_GRAIN, rows = ql_min64(ROW_GRAIN, j->m - i);

		if (j->copied)
			ql_gemm_rows_8(j->pack, j->a.from, j->k, i, rows, j->a.flip, j->copied + i * j->lda, j->lda);
		sum_rows(j, i, rows, j->rows + i * j->lda);
	}
}

/* Uses A in place when its rows are codes that can be read in fours. The pitch of a copy avoids powers of two, which would map all
 * rows to the same few cache sets. Rows that are not consecutive bytes are copied once, by all threads, as are floats if several tasks
 * need them: else each block is encoded by its task, so that the codes are never written to memory. */
static enum ql_status rows_init(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_matrix_int *a = j->a.from;

	if (j->b.zero) {
		j->rest = ql_gemm_take(ctx, j->m, sizeof(*j->rest));
		if (!j->rest)
			return QL_ERR_MEMORY;
	}
	if (!j->a.flip && j->k % 4 == 0 && a->column == 1 && !a->floats) {
		j->rows = a->data;
		j->lda = a->row;
	} else {
		j->lda = 4 * j->k4 + (j->k4 > 0 && j->k4 % 128 == 0 ? LINE : 0);
	}
	if (!j->rows && (a->column != 1 || (a->floats && j->split.parts > 1))) {
		j->rows = j->copied = ql_gemm_take(ctx, j->m, (uint64_t)j->lda);
		if (!j->rows)
			return QL_ERR_MEMORY;
	}
	return QL_OK;
}

/* ---- panels ---- */

static int64_t panel_bytes(const struct job *j)
{
	return j->k4 * 4 * j->kernel->nr;
}

static int panel_columns(const struct job *j, int64_t panel)
{
	return (int)ql_min64(j->kernel->nr, j->n - panel * j->kernel->nr);
}

/* sums[i][c] = rows x panel, chunk by chunk, exact; A's rows are `lda` apart, or one row of ones */
static void wide_sums(
	const struct job *j, const uint8_t *a, int64_t lda, int rows, int columns, const int8_t *b, int64_t *sums)
{
	ql_gemm_i8_tile_fn *tile = a == j->ones ? j->kernel->tile : j->finish.tile;
	int nr = j->kernel->nr;
	int32_t part[QL_GEMM_TILE];

	memset(sums, 0, (size_t)(rows * nr) * sizeof(*sums));
	for (int64_t at = 0; at < j->k4; at += CHUNK) {
		const uint8_t *from = a == j->ones ? a : a + 4 * at;

		tile(rows, columns, ql_min64(CHUNK, j->k4 - at), from, lda, b + at * 4 * nr, part);
		for (int i = 0; i < rows; i++)
			for (int c = 0; c < columns; c++)
				sums[i * nr + c] += part[i * nr + c];
	}
}

/* Packs panels first..first+count-1 to `to` and gives the sums of their columns. */
static void pack_panels(const struct job *j, int64_t first, int64_t count, uint8_t *to)
{
	int64_t sums[QL_GEMM_TILE], nr = j->kernel->nr, columns = ql_min64(count * nr, j->n - first * nr);

	if (j->b.from->strips)
		ql_strips_panels(j->b.from->strips, first * nr, columns, j->kernel->nr, j->b.flip, to);
	else
		ql_gemm_panels_8(j->pack, j->b.from, j->k, first * nr, columns, j->kernel->nr, j->b.flip, to);
	for (int64_t p = first; p < first + count && (j->sum || j->sum_wide); p++) {
		int some = panel_columns(j, p);

		wide_sums(j, j->ones, 0, 1, some, (const int8_t *)to + (p - first) * panel_bytes(j), sums);
		for (int c = 0; c < some && j->sum_wide; c++)
			j->sum_wide[p * nr + c] = sums[c];
		for (int c = 0; c < some && j->sum; c++)
			j->sum[p * nr + c] = (int32_t)(uint32_t)sums[c];
	}
}

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;

	for (int64_t g = begin; g < end; g++) {
		int64_t first = g * GROUP;

		pack_panels(j, first, ql_min64(GROUP, j->panels - first), j->packing + first * panel_bytes(j));
	}
}

/* ---- the product ---- */

static void wide_tile(
	const struct job *j, int64_t i, int rows, int64_t first, int columns, const uint8_t *a, const int8_t *b)
{
	int nr = j->kernel->nr;
	int64_t c[QL_GEMM_TILE];

	wide_sums(j, a, j->lda, rows, columns, b, c);
	for (int r = 0; r < rows; r++) {
		uint64_t za = (uint64_t)ql_gemm_zero_of(&j->a, i + r), rest = j->rest ? (uint64_t)j->rest[i + r] : 0;

		for (int l = 0; l < columns; l++) {
			uint64_t sum = (uint64_t)c[r * nr + l];

			sum -= za ? za * (uint64_t)j->column_wide[first + l] : 0;
			sum -= rest ? rest * (uint64_t)j->b.zero[first + l] : 0;
			c[r * nr + l] = (int64_t)sum;
		}
		j->finish.out->store(j->finish.out->arg, i + r, first, columns, NULL, c + r * nr);
	}
}

/* Rows i..i+rows-1, prepared at a, times a panel. */
static void multiply(const struct job *j, int64_t i, int64_t rows, const uint8_t *a, int64_t panel, const int8_t *b)
{
	int64_t first = panel * j->kernel->nr, mr = j->kernel->mr;
	int columns = panel_columns(j, panel);

	if (!j->column_wide)
		ql_gemm_i8_finish_product(&j->finish, i, rows, first, columns, j->k4, a, j->lda, b);
	for (int64_t r = 0; r < rows && j->column_wide; r += mr)
		wide_tile(j, i + r, (int)ql_min64(mr, rows - r), first, columns, a + r * j->lda, b);
}

/* The kernel's form of some rows, which are codes at `from`. */
static void form_rows(const struct job *j, int64_t i, int64_t rows, const uint8_t *from, int64_t pitch, uint8_t *to)
{
	j->kernel->form(rows, j->k, from, pitch, to);
	for (int64_t r = 0; r < rows && j->rest && !j->rows; r++)
		j->rest[i + r] = ql_gemm_row_rest(from + r * pitch, j->k, ql_gemm_zero_of(&j->a, i + r), j->sign);
}

/* Behind a slot's block and panel: sums, numbers of the rows, rows of codes that are encoded to be formed. */
static uint64_t numbers_at(const struct job *j)
{
	return (uint64_t)(j->span * QL_GEMM_I8_SUMS);
}

static uint64_t codes_at(const struct job *j)
{
	return numbers_at(j) + (uint64_t)((j->split.block + 15) / 16 * LINE);
}

/* Whole blocks at once, floats by so many rows that their codes stay in the first-level cache. */
static const uint8_t *form(const struct job *j, int64_t i, int64_t rows, uint8_t *slot)
{
	const struct ql_matrix_int *a = j->a.from;
	uint8_t *codes = slot + j->block_bytes + j->panel_bytes + codes_at(j);

	if (j->rows || !a->floats) {
		form_rows(j, i, rows, j->rows ? j->rows + i * j->lda : (const uint8_t *)a->data + i * a->row,
			j->rows ? j->lda : a->row, slot);
		return slot;
	}
	for (int64_t r = 0; r < rows; r += j->kernel->block_rows) {
		int64_t some = ql_min64(j->kernel->block_rows, rows - r);

		ql_gemm_rows_8(j->pack, a, j->k, i + r, some, j->a.flip, codes, j->lda);
		form_rows(j, i + r, some, codes, j->lda, slot + r * j->form_pitch);
	}
	return slot;
}

static const uint8_t *block_of(const struct job *j, int64_t i, int64_t rows, uint8_t *slot)
{
	if (j->formed)
		return form(j, i, rows, slot);
	if (j->rows)
		return j->rows + i * j->lda;
	ql_gemm_rows_8(j->pack, j->a.from, j->k, i, rows, j->a.flip, slot, j->lda);
	sum_rows(j, i, rows, slot);
	return slot;
}

static const int8_t *panel_of(const struct job *j, int64_t panel, uint8_t *slot)
{
	if (j->packed)
		return (const int8_t *)j->packed + panel * panel_bytes(j);
	pack_panels(j, panel, 1, slot + j->block_bytes);
	if (!j->column_wide)
		ql_gemm_i8_finish_columns(&j->finish, panel * j->kernel->nr, panel_columns(j, panel));
	return (const int8_t *)slot + j->block_bytes;
}

/* `count` panels at b */
static void multiply_formed(const struct job *j, int64_t i, int64_t rows, const uint8_t *a, int64_t panel,
	int64_t count, const int8_t *b, uint8_t *slot)
{
	uint8_t *memory = slot + j->block_bytes + j->panel_bytes;
	int64_t first = panel * j->kernel->nr, behind = j->packed ? ql_min64(j->span, j->panels - panel - count) : 0;
	struct ql_gemm_i8_block block = {.rows = rows,
		.columns = ql_min64(count * j->kernel->nr, j->n - first),
		.k4 = j->k4,
		.is_signed = j->sign != 0,
		.a = a,
		.panels = b,
		.ahead = behind * panel_bytes(j),
		.memory = memory};

	ql_gemm_i8_finish_block(&j->finish, &block, i, first, (uint32_t *)(void *)(memory + numbers_at(j)));
}

static void multiply_panels(
	const struct job *j, int64_t i, int64_t rows, const uint8_t *a, int64_t panel, int64_t stop, uint8_t *slot)
{
	while (panel < stop) {
		int64_t count = j->formed && j->packed ? ql_min64(j->span, stop - panel) : 1;
		const int8_t *b = panel_of(j, panel, slot);

		if (j->formed)
			multiply_formed(j, i, rows, a, panel, count, b, slot);
		else
			multiply(j, i, rows, a, panel, b);
		panel += count;
	}
}

/* No more tasks run than there are threads, so one is free. */
static int64_t take_slot(struct job *j)
{
	int64_t s = 0;

	while (atomic_exchange(&j->taken[s], 1))
		s = (s + 1) % j->threads;
	return s;
}

static void product_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int64_t s = take_slot(j), parts = j->split.parts;
	uint8_t *slot = j->slots ? j->slots + s * (int64_t)j->slot_bytes : NULL;

	for (int64_t t = begin, stop; t < end; t = stop) {
		int64_t block = t / parts, i = ql_gemm_split_row(&j->split, block);
		int64_t rows = ql_min64(ql_gemm_split_row(&j->split, block + 1), j->m) - i;

		stop = ql_min64(end, (block + 1) * parts);
		multiply_panels(j, i, rows, block_of(j, i, rows, slot), t % parts * j->split.run,
			ql_min64((stop - block * parts) * j->split.run, j->panels), slot);
	}
	atomic_store(&j->taken[s], 0);
}

/* ---- memory ---- */

static enum ql_status take_ones(struct ql_ctx *ctx, struct job *j)
{
	int64_t chunk = 4 * ql_min64(CHUNK, j->k4);
	uint8_t *ones = ql_gemm_take(ctx, chunk, 1);

	if (!ones)
		return QL_ERR_MEMORY;
	memset(ones, 1, (size_t)chunk);
	j->ones = ones;
	return QL_OK;
}

static enum ql_status too_large(struct ql_ctx *ctx, int64_t k)
{
	return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)k);
}

/* Allocates panels, unless tasks pack them, and sums of columns, of 32 bits, or 64 when a sum may need them. */
static enum ql_status take_panels(struct ql_ctx *ctx, struct job *j, bool narrow)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)j->k4, ql_size_array(j->kernel->nr, 4), &bytes))
		return too_large(ctx, j->k);
	if (!j->split.packs) {
		j->packed = j->packing = ql_gemm_take(ctx, j->panels, bytes);
		if (!j->packed)
			return QL_ERR_MEMORY;
	}
	if (narrow && j->b.from->sums) {
		j->finish.column_sum = j->b.from->sums;
		return take_ones(ctx, j);
	}
	if (narrow)
		j->finish.column_sum = j->sum = ql_gemm_take(ctx, j->n, sizeof(*j->sum));
	else
		j->column_wide = j->sum_wide = ql_gemm_take(ctx, j->n, sizeof(*j->sum_wide));
	if (!(narrow ? (void *)j->sum : (void *)j->sum_wide))
		return QL_ERR_MEMORY;
	if (!j->a.zero) { /* then the sums are not used */
		j->sum = NULL;
		j->sum_wide = NULL;
	}
	return take_ones(ctx, j);
}

static enum ql_status take_slots(struct ql_ctx *ctx, struct job *j)
{
	uint64_t more = 0;

	j->panel_bytes = j->packed ? 0 : (uint64_t)panel_bytes(j);
	if (j->formed)
		more = codes_at(j) + (j->a.from->floats && !j->rows ? (uint64_t)(j->kernel->block_rows * j->lda) : 0);
	j->taken = ql_gemm_take(ctx, ctx->threads, 1);
	if (!j->taken)
		return QL_ERR_MEMORY;
	memset((void *)j->taken, 0, (size_t)ctx->threads);
	if (j->formed && !ql_size_mul((uint64_t)ql_ceil_div(j->split.block, j->kernel->form_rows),
				 (uint64_t)ql_mul64(j->kernel->form_rows, j->form_pitch), &j->block_bytes))
		return too_large(ctx, j->k);
	if (!j->formed && !j->rows && !ql_size_mul((uint64_t)j->split.block, (uint64_t)j->lda, &j->block_bytes))
		return too_large(ctx, j->k);
	j->block_bytes = (j->block_bytes + LINE - 1) / LINE * LINE;
	if (!ql_size_add(j->block_bytes, j->panel_bytes, &j->slot_bytes) ||
		!ql_size_add(j->slot_bytes, more, &j->slot_bytes))
		return too_large(ctx, j->k);
	if (!j->slot_bytes)
		return QL_OK;
	j->slots = ql_gemm_take(ctx, ctx->threads, j->slot_bytes);
	return j->slots ? QL_OK : QL_ERR_MEMORY;
}

/* The sums of the columns of panels that were packed with 32 bits of them; not set if they are not used. */
static enum ql_status sum_panels(struct ql_ctx *ctx, struct job *j)
{
	int64_t nr = j->kernel->nr, *sums = ql_gemm_take(ctx, j->panels, ql_size_array(nr, sizeof(*sums)));
	enum ql_status status = sums ? take_ones(ctx, j) : QL_ERR_MEMORY;

	for (int64_t p = 0; p < j->panels && j->a.zero && !status; p++)
		wide_sums(j, j->ones, 0, 1, panel_columns(j, p), (const int8_t *)j->packed + p * panel_bytes(j),
			sums + p * nr);
	j->column_wide = sums;
	return status;
}

static enum ql_status take_memory(struct ql_ctx *ctx, struct job *j, bool narrow)
{
	const struct ql_gemm_i8_panels *given = j->b.from->panels;
	enum ql_status status = QL_OK;

	if (given) {
		j->packed = given->data;
		j->finish.column_sum = narrow ? given->sum : NULL;
		j->column_wide = narrow ? NULL : given->sum_wide;
		status = narrow || given->sum_wide ? QL_OK : sum_panels(ctx, j);
	} else {
		status = take_panels(ctx, j, narrow);
	}
	if (!status)
		status = rows_init(ctx, j);
	if (!status)
		status = take_slots(ctx, j);
	j->finish.rest = j->rest;
	return status || !narrow ? status : ql_gemm_i8_finish_init(ctx, &j->finish, j->m, j->n);
}

/* Panels of a block: they stay in the second-level cache, too, while its rows pass; one where more follows their floats. */
static void form_init(struct job *j, struct ql_gemm_shape *shape)
{
	const struct ql_epilogue *end = j->finish.out->end;
	int64_t l2 = ql_cpu()->l2 ? (int64_t)ql_cpu()->l2 : 256 << 10;

	shape->mr = j->kernel->block_rows;
	shape->few = FEW_BLOCKS;
	j->form_pitch = ql_ceil_div(j->k, j->kernel->form_k) * j->kernel->form_k;
	j->span = ql_max64(1, ql_min64(l2 / 4 / ql_max64(1, panel_bytes(j)), j->panels));
	if (end && end->act && !end->relu)
		j->span = 1;
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	struct ql_gemm_shape shape = {.mr = j->kernel->mr,
		.nr = j->kernel->nr,
		.rate = j->kernel->rate,
		.row_bytes = ql_mul64(4, j->k4),
		.few = FEW_TILES};
	bool narrow = ql_gemm_is_narrow(&j->a, &j->b, j->k);
	enum ql_status status;

	j->panels = ql_ceil_div(j->n, j->kernel->nr);
	j->formed = narrow && !j->a.flip && ql_gemm_i8_finish_takes_blocks(&j->finish, j->m, j->n);
	if (j->formed)
		form_init(j, &shape);
	j->split = ql_gemm_split_of(ctx, j->m, j->n, j->k, &shape, j->b.from->panels != NULL);
	status = take_memory(ctx, j, narrow);
	if (!status && j->packing)
		status = ql_parallel_for(
			ctx, ql_ceil_div(j->panels, GROUP), 1, ql_gemm_pack_ns(j->n, j->k), pack_body, j);
	if (!status && j->packed && !j->column_wide)
		ql_gemm_i8_finish_columns(&j->finish, 0, j->n);
	if (!status && j->rows && (j->copied || j->rest))
		status = ql_parallel_for(
			ctx, ql_ceil_div(j->m, ROW_GRAIN), 1, ql_gemm_pack_ns(j->m, j->k), copy_body, j);
	if (!status)
		status = ql_parallel_for(
			ctx, j->split.blocks * j->split.parts, j->split.grain, j->split.work_ns, product_body, j);
	return status;
}

enum ql_status ql_gemm_i8_to(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, const struct ql_gemm_i8_out *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_i8,
		.pack = ctx->kernels->pack_i8,
		.m = m,
		.n = n,
		.k = k,
		.k4 = ql_ceil_div(k, 4),
		.threads = ctx->threads};
	bool reads = ql_gemm_i8_reads_b(m, k, b), strips = ql_gemm_i8_strips_fit(m, n, b),
	     row = ql_gemm_i8_row_fits(m, b);
	enum ql_status status;

	if (m == 0 || n == 0)
		return QL_OK;
	j.finish = (struct ql_gemm_i8_finish){.kernel = j.kernel,
		.tile = j.kernel->tile,
		.a = &j.a,
		.b = &j.b,
		.out = out,
		.variant = ctx->kernels->simd->variant};
	if (a->dtype == QL_int8 && j.kernel->tile_s8 && !reads && !strips && !row) {
		j.sign = 128;
		j.finish.tile = j.kernel->tile_s8;
	}
	status = ql_gemm_operand_init(ctx, &j.a, a, m, !j.sign);
	if (!status)
		status = ql_gemm_operand_init(ctx, &j.b, b, n, false);
	if (!status && reads && ql_gemm_is_narrow(&j.a, &j.b, k))
		status = ql_gemm_i8_dots(ctx, m, n, k, &j.a, &j.b, out);
	else if (!status && strips && ql_gemm_is_narrow(&j.a, &j.b, k))
		status = ql_gemm_i8_strips(ctx, m, n, k, &j.a, &j.b, out);
	else if (!status && row && ql_gemm_is_narrow(&j.a, &j.b, k))
		status = ql_gemm_i8_row(ctx, n, k, &j.a, &j.b, out);
	else if (!status)
		status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_gemm_i8(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg)
{
	return ql_gemm_i8_to(ctx, m, n, k, a, b, &(struct ql_gemm_i8_out){.store = store, .arg = arg});
}

/* ---- B packed for several products ---- */

/* Offsets of the parts: panels, then both sums. */
static bool lay_out(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k, uint64_t part[3], uint64_t *bytes)
{
	uint64_t columns = (uint64_t)ql_mul64(ql_ceil_div(n, kernel->nr), kernel->nr);

	part[0] = 0;
	return ql_size_mul(columns, (uint64_t)ql_mul64(4, ql_ceil_div(k, 4)), &part[1]) &&
	       ql_size_add(part[1], ql_size_array((int64_t)columns, sizeof(int64_t)), &part[2]) &&
	       ql_size_add(part[2], ql_size_array((int64_t)columns + 16, sizeof(int32_t)), bytes);
}

uint64_t ql_gemm_i8_panel_bytes(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k)
{
	uint64_t part[3], bytes;

	return lay_out(kernel, n, k, part, &bytes) ? bytes : 0;
}

enum ql_status ql_gemm_i8_pack_to(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	uint8_t *panels, int32_t *sum, int64_t *sum_wide)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kernel = ctx->kernels->gemm_i8,
		.pack = ctx->kernels->pack_i8,
		.n = n,
		.k = k,
		.k4 = ql_ceil_div(k, 4),
		.sum = sum,
		.sum_wide = sum_wide,
		.packed = panels,
		.packing = panels};
	enum ql_status status;

	j.b = (struct ql_gemm_operand){.from = b, .flip = b->dtype == QL_uint8 ? 128 : 0};
	j.panels = ql_ceil_div(n, j.kernel->nr);
	status = take_ones(ctx, &j);
	if (!status)
		status = ql_parallel_for(ctx, ql_ceil_div(j.panels, GROUP), 1, ql_gemm_pack_ns(n, k), pack_body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_gemm_i8_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b, void *memory,
	struct ql_gemm_i8_panels *out)
{
	uint64_t part[3], bytes;

	if (!lay_out(ctx->kernels->gemm_i8, n, k, part, &bytes))
		return too_large(ctx, k);
	*out = (struct ql_gemm_i8_panels){
		ctx->kernels->gemm_i8, memory, (void *)((char *)memory + part[2]), (void *)((char *)memory + part[1])};
	return ql_gemm_i8_pack_to(
		ctx, n, k, b, memory, (int32_t *)(uintptr_t)out->sum, (int64_t *)(uintptr_t)out->sum_wide);
}
