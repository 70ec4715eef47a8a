/* SPDX-License-Identifier: MIT
 * Sums of groups with one or two rows of weights (depthwise convolutions, a single channel of the result), for which packing takes
 * longer than multiplying. Vectors of consecutive pixels are summed over channels and taps, in this order, from copies of the planes
 * (copies.h), which stay in the first-level cache with depthwise weights; a single tap of one step reads in place. Bias and relu are
 * applied while sums are in registers.
 *
 * Windows of 3 x 3 and 5 x 5 are summed for four rows of pixels at once: vectors that begin at any number meet two lines of the cache, so
 * loading them takes longer than multiplying. (64 channels of 80 x 80, 3 x 3, Zen 4, one thread: 0.31 ms by single rows, 0.22 by four; by
 * patches, as before, yunet took 12.0 ms, now 4.7.)
 *
 * A task is a block of rows of an image times a group. Lines that are short have their sums beside each other first, with what lies
 * between the rows of a copy, and are moved to the target then: vectors would be mostly empty.
 */
#include <math.h>
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/conv/copies.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define TAPS 128  /* at most */
#define NEAR 4096 /* numbers of the copies of a task, unless one row of pixels needs more */
#define SHORT 64  /* pixels of a row that are few */
#define LANES 16
#define ROWS 4   /* of pixels at once */
#define PLANES 8 /* that are read in place at a time: caches follow so many streams */
#define RATE 8   /* products in a ns */
#define TASK_NS 4000.0
#define TASKS_PER_THREAD 2

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t masks __attribute__((vector_size(4 * LANES)));

struct job {
	const struct ql_ctx *ctx;
	const struct ql_conv_sums *s;
	struct ql_copies copies; /* n = 0: planes are read in place */
	int64_t *at;             /* where tap t reads for the first pixel of a block */
	int64_t piece, plane;    /* channels at a time, numbers from one to the next */
	int64_t pitch;           /* numbers from a row of pixels to the next where they are read */
	int64_t rows, blocks;    /* of pixels in a block; blocks of an image */
	bool direct;             /* sums are written into the target, */
	bool joined;             /* the rows of a block at once */
	int square;              /* size of a window that is summed by ROWS rows of pixels; 0: none */
	uint64_t copied;         /* bytes of the copies, behind which are the sums */
	struct ql_slots slots;
};

struct task {
	const struct job *j;
	float *copied, *sums;
	int64_t image, group, top, rows;
};

/* n sums of one row of weights */
struct line {
	int64_t n, channels, plane, taps;
	const float *from, *a; /* from: for the first of them */
	const int64_t *at;
	bool padded;                    /* there are numbers behind those that are read */
	int64_t lines, pitch, to_pitch; /* of pixels, and from one to the next */
	bool on;                        /* `to` has the sums of the channels before */
	bool ends;                      /* bias is added, and what is below `least` becomes 0 */
	float bias, least;              /* as in struct ql_tile_end_f32 */
	float *to;
};

/* -0 and nan are unchanged, as in ops/relu.c. */
QL_INLINE void end(const struct line *l, lanes *sum)
{
	lanes v = *sum + l->bias;
	masks below = v < l->least;

	*sum = (lanes)((masks)v & ~below);
}

/* The sums of n <= LANES pixels from pixel x on. */
QL_INLINE void few(const struct line *l, int64_t x, int64_t n)
{
	size_t bytes = ql_size_array(n, sizeof(float)), reads = l->padded ? sizeof(lanes) : bytes;
	const float *a = l->a;
	lanes sum = {0};
	lanes v = {0};

	if (l->on)
		memcpy(&sum, l->to + x, bytes);
	for (int64_t c = 0; c < l->channels; c++)
		for (int64_t t = 0; t < l->taps; t++) {
			const float *from = l->from + c * l->plane + l->at[t] + x;

			if (reads == sizeof(v))
				memcpy(&v, from, sizeof(v));
			else
				memcpy(&v, from, reads);
			sum += v * *a++;
		}
	if (l->ends)
		end(l, &sum);
	memcpy(l->to + x, &sum, bytes);
}

