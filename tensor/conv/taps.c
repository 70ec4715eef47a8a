/* SPDX-License-Identifier: MIT
 * Convolutions with steps of one pixel whose rows are as long as those of their source (padding that keeps the width,
 * 1 x 1 kernels): the numbers that a tap reads for consecutive pixels are consecutive in the source, too, row after
 * row, but for those beyond its borders. So tiles read the source in place, with a bit for each number inside
 * (struct ql_taps_f32): nothing is padded or unfolded, which takes nearly as long as the products when there are few
 * rows (16 channels of 32 x 32, AVX-512: 8.6 ms for 200 images, 4.9 in place).
 *
 * With larger steps the same holds for each phase of the source, the numbers of every step[0]-th row and every
 * step[1]-th column: some images at a time are copied phase by phase, each one gh x gw, and a tap reads one of them; phases
 * that none reads (1 x 1 kernels read one) are left out.
 * SPLIT bytes for each thread stay in its second-level cache. (32 to 64 channels of 16 x 16, step 2, AVX-512: 48 us
 * unfolded, 13 so.)
 *
 * Masks of borders take turns with products on CPUs with two units for 512 bits (28 channels of 32 x 32, AVX-512, Emerald
 * Rapids: 120 GFLOP/s with masks, 157 without). So where rows of the result are whole vectors and many rows of weights repay
 * the copy, some images at a time are copied with their padding, and a tile reads each vector in one piece.
 *
 * A task is a block of pixels, or of small images, times a block of rows; of codes, more such blocks times as many rows as it has
 * decoded. Sums are divided over the channels as in conv.c. Bias, a second operand and relu are applied to the last of them while these
 * are in registers; other activations when the task is done. The tiles of the first rows fetch the pixels that come next: their planes are so far
 * apart that hardware doesn't (200 images of 16 x 32 x 32, AVX-512: 5.5 ms without, 4.6 with).
 */
#include <math.h>
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIXELS 256 /* of a block */
#define PANEL 64   /* of a tile, at most */
#define TAPS 64    /* at most */
#define SMALL 9    /* pixels of an image, at least: with fewer, tiles are mostly empty */
#define TASKS_PER_THREAD 2
#define CHUNK_NS 2000.0     /* at least; claiming one takes 0.05 us, and a thread that finds none waits for the last */
#define SPLIT (512 << 10)   /* bytes */
#define LARGEST (1 << 20)   /* numbers of an image that is copied */
#define PADDED_ROWS 32      /* of weights that repay a copy with padding */
#define LINES 8             /* vectors of a tile's row at most */
#define DECODED (128 << 10) /* numbers of decoded rows in a task: half a megabyte */
#define APART 16 /* numbers between planes, or decoded rows, so that they do not meet in a few sets of the caches */

/* What a tap reads: pixel (i, j) at (i + y, j + x) of a phase of h x w numbers. */
struct reach {
	int64_t y, x, h, w;
};

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	const struct ql_gemm_f32 *kernel;
	const float *from;    /* the images of this round: the source, or its phases */
	float *split;         /* memory for phases, or for images with their padding */
	int64_t pitch;        /* of a row with its padding; 0: there is none */
	int64_t low[2];       /* the least y and x of a tap */
	int64_t first, count; /* images of this round */
	int64_t plane;        /* numbers from channel to channel */
	uint64_t read[2];     /* bits of the phases of rows and columns that taps read, the last for all from 63 on */
	struct reach tap[TAPS];
	int64_t at[TAPS];                               /* where tap t reads for pixel 0 */
	float least;                                    /* of the activation, see struct ql_tile_end_f32 */
	bool at_end;                                    /* tiles apply bias and activation */
	int64_t piece;                                  /* channels at a time */
	int64_t images, pixels, rows;                   /* of a block */
	int64_t image_blocks, pixel_blocks, row_blocks; /* their numbers */
	int64_t weights;                                /* from row to row */
	int64_t shares;                                 /* tasks that have the same rows */
	struct ql_slots slots;                          /* with codes: the decoded rows of a task */
};

struct task {
	const struct job *j;
	const float *a; /* the weights of its rows */
	int64_t group, row, rows, image, images, pixel, pixels;
	uint64_t inside[PIXELS / 16][TAPS]; /* of each panel */
};

