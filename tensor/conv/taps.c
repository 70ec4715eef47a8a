/* SPDX-License-Identifier: MIT
 * Convolutions with steps of one pixel whose rows are as long as those of their source (padding that keeps the width,
 * 1 x 1 kernels): the numbers that a tap reads for consecutive pixels are consecutive in the source, too, row after
 * row, but for those beyond its borders. So tiles read the source in place, with a bit for each number inside
 * (struct ql_taps_f32): nothing is padded or unfolded, which takes nearly as long as the products when there are few
 * rows (16 channels of 32 x 32, AVX-512: 8.6 ms for 200 images, 4.9 in place).
 *
 * A task is a block of pixels, or of small images, times a block of rows. Sums are divided over the channels as in
 * conv.c.
 */
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PIXELS 256 /* of a block */
#define PANEL 64   /* of a tile, at most */
#define TAPS 64    /* at most */
#define SMALL 24   /* pixels of an image, at least: with fewer, tiles are mostly empty */
#define TASKS_PER_THREAD 4
#define CHUNK_NS 10000.0 /* at least */

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	const struct ql_gemm_f32 *kernel;
	int64_t at[TAPS];                               /* where tap t reads for pixel 0 */
	int64_t piece;                                  /* channels at a time */
	int64_t images, pixels, rows;                   /* of a block */
	int64_t image_blocks, pixel_blocks, row_blocks; /* their numbers */
};

struct task {
	const struct job *j;
	int64_t group, row, rows, image, images, pixel, pixels;
	uint64_t inside[PIXELS / 16][TAPS]; /* of each panel */
};

bool ql_conv_is_taps(const struct ql_conv_sums *s)
{
	const struct ql_unfold *u = &s->u;

	/* planes so far apart would meet in a few sets of the caches, and one tap uses what it loads once */
	if (u->taps == 1 && u->h * u->w % 1024 == 0)
		return false;
	return u->step[0] == 1 && u->step[1] == 1 && u->w == u->gw && s->every[0] == 1 && s->every[1] == 1 &&
	       s->th == u->gh && s->tw == u->gw && u->taps <= TAPS && u->gh * u->gw >= SMALL;
}

/* The bits of n pixels for all taps, run by run of pixels in a row. */
static void find_inside(const struct ql_unfold *u, int64_t pixel, int64_t n, uint64_t *inside)
{
	int64_t y = pixel / u->gw, x = pixel % u->gw, run;

	memset(inside, 0, (size_t)u->taps * sizeof(*inside));
	for (int64_t i = 0; i < n; i += run, y++, x = 0) {
		run = ql_min64(u->gw - x, n - i);
		for (int64_t t = 0; t < u->taps; t++) {
			int64_t first = ql_max64(x, -u->x[t]), stop = ql_min64(x + run, u->w - u->x[t]);

			if (y + u->y[t] >= 0 && y + u->y[t] < u->h && first < stop)
				inside[t] |= (UINT64_MAX >> (64 - (stop - first))) << (i + first - x);
		}
	}
}

static float *target_of(const struct task *t, int64_t image, int64_t row)
{
	const struct ql_conv_sums *s = t->j->s;

	return s->target +
	       ((t->image + image) * s->groups * s->rows + t->group * s->rows + t->row + row) * s->th * s->tw +
	       t->pixel;
}

/* The products of one piece of the channels with one panel of an image. */
static void panel(const struct task *t, int64_t image, int64_t at, int64_t channel, int64_t channels)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	int64_t plane = s->u.h * s->u.w, pitch = s->th * s->tw, k = s->channels * s->u.taps;
	int mr = j->kernel->mr, columns = (int)ql_min64(j->kernel->nr, t->pixels - at);
	struct ql_taps_f32 taps = {
		.from = s->u.from + ((t->image + image) * s->u.planes + t->group * s->channels + channel) * plane +
			t->pixel + at,
		.channels = channels,
		.plane = plane,
		.taps = s->u.taps,
		.at = j->at,
		.inside = t->inside[at / j->kernel->nr]};
	const float *a = s->a + (t->group * s->rows + t->row) * k + channel * s->u.taps;
	float *c = target_of(t, image, 0) + at;

	for (int64_t i = 0; i < t->rows; i += mr)
		j->kernel->taps((int)ql_min64(mr, t->rows - i), columns, &taps, a + i * k, k, c + i * pitch, pitch,
			channel ? QL_TILE_ADD : QL_TILE_NEW);
}