/* Four vectors at a time, so that additions need not wait for each other. */
QL_SIMD(void, sum_line, (const struct line *l), {
	int64_t x = 0;
	lanes s0;
	lanes s1;
	lanes s2;
	lanes s3;
	lanes v[4];

	for (; x + 4 * LANES <= l->n; x += 4 * LANES) {
		const float *a = l->a;

		memset(v, 0, sizeof(v));
		if (l->on)
			memcpy(v, l->to + x, sizeof(v));
		s0 = v[0];
		s1 = v[1];
		s2 = v[2];
		s3 = v[3];
		for (int64_t c = 0; c < l->channels; c++)
			for (int64_t t = 0; t < l->taps; t++, a++) {
				memcpy(v, l->from + c * l->plane + l->at[t] + x, sizeof(v));
				s0 += v[0] * *a;
				s1 += v[1] * *a;
				s2 += v[2] * *a;
				s3 += v[3] * *a;
			}
		v[0] = s0;
		v[1] = s1;
		v[2] = s2;
		v[3] = s3;
		for (int i = 0; i < 4 && l->ends; i++)
			end(l, &v[i]);
		memcpy(l->to + x, v, sizeof(v));
	}
	for (; x + LANES <= l->n; x += LANES)
		few(l, x, LANES);
	if (x < l->n && x > 0 && !l->on) /* the same sums again, and those behind them */
		few(l, l->n - LANES, LANES);
	else if (x < l->n)
		few(l, x, l->n - x);
})

/* ---- square windows, one row of pixels below the other ---- */

/* ROWS vectors, one below the other: what a row of the source is loaded for is up to `size` of them. */
QL_INLINE void block(const struct line *l, const int size, int64_t x, float *to)
{
	lanes sum[ROWS] = {{0}};
	lanes v;

	for (int64_t c = 0; c < l->channels; c++) {
		const float *from = l->from + c * l->plane + l->at[0] + x, *a = l->a + c * size * size;

#pragma GCC unroll 12
		for (int i = 0; i < ROWS + size - 1; i++)
#pragma GCC unroll 8
			for (int k = 0; k < size; k++) {
				memcpy(&v, from + i * l->pitch + k, sizeof(v));
#pragma GCC unroll 4
				for (int r = 0; r < ROWS; r++)
					if (i >= r && i - r < size)
						sum[r] += v * a[(i - r) * size + k];
			}
	}
#pragma GCC unroll 4
	for (int r = 0; r < ROWS; r++) {
		if (l->ends)
			end(l, &sum[r]);
		memcpy(to + r * l->to_pitch + x, &sum[r], sizeof(sum[r]));
	}
}

#define SQUARE(size) \
	{ \
		for (int64_t x = 0; x + LANES < l->n; x += LANES) \
			block(l, size, x, l->to); \
		block(l, size, l->n - LANES, l->to); \
	}
QL_SIMD(void, sum_3x3, (const struct line *l), SQUARE(3))
QL_SIMD(void, sum_5x5, (const struct line *l), SQUARE(5))

/* The size of a square window whose taps are neighbours in rows and columns; 0: it is another one. */
static int square_of(const struct job *j)
{
	const struct ql_unfold *u = &j->s->u;
	int size = u->taps == 9 ? 3 : u->taps == 25 ? 5 : 0;

	if (j->copies.n != 1 || u->step[0] != 1 || u->step[1] != 1)
		return 0;
	for (int t = 0; t < size * size; t++)
		if (j->at[t] != j->at[0] + t / size * j->pitch + t % size)
			return 0;
	return size;
}