bool ql_conv_is_taps(const struct ql_conv_sums *s)
{
	const struct ql_unfold *u = &s->u;
	bool one = u->step[0] == 1 && u->step[1] == 1;

	/* planes so far apart would meet in a few sets of the caches, and one tap uses what it loads once */
	if (one && u->taps == 1 && u->h * u->w % 1024 == 0)
		return false;
	/* one image's phases, with at most one row and column more in each, are copied at once */
	if (!one && (u->step[0] > u->h || u->step[1] > u->w || u->planes * u->h * u->w > LARGEST))
		return false;
	return (one || ql_ceil_div(u->h, u->step[0]) == u->gh) && ql_ceil_div(u->w, u->step[1]) == u->gw &&
	       s->every[0] == 1 && s->every[1] == 1 && s->th == u->gh && s->tw == u->gw && u->taps <= TAPS &&
	       u->gh * u->gw >= SMALL;
}

/* The bits of n pixels for all taps, run by run of pixels in a row. */
static void find_inside(const struct job *j, int64_t pixel, int64_t n, uint64_t *inside)
{
	const struct ql_unfold *u = &j->s->u;
	int64_t y = pixel / u->gw, x = pixel % u->gw, run;

	memset(inside, 0, (size_t)u->taps * sizeof(*inside));
	for (int64_t i = 0; i < n; i += run, y++, x = 0) {
		run = ql_min64(u->gw - x, n - i);
		for (int64_t t = 0; t < u->taps; t++) {
			const struct reach *r = &j->tap[t];
			int64_t first = ql_max64(x, -r->x), stop = ql_min64(x + run, r->w - r->x);

			if (y + r->y >= 0 && y + r->y < r->h && first < stop)
				inside[t] |= (UINT64_MAX >> (64 - (stop - first))) << (i + first - x);
		}
	}
}

static float *target_of(const struct task *t, int64_t image, int64_t row)
{
	const struct ql_conv_sums *s = t->j->s;

	return s->target +
	       ((t->j->first + t->image + image) * ql_conv_outputs(s) + t->group * s->rows + t->row + row) * s->th *
		       s->tw +
	       t->pixel;
}

/* From the numbers of a panel to those of the panel behind it: further pixels, or the next image. */
static int64_t distance(const struct task *t, int64_t at)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;

	if (t->pixel + at + j->kernel->nr < s->th * s->tw)
		return j->kernel->nr + j->at[s->u.taps - 1];
	return s->u.planes * j->plane - t->pixel - at;
}

/* Where pixel p of the result is in a plane of the source. */
static int64_t place(const struct job *j, int64_t p)
{
	int64_t gw = j->s->u.gw;

	return j->pitch ? p / gw * j->pitch + p % gw : p;
}

/* The products of one piece of the channels with one panel of an image. */
static void panel(const struct task *t, int64_t image, int64_t at, int64_t channel, int64_t channels)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	int64_t pitch = s->th * s->tw, k = j->weights;
	int columns = (int)ql_min64(j->kernel->nr, t->pixels - at);
	int mr = columns <= j->kernel->narrow_columns ? j->kernel->narrow : j->kernel->mr;
	int64_t from = place(j, t->pixel + at), line[LINES];
	struct ql_taps_f32 taps = {
		.from = j->from + ((t->image + image) * s->u.planes + t->group * s->channels + channel) * j->plane +
			from,
		.channels = channels,
		.plane = j->plane,
		.taps = s->u.taps,
		.at = j->at,
		.inside = t->inside[at / j->kernel->nr],
		.line = j->pitch ? line : NULL,
		.ahead = j->pitch ? 0 : distance(t, at),
		.apart = s->codes && s->codes->turned ? s->channels : 0};
	const float *a = t->a + channel * (taps.apart ? 1 : s->u.taps);
	float *c = target_of(t, image, 0) + at;
	struct ql_tile_end_f32 end = {.least = j->least};

	for (int64_t p = 0; j->pitch && p < columns; p += j->kernel->narrow_columns)
		line[p / j->kernel->narrow_columns] = place(j, t->pixel + at + p) - from;
	for (int64_t i = 0, tiles = ql_ceil_div(t->rows, mr), n; i < t->rows; i += n, tiles--) {
		n = ql_ceil_div(t->rows - i, tiles); /* none with few rows, which would wait for its sums */
		end.bias = s->e.bias ? s->e.bias + t->group * s->rows + t->row + i : NULL;
		end.other = s->other ? s->other + (c - s->target) + i * pitch : NULL;
		taps.end = j->at_end && channel + channels == s->channels ? &end : NULL;
		j->kernel->taps((int)n, columns, &taps, a + i * k, k, c + i * pitch, pitch,
			channel ? QL_TILE_ADD : QL_TILE_NEW);
		taps.ahead = 0;
	}
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

	for (int64_t p = 0; !j->pitch && p < t->pixels; p += nr)
		find_inside(j, t->pixel + p, ql_min64(nr, t->pixels - p), t->inside[p / nr]);
	for (int64_t c = 0; c < j->s->channels && !ql_stopped(j->ctx); c += j->piece)
		for (int64_t n = 0; n < t->images; n++)
			for (int64_t p = 0; p < t->pixels; p += nr)
				panel(t, n, p, c, ql_min64(j->piece, j->s->channels - c));
	if (!j->at_end && (j->s->e.bias || j->s->e.act))
		finish(t);
}

