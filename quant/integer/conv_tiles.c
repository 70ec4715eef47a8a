/* SPDX-License-Identifier: MIT
 * Convolution from codes to codes without unfolding. A task computes some rows of the result of one image: it copies the lines that
 * these rows read, channels last, unsigned and with the zero point of x around, into a block that fits the first or second level of
 * cache; the window of a pixel is then, for each row of taps, one run of bytes, and the windows of neighbours are a constant apart:
 * the operand of tiles (tensor/kernels/kernels.h, conv_i8), which multiply, add, scale, round and store the codes of some pixels and
 * outputs at once. Where x is unsigned, has its channels last and needs no padding, nothing is copied.
 *
 * Panels of outputs are the outer loop of a task and pixels the inner one, so that the weights of a panel stay in cache. A kernel
 * that takes whole blocks has its own order; where lines are short, it gets the pixels of some of them in turn, a tap a segment. If
 * there are fewer images than tasks wanted, the rows of an image are divided, or the panels if the weights are larger than the
 * image.
 */
#include "quant/integer/conv_int.h"
#include "tensor/conv/conv.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define BLOCK ((int64_t)24 << 10) /* bytes of a task's copy: half of a first-level cache of 48 KiB */
#define BLOCKS (2 * BLOCK)        /* of a kernel of blocks, which reads some lines of it at a time */
#define PIXELS 64                 /* that fill the tiles of such a kernel */
#define LINES 4                   /* images of a task whose rows are one line: they fill the tiles */
#define FOLD_CHANNELS 32          /* a multiple of them fills the tiles of weights tap by tap */
#define TASKS 2                   /* per thread, at least */
#define SLACK 64                  /* behind the copy: the last quad of a window may end there */
#define TASK_NS 3000
#define LEAST_WORK 10 /* steps of a tile that cost as much as its start and end, roughly */

struct job {
	const struct ql_conv_int *c;
	const struct ql_conv_tiles *t;
	const struct ql_conv_i8 *kernel;
	struct ql_conv_lines lines;
	const uint8_t *other; /* NULL: nothing is added */
	uint8_t *out;
	bool in_place;                        /* tiles read x itself */
	int64_t block, blocks, parts, images; /* rows of a task; tasks of `images` images: blocks * parts */
	int64_t copy;                         /* bytes of an image's lines in a task */
	int pixels, panels;                   /* of a tile */
	struct ql_conv_i8_sums sums;
	struct ql_conv_i8_codes codes;
	struct ql_slots slots;
};

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

/* So many rows of each image as lines: one, where the windows of a row follow those of the row before; of more than one image, one
 * for each. */
static struct ql_conv_i8_lines lines_of(const struct job *j, int64_t images, int64_t rows)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t width = w->out[1], fold = j->lines.fold, apart = w->stride[0] * j->lines.pitch * fold;

	if (fold == 1 && apart == width * j->sums.step)
		return (struct ql_conv_i8_lines){.lines = 1, .pixels = width * rows, .fold = 1};
	return (struct ql_conv_i8_lines){.lines = images > 1 ? images : rows / fold,
		.pixels = width * fold,
		.apart = images > 1 ? j->copy : apart,
		.to_apart = (images > 1 ? rows : 1) * width * j->codes.pitch,
		.fold = (int)fold,
		.fold_apart = rows / fold * width * j->codes.pitch};
}

/* Some panels of a group: their biases, factors and weights. */
static struct ql_conv_i8_codes codes_at(const struct job *j, int64_t group, int64_t panel, const int8_t **w)
{
	struct ql_conv_i8_codes codes = j->codes;
	int64_t at = group * j->t->panels + panel;

	ql_conv_ends_at(&j->t->e, at * QL_CONV_PANEL, &codes);
	*w = j->t->w + at * j->t->panel;
	return codes;
}

