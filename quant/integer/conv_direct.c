/* SPDX-License-Identifier: MIT
 * Sums of a convolution tap by tap, for groups with few channels (depthwise: one) or few outputs, where unfolding
 * would cost more than the sums. A task computes some rows of the result of one group and image: it copies the codes
 * that these rows read, as 16-bit numbers minus the zero point with zeros in the padding, and adds the taps of each
 * output in pairs of neighbours (tensor/kernels/kernels.h, taps_i16). For taps without a neighbour (dilation, the
 * last of an odd number) the second weight is 0.
 *
 * With stride 1 and narrow images, all rows of a task are summed as one line; the sums at the ends of the rows are
 * meaningless and skipped.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHANNELS 4       /* per group: unfolding these costs more than the sums */
#define OUTPUTS 64       /* per group: with more of them unfolding pays */
#define MORE_CHANNELS 64 /* per group, if unfolding copies row by row (a stride, or a result of another width) */
#define FEW_OUTPUTS 16   /* per group and step of the stride, in this case: few outputs share the cost of unfolding */
#define WIDTH 10         /* least columns of the result, in this case */
#define NUMBERS 16384    /* in a task's copy: half of the first-level cache */
#define MOST ((int64_t)1 << 20)
#define NARROW 64 /* columns of a result whose rows are summed as one line */
#define TASK_NS 50000

struct job {
	const struct ql_conv_int *c;
	const struct ql_taps_i16 *kernel;
	int64_t channels;
	int64_t pairs;         /* of an output */
	int16_t *w;            /* (o, pairs, 2) */
	int64_t *at;           /* (pairs): offset of a pair in a task's copy */
	int64_t block, blocks; /* rows of the result in a task; tasks of a group and image */
	int64_t pitch, lines;  /* of the copy: numbers of a line, lines of a channel */
	bool together;         /* the rows of a task are one line */
	int64_t apart; /* from the sums of an output to the next, including slack that the kernel may write to */
	uint64_t copy_bytes;
	struct ql_slots slots;
};

/* ---- geometry ---- */

static int64_t row_pairs(const struct ql_window *w)
{
	return w->dilation[1] == 1 ? ql_ceil_div(w->kernel[1], 2) : w->kernel[1];
}

