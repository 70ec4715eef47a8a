/* SPDX-License-Identifier: MIT
 * float32 products with a coded B, whose values never exist as a matrix: a task decodes DEPTH rows of one panel of B at a time,
 * which stay in the caches while the rows of A are multiplied with them. Values are decoded as by ql_decode, tiles and the order of
 * sums are those of f32.c: an element is a sum of sums over DEPTH products in order of k.
 *
 * A B whose columns are rows of codes is read from the second product on in strips (strips.h), which decode in registers; a single row
 * of A is multiplied there, too. Other matrices, and formats without strips, are read row by row by the codec.
 */
#include "tensor/gemm/coded.h"

#include <string.h>

#include "tensor/codec.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/strips.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/qparams.h"
#include "tensor/scratch.h"
#include "tensor/slots.h"
#include "tensor/view.h"

#define DEPTH QL_GEMM_DEPTH
#define WIDE 64              /* columns of a panel */
#define PANEL (DEPTH * WIDE) /* its numbers */
#define LINES 16             /* columns that are decoded before they are transposed: they fit the first cache */
#define ROWS 512             /* of A in a task: with DEPTH half a megabyte */
#define FEW_ROWS 12          /* up to this many rows decoding dominates: codes are read in the order of memory */
#define TASKS_PER_THREAD 4
#define TASK_NS 50e6
#define CODES_PER_NS 2 /* decoded by one thread, roughly: for the size of chunks only */

_Static_assert(DEPTH == QL_STRIP_DEPTH && WIDE == QL_STRIPS * QL_STRIP, "rows of strips have the sums of tiles");

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_f32 *kernel;
	const struct ql_decoder *codes; /* without strips */
	struct ql_strips strips;        /* codes NULL: none */
	struct ql_slots slots;          /* of QL_STRIPS strips that are read */
	bool turned;                    /* the columns of B are rows of the codes */
	int64_t m, n, k;
	const float *a;
	int64_t lda;
	float *c;
	int64_t ldc;
	int64_t rows, columns; /* of a task */
	int64_t across;        /* tasks across the columns */
};

/* Strips as a task reads them: those of a panel at once, or, of NULL, each when it is decoded. */
struct reading {
	const struct ql_strip *strips;
	char *work;
};

/* Reads the strips of a panel for all rows of B; gives their number. */
static int read_strips(const struct job *j, int64_t column, int64_t columns, char *work, struct ql_strip *s)
{
	int strips = (int)ql_ceil_div(columns, QL_STRIP);
	int64_t first;

	for (int i = 0; i < strips; i++)
		s[i] = ql_strips_read(&j->strips, column / QL_STRIP + i, 0, j->k,
			work + (size_t)i * (j->slots.bytes / QL_STRIPS), &first);
	return strips;
}

static void decode_strips(const struct job *j, int64_t column, int columns, int64_t l, int64_t depth,
	const struct reading *from, float *panel)
{
	for (int c = 0; c < columns; c += QL_STRIP) {
		int64_t first = 0;
		struct ql_strip s = from->strips ? from->strips[c / QL_STRIP]
						 : ql_strips_read(&j->strips, (column + c) / QL_STRIP, l, l + depth,
							   from->work, &first);

		j->ctx->kernels->gemm_coded->floats(&s, l - first, depth, panel + c, WIDE);
	}
}

/* Decodes rows l..l+depth-1 of a panel of B. */
static void decode_panel(const struct job *j, int64_t column, int columns, int64_t l, int64_t depth,
	const struct reading *from, float *panel)
{
	int variant = j->ctx->kernels->simd->variant;
	_Alignas(64) float lines[LINES * DEPTH];

	if (j->strips.codes) {
		decode_strips(j, column, columns, l, depth, from, panel);
		return;
	}
	for (int64_t i = 0; !j->turned && i < depth; i++)
		ql_decoder_read(j->codes, l + i, column, columns, panel + i * WIDE);
	for (int c = 0; j->turned && c < columns; c += LINES) {
		int some = columns - c < LINES ? columns - c : LINES;

		for (int i = 0; i < some; i++)
			ql_decoder_read(j->codes, column + c + i, l, depth, lines + i * DEPTH);
		ql_gemm_panel_f32(variant, lines, 1, DEPTH, depth, some, WIDE, panel + c);
	}
}

static void panel_product(const struct job *j, int64_t i, int64_t stop, int64_t column, int columns, int64_t l,
	const struct reading *from)
{
	int64_t depth = ql_min64(DEPTH, j->k - l);
	int mr = j->kernel->mr, nr = j->kernel->nr;
	_Alignas(64) float panel[PANEL];

	decode_panel(j, column, columns, l, depth, from, panel);
	for (int c = 0; c < columns; c += nr)
		for (int64_t r = i; r < stop; r += mr)
			j->kernel->tile((int)ql_min64(mr, stop - r), columns - c < nr ? columns - c : nr, depth,
				j->a + r * j->lda + l, j->lda, panel + c, WIDE, j->c + r * j->ldc + column + c, j->ldc,
				l > 0);
}

/* One row, WIDE columns for each task. */
static void row_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int slot;
	char *work = ql_slots_enter(&j->slots, &slot);
	_Alignas(64) float y[WIDE];

	for (int64_t t = begin; t < end && !ql_stopped(j->ctx); t++) {
		int64_t column = t * WIDE, columns = ql_min64(WIDE, j->n - column);
		struct ql_strip s[QL_STRIPS];
		int strips = read_strips(j, column, columns, work, s);

		j->ctx->kernels->gemm_coded->row(strips, s, j->k, j->a, y, j->kernel->ordered);
		memcpy(j->c + column, y, (size_t)columns * sizeof(*y));
	}
	ql_slots_leave(&j->slots, slot);
}