/* A block of pixels, number `block` of those of a group. */
static void run_block(struct task *t, int64_t block)
{
	const struct job *j = t->j;

	t->pixel = block % j->pixel_blocks * j->pixels;
	t->pixels = ql_min64(j->pixels, j->s->th * j->s->tw - t->pixel);
	t->image = block / j->pixel_blocks * j->images;
	t->images = ql_min64(j->images, j->count - t->image);
	run_task(t);
}

/* item: rows of a group times a share of its blocks; those of one share are neighbours */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_conv_sums *s = j->s;
	int64_t blocks = j->image_blocks * j->pixel_blocks;
	int slot = 0;
	float *memory = s->codes ? ql_slots_enter(&j->slots, &slot) : NULL;
	struct task t;

	t.j = j;
	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t rest = i / j->row_blocks, share = rest % j->shares;

		t.group = rest / j->shares;
		t.row = i % j->row_blocks * j->rows;
		t.rows = ql_min64(j->rows, s->rows - t.row);
		t.a = memory ? memory : s->a + (t.group * s->rows + t.row) * j->weights;
		if (memory)
			ql_conv_decoder_read(s->codes, t.group * s->rows + t.row, t.rows, j->weights, memory);
		for (int64_t block = share * blocks / j->shares; block < (share + 1) * blocks / j->shares; block++)
			run_block(&t, block);
	}
	if (memory)
		ql_slots_leave(&j->slots, slot);
}

static int64_t tasks_of(const struct job *j)
{
	return j->s->groups * j->shares * j->row_blocks;
}

/* Into even blocks of at most so many. */
static void divide_rows(struct job *j, int64_t most)
{
	j->row_blocks = ql_ceil_div(j->s->rows, most);
	j->rows = ql_ceil_div(j->s->rows, j->row_blocks);
}

/* Divides rows evenly, and only when there are too few blocks for the threads: below three tiles, which load more than
 * they multiply, only if threads would have none. */
static void cut(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	int64_t image = s->th * s->tw, mr = j->kernel->mr,
		wanted = j->ctx->threads > 1 ? (int64_t)TASKS_PER_THREAD * j->ctx->threads : 1;

	j->piece = ql_conv_piece(s);
	j->pixels = ql_min64(image, PIXELS);
	j->pixel_blocks = ql_ceil_div(image, j->pixels);
	j->images = ql_max64(1, ql_min64(PIXELS / image, ql_ceil_div(j->count, wanted)));
	j->image_blocks = ql_ceil_div(j->count, j->images);
	j->shares = j->image_blocks * j->pixel_blocks;
	divide_rows(j, s->codes ? ql_max64(1, DECODED / j->weights / j->kernel->narrow) * j->kernel->narrow : s->rows);
	if (s->codes && s->groups * j->shares < j->ctx->threads) /* as many for each thread */
		divide_rows(j, ql_ceil_div(s->rows, ql_ceil_div(j->row_blocks, j->ctx->threads) * j->ctx->threads));
	while (j->rows > (tasks_of(j) < j->ctx->threads ? 1 : 3) * mr && tasks_of(j) < wanted)
		divide_rows(j, ql_ceil_div(s->rows, 2 * j->row_blocks));
	if (s->codes) /* each share decodes them */
		j->shares = ql_min64(j->shares, ql_ceil_div(wanted, s->groups * j->row_blocks));
}

