/* SPDX-License-Identifier: MIT
 * Convolution sums by blocks. For each piece of the channels (about QL_CONV_DEPTH products) a task copies the block's
 * patch, unfolds NR pixels at a time into a panel that stays in the second-level cache, and multiplies it by all
 * rows of the weights. Where the pixels of a tile are not adjacent in the target, its sums are collected in a
 * buffer first. An element is a sum of sums over the pieces, in order, at any position: the bits do not depend on
 * the threads or the batch.
 *
 * With one or two rows per group packing would cost more than the sums, which are computed from the patch where few.c does not take
 * them.
 */
#include "tensor/conv/conv.h"

#include <limits.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIXELS 256 /* of a block */
#define WIDE 32    /* numbers summed at once without tiles */
#define TASKS_PER_THREAD 4
#define TASK_NS 50000.0      /* of a chunk, at least */
#define TOGETHER (128 << 10) /* numbers of a weight up to which all codes are decoded first */

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	const struct ql_gemm_f32 *kernel;
	struct ql_unfold_cut cut;
	struct ql_patch patch;
	int64_t piece; /* channels at a time */
	int64_t row_block, row_blocks;
	bool tiles;
	uint64_t patch_bytes, panel_bytes;
	struct ql_slots slots;
};

/* The buffers of a running task. */
struct work {
	float *patch, *panel, *sums;
};

/* One task: rows first..stop-1 of a group for one block. */
struct task {
	const struct job *j;
	struct ql_unfold_block b;
	int64_t group, first, stop;
	bool direct; /* tiles write into the target */
};

const char *ql_conv_kernel(const struct ql_ctx *ctx, int64_t rows)
{
	return rows > QL_CONV_FEW_ROWS ? ctx->kernels->tiles->name : ctx->kernels->simd->name;
}

/* ---- memory of the threads ---- */

/* ---- the target ---- */

static float *target_row(const struct job *j, int64_t image, int64_t row, int64_t y)
{
	const struct ql_conv_sums *s = j->s;

	return s->target + ((image * ql_conv_outputs(s) + row) * s->th + s->at[0] + y * s->every[0]) * s->tw + s->at[1];
}

typedef float lanes __attribute__((vector_size(64)));

QL_SIMD(void, add_bias, (int64_t n, float bias, const float *in, float *out), {
	int64_t i = 0;
	lanes v;

	for (; i + 16 <= n; i += 16) {
		memcpy(&v, in + i, sizeof(v));
		v += bias;
		memcpy(out + i, &v, sizeof(v));
	}
	for (; i < n; i++)
		out[i] = in[i] + bias;
})

/* The same and relu: -0 and nan are unchanged, as in ops/relu.c. */
QL_SIMD(void, add_bias_relu, (int64_t n, float bias, float *y), {
	for (int64_t i = 0; i < n; i++) {
		float x = y[i] + bias;

		y[i] = x < 0 ? 0 : x;
	}
})

void ql_conv_finish(const struct ql_conv_sums *s, int64_t row, float *y, int64_t n)
{
	const struct ql_epilogue *e = &s->e;
	float buffer[512];
	const float *in[1] = {buffer};

	if (!e->act && e->bias)
		add_bias[e->variant](n, e->bias[row], y, y);
	if (e->relu && e->bias) {
		add_bias_relu[e->variant](n, e->bias[row], y);
		return;
	}
	for (int64_t i = 0; e->act && i < n; i += 512) {
		int64_t m = ql_min64(512, n - i);

		if (e->bias)
			add_bias[e->variant](m, e->bias[row], y + i, buffer);
		else
			memcpy(buffer, y + i, (size_t)m * sizeof(*y));
		e->act->f32[e->variant](m, y + i, in, &e->args);
	}
}

static void scatter(const struct job *j, float *to, const float *from, int64_t n)
{
	if (j->s->every[1] == 1)
		memcpy(to, from, (size_t)n * sizeof(*to));
	else
		for (int64_t i = 0; i < n; i++)
			to[i * j->s->every[1]] = from[i];
}

/* Applies bias and activation to one row's sums of a block and stores them. */
static void put_block(const struct task *t, int64_t row, float *sums)
{
	const struct ql_unfold_block *b = &t->b;

	ql_conv_finish(t->j->s, row, sums, b->pixels);
	for (int64_t i = 0; i < b->images; i++)
		for (int64_t y = 0; y < b->rows; y++, sums += b->columns)
			scatter(t->j, target_row(t->j, b->image + i, row, b->row + y) + b->column * t->j->s->every[1],
				sums, b->columns);
}

