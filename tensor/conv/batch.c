/* SPDX-License-Identifier: MIT
 * Convolution sums of many small images: where many taps are in the padding, as with 4 x 4 pixels and a 3 x 3
 * kernel (44 of 144), products with the padding are skipped. A task transposes nr images to (pixel, channel, image)
 * and, for each pixel of the grid, multiplies the weights of each tap inside the image with that pixel's channels
 * and images. These already have the layout of a panel, so nothing is unfolded. Some rows of the weights stay in
 * the second-level cache while all pixels are processed. Sums are added tap by tap.
 */
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/gemm/pack.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define DEPTH 256
#define SMALL 64          /* pixels of a source plane at most */
#define WORTH 0.8         /* it pays if a smaller share of taps is inside: at 8 x 8 (0.84) tiles were 8 % faster */
#define CACHE (512 << 10) /* bytes of weights, and of sums, processed together */

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	const struct ql_gemm_f32 *kernel;
	float *a;                            /* (groups, taps, rows, channels) */
	int64_t block, blocks, image_blocks; /* rows of a task */
	uint64_t turned_bytes;
	struct ql_slots slots;
};

/* The number of taps of one axis inside the image, summed over n pixels. */
static int64_t inside(int64_t n, int64_t size, int64_t step, const int64_t *at, int64_t taps, int64_t every)
{
	int64_t count = 0;

	for (int64_t i = 0; i < n; i++)
		for (int64_t t = 0; t < taps; t += every)
			count += i * step + at[t] >= 0 && i * step + at[t] < size;
	return count;
}

bool ql_conv_is_batch(const struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	const struct ql_unfold *u = &s->u;
	int64_t columns = 1, all;
	double both;

	if (u->h * u->w > SMALL || u->gh * u->gw > SMALL || u->images < ctx->kernels->tiles->nr / 2 ||
		u->taps > 4 * SMALL || (s->groups * s->rows) >> 24 || s->channels >> 24 || s->every[0] != 1 ||
		s->every[1] != 1 || s->th != u->gh || s->tw != u->gw)
		return false;
	while (columns < u->taps && u->y[columns] == u->y[0])
		columns++;
	all = u->gh * (u->taps / columns) * u->gw * columns;
	both = (double)inside(u->gh, u->h, u->step[0], u->y, u->taps, columns) *
	       (double)inside(u->gw, u->w, u->step[1], u->x, columns, 1);
	return both < WORTH * (double)all;
}

/* item: one row of the weights */
static void turn_weights(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t rows = j->s->rows, channels = j->s->channels, taps = j->s->u.taps;

	for (int64_t i = begin; i < end; i++)
		for (int64_t t = 0; t < taps; t++) {
			const float *from = j->s->a + i * channels * taps + t;
			float *to = j->a + ((i / rows * taps + t) * rows + i % rows) * channels;

			for (int64_t c = 0; c < channels; c++)
				to[c] = from[c * taps];
		}
}

struct task {
	const struct job *j;
	int64_t group, first, rows, image, images;
	float *turned; /* (h w, channels, nr) */
	float *sums;   /* (gh gw, rows, nr) */
};

/* The rows' sums of one pixel. */
static void pixel_sums(const struct task *t, int64_t pixel)
{
	const struct job *j = t->j;
	const struct ql_unfold *u = &j->s->u;
	int64_t channels = j->s->channels, i = pixel / u->gw, k = pixel % u->gw;
	int nr = j->kernel->nr, mr = j->kernel->mr;
	float *sums = t->sums + pixel * t->rows * nr;
	bool add = false;

	for (int64_t tap = 0; tap < u->taps; tap++) {
		int64_t y = i * u->step[0] + u->y[tap], x = k * u->step[1] + u->x[tap];
		const float *a = j->a + ((t->group * u->taps + tap) * j->s->rows + t->first) * channels;
		const float *b = t->turned + (y * u->w + x) * channels * nr;

		if (y < 0 || y >= u->h || x < 0 || x >= u->w)
			continue;
		for (int64_t c = 0; c < channels; c += DEPTH, add = true)
			for (int64_t row = 0; row < t->rows; row += mr)
				j->kernel->tile((int)ql_min64(mr, t->rows - row), (int)t->images,
					ql_min64(DEPTH, channels - c), a + row * channels + c, channels, b + c * nr, nr,
					sums + row * nr, nr, add);
	}
	if (!add)
		memset(sums, 0, (size_t)(t->rows * nr) * sizeof(*sums));
}

