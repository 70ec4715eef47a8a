/* SPDX-License-Identifier: MIT
 * The gradient of a convolution's weight: unfolded input times transposed gradient, summed over all pixels. A task
 * has some channels and one part of the blocks of pixels; per block it unfolds its channels once and multiplies
 * them by each panel of the gradient (nr outputs, transposed). Every part has its own sums, which are added in
 * order. The parts depend on the sizes only, so the bits do not depend on the threads.
 */
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/gemm/pack.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define DEPTH 256  /* unfolded rows of a task */
#define PIXELS 256 /* of a block */
#define FEW_ROWS 2
#define TASKS 32
#define PART_BYTES ((double)(32 << 20)) /* of all parts together, if there are several */
#define LANES 16

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_weight *s;
	const struct ql_gemm_f32 *kernel;
	struct ql_unfold_cut cut;
	struct ql_patch patch;
	int64_t piece, pieces; /* channels of a task, tasks per group */
	int64_t parts, pitch;  /* pitch of an unfolded row */
	bool tiles;
	uint64_t patch_bytes, rows_bytes, panel_bytes;
	float *sums; /* (parts, groups, channels * taps, rows) */
	struct ql_slots slots;
};

struct work {
	float *patch, *unfolded, *panel;
	struct ql_run *runs;
};

struct task {
	const struct job *j;
	int64_t group, first, channels; /* first channel of the group */
	float *sums;                    /* of the first channel */
	bool add;                       /* not the first block of the part */
};

static const float *gradient_of(const struct job *j, int64_t image, int64_t row, const struct ql_unfold_block *b)
{
	const struct ql_conv_weight *s = j->s;

	return s->gradient + ((image * s->groups * s->rows + row) * s->u.gh + b->row) * s->u.gw + b->column;
}

/* ---- by tiles ---- */

/* The gradient of `columns` outputs starting at row, transposed: the block's pixels of an image are adjacent.
 */
static void pack_gradient(const struct job *j, const struct ql_unfold_block *b, int64_t row, int columns, float *panel)
{
	int64_t pixels = b->rows * b->columns;

	for (int64_t i = 0; i < b->images; i++)
		ql_gemm_panel_f32(j->s->u.variant, gradient_of(j, b->image + i, row, b), 1, j->s->u.gh * j->s->u.gw,
			pixels, columns, j->kernel->nr, panel + i * pixels * j->kernel->nr);
}

static void block_by_tiles(const struct task *t, const struct ql_unfold_block *b, const struct work *w)
{
	const struct job *j = t->j;
	int64_t rows = t->channels * j->s->u.taps, m = j->s->rows,
		n = ql_unfold_runs(&j->s->u, b, &j->patch, 0, b->pixels, w->runs);
	int nr = j->kernel->nr, mr = j->kernel->mr;

	ql_unfold_rows(&j->s->u, &j->patch, w->patch, t->channels, w->runs, n, w->unfolded, j->pitch);
	for (int64_t c = 0; c < m; c += nr) {
		int columns = (int)ql_min64(nr, m - c);

		pack_gradient(j, b, t->group * m + c, columns, w->panel);
		for (int64_t i = 0; i < rows; i += mr)
			j->kernel->tile((int)ql_min64(mr, rows - i), columns, b->pixels, w->unfolded + i * j->pitch,
				j->pitch, w->panel, nr, t->sums + i * m + c, m, t->add);
	}
}

/* ---- from the patch ---- */

typedef float lanes_vector __attribute__((vector_size(4 * LANES)));

/* Sum of the products of `lines` lines of n numbers, in LANES lanes that are joined in order. */
QL_SIMD(float, dot_lines, (const float *a, int64_t a_line, const float *b, int64_t b_line, int64_t lines, int64_t n), {
	lanes_vector sum = {0};
	lanes_vector x;
	lanes_vector y;
	float total = 0;

	for (int64_t l = 0; l < lines; l++) {
		int64_t i = 0;

		for (; i + LANES <= n; i += LANES) {
			memcpy(&x, a + l * a_line + i, sizeof(x));
			memcpy(&y, b + l * b_line + i, sizeof(y));
			sum += x * y;
		}
		if (i < n) {
			x = (lanes_vector){0};
			y = x;
			memcpy(&x, a + l * a_line + i, (size_t)(n - i) * sizeof(*a));
			memcpy(&y, b + l * b_line + i, (size_t)(n - i) * sizeof(*b));
			sum += x * y;
		}
	}
	for (int i = 0; i < LANES; i++)
		total += sum[i];
	return total;
})

static void block_by_patch(const struct task *t, const struct ql_unfold_block *b, const struct work *w)
{
	const struct job *j = t->j;
	const struct ql_unfold *u = &j->s->u;
	int64_t m = j->s->rows;

	for (int64_t k = 0; k < t->channels * u->taps; k++)
		for (int64_t row = 0; row < m; row++) {
			const float *from = w->patch + k / u->taps * j->patch.plane + j->patch.tap[k % u->taps];
			float sum = t->add ? t->sums[k * m + row] : 0;

			for (int64_t i = 0; i < b->images; i++)
				sum += dot_lines[u->variant](from + i * j->patch.image, u->step[0] * j->patch.pitch,
					gradient_of(j, b->image + i, t->group * m + row, b), u->gw, b->rows,
					b->columns);
			t->sums[k * m + row] = sum;
		}
}

/* ---- tasks ---- */

