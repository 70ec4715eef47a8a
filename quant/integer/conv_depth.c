/* SPDX-License-Identifier: MIT
 * Depthwise convolutions of codes with their channels last, from codes to codes: one channel of x a group. A task computes some rows
 * of the result of one image. It copies the lines that these rows read (conv_lines.c), each channel as often as outputs share it, so
 * that output o reads byte o of every pixel; then it takes blocks of channels, which are vectors, and some pixels at a time
 * (tensor/kernels/kernels.h, depth_i8).
 *
 * Where a vector has room for several pixels and the columns of the result are neighbours in x (stride 1), a row is one long pixel, whose
 * channels are those of the real ones again and again: so are weights, biases and factors.
 *
 * Weights, biases and factors are brought into the order of the kernel's vectors at each call: of 9 taps a channel is three words.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/conv/conv.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define BLOCK ((int64_t)24 << 10) /* bytes of a task's copy: half of a first-level cache of 48 KiB */
#define TASKS 2                   /* per thread, at least */
#define TASK_NS 3000
#define START 16 /* products that take as long as a code's end, roughly */

struct job {
	const struct ql_conv_int *c;
	const struct ql_depth_i8 *kernel;
	const struct ql_conv_tiles *t;
	struct ql_conv_lines lines;
	const uint8_t *other; /* NULL: nothing is added */
	uint8_t *out;
	int64_t block, blocks; /* rows of a task, tasks of an image */
	struct ql_depth_i8_sums sums;
	struct ql_conv_i8_codes codes;
	struct ql_slots slots;
};

static int64_t quads_of(const struct ql_conv_int *j)
{
	return ql_ceil_div(j->k, 4);
}

/* Channels of what the kernel takes for a pixel: those of x, or all of a block. */
static int64_t channels_of(const struct ql_conv_int *j)
{
	int64_t block = 16L * j->ctx->kernels->depth_i8->lanes;

	return j->c.window.stride[1] == 1 && block % j->c.o == 0 ? block : j->c.o;
}

/* ---- weights ---- */

/* sum: of the four codes of each word, added to what is there */
QL_SIMD(void, add_words, (int64_t n, const uint32_t *restrict w, int32_t *restrict sum), {
	for (int64_t i = 0; i < n; i++)
		sum[i] += ((int32_t)w[i] >> 24) + ((int32_t)(w[i] << 8) >> 24) + ((int32_t)(w[i] << 16) >> 24) +
			  ((int32_t)(w[i] << 24) >> 24);
})

/* The codes of a channel, to words `apart` bytes apart. */
static void put(int64_t taps, const int8_t *from, int8_t *to, int64_t apart)
{
	for (; taps >= 4; taps -= 4, from += 4, to += apart)
		memcpy(to, from, 4);
	for (int64_t t = 0; t < taps; t++)
		to[t] = from[t];
}

static void put_ends(const struct ql_conv_ends *from, int64_t i, int64_t at, const struct ql_conv_ends *to)
{
	to->bias[at] = from->bias[i];
	to->factor[at] = from->factor[i];
	if (from->multiplier) {
		to->multiplier[at] = from->multiplier[i];
		to->right[at] = from->right[i];
	}
}

/* Brings all channels into the order of the kernel, and adds what the zero point of x does to the biases. */
static void place(const struct ql_conv_int *j, int32_t x_zero, const int8_t *codes, const struct ql_conv_ends *from,
	int8_t *w, const struct ql_conv_ends *to)
{
	int lanes = j->ctx->kernels->depth_i8->lanes;
	int64_t block = 16L * lanes, quads = quads_of(j), channels = channels_of(j);
	int32_t sum[QL_DEPTH_BLOCK];

	for (int64_t o = 0; o < channels; o += block, w += 4 * block * quads) {
		int64_t n = ql_min64(block, channels - o);
		int32_t *bias = to->bias + o;

		for (int64_t i = 0; i < n; i++) {
			int64_t at = i % 16 / 4 * 4 * lanes + i / 16 * 4 + i % 4, output = (o + i) % j->c.o;

			put(j->k, codes + output * j->k, w + 4 * at, 4 * block);
			put_ends(from, output, o + at, to);
		}
		memset(sum, 0, sizeof(sum));
		for (int64_t q = 0; q < quads; q++)
			add_words[j->variant](block, (const uint32_t *)(const void *)(w + 4 * block * q), sum);
		for (int64_t i = 0; i < block; i++)
			bias[i] = (int32_t)((uint32_t)bias[i] - (uint32_t)x_zero * (uint32_t)sum[i]);
	}
}

enum ql_status ql_conv_depth_prepare(
	struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p, struct ql_conv_tiles *t)
{
	int64_t block = 16L * j->ctx->kernels->depth_i8->lanes, all = ql_ceil_div(channels_of(j), block) * block;
	int64_t bytes = ql_mul64(ql_mul64(4, quads_of(j)), all);
	int8_t *w = ql_scratch_array(j->ctx, bytes, 1);
	struct ql_conv_ends e;
	struct ql_tensor *codes = NULL;
	bool fine = false;
	enum ql_status status = w ? QL_OK : QL_ERR_MEMORY;

	*t = (struct ql_conv_tiles){.panels = 0};
	if (!status)
		status = ql_conv_ends_take(j->ctx, all, p->rule, &t->e);
	if (!status)
		status = ql_conv_factors(j, call, p, j->c.o, j->c.o, &e, &fine);
	if (status || !fine)
		return status;
	status = ql_conv_int_codes(j->ctx, call->in[1], &codes);
	if (!status) {
		memset(w, 0, (size_t)bytes);
		place(j, p->x_zero, ql_tensor_data(codes), &e, w, &t->e);
		t->w = w;
	}
	ql_tensor_release(j->ctx, codes);
	return status;
}