/* Bias and activation */
static void finish(const struct task *t)
{
	const struct ql_conv_sums *s = t->j->s;

	for (int64_t n = 0; n < t->images; n++)
		for (int64_t i = 0; i < t->rows; i++)
			ql_conv_finish(s, t->group * s->rows + t->row + i, target_of(t, n, i), t->pixels);
}

static void run_task(struct task *t)
{
	const struct job *j = t->j;
	int64_t nr = j->kernel->nr;

	for (int64_t p = 0; p < t->pixels; p += nr)
		find_inside(&j->s->u, t->pixel + p, ql_min64(nr, t->pixels - p), t->inside[p / nr]);
	for (int64_t c = 0; c < j->s->channels && !ql_stopped(j->ctx); c += j->piece)
		for (int64_t n = 0; n < t->images; n++)
			for (int64_t p = 0; p < t->pixels; p += nr)
				panel(t, n, p, c, ql_min64(j->piece, j->s->channels - c));
	if (j->s->e.bias || j->s->e.act)
		finish(t);
}

/* item: a task; those of one block of pixels are neighbours */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_conv_sums *s = j->s;

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t row = i % j->row_blocks * j->rows, rest = i / j->row_blocks;
		int64_t pixel = rest % j->pixel_blocks * j->pixels, block = rest / j->pixel_blocks;
		int64_t image = block % j->image_blocks * j->images;
		struct task t;

		t.j = j;
		t.group = block / j->image_blocks;
		t.row = row;
		t.rows = ql_min64(j->rows, s->rows - row);
		t.image = image;
		t.images = ql_min64(j->images, s->u.images - image);
		t.pixel = pixel;
		t.pixels = ql_min64(j->pixels, s->th * s->tw - pixel);
		run_task(&t);
	}
}

static int64_t tasks_of(const struct job *j)
{
	return j->s->groups * j->image_blocks * j->pixel_blocks * j->row_blocks;
}

/* Divides rows only when there are too few blocks for the threads. */
static void cut(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	int64_t image = s->th * s->tw, mr = j->kernel->mr, wanted = (int64_t)TASKS_PER_THREAD * j->ctx->threads;

	j->piece = ql_conv_piece(s);
	j->pixels = ql_min64(image, PIXELS);
	j->pixel_blocks = ql_ceil_div(image, j->pixels);
	j->images = ql_max64(1, ql_min64(PIXELS / image, ql_ceil_div(s->u.images, wanted)));
	j->image_blocks = ql_ceil_div(s->u.images, j->images);
	j->rows = s->rows;
	j->row_blocks = 1;
	while (j->rows > 2 * mr && tasks_of(j) < wanted) {
		j->rows = ql_ceil_div(ql_ceil_div(j->rows, 2), mr) * mr;
		j->row_blocks = ql_ceil_div(s->rows, j->rows);
	}
}

enum ql_status ql_conv_taps(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct job j = {.ctx = ctx, .s = s, .kernel = ctx->kernels->tiles};
	double work = (double)s->u.images * (double)(s->th * s->tw) * (double)s->groups * (double)s->rows *
		      (double)s->channels * (double)s->u.taps / j.kernel->rate;
	double ns;

	for (int64_t t = 0; t < s->u.taps; t++)
		j.at[t] = s->u.y[t] * s->u.w + s->u.x[t];
	cut(&j);
	ns = work / (double)tasks_of(&j) + 1;
	return ql_parallel_for(ctx, tasks_of(&j), ns < CHUNK_NS ? (int64_t)(CHUNK_NS / ns) : 1,
		work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
}