/* Lines from `from` on to `to`. */
static void sum_lines(const struct job *j, struct line *l)
{
	int64_t y = 0;

	for (; j->square && y + ROWS <= l->lines; y += ROWS, l->from += ROWS * l->pitch, l->to += ROWS * l->to_pitch)
		(j->square == 3 ? sum_3x3 : sum_5x5)[j->s->u.variant](l);
	for (; y < l->lines; y++, l->from += l->pitch, l->to += l->to_pitch)
		sum_line[j->s->u.variant](l);
}

/* ---- tasks ---- */

static float *target_of(const struct task *t, int64_t row, int64_t y)
{
	const struct ql_conv_sums *s = t->j->s;
	int64_t plane = t->image * ql_conv_outputs(s) + t->group * s->rows + row;

	return s->target + (plane * s->th + s->at[0] + (t->top + y) * s->every[0]) * s->tw + s->at[1];
}

static void move(const struct task *t, int64_t row, const float *from)
{
	const struct ql_conv_sums *s = t->j->s;

	for (int64_t y = 0; y < t->rows; y++, from += t->j->pitch) {
		float *to = target_of(t, row, y);

		if (s->every[1] == 1)
			memcpy(to, from, (size_t)s->u.gw * sizeof(*to));
		else
			for (int64_t x = 0; x < s->u.gw; x++)
				to[x * s->every[1]] = from[x];
	}
}

/* Row `row` of the group over some channels from `channel` on, whose first pixel is at `from`. */
static void sum_row(const struct task *t, int64_t row, int64_t channel, int64_t channels, const float *from)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	const struct ql_epilogue *e = &s->e;
	int64_t at = t->group * s->rows + row, lines = j->direct && !j->joined ? t->rows : 1;
	bool last = channel + channels == s->channels, other = e->act && !e->relu;
	float *to = j->direct ? target_of(t, row, 0) : t->sums + row * j->rows * j->pitch;
	struct line l = {.n = lines > 1 || t->rows == 1 ? s->u.gw : (t->rows - 1) * j->pitch + s->u.gw,
		.channels = channels,
		.plane = j->plane,
		.taps = s->u.taps,
		.from = from,
		.a = s->a + (at * s->channels + channel) * s->u.taps,
		.at = j->at,
		.padded = j->copies.n > 0,
		.lines = lines,
		.pitch = j->pitch,
		.to_pitch = s->tw,
		.on = channel > 0,
		.ends = last && !other && (e->bias || e->relu),
		.bias = e->bias ? e->bias[at] : 0,
		.least = e->relu ? 0 : -INFINITY,
		.to = to};

	sum_lines(j, &l);
	if (last && other)
		ql_conv_finish(s, at, to, lines > 1 ? lines * s->u.gw : l.n);
	if (last && !j->direct)
		move(t, row, to);
}

static void run_task(const struct task *t)
{
	const struct job *j = t->j;
	const struct ql_conv_sums *s = j->s;
	const struct ql_unfold *u = &s->u;
	const float *planes = u->from + (t->image * u->planes + t->group * s->channels) * u->h * u->w;

	for (int64_t c = 0; c < s->channels && !ql_stopped(j->ctx); c += j->piece) {
		int64_t some = ql_min64(j->piece, s->channels - c);
		const float *from = planes + c * u->h * u->w;

		if (j->copies.n)
			ql_copies_fill(&j->copies, from, some, t->top, t->copied, j->plane);
		for (int64_t row = 0; row < s->rows; row++)
			sum_row(t, row, c, some, j->copies.n ? t->copied : from + t->top * u->w);
	}
}

/* item: a block of an image and a group */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_conv_sums *s = j->s;
	int slot = 0;
	char *memory = j->slots.n ? ql_slots_enter(&j->slots, &slot) : NULL;
	struct task t = {.j = j, .copied = (float *)(void *)memory};

	t.sums = memory ? (float *)(void *)(memory + j->copied) : NULL;
	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++) {
		t.top = i % j->blocks * j->rows;
		t.rows = ql_min64(j->rows, s->u.gh - t.top);
		t.group = i / j->blocks % s->groups;
		t.image = i / j->blocks / s->groups;
		run_task(&t);
	}
	if (memory)
		ql_slots_leave(&j->slots, slot);
}