/* ---- by tiles ---- */

/* True if tiles may write into the target: the block's pixels are adjacent in it, image by image, and no panel has
 * pixels of two images. */
static bool is_direct(const struct job *j, const struct ql_unfold_block *b)
{
	const struct ql_conv_sums *s = j->s;
	bool whole = b->columns == s->tw || b->rows == 1;

	return s->every[0] == 1 && s->every[1] == 1 && whole &&
	       (b->images == 1 || b->rows * b->columns % j->kernel->nr == 0);
}

static void panel_rows(
	const struct task *t, const struct work *w, int64_t pixel, int columns, int64_t channel, int64_t piece)
{
	const struct job *j = t->j;
	int64_t taps = j->s->u.taps, k = j->s->channels * taps, image = t->b.rows * t->b.columns,
		plane = j->s->th * j->s->tw;
	float *c = w->sums + pixel;
	int64_t pitch = t->b.pixels;

	if (t->direct) {
		c = target_row(j, t->b.image + pixel / image, t->group * j->s->rows + t->first, t->b.row) +
		    t->b.column + pixel % image;
		pitch = plane;
	}
	for (int64_t i = t->first; i < t->stop; i += j->kernel->mr)
		j->kernel->tile((int)ql_min64(j->kernel->mr, t->stop - i), columns, piece * taps,
			j->s->a + (t->group * j->s->rows + i) * k + channel * taps, k, w->panel, j->kernel->nr,
			c + (i - t->first) * pitch, pitch, channel > 0);
}

static void finish_tiles(const struct task *t, const struct work *w)
{
	const struct job *j = t->j;
	int64_t image = t->b.rows * t->b.columns;

	for (int64_t i = t->first; i < t->stop; i++) {
		int64_t row = t->group * j->s->rows + i;

		if (!t->direct)
			put_block(t, row, w->sums + (i - t->first) * t->b.pixels);
		else if (j->s->e.bias || j->s->e.act)
			for (int64_t n = 0; n < t->b.images; n++)
				ql_conv_finish(
					j->s, row, target_row(j, t->b.image + n, row, t->b.row) + t->b.column, image);
	}
}

static void by_tiles(struct task *t, const struct work *w)
{
	const struct job *j = t->j;
	const struct ql_unfold *u = &j->s->u;
	struct ql_run runs[64];
	int nr = j->kernel->nr;

	t->direct = is_direct(j, &t->b);
	for (int64_t c = 0; c < j->s->channels && !ql_stopped(j->ctx); c += j->piece) {
		int64_t piece = ql_min64(j->piece, j->s->channels - c);

		ql_patch_fill(u, &t->b, &j->patch, t->group * j->s->channels + c, piece, w->patch);
		for (int64_t p = 0; p < t->b.pixels; p += nr) {
			int columns = (int)ql_min64(nr, t->b.pixels - p);
			int64_t n = ql_unfold_runs(u, &t->b, &j->patch, p, columns, runs);

			ql_unfold_rows(u, &j->patch, w->patch, piece, runs, n, w->panel, nr);
			panel_rows(t, w, p, columns, c, piece);
		}
	}
	finish_tiles(t, w);
}

/* ---- from the patch ---- */

typedef float wide_vector __attribute__((vector_size(4 * WIDE)));

/* Adds to n <= WIDE sums the products of `channels` channels. */
QL_SIMD(void, sum_patch,
	(int64_t n, float *to, const float *from, const struct ql_patch *p, int64_t channels, int64_t taps,
		const float *a),
	{
		wide_vector sum = {0};
		wide_vector v;

		memcpy(&sum, to, (size_t)n * sizeof(*to));
		for (int64_t c = 0; c < channels; c++)
			for (int64_t t = 0; t < taps; t++) {
				memcpy(&v, from + c * p->plane + p->tap[t], sizeof(v));
				sum += v * a[c * taps + t];
			}
		memcpy(to, &sum, (size_t)n * sizeof(*to));
	})

static void row_from_patch(const struct task *t, const struct work *w, int64_t i, int64_t channel, int64_t piece)
{
	const struct job *j = t->j;
	const struct ql_unfold *u = &j->s->u;
	const float *a = j->s->a + ((t->group * j->s->rows + i) * j->s->channels + channel) * u->taps;
	float *sums = w->sums + (i - t->first) * t->b.pixels;

	for (int64_t line = 0; line < t->b.images * t->b.rows; line++) {
		const float *from =
			w->patch + line / t->b.rows * j->patch.image + line % t->b.rows * u->step[0] * j->patch.pitch;

		for (int64_t x = 0; x < t->b.columns; x += WIDE)
			sum_patch[u->variant](ql_min64(WIDE, t->b.columns - x), sums + line * t->b.columns + x,
				from + x, &j->patch, piece, u->taps, a);
	}
}

