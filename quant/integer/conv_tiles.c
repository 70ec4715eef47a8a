/* SPDX-License-Identifier: MIT
 * Convolution from codes to codes without unfolding. A task computes some rows of the result of one image: it copies the
 * lines that these rows read, channels last, unsigned and with the zero point of x around, into a block that fits the
 * first or second level of cache; the window of a pixel is then, for each row of taps, one run of bytes, and the windows
 * of neighbours are a constant apart: the operand of tiles (tensor/kernels/kernels.h, conv_i8), which multiply, add,
 * scale, round and store the codes of some pixels and outputs at once. Where x is unsigned, has its channels last and
 * needs no padding, nothing is copied.
 *
 * Panels of outputs are the outer loop of a task and pixels the inner one, so that the weights of a panel stay in cache.
 * If there are fewer images than tasks wanted, the rows of an image are divided, or the panels if the weights are
 * larger than the image.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/conv/conv.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/transpose.h"

#define BLOCK ((int64_t)24 << 10) /* bytes of a task's copy: half of a first-level cache of 48 KiB */
#define TASKS 2                   /* per thread, at least */
#define SLACK 64                  /* behind the copy: the last quad of a window may end there */
#define TASK_NS 3000
#define LEAST_WORK 10 /* steps of a tile that cost as much as its start and end, roughly */

struct job {
	const struct ql_conv_int *c;
	const struct ql_conv_tiles *t;
	const struct ql_conv_i8 *kernel;
	const uint8_t *x;
	const uint8_t *other; /* NULL: nothing is added */
	uint8_t *out;
	bool last, in_place; /* x has its channels last; tiles read x itself */
	uint8_t flip;        /* to make codes of x unsigned */
	int64_t channels;    /* per group */
	int64_t pitch;       /* bytes of a line that tiles read */
	int64_t block, blocks, parts;
	int pixels, panels; /* of a tile */
	struct ql_conv_i8_sums sums;
	struct ql_conv_i8_codes codes;
	struct ql_slots slots;
};

/* ---- lines ---- */