/* Rows of a group's result, from panel `from` to `end`; x: the first line that they read. */
static void tile_rows(const struct job *j, const uint8_t *x, int64_t group, const struct ql_conv_i8_lines *l,
	int64_t from, int64_t end, uint8_t *to)
{
	to += group * j->c->rows;
	for (int64_t p = from; p < end; p += j->panels) {
		int64_t first = p * QL_CONV_PANEL;
		int columns = (int)ql_min64(ql_min64(j->panels, end - p) * QL_CONV_PANEL, j->c->rows - first);
		const int8_t *panel;
		struct ql_conv_i8_codes codes = codes_at(j, group, p, &panel);

		for (int64_t r = 0; r < l->lines; r++)
			tile_row(j, x + r * l->apart, l->pixels, columns, &codes, panel, to + r * l->to_apart + first);
	}
}

/* The same by a kernel of blocks. */
static void block_rows(const struct job *j, const uint8_t *x, int64_t group, const struct ql_conv_i8_lines *l,
	int64_t from, int64_t end, uint8_t *to)
{
	int64_t first = from * QL_CONV_PANEL;
	int columns = (int)(ql_min64(end * QL_CONV_PANEL, j->c->rows) - first);
	const int8_t *panel;
	struct ql_conv_i8_codes codes;

	if (columns <= 0)
		return;
	codes = codes_at(j, group, from, &panel);
	to += group * j->c->rows + first;
	j->kernel->block(l, columns, &j->sums, &codes, x, panel, j->other ? j->other + (to - j->out) : NULL, to);
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
			image = i / j->parts / j->blocks * j->images, images = ql_min64(j->images, c->n - image),
			rows = ql_min64(j->block, w->out[0] - row);
		int64_t per = ql_ceil_div(ql_ceil_div(j->t->panels, j->panels), j->parts) * j->panels;
		struct ql_conv_i8_lines l = lines_of(j, images, rows);

		for (int64_t g = 0; g < c->groups; g++) {
			const uint8_t *x = copy;

			if (j->in_place)
				x = j->lines.x + (image * w->in[0] + row * w->stride[0]) * j->lines.pitch;
			for (int64_t k = 0; k < images && !j->in_place; k++)
				ql_conv_lines_copy(&j->lines, image + k, g, row, rows, copy + k * j->copy);
			(j->kernel->block ? block_rows : tile_rows)(j, x, g, &l, part * per,
				ql_min64(j->t->panels, (part + 1) * per),
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
	int64_t image = j->c->c.c * w->in[0] * w->in[1], most = j->kernel->block ? BLOCKS : BLOCK;

	j->block = ql_max64(1, (most / j->lines.pitch - ql_conv_lines_of(w, 1)) / w->stride[0] + 1);
	j->block = ql_min64(w->out[0], ql_max64(j->block, ql_min64(w->out[0], 4)));
	j->parts = 1;
	if (j->c->c.n < wanted) {
		int64_t each = ql_ceil_div(wanted, j->c->c.n);

		if (j->kernel->block ? w->out[0] * w->out[1] < each * PIXELS : j->t->panel * j->t->panels > image)
			j->parts = ql_min64(groups_of_panels, each);
		j->block = ql_min64(j->block, ql_max64(1, ql_ceil_div(w->out[0] * j->parts, each)));
	}
	j->blocks = ql_ceil_div(w->out[0], j->block);
	j->block = ql_ceil_div(ql_ceil_div(w->out[0], j->blocks), j->lines.fold) * j->lines.fold;
	j->blocks = ql_ceil_div(w->out[0], j->block);
	j->copy = j->in_place ? 0
			      : ql_mul64(ql_conv_lines_of(w, j->block / j->lines.fold), j->lines.pitch * j->lines.fold);
	j->images =
		j->lines.fold == w->out[0] && j->lines.fold > 1 ? ql_max64(1, ql_min64(LINES, j->c->c.n / wanted)) : 1;
}

/* Short lines of a kernel of blocks, if their taps may be apart: some of them in turn fill its tiles. */
static int64_t fold_of(const struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t fold = ql_min64(QL_CONV_FOLD / w->out[1], w->out[0]);

	if (!j->kernel->block || j->in_place || w->stride[1] != 1 || j->lines.channels % FOLD_CHANNELS)
		return 1;
	while (fold > 1 && w->out[0] % fold)
		fold--;
	return ql_max64(1, fold);
}

static enum ql_status set_windows(struct job *j)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t fold = j->lines.fold;
	bool together = w->dilation[1] == 1 && fold == 1;
	int64_t across = together ? 1 : w->kernel[1], segments = w->kernel[0] * across;
	int64_t *at = ql_scratch_array(j->c->ctx, segments, sizeof(*at));

	if (!at)
		return QL_ERR_MEMORY;
	for (int64_t k = 0; k < segments; k++)
		at[k] = (k / across * w->dilation[0] * j->lines.pitch +
				k % across * w->dilation[1] * j->lines.channels) *
			fold;
	j->sums = (struct ql_conv_i8_sums){.step = w->stride[1] * j->lines.channels,
		.quads = ql_ceil_div((together ? w->kernel[1] : 1) * j->lines.channels, 4),
		.at = at,
		.segments = (int)segments,
		.panel = j->t->panel};
	return QL_OK;
}

static bool reads_in_place(const struct job *j)
{
	const struct ql_window *w = &j->c->c.window;

	return j->lines.last && !j->lines.flip && j->c->c.groups == 1 && j->lines.channels % 4 == 0 && !w->before[0] &&
	       !w->before[1] && !w->after[0] && !w->after[1];
}

const struct ql_conv_i8 *ql_conv_tiles_kernel(const struct ql_conv_int *c)
{
	const struct ql_conv_i8 *k = c->ctx->kernels->conv_i8, *other = NULL;
	struct ql_conv_layout l = ql_conv_layout_of(c);

	if (k->instead)
		other = k->instead(l.taps / l.per, l.quads, l.rows);
	return other ? other : k;
}

enum ql_status ql_conv_tiles(const struct ql_conv_int *c, const struct ql_conv_params *p, const struct ql_conv_tiles *t,
	const struct ql_conv_sum *sum, const struct ql_tensor *x)
{
	const struct ql_window *w = &c->c.window;
	struct job j = {.c = c,
		.t = t,
		.kernel = ql_conv_tiles_kernel(c),
		.lines = ql_conv_lines_from(c, x, c->c.c / c->c.groups),
		.codes = ql_conv_codes_of(c, p, sum),
		.other = sum->other};
	int64_t tasks;
	double ns;
	enum ql_status status;

	j.out = ql_tensor_data(c->out);
	j.in_place = reads_in_place(&j);
	j.lines.pitch = (j.in_place ? w->in[1] : ql_conv_reach_of(w)) * j.lines.channels;
	j.lines.fold = fold_of(&j);
	status = set_windows(&j);
	if (status)
		return status;
	j.panels = 1;
	if (!j.kernel->block)
		choose_tile(&j);
	cut(&j);
	status = ql_slots_take(c->ctx, (uint64_t)ql_add64(ql_mul64(j.images, j.copy), SLACK), &j.slots);
	if (status)
		return status;
	tasks = ql_ceil_div(c->c.n, j.images) * j.blocks * j.parts;
	ns = (double)(c->c.n * c->pixels * c->c.o) * (double)(j.sums.quads * j.sums.segments * 4 + 4 * LEAST_WORK) /
	     j.kernel->rate;
	status = ql_parallel_for(c->ctx, tasks, ql_max64(1, (int64_t)(TASK_NS * (double)tasks / (ns + 1))),
		ns < 1e18 ? (int64_t)ns : INT64_MAX, body, &j);
	return status ? status : ql_images_declare(c->ctx, c->out);
}