/* ---- sums ---- */

/* Some pixels of a row, `n` channels of each. */
static void run_block(const struct job *j, int64_t pixels, int n, const struct ql_conv_i8_codes *codes,
	const uint8_t *x, const int8_t *w, uint8_t *to)
{
	const uint8_t *other = j->other ? j->other + (to - j->out) : NULL;

	for (int64_t i = 0; i < pixels; i += j->kernel->most)
		j->kernel->codes((int)ql_min64(j->kernel->most, pixels - i), n, &j->sums, codes, x + i * j->sums.step,
			w, other ? other + i * codes->pitch : NULL, to + i * codes->pitch);
}

/* One row of the result; x: the first line that it reads. */
static void run_row(const struct job *j, const uint8_t *x, uint8_t *to)
{
	int64_t block = 16L * j->kernel->lanes, row = j->c->c.window.out[1] * j->c->c.o, channels = j->codes.pitch,
		pixels = row / channels, rest = row % channels;

	for (int64_t o = 0; o < channels; o += block) {
		struct ql_conv_i8_codes codes = j->codes;
		const int8_t *w = j->t->w + 4 * j->sums.quads * o;

		ql_conv_ends_at(&j->t->e, o, &codes);
		run_block(j, pixels, (int)ql_min64(block, channels - o), &codes, x + o, w, to + o);
		if (rest) /* of a row that is one pixel, which has one block */
			run_block(j, 1, (int)rest, &codes, x + pixels * channels, w, to + pixels * channels);
	}
}

static void body(void *arg, int64_t begin, int64_t stop)
{
	struct job *j = arg;
	const struct ql_conv *c = &j->c->c;
	const struct ql_window *w = &c->window;
	int slot;
	uint8_t *copy = ql_slots_enter(&j->slots, &slot);

	for (int64_t i = begin; i < stop && !ql_stopped(j->c->ctx); i++) {
		int64_t row = i % j->blocks * j->block, image = i / j->blocks,
			rows = ql_min64(j->block, w->out[0] - row);
		uint8_t *to = j->out + (image * w->out[0] + row) * w->out[1] * c->o;

		ql_conv_lines_copy(&j->lines, image, 0, row, rows, copy);
		for (int64_t r = 0; r < rows; r++)
			run_row(j, copy + r * w->stride[0] * j->lines.pitch, to + r * w->out[1] * c->o);
	}
	ql_slots_leave(&j->slots, slot);
}

/* ---- plan ---- */

static void cut(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t wanted = TASKS * j->c->ctx->threads;

	j->block = ql_max64(4, (BLOCK / j->lines.pitch - ql_conv_lines_of(w, 1)) / w->stride[0] + 1);
	if (j->c->c.n < wanted)
		j->block = ql_min64(j->block, ql_max64(1, w->out[0] / ql_ceil_div(wanted, j->c->c.n)));
	j->blocks = ql_ceil_div(w->out[0], ql_min64(j->block, w->out[0]));
	j->block = ql_ceil_div(w->out[0], j->blocks);
	j->blocks = ql_ceil_div(w->out[0], j->block);
}

/* Where the taps are, with the first one in the place of those that fill up the last quad. */
static enum ql_status set_taps(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t quads = quads_of(j->c), *at = ql_scratch_array(j->c->ctx, ql_mul64(4, quads), sizeof(*at));

	if (!at)
		return QL_ERR_MEMORY;
	for (int64_t t = 0; t < 4 * quads; t++)
		at[t] = t >= j->c->k ? 0
				     : t / w->kernel[1] * w->dilation[0] * j->lines.pitch +
					       t % w->kernel[1] * w->dilation[1] * j->c->c.o;
	j->codes.pitch = channels_of(j->c);
	j->sums = (struct ql_depth_i8_sums){.step = w->stride[1] * j->codes.pitch, .quads = quads, .at = at};
	return QL_OK;
}

enum ql_status ql_conv_depth(const struct ql_conv_int *c, const struct ql_conv_params *p, const struct ql_conv_tiles *t,
	const struct ql_conv_sum *sum, const struct ql_tensor *x)
{
	const struct ql_window *w = &c->c.window;
	struct job j = {.c = c,
		.t = t,
		.kernel = c->ctx->kernels->depth_i8,
		.lines = ql_conv_lines_from(c, x, c->c.c),
		.codes = ql_conv_codes_of(c, p, sum),
		.other = sum->other,
		.out = ql_tensor_data(c->out)};
	int64_t tasks;
	double ns;
	enum ql_status status;

	j.lines.repeat = c->rows;
	j.lines.pitch *= c->rows;
	status = set_taps(&j);
	if (status)
		return status;
	cut(&j);
	status = ql_slots_take(c->ctx,
		(uint64_t)ql_add64(ql_mul64(ql_conv_lines_of(w, j.block), j.lines.pitch), QL_CONV_SLACK), &j.slots);
	if (status)
		return status;
	tasks = c->c.n * j.blocks;
	ns = (double)(c->c.n * c->pixels * c->c.o) * (double)(4 * j.sums.quads + START) / j.kernel->rate;
	status = ql_parallel_for(c->ctx, tasks, ql_max64(1, (int64_t)(TASK_NS * (double)tasks / (ns + 1))),
		ns < 1e18 ? (int64_t)ns : INT64_MAX, body, &j);
	return status ? status : ql_images_declare(c->ctx, c->out);
}