static bool reads_in_place(const struct ql_unfold *u)
{
	return u->taps == 1 && u->step[0] == 1 && u->step[1] == 1 && u->w == u->gw && u->h == u->gh && u->y[0] == 0 &&
	       u->x[0] == 0;
}

bool ql_conv_is_few(const struct ql_conv_sums *s)
{
	int64_t at[TAPS];

	if (s->rows > QL_CONV_FEW_ROWS || s->u.taps > TAPS)
		return false;
	return reads_in_place(&s->u) || ql_copies_of(&s->u, 1, 1, at).n;
}

/* Blocks of as many rows as are near, and fewer where threads would have none. */
static void cut(struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	const struct ql_unfold *u = &s->u;
	struct ql_copies two =
		reads_in_place(u) ? (struct ql_copies){.pitch = u->w, .rows = 2} : ql_copies_of(u, 2, 1, j->at);
	int64_t around = two.rows - 2, a_row = ql_mul64(two.pitch, ql_max64(1, two.n) * j->piece);
	int64_t wanted = ql_ceil_div(TASKS_PER_THREAD * (int64_t)j->ctx->threads, s->groups * u->images);

	j->rows = ql_max64(1, ql_min64(NEAR / a_row - around, ql_ceil_div(u->gh, j->ctx->threads > 1 ? wanted : 1)));
	j->blocks = ql_ceil_div(u->gh, j->rows);
	j->rows = ql_ceil_div(u->gh, j->blocks);
	j->blocks = ql_ceil_div(u->gh, j->rows);
}

static enum ql_status prepare(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_conv_sums *s = j->s;
	const struct ql_unfold *u = &s->u;
	bool contiguous = s->every[0] == 1 && s->every[1] == 1 && s->tw == u->gw;
	int64_t numbers;
	uint64_t sums;

	j->piece = reads_in_place(u) ? ql_min64(s->channels, PLANES) : ql_conv_piece(s);
	cut(j);
	if (!reads_in_place(u))
		j->copies = ql_copies_of(u, j->rows, 1, j->at);
	numbers = ql_copies_numbers(&j->copies);
	j->plane = j->copies.n ? numbers : u->h * u->w;
	j->pitch = j->copies.n ? j->copies.pitch : u->w;
	j->joined = j->pitch == u->gw;
	j->square = contiguous && u->gw >= LANES && j->piece == s->channels ? square_of(j) : 0;
	j->direct = contiguous && (j->joined || j->square || u->gw >= SHORT || u->gw % LANES == 0);
	if (!j->copies.n && j->direct)
		return QL_OK;
	j->copied = ql_size_array(ql_mul64(numbers, j->piece) + LANES, sizeof(float)) / 64 * 64 + 64;
	sums = j->direct ? 0 : ql_size_array(ql_mul64(ql_mul64(j->rows, j->pitch), s->rows), sizeof(float));
	if (!ql_size_add(j->copied, sums, &sums))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	return ql_slots_take(ctx, sums, &j->slots);
}

enum ql_status ql_conv_few(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.ctx = ctx, .s = s, .at = (int64_t[TAPS]){0}};
	double products = (double)s->u.gh * (double)s->u.gw * (double)s->channels * (double)s->u.taps * (double)s->rows;
	double work = products * (double)s->groups * (double)s->u.images / RATE, ns;
	enum ql_status status = prepare(ctx, &j);

	ns = products / RATE / (double)j.blocks + 1;
	if (!status)
		status = ql_parallel_for(ctx, j.blocks * s->groups * s->u.images,
			ns < TASK_NS ? (int64_t)(TASK_NS / ns) : 1, work < 1e18 ? (int64_t)work : INT64_MAX, body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