/* Stores the sums of one row in its pixels, image by image. */
static void put_row(const struct task *t, int64_t row)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	int64_t pixels = s->u.gh * s->u.gw, all = ql_conv_outputs(s), at = t->group * s->rows + t->first + row;
	float *to = s->target + (t->image * all + at) * pixels;

	ql_gemm_panel_f32(s->u.variant, t->sums + row * j->kernel->nr, 1, t->rows * j->kernel->nr, t->images,
		(int)pixels, (int)(all * pixels), to);
	for (int64_t n = 0; n < t->images && (s->e.bias || s->e.act); n++, to += all * pixels)
		ql_conv_finish(s, at, to, pixels);
}

static void run_task(const struct task *t)
{
	const struct ql_conv_sums *s = t->j->s;
	const struct ql_unfold *u = &s->u;
	int nr = t->j->kernel->nr;

	for (int64_t c = 0; c < s->channels; c++)
		ql_gemm_panel_f32(u->variant,
			u->from + (t->image * u->planes + t->group * s->channels + c) * u->h * u->w, 1,
			u->planes * u->h * u->w, u->h * u->w, (int)t->images, (int)(s->channels * nr),
			t->turned + c * nr);
	for (int64_t pixel = 0; pixel < u->gh * u->gw && !ql_stopped(t->j->ctx); pixel++)
		pixel_sums(t, pixel);
	for (int64_t row = 0; row < t->rows; row++)
		put_row(t, row);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int slot, nr = j->kernel->nr;
	char *memory = ql_slots_enter(&j->slots, &slot);

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t first = i % j->blocks * j->block, rest = i / j->blocks, image = rest % j->image_blocks * nr;
		struct task t = {.j = j,
			.group = rest / j->image_blocks,
			.first = first,
			.rows = ql_min64(j->block, j->s->rows - first),
			.image = image,
			.images = ql_min64(nr, j->s->u.images - image),
			.turned = (float *)(void *)memory,
			.sums = (float *)(void *)(memory + j->turned_bytes)};

		run_task(&t);
	}
	ql_slots_leave(&j->slots, slot);
}

static enum ql_status take_memory(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	int64_t nr = j->kernel->nr, mr = j->kernel->mr, pixels = s->u.gh * s->u.gw;
	int64_t row = 4 * ql_max64(s->channels * s->u.taps, pixels * nr);
	uint64_t bytes = ql_size_array(
			 ql_mul64(ql_mul64(s->groups, s->rows), ql_mul64(s->channels, s->u.taps)), sizeof(*j->a)),
		 all;

	j->image_blocks = ql_ceil_div(s->u.images, nr);
	j->block = ql_min64(s->rows, ql_max64(4 * mr, CACHE / row / mr * mr));
	j->blocks = ql_ceil_div(s->rows, j->block);
	if (!ql_size_mul((uint64_t)ql_mul64(ql_mul64(s->u.h, s->u.w), ql_mul64(nr, 4)), (uint64_t)s->channels,
		    &j->turned_bytes) ||
		!ql_size_add(j->turned_bytes, (uint64_t)ql_mul64(ql_mul64(pixels, j->block), ql_mul64(nr, 4)), &all))
		return ql_fail(j->ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->a = ql_scratch_take(j->ctx, bytes);
	return j->a ? ql_slots_take(j->ctx, all, &j->slots) : QL_ERR_MEMORY;
}

enum ql_status ql_conv_batch(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct job j = {.ctx = ctx, .s = s, .kernel = ctx->kernels->tiles};
	int64_t rows = s->groups * s->rows, k = s->channels * s->u.taps;
	double work = (double)s->u.images * (double)(s->u.gh * s->u.gw) * (double)rows * (double)k / j.kernel->rate;
	enum ql_status status = take_memory(&j);

	if (!status)
		status = ql_parallel_for(ctx, rows, ql_max64(1, 16384 / k), rows * k, turn_weights, &j);
	if (!status)
		status = ql_parallel_for(ctx, j.image_blocks * s->groups * j.blocks, 1,
			work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
	return status;
}