static void by_patch(struct task *t, const struct work *w)
{
	const struct job *j = t->j;

	memset(w->sums, 0, (size_t)((t->stop - t->first) * t->b.pixels) * sizeof(float));
	for (int64_t c = 0; c < j->s->channels && !ql_stopped(j->ctx); c += j->piece) {
		int64_t piece = ql_min64(j->piece, j->s->channels - c);

		ql_patch_fill(&j->s->u, &t->b, &j->patch, t->group * j->s->channels + c, piece, w->patch);
		for (int64_t i = t->first; i < t->stop; i++)
			row_from_patch(t, w, i, c, piece);
	}
	for (int64_t i = t->first; i < t->stop; i++)
		put_block(t, t->group * j->s->rows + i, w->sums + (i - t->first) * t->b.pixels);
}

/* ---- tasks ---- */

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int slot;
	char *memory = ql_slots_enter(&j->slots, &slot);
	struct work w = {(float *)(void *)memory, (float *)(void *)(memory + j->patch_bytes),
		(float *)(void *)(memory + j->patch_bytes + j->panel_bytes)};

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t first = i % j->row_blocks * j->row_block, rest = i / j->row_blocks;
		struct task t = {.j = j,
			.b = ql_unfold_block_at(&j->s->u, &j->cut, rest % j->cut.count),
			.group = rest / j->cut.count,
			.first = first,
			.stop = ql_min64(first + j->row_block, j->s->rows)};

		if (j->tiles)
			by_tiles(&t, &w);
		else
			by_patch(&t, &w);
	}
	ql_slots_leave(&j->slots, slot);
}

/* Divides rows only when there are too few blocks for the threads. */
static void cut(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	int64_t mr = j->kernel->mr, wanted = TASKS_PER_THREAD * j->ctx->threads;

	j->cut = ql_unfold_cut_of(&s->u, PIXELS);
	j->piece = ql_conv_piece(s);
	j->row_block = s->rows;
	while (j->tiles && j->row_block > 4 * mr &&
		j->cut.count * s->groups * ql_ceil_div(s->rows, j->row_block) < wanted)
		j->row_block = ql_ceil_div(ql_ceil_div(j->row_block, 2), mr) * mr;
	j->row_blocks = ql_ceil_div(s->rows, j->row_block);
}

static enum ql_status take_memory(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	int64_t *tap = ql_scratch_array(j->ctx, ql_max64(1, s->u.taps), sizeof(*tap));
	int64_t pixels = j->cut.images * j->cut.rows * j->cut.columns;
	uint64_t patch, panel = (uint64_t)ql_mul64(j->piece, s->u.taps), sums = (uint64_t)pixels, all;

	if (!tap)
		return QL_ERR_MEMORY;
	if (!ql_patch_of(&s->u, &j->cut, j->piece, tap, &j->patch, &patch) || patch >> 28)
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: wanted taps nearer to each other");
	j->patch_bytes = (patch + QL_UNFOLD_SLACK + 16) / 16 * 64;
	if (!ql_size_mul(panel, (uint64_t)j->kernel->nr, &panel) || panel >> 56)
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->panel_bytes = j->tiles ? (panel + QL_UNFOLD_SLACK + 16) / 16 * 64 : 0;
	if (!ql_size_mul(sums, (uint64_t)ql_mul64(4, j->row_block), &sums) ||
		!ql_size_add(sums, j->patch_bytes + j->panel_bytes, &all))
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	return ql_slots_take(j->ctx, all, &j->slots);
}

/* Without products: zeros, bias and activation. */
static enum ql_status fill(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct job j = {.ctx = ctx, .s = s};

	for (int64_t i = 0; i < s->u.images; i++)
		for (int64_t row = 0; row < s->groups * s->rows; row++)
			for (int64_t y = 0; y < s->u.gh; y++)
				for (int64_t x = 0; x < s->u.gw; x++) {
					float *to = target_row(&j, i, row, y) + x * s->every[1];

					*to = 0;
					ql_conv_finish(s, row, to, 1);
				}
	return QL_OK;
}

