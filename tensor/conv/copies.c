/* SPDX-License-Identifier: MIT
 * Rows whose length is a multiple of the vectors have one copy for each phase of the steps, with padding on both sides: vectors then
 * never reach from one row to the next, and taps read them at any column. Other rows have a copy for each column at which a tap reads
 * first, without padding behind them, so that pixels of several rows are consecutive. (256 to 512 channels of 8 x 8, Emerald Rapids, share
 * of the peak: in place with masks 0.70, so 0.88.)
 */
#include "tensor/conv/copies.h"

#include <string.h>

#include "tensor/vmath/simd.h"

#define LONGEST (1 << 20) /* rows, and numbers of one */

typedef float half __attribute__((vector_size(32)));

/* One copy of some planes: `rows` rows of n numbers, with zeros between them and on both sides. */
struct fill {
	const float *from;
	int64_t planes, far; /* numbers from plane to plane */
	int64_t row, step;   /* to the next row, and number, of them */
	int64_t rows, n;
	float *to;
	int64_t apart, pitch;  /* from copy to copy, row to row */
	int64_t before, after; /* zeros */
};

QL_INLINE void zeros(float *to, int64_t n)
{
	for (int64_t x = 0; x < n; x++)
		to[x] = 0;
}

/* n < 16 numbers, in two parts that overlap */
QL_INLINE void copy_rest(const float *from, int64_t n, float *to)
{
	if (n >= 8) {
		memcpy(to, from, 8 * sizeof(*to));
		memcpy(to + n - 8, from + n - 8, 8 * sizeof(*to));
	} else if (n >= 4) {
		memcpy(to, from, 4 * sizeof(*to));
		memcpy(to + n - 4, from + n - 4, 4 * sizeof(*to));
	} else {
		for (int64_t x = 0; x < n; x++)
			to[x] = from[x];
	}
}

QL_INLINE void copy_row(const float *from, int64_t n, int64_t step, float *to)
{
	int64_t x = 0;

	(void)step;
	for (; x + 16 <= n; x += 16)
		memcpy(to + x, from + x, 16 * sizeof(*to));
	if (x < n)
		copy_rest(from + x, n - x, to + x);
}

/* Every second number */
QL_INLINE void pick_row(const float *from, int64_t n, int64_t step, float *to)
{
	int64_t x = 0;
	half a, b, even;

	(void)step;
	for (; x + 8 <= n; x += 8) {
		memcpy(&a, from + 2 * x, sizeof(a));
		memcpy(&b, from + 2 * x + 7, sizeof(b)); /* no further than its last number */
		even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
		memcpy(to + x, &even, sizeof(even));
	}
	for (; x < n; x++)
		to[x] = from[2 * x];
}

QL_INLINE void step_row(const float *from, int64_t n, int64_t step, float *to)
{
	for (int64_t x = 0; x < n; x++)
		to[x] = from[x * step];
}

#define FILL(row_of) \
	for (int64_t p = 0; p < f->planes; p++) { \
		const float *from = f->from + p * f->far; \
		float *to = f->to + p * f->apart; \
\
		zeros(to, f->before); \
		to += f->before; \
		for (int64_t r = 0; r < f->rows; r++, from += f->row, to += f->pitch) { \
			row_of(from, f->n, f->step, to); \
			zeros(to + f->n, r + 1 < f->rows ? f->pitch - f->n : f->after); \
		} \
	}
QL_SIMD(void, fill_all, (const struct fill *f), {FILL(copy_row)})
QL_SIMD(void, fill_second, (const struct fill *f), {FILL(pick_row)})

static void fill_steps(const struct fill *f)
{
	FILL(step_row)
}

/* The first i with first + i * step >= least */
static int64_t reach(int64_t least, int64_t first, int64_t step)
{
	return first >= least ? 0 : ql_ceil_div(least - first, step);
}

/* Copy i; its planes are `apart`. */
static void fill(
	const struct ql_copies *c, int i, const float *from, int64_t planes, int64_t first, float *to, int64_t apart)
{
	const struct ql_unfold *u = c->u;
	int64_t sy = u->step[0], sx = u->step[1], y = c->row[i] + first * sy, x = c->first[i];
	int64_t top = reach(0, y, sy), left = reach(0, x, sx), numbers = c->rows * c->pitch;
	struct fill f = {.from = from + (y + top * sy) * u->w + x + left * sx,
		.planes = planes,
		.far = u->h * u->w,
		.row = sy * u->w,
		.step = sx,
		.rows = ql_min64(c->rows, reach(u->h, y, sy)) - top,
		.n = ql_min64(c->pitch, reach(u->w, x, sx)) - left,
		.to = to,
		.apart = apart,
		.pitch = c->pitch,
		.before = top * c->pitch + left};

	if (f.n <= 0 || f.rows <= 0) {
		for (int64_t p = 0; p < planes; p++)
			memset(to + p * apart, 0, (size_t)numbers * sizeof(*to));
		return;
	}
	f.after = numbers - f.before - (f.rows - 1) * c->pitch - f.n;
	if (sx == 1)
		fill_all[u->variant](&f);
	else if (sx == 2)
		fill_second[u->variant](&f);
	else
		fill_steps(&f);
}

void ql_copies_fill(const struct ql_copies *c, const float *from, int64_t planes, int64_t top, float *to, int64_t apart)
{
	for (int i = 0; i < c->n; i++)
		fill(c, i, from, planes, top, to + i * c->rows * c->pitch, apart);
}

/* x = quotient * step + rest, 0 <= rest */
static int64_t quotient(int64_t x, int64_t step)
{
	return x >= 0 ? x / step : -ql_ceil_div(-x, step);
}

/* The copy of that phase of rows and that first column, which is added if it is new. */
static int copy_of(struct ql_copies *c, int64_t row, int64_t first)
{
	int i = 0;

	while (i < c->n && (c->row[i] != row || c->first[i] != first))
		i++;
	if (i < QL_COPIES) {
		c->row[i] = row;
		c->first[i] = first;
	}
	c->n = ql_max64(c->n, i + 1);
	return i;
}

struct ql_copies ql_copies_of(const struct ql_unfold *u, int64_t rows, int vector, int64_t *at)
{
	int64_t sy = u->step[0], sx = u->step[1], above = quotient(u->low[0], sy), left = quotient(u->low[1], sx);
	bool whole = u->gw % vector == 0;
	struct ql_copies c = {.u = u,
		.rows = rows + quotient(u->high[0], sy) - above,
		.pitch = u->gw + (whole ? quotient(u->high[1], sx) - left : 0)};

	if (c.rows > LONGEST || c.pitch > LONGEST)
		return c;
	for (int64_t t = 0; t < u->taps && c.n <= QL_COPIES; t++) {
		int64_t y = quotient(u->y[t], sy), x = quotient(u->x[t], sx);
		int64_t first = whole ? u->x[t] - (x - left) * sx : u->x[t];
		int i = copy_of(&c, u->y[t] - (y - above) * sy, first);

		at[t] = (i * c.rows + y - above) * c.pitch + (whole ? x - left : 0);
	}
	c.n = c.n > QL_COPIES ? 0 : c.n;
	return c;
}
