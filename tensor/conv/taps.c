/* SPDX-License-Identifier: MIT
 * Convolutions whose tiles read the source, not unfolded rows of it: taps read consecutive pixels where these are consecutive, too.
 *
 * Steps of one pixel, and rows as long as those of the source (padding that keeps the width, 1 x 1 kernels): in place, row after row,
 * with a bit for each number inside the borders (struct ql_taps_f32); nothing is padded, which pays where there are few rows of
 * weights (16 channels of 32 x 32, AVX-512: 8.6 ms unfolded for 200 images, 4.9 in place).
 *
 * Else from copies (copies.h) of what a task reads for a piece of the channels, which stay in its second-level cache. Masks of borders
 * take turns with products on CPUs with two units for 512 bits (28 channels of 32 x 32, Emerald Rapids: 120 GFLOP/s with masks, 157
 * without), so copies are read without.
 *
 * A task is a block of pixels, or of small images, times a block of rows; of codes, more such blocks times as many rows as it has
 * decoded. Sums are divided over the channels as in conv.c. Bias, a second operand and relu are applied to the last of them while these
 * are in registers; other activations when the task is done. In place the tiles of the first rows fetch the pixels that come next: their
 * planes are so far apart that hardware doesn't (200 images of 16 x 32 x 32, AVX-512: 5.5 ms without, 4.6 with).
 */
#include <math.h>
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/conv/copies.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PIXELS 256 /* of a block */
#define TAPS 64    /* at most */
#define SMALL 9    /* pixels of an image, at least: with fewer, tiles are mostly empty */
#define TASKS_PER_THREAD 2
#define CHUNK_NS 2000.0     /* at least; claiming one takes 0.05 us, and a thread that finds none waits for the last */
#define LARGEST (1 << 20)   /* numbers of the copies of a task */
#define COPY_ROWS 12        /* of weights in a task that repay one copy of a plane */
#define LINE 64             /* bytes of a cache line */
#define LINES 8             /* vectors of a tile's row at most */
#define DECODED (128 << 10) /* numbers of decoded rows in a task: half a megabyte */
#define APART 16 /* numbers between planes, or decoded rows, so that they do not meet in a few sets of the caches */

struct job {
	struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	const struct ql_gemm_f32 *kernel;
	struct ql_copies copies;                        /* n = 0: images are read in place */
	int64_t plane;                                  /* numbers from channel to channel */
	int64_t at[TAPS];                               /* where tap t reads for pixel 0 */
	float least;                                    /* of the activation, see struct ql_tile_end_f32 */
	bool at_end;                                    /* tiles apply bias and activation */
	int64_t piece;                                  /* channels at a time */
	int64_t images, pixels, rows;                   /* of a block */
	int64_t image_blocks, pixel_blocks, row_blocks; /* their numbers */
	int64_t weights;                                /* from row to row */
	int64_t shares;                                 /* tasks that have the same rows */
	uint64_t decoded;                               /* bytes of the decoded rows of a task, */
	struct ql_slots slots;                          /* behind which are its copies */
};

struct task {
	const struct job *j;
	const float *a; /* the weights of its rows */
	float *copied;  /* memory for copies; NULL: none */
	int64_t group, row, rows, image, images, pixel, pixels;
	uint64_t inside[PIXELS / 16][TAPS]; /* of each panel */
};

static bool reads_in_place(const struct ql_unfold *u)
{
	return u->step[0] == 1 && u->step[1] == 1 && u->w == u->gw;
}

/* Rows of the result that a block of pixels meets. */
static int64_t block_rows(const struct ql_unfold *u)
{
	return ql_min64(u->gh, PIXELS / u->gw + (PIXELS % u->gw && u->gh * u->gw > PIXELS ? 2 : 0));
}

/* The copies for these sums, with so many rows of weights in a task; n = 0: none. at[t]: where tap t reads in them. */
static struct ql_copies copies_of(const struct ql_ctx *ctx, const struct ql_conv_sums *s, int64_t rows, int64_t *at)
{
	struct ql_copies c = {.n = 0};