static bool by_batch(const struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	return s->rows > QL_CONV_FEW_ROWS && !ctx->kernels->tiles->ordered && ql_conv_is_batch(ctx, s);
}

/* Whether the window is the whole image, without padding: a matrix product. */
static bool is_product(const struct ql_conv_sums *s)
{
	const struct ql_unfold *u = &s->u;
	bool whole = s->groups == 1 && s->rows > QL_CONV_FEW_ROWS && u->gh * u->gw == 1 && s->th * s->tw == 1 &&
		     u->taps == ql_mul64(u->h, u->w);

	for (int64_t t = 0; t < u->taps && whole; t++)
		whole = u->y[t] == t / u->w && u->x[t] == t % u->w;
	return whole;
}

static enum ql_status product(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	int64_t k = s->channels * s->u.taps, pitch = ql_conv_outputs(s);
	enum ql_status status =
		ql_gemm_f32(ctx, s->u.images, s->rows, k, s->u.from, k, 1, s->a, 1, k, s->target, pitch);

	for (int64_t i = 0; i < s->u.images && !status && (s->e.bias || s->e.act); i++)
		ql_epilogue_row(&s->e, 0, s->rows, s->target + i * pitch);
	return status;
}

bool ql_conv_takes_other(const struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	return s->rows > QL_CONV_FEW_ROWS && s->channels > 0 && s->u.taps > 0 && !is_product(s) && !by_batch(ctx, s) &&
	       ql_conv_is_taps(ctx, s);
}

/* Whether tasks decode the rows that they multiply: where chunks would be many, and threads wait for each other behind each. */
static bool in_tasks(const struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	return s->groups * s->rows * s->channels * s->u.taps > TOGETHER && ql_conv_takes_other(ctx, s);
}

enum ql_status ql_conv_sums(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx, .s = s, .kernel = ctx->kernels->tiles, .tiles = s->rows > QL_CONV_FEW_ROWS};
	int64_t pixels = s->u.images * s->u.gh * s->u.gw;
	double ns, work;
	enum ql_status status;

	if (pixels == 0 || s->rows == 0 || s->groups == 0)
		return QL_OK;
	if (s->channels == 0 || s->u.taps == 0)
		return fill(ctx, s);
	if (s->codes && (is_product(s) || !in_tasks(ctx, s)))
		return ql_conv_chunks(ctx, s);
	if (is_product(s))
		return product(ctx, s);
	if (by_batch(ctx, s)) {
		status = ql_conv_batch(ctx, s);
		ql_scratch_release(ctx, mark);
		return status;
	}
	if (j.tiles && ql_conv_is_taps(ctx, s))
		return ql_conv_taps(ctx, s);
	if (ql_conv_is_few(s))
		return ql_conv_few(ctx, s);
	cut(&j);
	status = take_memory(&j);
	work = (double)pixels * (double)s->groups * (double)s->channels * (double)s->u.taps *
	       ((double)s->rows / (j.tiles ? j.kernel->rate : 8) + 0.2);
	ns = work / (double)(j.cut.count * s->groups * j.row_blocks) + 1;
	if (!status)
		status = ql_parallel_for(ctx, j.cut.count * s->groups * j.row_blocks,
			ql_max64(1, ns < TASK_NS ? (int64_t)(TASK_NS / ns) : 1),
			work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_conv_unfold(struct ql_ctx *ctx, const struct ql_conv *c, const float *x, struct ql_unfold *u)
{
	const struct ql_window *w = &c->window;
	int64_t taps = w->kernel[0] * w->kernel[1];
	int64_t *y = ql_scratch_array(ctx, taps, 2 * sizeof(*y));

	if (!y)
		return QL_ERR_MEMORY;
	for (int64_t t = 0; t < taps; t++) {
		y[t] = t / w->kernel[1] * w->dilation[0] - w->before[0];
		y[taps + t] = t % w->kernel[1] * w->dilation[1] - w->before[1];
	}
	*u = (struct ql_unfold){.from = x,
		.images = c->n,
		.planes = c->c,
		.h = w->in[0],
		.w = w->in[1],
		.gh = w->out[0],
		.gw = w->out[1],
		.step = {w->stride[0], w->stride[1]},
		.taps = taps,
		.y = y,
		.x = y + taps,
		.low = {-w->before[0], -w->before[1]},
		.high = {y[taps - 1], y[2 * taps - 1]},
		.variant = ctx->kernels->simd->variant};
	return QL_OK;
}
