/* SPDX-License-Identifier: MIT
 * Patches and unfolded rows. A patch is copied once per block with its padding, so that the loops over the taps
 * need no bounds checks. With a step of s columns it stores columns 0, s, 2s, … of a row first, then 1, s + 1, …,
 * so that a tap reads adjacent numbers for any step. Runs are copied by 16 and by 4 numbers, also beyond their end:
 * the next run or row overwrites the excess.
 */
#include "tensor/conv/unfold.h"

#include <string.h>

#include "tensor/vmath/simd.h"

struct ql_unfold_cut ql_unfold_cut_of(const struct ql_unfold *u, int64_t pixels)
{
	int64_t image = u->gh * u->gw;
	struct ql_unfold_cut c = {.images = 1, .rows = u->gh, .columns = u->gw};

	if (image <= pixels) {
		c.images = ql_max64(1, ql_min64(u->images, pixels / ql_max64(1, image)));
	} else if (u->gw <= 2 * pixels) {
		c.rows = ql_max64(1, pixels / u->gw);
		c.rows = ql_ceil_div(u->gh, ql_ceil_div(u->gh, c.rows));
	} else {
		c.rows = 1;
		c.columns = pixels;
	}
	c.image_blocks = ql_ceil_div(u->images, c.images);
	c.row_blocks = ql_ceil_div(u->gh, ql_max64(1, c.rows));
	c.column_blocks = ql_ceil_div(u->gw, ql_max64(1, c.columns));
	c.count = c.image_blocks * c.row_blocks * c.column_blocks;
	return c;
}

struct ql_unfold_block ql_unfold_block_at(const struct ql_unfold *u, const struct ql_unfold_cut *c, int64_t i)
{
	int64_t column = i % c->column_blocks * c->columns, row = i / c->column_blocks % c->row_blocks * c->rows;
	int64_t image = i / c->column_blocks / c->row_blocks * c->images;
	struct ql_unfold_block b = {.image = image,
		.images = ql_min64(c->images, u->images - image),
		.row = row,
		.rows = ql_min64(c->rows, u->gh - row),
		.column = column,
		.columns = ql_min64(c->columns, u->gw - column)};

	b.pixels = b.images * b.rows * b.columns;
	return b;
}

/* The offset of tap t in a plane of the patch. */
static int64_t tap_at(const struct ql_unfold *u, const struct ql_patch *p, int64_t t)
{
	int64_t x = u->x[t] - u->low[1];

	return (u->y[t] - u->low[0]) * p->pitch + x % u->step[1] * p->phase + x / u->step[1];
}

bool ql_patch_of(const struct ql_unfold *u, const struct ql_unfold_cut *c, int64_t channels, int64_t *tap,
	struct ql_patch *p, uint64_t *numbers)
{
	uint64_t plane, image;

	p->rows = (c->rows - 1) * u->step[0] + u->high[0] - u->low[0] + 1;
	p->phase = ql_ceil_div((c->columns - 1) * u->step[1] + u->high[1] - u->low[1] + 1, u->step[1]);
	p->pitch = p->phase * u->step[1];
	if (!ql_size_mul((uint64_t)p->rows, (uint64_t)p->pitch, &plane) ||
		!ql_size_mul(plane, (uint64_t)channels, &image) || !ql_size_mul(image, (uint64_t)c->images, numbers) ||
		*numbers >> 61)
		return false;
	p->plane = (int64_t)plane;
	p->image = (int64_t)image;
	p->tap = tap;
	for (int64_t t = 0; t < u->taps; t++)
		tap[t] = tap_at(u, p, t);
	return true;
}

/* ---- filling ---- */

static void copy_numbers(float *to, const float *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 16 <= n; i += 16)
		memcpy(to + i, from + i, 16 * sizeof(*to));
	for (; i < n; i++)
		to[i] = from[i];
}

static void clear_numbers(float *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = 0;
}

/* Columns x, x + step, … (n of them) of a source row of w numbers, 0 outside. */
static void fill_phase(float *to, const float *row, int64_t x, int64_t step, int64_t w, int64_t n)
{
	int64_t first = x < 0 ? ql_min64(n, ql_ceil_div(-x, step)) : 0;
	int64_t last = x >= w ? first : ql_max64(first, ql_min64(n, (w - 1 - x) / step + 1));

	clear_numbers(to, first);
	if (step == 1)
		copy_numbers(to + first, row + x + first, last - first);
	else
		for (int64_t i = first; i < last; i++)
			to[i] = row[x + i * step];
	clear_numbers(to + last, n - last);
}

static void fill_row(
	const struct ql_unfold *u, const struct ql_patch *p, const float *plane, int64_t y, int64_t x, float *to)
{
	if (y < 0 || y >= u->h) {
		clear_numbers(to, p->pitch);
		return;
	}
	for (int64_t phase = 0; phase < u->step[1]; phase++)
		fill_phase(to + phase * p->phase, plane + y * u->w, x + phase, u->step[1], u->w, p->phase);
}

void ql_patch_fill(const struct ql_unfold *u, const struct ql_unfold_block *b, const struct ql_patch *p, int64_t first,
	int64_t channels, float *to)
{
	int64_t y = b->row * u->step[0] + u->low[0], x = b->column * u->step[1] + u->low[1];
	int64_t rows = (b->rows - 1) * u->step[0] + u->high[0] - u->low[0] + 1;

	for (int64_t i = 0; i < b->images; i++)
		for (int64_t c = 0; c < channels; c++) {
			const float *plane = u->from + ((b->image + i) * u->planes + first + c) * u->h * u->w;

			for (int64_t r = 0; r < rows; r++)
				fill_row(u, p, plane, y + r, x, to + i * p->image + c * p->plane + r * p->pitch);
		}
}

/* ---- unfolding ---- */

int64_t ql_unfold_runs(const struct ql_unfold *u, const struct ql_unfold_block *b, const struct ql_patch *p,
	int64_t first, int64_t n, struct ql_run *runs)
{
	int64_t count = 0;

	for (int64_t at = first, stop = first + n; at < stop; count++) {
		int64_t column = at % b->columns, row = at / b->columns % b->rows, image = at / b->columns / b->rows;

		runs[count] = (struct ql_run){.from = image * p->image + row * u->step[0] * p->pitch + column,
			.to = at - first,
			.n = ql_min64(b->columns - column, stop - at)};
		at += runs[count].n;
	}
	return count;
}

/* One tap's row. */
QL_SIMD(void, copy_runs, (const float *from, const struct ql_run *runs, int64_t n_runs, float *to), {
	for (int64_t r = 0; r < n_runs; r++) {
		const float *in = from + runs[r].from;
		float *out = to + runs[r].to;
		int64_t n = runs[r].n;
		int64_t i = 0;

		for (; i + 16 <= n; i += 16)
			memcpy(out + i, in + i, 16 * sizeof(*out));
		for (; i < n; i += 4)
			memcpy(out + i, in + i, 4 * sizeof(*out));
	}
})

void ql_unfold_rows(const struct ql_unfold *u, const struct ql_patch *p, const float *patch, int64_t channels,
	const struct ql_run *runs, int64_t n_runs, float *to, int64_t pitch)
{
	for (int64_t c = 0; c < channels; c++)
		for (int64_t t = 0; t < u->taps; t++)
			copy_runs[u->variant](
				patch + c * p->plane + p->tap[t], runs, n_runs, to + (c * u->taps + t) * pitch);
}