/* ---- phases ---- */

typedef float half __attribute__((vector_size(32)));

/* n numbers, one after the other, to `even` and `odd` */
QL_SIMD(void, deal, (const float *from, int64_t n, float *even, float *odd), {
	int64_t i = 0;
	half a;
	half b;

	for (; i + 16 <= n; i += 16) {
		memcpy(&a, from + i, sizeof(a));
		memcpy(&b, from + i + 8, sizeof(b));
		half low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
		half high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
		memcpy(even + i / 2, &low, sizeof(low));
		memcpy(odd + i / 2, &high, sizeof(high));
	}
	for (; i < n; i++)
		(i % 2 ? odd : even)[i / 2] = from[i];
})

/* Every second of n numbers */
QL_SIMD(void, pick, (const float *from, int64_t n, float *to), {
	int64_t i = 0;
	half a;
	half b;

	for (; i + 16 <= n; i += 16) {
		memcpy(&a, from + i, sizeof(a));
		memcpy(&b, from + i + 8, sizeof(b));
		half low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
		memcpy(to + i / 2, &low, sizeof(low));
	}
	for (; i < n; i += 2)
		to[i / 2] = from[i];
})

static bool is_read(const struct job *j, int d, int64_t phase)
{
	return j->read[d] >> ql_min64(phase, 63) & 1;
}

static void split_row(const struct job *j, const float *from, int64_t pixels, float *to)
{
	const struct ql_unfold *u = &j->s->u;
	int64_t step = u->step[1];

	if (step == 2 && j->read[1] == 3)
		deal[u->variant](from, u->w, to, to + pixels);
	else if (step == 2 && is_read(j, 1, 0))
		pick[u->variant](from, u->w, to);
	else if (step == 2)
		pick[u->variant](from + 1, u->w - 1, to + pixels);
	else
		for (int64_t x = 0; x < u->w; x++)
			to[x % step * pixels + x / step] = from[x];
}

/* item: a plane of an image */
static void split_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_unfold *u = &j->s->u;
	int64_t pixels = u->gh * u->gw;

	for (int64_t i = begin; i < end; i++)
		for (int64_t y = 0; y < u->h; y++)
			if (is_read(j, 0, y % u->step[0]))
				split_row(j, u->from + ((j->first * u->planes + i) * u->h + y) * u->w, pixels,
					j->split + i * j->plane + y % u->step[0] * u->step[1] * pixels +
						y / u->step[0] * u->gw);
}

/* Of tap t: the phase that it reads and where in it. */
static void find_tap(struct job *j, int64_t t)
{
	const struct ql_unfold *u = &j->s->u;
	const int64_t *s = u->step;
	int64_t y = u->y[t] % s[0], x = u->x[t] % s[1];

	y += y < 0 ? s[0] : 0;
	x += x < 0 ? s[1] : 0;
	j->tap[t] = (struct reach){.y = (u->y[t] - y) / s[0],
		.x = (u->x[t] - x) / s[1],
		.h = u->h > y ? ql_ceil_div(u->h - y, s[0]) : 0,
		.w = u->w > x ? ql_ceil_div(u->w - x, s[1]) : 0};
	j->read[0] |= UINT64_C(1) << ql_min64(y, 63);
	j->read[1] |= UINT64_C(1) << ql_min64(x, 63);
	j->at[t] = (y * s[1] + x) * u->gh * u->gw + j->tap[t].y * u->gw + j->tap[t].x;
}

/* item: a plane of an image, with its padding */
static void pad_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_unfold *u = &j->s->u;
	int64_t rows = (j->plane - APART) / j->pitch, left = -j->low[1];

	for (int64_t i = begin; i < end; i++)
		for (int64_t r = 0; r < rows; r++) {
			const float *from = u->from + ((j->first * u->planes + i) * u->h + r + j->low[0]) * u->w;
			float *to = j->split + i * j->plane + r * j->pitch;
			bool in = r + j->low[0] >= 0 && r + j->low[0] < u->h;

			for (int64_t x = 0; x < j->pitch; x++)
				to[x] = in && x >= left && x < left + u->w ? from[x - left] : 0;
		}
}

static enum ql_status split(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_unfold *u = &j->s->u;
	int64_t planes = j->count * u->planes;

	return ql_parallel_for(
		ctx, planes, ql_max64(1, 16384 / j->plane), planes * j->plane / 8, j->pitch ? pad_body : split_body, j);
}