/* A panel of B times few rows: what is not codes is read once. */
static void few_rows(const struct job *j, int64_t i, int64_t stop, int64_t column, int columns, char *work)
{
	struct ql_strip s[QL_STRIPS];
	struct reading from = {j->strips.codes ? s : NULL, work};

	if (j->strips.codes)
		read_strips(j, column, columns, work, s);
	for (int64_t l = 0; l < j->k; l += DEPTH)
		panel_product(j, i, stop, column, columns, l, &from);
}

static void task_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int slot;
	struct reading from = {NULL, ql_slots_enter(&j->slots, &slot)};

	for (int64_t t = begin; t < end; t++) {
		int64_t i = t / j->across * j->rows, first = t % j->across * j->columns;
		int64_t stop = ql_min64(i + j->rows, j->m), last = ql_min64(first + j->columns, j->n);

		if (stop - i <= FEW_ROWS)
			for (int64_t c = first; c < last && !ql_stopped(j->ctx); c += WIDE)
				few_rows(j, i, stop, c, (int)ql_min64(WIDE, last - c), from.work);
		else
			for (int64_t l = 0; l < j->k && !ql_stopped(j->ctx); l += DEPTH)
				for (int64_t c = first; c < last; c += WIDE)
					panel_product(j, i, stop, c, (int)ql_min64(WIDE, last - c), l, &from);
	}
	ql_slots_leave(&j->slots, slot);
}

static int64_t tasks_of(const struct job *j)
{
	return ql_ceil_div(j->m, j->rows) * ql_ceil_div(j->n, j->columns);
}

/* Few rows are not divided: each part would decode B again. */
static void cut(struct job *j)
{
	int mr = j->kernel->mr;
	int64_t wanted = TASKS_PER_THREAD * j->ctx->threads;
	double ns = (double)j->k / j->kernel->rate;

	j->rows = ql_ceil_div(ql_ceil_div(j->m, ql_ceil_div(j->m, ROWS)), mr) * mr;
	j->columns = 4 * WIDE;
	while (j->columns > WIDE && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->columns /= 2;
	while (j->rows > 16 * mr && (tasks_of(j) < wanted || (double)j->rows * (double)j->columns * ns > TASK_NS))
		j->rows = ql_ceil_div(j->rows / 2, mr) * mr;
	j->across = ql_ceil_div(j->n, j->columns);
}

/* True if the columns of the view b (k, n) are rows of its codes. */
static bool is_turned(const struct ql_tensor *b)
{
	return b->stride[0] < b->stride[1] || (b->shape[1] == 1 && b->stride[0] == 1);
}

bool ql_gemm_coded_takes(const struct ql_tensor *t)
{
	return t->q && t->rank == 2 && !t->q->scheme->host;
}

const char *ql_gemm_coded_name(struct ql_ctx *ctx)
{
	return ctx->kernels->gemm_coded->name;
}

static int64_t ns_of(double work)
{
	return work < 1e18 ? (int64_t)work : INT64_MAX;
}

static enum ql_status take_slots(struct ql_ctx *ctx, struct job *j)
{
	return ql_slots_take(
		ctx, j->strips.codes ? ql_size_array(QL_STRIPS, ql_strips_work(&j->strips)) : 0, &j->slots);
}

static enum ql_status by_row(struct ql_ctx *ctx, struct job *j)
{
	double work = (double)j->n * (double)j->k / ctx->kernels->gemm_coded->rate;
	enum ql_status status = take_slots(ctx, j);

	return status ? status
		      : ql_parallel_for(ctx, ql_ceil_div(j->n, WIDE), ql_max64(1, 65536 / (WIDE * j->k)), ns_of(work),
				row_body, j);
}

static enum ql_status by_panels(struct ql_ctx *ctx, struct job *j, struct ql_tensor *lines)
{
	double codes = j->strips.codes ? ctx->kernels->gemm_coded->rate / 4.0 : CODES_PER_NS;
	double work = (double)j->n * (double)j->k * ((double)j->m / j->kernel->rate + 1.0 / codes);
	struct ql_decoder *decoder = NULL;
	enum ql_status status = j->strips.codes ? QL_OK : ql_decoder_open(ctx, lines, &decoder);

	if (!status)
		status = take_slots(ctx, j);
	if (!status) {
		j->codes = decoder;
		cut(j);
		status = ql_parallel_for(ctx, tasks_of(j), 1, ns_of(work), task_body, j);
	}
	ql_decoder_close(ctx, decoder);
	return status;
}

enum ql_status ql_gemm_coded(struct ql_ctx *ctx, int64_t m, const float *a, int64_t lda, struct ql_tensor *b, float *c)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx,
		.kernel = ctx->kernels->tiles,
		.turned = is_turned(b),
		.m = m,
		.n = b->shape[1],
		.k = b->shape[0],
		.a = a,
		.lda = lda,
		.c = c,
		.ldc = b->shape[1]};
	struct ql_tensor *lines = NULL;
	enum ql_status status;

	if (m == 0 || j.n == 0)
		return QL_OK;
	if (j.k == 0) {
		memset(c, 0, (size_t)(m * j.n) * sizeof(*c));
		return QL_OK;
	}
	status = ql_view_permute(ctx, "matmul", b, j.turned ? (const int[]){1, 0} : (const int[]){0, 1}, &lines);
	if (!status && j.turned)
		status = ql_strips_keep(ctx, lines, false, &j.strips);
	if (!status)
		status = j.strips.codes && m == 1 ? by_row(ctx, &j) : by_panels(ctx, &j, lines);
	ql_tensor_release(ctx, lines);
	ql_scratch_release(ctx, mark);
	return status;
}