	if (s->u.taps > 1 || !reads_in_place(&s->u))
		c = ql_copies_of(&s->u, block_rows(&s->u), ctx->kernels->tiles->narrow_columns, at);
	if ((reads_in_place(&s->u) && rows < COPY_ROWS * c.n) ||
		ql_mul64(ql_copies_numbers(&c), ql_conv_piece(s)) > LARGEST)
		c.n = 0;
	return c;
}

bool ql_conv_is_taps(const struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	const struct ql_unfold *u = &s->u;
	int64_t at[TAPS];

	if (s->every[0] != 1 || s->every[1] != 1 || s->th != u->gh || s->tw != u->gw || u->taps > TAPS ||
		u->gh * u->gw < SMALL)
		return false;
	return reads_in_place(u) || copies_of(ctx, s, s->rows, at).n;
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
	       ((t->image + image) * ql_conv_outputs(s) + t->group * s->rows + t->row + row) * s->th * s->tw + t->pixel;
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

/* The first row of the result. */
static int64_t top_of(const struct task *t)
{
	return t->pixel / t->j->s->u.gw;
}

/* Where pixel p of the result is in a plane of the source. */
static int64_t place(const struct task *t, int64_t p)
{
	return t->copied ? ql_copies_place(&t->j->copies, top_of(t), p) : p;
}

/* The planes of an image from a channel on; of copies, those of the piece. */
static const float *planes_of(const struct task *t, int64_t image, int64_t channel)
{
	const struct job *j = t->j;

	if (t->copied)
		return t->copied + image * j->piece * j->plane;
	return j->s->u.from + ((t->image + image) * j->s->u.planes + t->group * j->s->channels + channel) * j->plane;
}

/* The products of one piece of the channels with one panel of an image. */
static void panel(const struct task *t, int64_t image, int64_t at, int64_t channel, int64_t channels)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	int64_t pitch = s->th * s->tw, k = j->weights;
	int columns = (int)ql_min64(j->kernel->nr, t->pixels - at);
	int mr = columns <= j->kernel->narrow_columns ? j->kernel->narrow : j->kernel->mr;
	int64_t from = place(t, t->pixel + at), line[LINES];
	struct ql_taps_f32 taps = {.from = planes_of(t, image, channel) + from,
		.channels = channels,
		.plane = j->plane,
		.taps = s->u.taps,
		.at = j->at,
		.inside = t->inside[at / j->kernel->nr],
		.line = t->copied ? line : NULL,
		.ahead = t->copied ? 0 : distance(t, at),
		.apart = s->codes && s->codes->turned ? s->channels : 0};
	const float *a = t->a + channel * (taps.apart ? 1 : s->u.taps);
	float *c = target_of(t, image, 0) + at;
	struct ql_tile_end_f32 end = {.least = j->least};

	for (int64_t p = 0; t->copied && p < columns; p += j->kernel->narrow_columns)
		line[p / j->kernel->narrow_columns] = place(t, t->pixel + at + p) - from;
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

/* Copies of a piece of the channels of the task's images */
static void copy(const struct task *t, int64_t channel, int64_t channels)
{
	const struct job *j = t->j;
	const struct ql_unfold *u = &j->s->u;

	for (int64_t n = 0; n < t->images; n++)
		ql_copies_fill(&j->copies,
			u->from + ((t->image + n) * u->planes + t->group * j->s->channels + channel) * u->h * u->w,
			channels, top_of(t), t->copied + n * j->piece * j->plane, j->plane);
}

static void run_task(struct task *t)
{
	const struct job *j = t->j;
	int64_t nr = j->kernel->nr;

	for (int64_t p = 0; !t->copied && p < t->pixels; p += nr)
		find_inside(j, t->pixel + p, ql_min64(nr, t->pixels - p), t->inside[p / nr]);
	for (int64_t c = 0; c < j->s->channels && !ql_stopped(j->ctx); c += j->piece) {
		int64_t some = ql_min64(j->piece, j->s->channels - c);

		if (t->copied)
			copy(t, c, some);
		for (int64_t n = 0; n < t->images; n++)
			for (int64_t p = 0; p < t->pixels; p += nr)
				panel(t, n, p, c, some);
	}
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
	t->images = ql_min64(j->images, j->s->u.images - t->image);
	run_task(t);
}

/* item: rows of a group times a share of its blocks; those of one share are neighbours */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_conv_sums *s = j->s;
	int64_t blocks = j->image_blocks * j->pixel_blocks;
	int slot = 0;
	char *memory = j->slots.n ? ql_slots_enter(&j->slots, &slot) : NULL;
	float *decoded = s->codes ? (float *)(void *)memory : NULL;
	struct task t;

	t.j = j;
	t.copied = j->copies.n ? (float *)(void *)(memory + j->decoded) : NULL;
	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		int64_t rest = i / j->row_blocks, share = rest % j->shares;

		t.group = rest / j->shares;
		t.row = i % j->row_blocks * j->rows;
		t.rows = ql_min64(j->rows, s->rows - t.row);
		t.a = decoded ? decoded : s->a + (t.group * s->rows + t.row) * j->weights;
		if (decoded)
			ql_conv_decoder_read(s->codes, t.group * s->rows + t.row, t.rows, j->weights, decoded);
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
	j->images = ql_max64(1, ql_min64(PIXELS / image, ql_ceil_div(s->u.images, wanted)));
	j->image_blocks = ql_ceil_div(s->u.images, j->images);
	j->shares = j->image_blocks * j->pixel_blocks;
	divide_rows(j, s->codes ? ql_max64(1, DECODED / j->weights / j->kernel->narrow) * j->kernel->narrow : s->rows);
	if (s->codes && s->groups * j->shares < j->ctx->threads) /* as many for each thread */
		divide_rows(j, ql_ceil_div(s->rows, ql_ceil_div(j->row_blocks, j->ctx->threads) * j->ctx->threads));
	while (j->rows > (tasks_of(j) < j->ctx->threads ? 1 : 3) * mr && tasks_of(j) < wanted)
		divide_rows(j, ql_ceil_div(s->rows, 2 * j->row_blocks));
	if (s->codes) /* each share decodes them */
		j->shares = ql_min64(j->shares, ql_ceil_div(wanted, s->groups * j->row_blocks));
}