static int64_t lines_of(const struct ql_window *w, int64_t rows)
{
	return (rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
}

/* Pixels of a line that the windows of a row read. */
static int64_t reach_of(const struct ql_window *w)
{
	return (w->out[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

QL_SIMD(void, copy_flipped, (int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to), {
	QL_INDEPENDENT
	for (int64_t i = 0; i < n; i++)
		to[i] = from[i] ^ flip;
})

/* Puts the channels of n pixels, which are `plane` apart, side by side. */
static void gather(const struct job *j, int64_t n, const uint8_t *from, int64_t plane, uint8_t *to)
{
	ql_transpose_bytes(n, j->channels, from, plane, to, j->channels);
	if (j->flip)
		copy_flipped[j->c->variant](n * j->channels, to, j->flip, to);
}

/* Copies n pixels of line y of an image, from pixel 0 on. */
static void copy_pixels(const struct job *j, int64_t image, int64_t group, int64_t y, int64_t n, uint8_t *to)
{
	const struct ql_conv *c = &j->c->c;
	int64_t width = c->window.in[1], plane = c->window.in[0] * width, first = group * j->channels;
	const uint8_t *from = j->x + image * c->c * plane;

	if (!j->last)
		gather(j, n, from + first * plane + y * width, plane, to);
	else if (c->groups == 1)
		copy_flipped[j->c->variant](n * c->c, from + y * width * c->c, j->flip, to);
	else
		for (int64_t i = 0; i < n; i++)
			copy_flipped[j->c->variant](
				j->channels, from + (y * width + i) * c->c + first, j->flip, to + i * j->channels);
}

/* Copies the lines of `rows` rows of the result from `row` on. */
static void copy_lines(const struct job *j, int64_t image, int64_t group, int64_t row, int64_t rows, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t reach = reach_of(w), left = ql_min64(w->before[1], reach), n = ql_min64(w->in[1], reach - left);
	int pad = (uint8_t)(j->c->zero ^ j->flip);

	for (int64_t l = 0; l < lines_of(w, rows); l++, to += j->pitch) {
		int64_t y = row * w->stride[0] - w->before[0] + l;

		if (y < 0 || y >= w->in[0]) {
			memset(to, pad, (size_t)j->pitch);
			continue;
		}
		memset(to, pad, (size_t)(left * j->channels));
		copy_pixels(j, image, group, y, n, to + left * j->channels);
		memset(to + (left + n) * j->channels, pad, (size_t)((reach - left - n) * j->channels));
	}
	memset(to, 0, 4); /* times weights of 0 */
}

/* ---- tiles ---- */

/* One row of pixels under some panels. */
static void tile_row(const struct job *j, const uint8_t *x, int64_t n, int columns,
	const struct ql_conv_i8_codes *codes, const int8_t *w, uint8_t *to)
{
	const uint8_t *other = j->other ? j->other + (to - j->out) : NULL;

	for (int64_t i = 0; i < n; i += j->pixels)
		j->kernel->codes((int)ql_min64(j->pixels, n - i), columns, &j->sums, codes, x + i * j->sums.step, w,
			other ? other + i * codes->pitch : NULL, to + i * codes->pitch);
}

/* Rows of a group's result, from panel `from` to `end`; x: the first line that they read. */
static void tile_rows(
	const struct job *j, const uint8_t *x, int64_t group, int64_t rows, int64_t from, int64_t end, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t width = w->out[1];
	bool line = rows > 1 && j->pitch * w->stride[0] == width * j->sums.step; /* all rows are one */

	if (line) {
		width *= rows;
		rows = 1;
	}
	for (int64_t p = from; p < end; p += j->panels) {
		int64_t at = (group * j->t->panels + p) * QL_CONV_PANEL, first = p * QL_CONV_PANEL;
		int columns = (int)ql_min64(ql_min64(j->panels, end - p) * QL_CONV_PANEL, j->c->rows - first);
		struct ql_conv_i8_codes codes = j->codes;

		codes.bias = j->t->bias + at;
		codes.factor = j->t->factor + at;
		for (int64_t r = 0; r < rows; r++)
			tile_row(j, x + r * w->stride[0] * j->pitch, width, columns, &codes,
				j->t->w + at / QL_CONV_PANEL * j->t->panel,
				to + r * width * codes.pitch + group * j->c->rows + first);
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
		int64_t part = i % j->parts, row = i / j->parts % j->blocks * j->block,
			image = i / j->parts / j->blocks, rows = ql_min64(j->block, w->out[0] - row);
		int64_t per = ql_ceil_div(ql_ceil_div(j->t->panels, j->panels), j->parts) * j->panels;

		for (int64_t g = 0; g < c->groups; g++) {
			const uint8_t *x = copy;

			if (j->in_place)
				x = j->x + (image * w->in[0] + row * w->stride[0]) * j->pitch;
			else
				copy_lines(j, image, g, row, rows, copy);
			tile_rows(j, x, g, rows, part * per, ql_min64(j->t->panels, (part + 1) * per),
				j->out + (image * w->out[0] + row) * w->out[1] * c->o);
		}
	}
	ql_slots_leave(&j->slots, slot);
}

/* ---- plan ---- */

/* The pixels and panels of a tile for rows of this width: the fewest steps of the processor, which begins two products
 * and two loads at a time. */
static void choose_tile(struct job *j)
{
	int64_t width = j->c->c.window.out[1], steps = j->sums.quads * j->sums.segments + LEAST_WORK, best = INT64_MAX;

	for (int64_t p = 1; p <= ql_min64(QL_CONV_PANELS, j->t->panels); p++) {
		int64_t tiles, pixels, cost;

		if (!j->kernel->most[p])
			continue;
		tiles = ql_ceil_div(width, j->kernel->most[p]);
		pixels = ql_ceil_div(width, tiles);
		cost = ql_max64(ql_max64(pixels * p, pixels + p), 8);
		cost = ql_mul64(ql_mul64(ql_ceil_div(j->t->panels, p) * tiles, cost), steps);
		if (cost < best) {
			best = cost;
			j->panels = (int)p;
			j->pixels = (int)pixels;
		}
	}
}

/* Rows of a task, and tasks of an image. */
static void cut(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t wanted = TASKS * j->c->ctx->threads, groups_of_panels = ql_ceil_div(j->t->panels, j->panels);
	int64_t image = j->c->c.c * w->in[0] * w->in[1];

	j->block = ql_max64(1, (BLOCK / j->pitch - lines_of(w, 1)) / w->stride[0] + 1);
	j->block = ql_min64(w->out[0], ql_max64(j->block, ql_min64(w->out[0], 4)));
	j->parts = 1;
	if (j->c->c.n < wanted) {
		int64_t each = ql_ceil_div(wanted, j->c->c.n);

		if (j->t->panel * j->t->panels > image)
			j->parts = ql_min64(groups_of_panels, each);
		j->block = ql_min64(j->block, ql_max64(1, ql_ceil_div(w->out[0] * j->parts, each)));
	}
	j->blocks = ql_ceil_div(w->out[0], j->block);
	j->block = ql_ceil_div(w->out[0], j->blocks);
	j->blocks = ql_ceil_div(w->out[0], j->block);
}

static enum ql_status set_windows(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	bool together = w->dilation[1] == 1;
	int64_t across = together ? 1 : w->kernel[1], segments = w->kernel[0] * across;
	int64_t *at = ql_scratch_array(j->c->ctx, segments, sizeof(*at));

	if (!at)
		return QL_ERR_MEMORY;
	for (int64_t k = 0; k < segments; k++)
		at[k] = k / across * w->dilation[0] * j->pitch + k % across * w->dilation[1] * j->channels;
	j->sums = (struct ql_conv_i8_sums){.step = w->stride[1] * j->channels,
		.quads = ql_ceil_div((together ? w->kernel[1] : 1) * j->channels, 4),
		.at = at,
		.segments = (int)segments,
		.panel = j->t->panel};
	return QL_OK;
}

static bool reads_in_place(const struct job *j)
{
	const struct ql_window *w = &j->c->c.window;

	return j->last && !j->flip && j->c->c.groups == 1 && j->channels % 4 == 0 && !w->before[0] && !w->before[1] &&
	       !w->after[0] && !w->after[1];
}

enum ql_status ql_conv_tiles(const struct ql_conv_int *c, const struct ql_conv_params *p, const struct ql_conv_tiles *t,
	const struct ql_conv_sum *sum, const struct ql_tensor *x)
{
	const struct ql_window *w = &c->c.window;
	struct job j = {.c = c,
		.t = t,
		.kernel = c->ctx->kernels->conv_i8,
		.channels = c->c.c / c->c.groups,
		.last = ql_images_last(x),
		.flip = c->dtype == QL_int8 ? 0x80 : 0,
		.codes = {.least = p->relu ? 0 : INT32_MIN,
			.zero = p->r.zero,
			.lo = p->r.lo,
			.hi = p->r.hi,
			.pitch = c->c.o,
			.by = {sum->by[0], sum->by[1]},
			.sum_lo = sum->r.lo,
			.sum_hi = sum->r.hi,
			.sum_zero = sum->r.zero,
			.other_zero = sum->other_zero + (sum->dtype == QL_int8 ? 128 : 0),
			.flip = sum->dtype == QL_int8 ? 0x80 : 0},
		.other = sum->other};
	int64_t tasks;
	double ns;
	enum ql_status status;

	j.x = j.last ? ql_images_data(x) : ql_tensor_data(x);
	j.out = ql_tensor_data(c->out);
	j.in_place = reads_in_place(&j);
	j.pitch = (j.in_place ? w->in[1] : reach_of(w)) * j.channels;
	status = set_windows(&j);
	if (status)
		return status;
	choose_tile(&j);
	cut(&j);
	status = ql_slots_take(
		c->ctx, j.in_place ? 1 : (uint64_t)ql_add64(ql_mul64(lines_of(w, j.block), j.pitch), SLACK), &j.slots);
	if (status)
		return status;
	tasks = c->c.n * j.blocks * j.parts;
	ns = (double)(c->c.n * c->pixels * c->c.o) * (double)(j.sums.quads * j.sums.segments * 4 + 4 * LEAST_WORK) /
	     j.kernel->rate;
	status = ql_parallel_for(c->ctx, tasks, ql_max64(1, (int64_t)(TASK_NS * (double)tasks / (ns + 1))),
		ns < 1e18 ? (int64_t)ns : INT64_MAX, body, &j);
	return status ? status : ql_images_declare(c->ctx, c->out);
}