/* Numbers per line of the copy: up to the last one that a tap reads, and its neighbour. */
static int64_t pitch_of(const struct ql_window *w)
{
	return (w->out[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 2;
}

static int64_t lines_of(const struct ql_window *w, int64_t rows)
{
	return (rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
}

static bool few_channels(const struct ql_conv_int *c, int64_t channels)
{
	return channels <= CHANNELS && c->rows <= OUTPUTS;
}

/* Measured: 6 to 16 channels of 10 x 10, 5 x 5, 3.2 ms and 5.1 unfolded; 16 to 32 of 16 x 16, stride 2, 4.9 and 6.5. */
static bool few_outputs(const struct ql_conv_int *c, int64_t channels)
{
	const struct ql_window *w = &c->c.window;
	bool shifted = w->stride[0] == 1 && w->stride[1] == 1 && w->out[1] == w->in[1];

	return !shifted && channels <= MORE_CHANNELS && c->rows <= FEW_OUTPUTS * w->stride[1] && w->out[1] >= WIDTH &&
	       w->kernel[1] > 1;
}

bool ql_conv_int_is_direct(const struct ql_conv_int *c)
{
	const struct ql_window *w = &c->c.window;
	int64_t channels = c->c.c / c->c.groups;

	return channels >= 1 && (few_channels(c, channels) || few_outputs(c, channels)) && c->pixels > 0 &&
	       w->stride[1] <= 2 && ql_sums_fit(c->k) && pitch_of(w) <= MOST &&
	       lines_of(w, 1) <= MOST / pitch_of(w) / channels;
}

/* As many rows per task as fit its copy, fewer if there would be too few tasks for the threads. */
static void cut(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t line = j->channels * j->pitch, tasks = j->c->c.n * j->c->c.groups, threads = j->c->ctx->threads;

	j->block = ql_max64(1, (NUMBERS / line - lines_of(w, 1)) / w->stride[0] + 1);
	j->block = ql_min64(j->block, ql_max64(4, ql_ceil_div(w->out[0] * tasks, 4 * threads)));
	j->blocks = ql_ceil_div(w->out[0], ql_min64(j->block, w->out[0]));
	j->block = ql_ceil_div(w->out[0], j->blocks);
	j->blocks = ql_ceil_div(w->out[0], j->block);
	j->lines = lines_of(w, j->block);
	j->together = w->stride[0] == 1 && w->stride[1] == 1 && w->out[1] < NARROW;
}

/* ---- weights ---- */

static int32_t code_of(const struct ql_conv_int *c, int64_t o, int64_t i)
{
	const void *data = c->w.data;
	int64_t at = o * c->k + i;
	int32_t code = c->w.dtype == QL_uint8 ? ((const uint8_t *)data)[at] : ((const int8_t *)data)[at];

	return code - (c->w.zero ? c->w.zero[o * c->w.zero_step] : 0);
}

/* Stores the weights of one output as pairs, and the offsets of the pairs, which all outputs share. */
static void pair_up(const struct job *j, int64_t o)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t width = w->kernel[1], step = w->dilation[1] == 1 ? 2 : 1, p = 0;
	int16_t *to = j->w + o * j->pairs * 2;

	for (int64_t r = 0; r < j->channels * w->kernel[0]; r++)
		for (int64_t t = 0; t < width; t += step, p++) {
			bool pair = step == 2 && t + 1 < width;

			to[2 * p] = (int16_t)code_of(j->c, o, r * width + t);
			to[2 * p + 1] = pair ? (int16_t)code_of(j->c, o, r * width + t + 1) : 0;
			j->at[p] = (r / w->kernel[0] * j->lines + r % w->kernel[0] * w->dilation[0]) * j->pitch +
				   t * w->dilation[1];
		}
}

/* ---- rows of codes ---- */

#define WIDEN(name, type) \
	QL_SIMD(void, name, (int64_t n, const type *restrict x, int32_t zero, int16_t *restrict to), { \
		for (int64_t i = 0; i < n; i++) \
			to[i] = (int16_t)(x[i] - zero); \
	})
WIDEN(widen_u8, uint8_t)
WIDEN(widen_i8, int8_t)

/* Copies one line, with zeros outside the image. */
static void copy_line(const struct job *j, const uint8_t *plane, int64_t y, int16_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t before = ql_min64(w->before[1], j->pitch), n = ql_min64(w->in[1], j->pitch - before);
	const uint8_t *from = plane + y * w->in[1];

	if (y < 0 || y >= w->in[0]) {
		memset(to, 0, (size_t)j->pitch * sizeof(*to));
		return;
	}
	memset(to, 0, (size_t)before * sizeof(*to));
	if (j->c->dtype == QL_uint8)
		widen_u8[j->c->variant](n, from, j->c->zero, to + before);
	else
		widen_i8[j->c->variant](n, (const int8_t *)from, j->c->zero, to + before);
	memset(to + before + n, 0, (size_t)(j->pitch - before - n) * sizeof(*to));
}

static void copy_lines(const struct job *j, int64_t image, int64_t group, int64_t first, int64_t rows, int16_t *to)
{
	const struct ql_conv *c = &j->c->c;
	const struct ql_window *w = &c->window;

	for (int64_t channel = 0; channel < j->channels; channel++) {
		const uint8_t *plane = j->c->x + (image * c->c + group * j->channels + channel) * w->in[0] * w->in[1];

		for (int64_t l = 0; l < lines_of(w, rows); l++)
			copy_line(j, plane, first * w->stride[0] - w->before[0] + l,
				to + (channel * j->lines + l) * j->pitch);
	}
}

/* ---- sums ---- */

/* Sums rows of several outputs into `sums`. The next row overwrites the excess sums of a row. */
static void sum_rows(const struct job *j, int64_t o, int outputs, int64_t rows, const int16_t *copy, int32_t *sums)
{
	const struct ql_window *w = &j->c->c.window;
	const int16_t *by = j->w + o * j->pairs * 2;
	int64_t width = w->out[1];

	for (int64_t r = 0; r < rows && !j->together; r++)
		j->kernel->sums(width, (int)w->stride[1], outputs, j->pairs, copy + r * w->stride[0] * j->pitch, j->at,
			by, sums + r * width, j->apart);
	if (!j->together)
		return;
	j->kernel->sums((rows - 1) * j->pitch + width, 1, outputs, j->pairs, copy, j->at, by, sums, j->apart);
	for (int i = 0; i < outputs; i++, sums += j->apart)
		for (int64_t r = 1; r < rows; r++)
			memmove(sums + r * width, sums + r * j->pitch, (size_t)width * sizeof(*sums));
}

static void body(void *arg, int64_t begin, int64_t stop)
{
	struct job *j = arg;
	const struct ql_conv *c = &j->c->c;
	int slot;
	char *memory = ql_slots_enter(&j->slots, &slot);
	int16_t *copy = (int16_t *)(void *)memory;
	int32_t *sums = (int32_t *)(void *)(memory + j->copy_bytes);

	for (int64_t i = begin; i < stop && !ql_stopped(j->c->ctx); i++) {
		int64_t first = i % j->blocks * j->block, group = i / j->blocks % c->groups,
			image = i / j->blocks / c->groups;
		int64_t rows = ql_min64(j->block, c->window.out[0] - first), width = c->window.out[1];

		copy_lines(j, image, group, first, rows, copy);
		for (int64_t o = group * j->c->rows, end = o + j->c->rows; o < end; o += QL_TAPS_OUTPUTS) {
			int outputs = (int)ql_min64(QL_TAPS_OUTPUTS, end - o);

			sum_rows(j, o, outputs, rows, copy, sums);
			for (int k = 0; k < outputs; k++)
				ql_conv_int_store(
					j->c, image, o + k, first * width, rows * width, sums + k * j->apart, NULL);
		}
	}
	ql_slots_leave(&j->slots, slot);
}

static enum ql_status take_memory(struct job *j)
{
	struct ql_ctx *ctx = j->c->ctx;
	uint64_t numbers = (uint64_t)ql_mul64(ql_mul64(j->channels, j->lines), j->pitch), sums, weights;

	j->apart = ql_add64(ql_mul64(j->block, j->pitch), QL_TAPS_SLACK);
	if (!ql_size_add(numbers, QL_TAPS_SLACK, &numbers) || !ql_size_mul(numbers, sizeof(int16_t), &j->copy_bytes) ||
		!ql_size_align(j->copy_bytes, 64, &j->copy_bytes) ||
		!ql_size_mul((uint64_t)j->apart, QL_TAPS_OUTPUTS * sizeof(int32_t), &sums) ||
		!ql_size_mul((uint64_t)j->c->c.o, ql_size_array(j->pairs, 2 * sizeof(*j->w)), &weights) ||
		!ql_size_add(j->copy_bytes, sums, &sums))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "conv2d: the bytes of scratch do not fit in 64 bits");
	j->w = ql_scratch_take(ctx, weights);
	j->at = ql_scratch_array(ctx, j->pairs, sizeof(*j->at));
	if (!j->w || !j->at)
		return QL_ERR_MEMORY;
	return ql_slots_take(ctx, sums, &j->slots);
}

enum ql_status ql_conv_int_direct(const struct ql_conv_int *c)
{
	const struct ql_window *w = &c->c.window;
	struct job j = {
		.c = c, .kernel = c->ctx->kernels->taps_i16, .channels = c->c.c / c->c.groups, .pitch = pitch_of(w)};
	double ns;
	int64_t tasks;
	enum ql_status status;

	j.pairs = j.channels * w->kernel[0] * row_pairs(w);
	cut(&j);
	status = take_memory(&j);
	if (status)
		return status;
	for (int64_t o = 0; o < c->c.o; o++)
		pair_up(&j, o);
	tasks = c->c.n * c->c.groups * j.blocks;
	ns = (double)(j.block * w->out[1] * c->rows) * (2 * (double)j.pairs / j.kernel->rate + 0.3) +
	     0.1 * (double)(j.channels * j.lines * j.pitch);
	return ql_parallel_for(c->ctx, tasks, ql_max64(1, (int64_t)(TASK_NS / (ns + 1))),
		ns * (double)tasks < 1e18 ? (int64_t)(ns * (double)tasks) : INT64_MAX, body, &j);
}