/* ---- all ---- */

/* Memory of tasks: decoded rows, copies. */
static enum ql_status take_memory(struct ql_ctx *ctx, struct job *j)
{
	uint64_t copies = 0;

	if (j->s->codes)
		j->decoded = ql_size_array(ql_mul64(j->rows, j->weights), sizeof(float)) / LINE * LINE + LINE;
	if (j->copies.n) {
		j->plane = ql_copies_numbers(&j->copies) + APART;
		copies = ql_size_array(ql_mul64(ql_mul64(j->images, j->piece), j->plane), sizeof(float));
	}
	if (!j->decoded && !copies)
		return QL_OK;
	if (!ql_size_add(j->decoded, copies, &copies))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	return ql_slots_take(ctx, copies, &j->slots);
}

enum ql_status ql_conv_taps(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx,
		.s = s,
		.kernel = ctx->kernels->tiles,
		.least = s->e.act ? 0 : -INFINITY,
		.at_end = (!s->e.act || s->e.relu) && (s->e.act || s->e.bias || s->other),
		.plane = s->u.h * s->u.w,
		.weights = s->channels * s->u.taps + (s->codes ? APART : 0)};
	double work = (double)s->u.images * (double)(s->th * s->tw) * (double)s->groups * (double)s->rows *
		      (double)s->channels * (double)s->u.taps / j.kernel->rate;
	double ns;
	enum ql_status status;

	cut(&j);
	j.copies = copies_of(ctx, s, j.rows, j.at);
	for (int64_t t = 0; t < s->u.taps && !j.copies.n; t++)
		j.at[t] = s->u.y[t] * s->u.gw + s->u.x[t];
	status = take_memory(ctx, &j);
	ns = work / (double)tasks_of(&j) + 1;
	if (!status)
		status = ql_parallel_for(ctx, tasks_of(&j), ns < CHUNK_NS ? (int64_t)(CHUNK_NS / ns) : 1,
			work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