static void run_task(struct task *t, int64_t part, const struct work *w)
{
	const struct job *j = t->j;
	int64_t begin = j->cut.count * part / j->parts, end = j->cut.count * (part + 1) / j->parts;

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		struct ql_unfold_block b = ql_unfold_block_at(&j->s->u, &j->cut, i);

		ql_patch_fill(&j->s->u, &b, &j->patch, t->group * j->s->channels + t->first, t->channels, w->patch);
		t->add = i > begin;
		if (j->tiles)
			block_by_tiles(t, &b, w);
		else
			block_by_patch(t, &b, w);
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int64_t k = j->s->channels * j->s->u.taps;
	int slot;
	char *memory = ql_slots_enter(&j->slots, &slot), *rows = memory + j->patch_bytes;
	struct work w = {(float *)(void *)memory, (float *)(void *)rows, (float *)(void *)(rows + j->rows_bytes),
		(struct ql_run *)(void *)(rows + j->rows_bytes + j->panel_bytes)};

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t part = i / (j->s->groups * j->pieces), rest = i % (j->s->groups * j->pieces);
		int64_t group = rest / j->pieces, first = rest % j->pieces * j->piece;
		struct task t = {.j = j,
			.group = group,
			.first = first,
			.channels = ql_min64(j->piece, j->s->channels - first),
			.sums = j->sums + (((part * j->s->groups + group) * k) + first * j->s->u.taps) * j->s->rows};

		run_task(&t, part, &w);
	}
	ql_slots_leave(&j->slots, slot);
}

/* Adds the parts: item is one channel and tap of a group. */
static void join(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t k = j->s->channels * j->s->u.taps, m = j->s->rows, part = j->s->groups * k * m;

	for (int64_t item = begin; item < end; item++)
		for (int64_t row = 0; row < m; row++) {
			const float *from = j->sums + item * m + row;
			float sum = from[0];

			for (int64_t p = 1; p < j->parts; p++)
				sum += from[p * part];
			j->s->weight[(item / k * m + row) * k + item % k] = sum;
		}
}

static void cut(struct job *j)
{
	const struct ql_conv_weight *s = j->s;
	int64_t most = ql_max64(1, DEPTH / s->u.taps);
	/* size: an estimate in floating point, no memory */
	double bytes = 4.0 * (double)s->groups * (double)s->channels * (double)s->u.taps * (double)s->rows;

	j->cut = ql_unfold_cut_of(&s->u, PIXELS);
	j->piece = ql_ceil_div(s->channels, ql_ceil_div(s->channels, most));
	j->pieces = ql_ceil_div(s->channels, j->piece);
	j->parts = ql_min64(ql_ceil_div(TASKS, s->groups * j->pieces), ql_max64(1, j->cut.count / 2));
	if ((double)j->parts * bytes > PART_BYTES)
		j->parts = ql_max64(1, (int64_t)(PART_BYTES / bytes));
}

static enum ql_status take_memory(struct job *j)
{
	const struct ql_conv_weight *s = j->s;
	int64_t *tap = ql_scratch_array(j->ctx, s->u.taps, sizeof(*tap));
	int64_t pixels = j->cut.images * j->cut.rows * j->cut.columns;
	uint64_t patch, sums = (uint64_t)ql_mul64(ql_mul64(s->groups, s->channels), s->u.taps), all;

	if (!tap)
		return QL_ERR_MEMORY;
	if (!ql_patch_of(&s->u, &j->cut, j->piece, tap, &j->patch, &patch) || patch >> 28)
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: wanted taps nearer to each other");
	if (!ql_size_mul(sums, (uint64_t)s->rows, &sums) || !ql_size_mul(sums, (uint64_t)ql_mul64(4, j->parts), &sums))
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->pitch = ql_ceil_div(pixels, 16) * 16 + 16;
	j->patch_bytes = (patch + QL_UNFOLD_SLACK + 16) / 16 * 64;
	if (j->tiles) {
		if (!ql_size_mul((uint64_t)ql_mul64(j->piece, s->u.taps), (uint64_t)j->pitch, &all) || all >> 56)
			return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
		j->rows_bytes = (all + QL_UNFOLD_SLACK + 16) / 16 * 64;
		j->panel_bytes = (uint64_t)ql_mul64(pixels, 4 * (int64_t)j->kernel->nr);
	}
	if (!ql_size_add(ql_size_array(pixels, sizeof(struct ql_run)), j->patch_bytes, &all) ||
		!ql_size_add(all, j->rows_bytes, &all) || !ql_size_add(all, j->panel_bytes, &all))
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->sums = ql_scratch_take(j->ctx, sums);
	return j->sums ? ql_slots_take(j->ctx, all, &j->slots) : QL_ERR_MEMORY;
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_conv_weight *s = j->s;
	double pixels = (double)s->u.images * (double)s->u.gh * (double)s->u.gw;
	int64_t k = s->channels * s->u.taps;
	double work =
		pixels * (double)s->groups * (double)k * ((double)s->rows / (j->tiles ? j->kernel->rate : 8) + 0.2);
	enum ql_status status = ql_parallel_for(
		ctx, j->parts * s->groups * j->pieces, 1, work < 1e18 ? (int64_t)work : INT64_MAX, body, j);

	return status ? status
		      : ql_parallel_for(ctx, s->groups * k, ql_max64(1, 4096 / s->rows),
				s->groups * k * s->rows * j->parts, join, j);
}

enum ql_status ql_conv_weight(struct ql_ctx *ctx, const struct ql_conv_weight *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx, .s = s, .kernel = ctx->kernels->tiles, .tiles = s->rows > FEW_ROWS};
	int64_t numbers = s->groups * s->rows * s->channels * s->u.taps;
	enum ql_status status;

	if (numbers == 0)
		return QL_OK;
	if (s->u.images == 0) {
		memset(s->weight, 0, (size_t)numbers * sizeof(float));
		return QL_OK;
	}
	cut(&j);
	status = take_memory(&j);
	if (!status)
		status = run(ctx, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