/* Memory for the phases or copies of some images, planes of so many numbers. */
static enum ql_status take_split(struct ql_ctx *ctx, struct job *j, int64_t numbers)
{
	const struct ql_unfold *u = &j->s->u;
	int64_t room = ql_mul64(SPLIT / (j->s->codes ? 1 : 4), ctx->threads); /* each round decodes */
	uint64_t bytes;

	j->plane = numbers + APART;
	j->count = ql_min64(u->images, ql_max64(1, room / ql_max64(1, ql_mul64(j->plane, u->planes))));
	if (!ql_size_mul((uint64_t)ql_mul64(j->count, u->planes), (uint64_t)ql_mul64(j->plane, sizeof(float)), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->split = ql_scratch_take(ctx, bytes);
	return j->split ? QL_OK : QL_ERR_MEMORY;
}

/* Images are copied with their padding if that pays: finds the length of a row and the number of rows, the place of taps. Else the
 * pitch stays 0. */
static int64_t find_padding(struct job *j)
{
	const struct ql_unfold *u = &j->s->u;
	int64_t low[2] = {u->y[0], u->x[0]}, high[2] = {u->y[0], u->x[0]}, rows;

	for (int64_t t = 1; t < u->taps; t++) {
		low[0] = ql_min64(low[0], u->y[t]);
		low[1] = ql_min64(low[1], u->x[t]);
		high[0] = ql_max64(high[0], u->y[t]);
		high[1] = ql_max64(high[1], u->x[t]);
	}
	rows = u->gh + high[0] - low[0];
	if (u->taps == 1 || j->s->rows < PADDED_ROWS || u->gw % j->kernel->narrow_columns || low[1] > 0 ||
		high[1] < 0 || ql_mul64(ql_mul64(rows, u->gw + high[1] - low[1]), u->planes) > LARGEST)
		return 0;
	j->pitch = u->gw + high[1] - low[1];
	j->low[0] = low[0];
	j->low[1] = low[1];
	for (int64_t t = 0; t < u->taps; t++)
		j->at[t] = (u->y[t] - low[0]) * j->pitch + u->x[t] - low[1];
	return rows * j->pitch;
}

/* ---- all ---- */

static enum ql_status run_round(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	double work = (double)j->count * (double)(s->th * s->tw) * (double)s->groups * (double)s->rows *
		      (double)s->channels * (double)s->u.taps / j->kernel->rate;
	double ns;
	enum ql_status status = QL_OK;

	cut(j);
	ns = work / (double)tasks_of(j) + 1;
	if (s->codes)
		status = ql_slots_take(ctx, ql_size_array(ql_mul64(j->rows, j->weights), sizeof(float)), &j->slots);
	if (!status)
		status = ql_parallel_for(ctx, tasks_of(j), ns < CHUNK_NS ? (int64_t)(CHUNK_NS / ns) : 1,
			work < 1e18 ? (int64_t)work : INT64_MAX, body, j);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_conv_taps(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx,
		.s = s,
		.kernel = ctx->kernels->tiles,
		.from = s->u.from,
		.count = s->u.images,
		.least = s->e.act ? 0 : -INFINITY,
		.at_end = (!s->e.act || s->e.relu) && (s->e.act || s->e.bias || s->other),
		.plane = s->u.h * s->u.w,
		.weights = s->channels * s->u.taps + (s->codes ? APART : 0)};
	bool one = s->u.step[0] == 1 && s->u.step[1] == 1;
	int64_t numbers = one ? find_padding(&j) : ql_mul64(ql_mul64(s->u.step[0], s->u.step[1]), s->u.gh * s->u.gw);
	enum ql_status status = numbers ? take_split(ctx, &j, numbers) : QL_OK;
	int64_t images = j.count;

	for (int64_t t = 0; t < s->u.taps && !j.pitch; t++)
		find_tap(&j, t);
	if (numbers)
		j.from = j.split;
	for (; !status && j.first < s->u.images && !ql_stopped(ctx); j.first += images) {
		j.count = ql_min64(images, s->u.images - j.first);
		if (numbers)
			status = split(ctx, &j);
		if (!status)
			status = run_round(ctx, &j);
	}
	ql_scratch_release(ctx, mark);
	return status;
}
