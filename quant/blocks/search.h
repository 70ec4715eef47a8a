/* SPDX-License-Identifier: MIT
 * Searches for the scale of least weighted squared error, in all lanes at once. They follow ggml's searches operation
 * by operation: a trial rounds all elements with one inverse scale, and least squares gives the best scale for these
 * codes. Only the inverse scale of the best trial is kept; its codes are computed again at the end.
 */
#ifndef QUOLL_QUANT_BLOCKS_SEARCH_H
#define QUOLL_QUANT_BLOCKS_SEARCH_H

#include "quant/blocks/lanes.h"

#define QL_SEARCH_MOST 32     /* elements of a block */
#define QL_SEARCH_ZERO 1e-15f /* a block of smaller values has scale 0 */

/* ---- x = q * scale, q in -top .. top - 1 ---- */

/* Sums of w x q and w q q for the codes q of the trial. */
QL_INLINE void ql_search_sums(
	int n, int top, const f8 *x, const f8 *w, const f8 *wx, const f8 *inverse, f8 *sum_xq, f8 *sum_qq)
{
	f8 is = *inverse, sx = is - is, sq;

	sx = FLOATS((i8)sx & 0);
	sq = sx;
	for (int i = 0; i < n; i++) {
		i8 l = ROUND(is * x[i]);
		f8 q;

		ql_lanes_clamp(&l, -top, top - 1);
		q = FLOATS(l);
		sx += wx[i] * q;
		sq += (w[i] * q) * q;
	}
	*sum_xq = sx;
	*sum_qq = sq;
}

/* Codes are q + top; 0 in blocks of zeros. */
QL_INLINE void ql_search_signed(int n, int top, const f8 *x, const f8 *w, i8 *code, f8 *scale)
{
	f8 most, value, wx[QL_SEARCH_MOST], inverse, chosen, best, found, sx, sq;
	i8 zero;

	ql_lanes_largest(x, n, &most, &value);
	for (int i = 0; i < n; i++)
		wx[i] = w[i] * x[i];
	zero = most < QL_SEARCH_ZERO;
	inverse = chosen = -(float)top / value;
	ql_search_sums(n, top, x, w, wx, &inverse, &sx, &sq);
	found = PICK(sq != 0, sx / sq, FLOATS(zero & 0));
	best = found * sx;
	for (int k = -9; k <= 9; k++) {
		i8 better;

		if (k == 0)
			continue;
		inverse = -((float)top + 0.1f * (float)k) / value;
		ql_search_sums(n, top, x, w, wx, &inverse, &sx, &sq);
		better = (sq > 0) & (sx * sx > best * sq);
		chosen = PICK(better, inverse, chosen);
		found = PICK(better, sx / sq, found);
		best = PICK(better, found * sx, best);
	}
	for (int i = 0; i < n; i++) {
		code[i] = ROUND(chosen * x[i]);
		ql_lanes_clamp(&code[i], -top, top - 1);
		code[i] = ~zero & (code[i] + top);
	}
	*scale = (f8)(~zero & (i8)found);
}

/* ---- x = q * scale + minimum, q in 0 .. top, minimum <= 0 ---- */

struct ql_search_grid {
	float least, step; /* of the trials: inverse scales (least + step * k + top) / range */
	int steps;
	bool absolute; /* weighted |error| instead of its square */
};

struct ql_search_fixed {
	f8 sum_w, sum_x, most;
};

QL_INLINE void ql_search_codes(int n, int top, const f8 *x, const f8 *inverse, const f8 *minimum, f8 *q)
{
	f8 is = *inverse, low = *minimum;

	for (int i = 0; i < n; i++) {
		i8 l = ROUND(is * (x[i] - low));

		ql_lanes_clamp(&l, 0, top);
		q[i] = FLOATS(l);
	}
}

QL_INLINE void ql_search_error(
	int n, bool absolute, const f8 *x, const f8 *w, const f8 *q, const f8 *scale, const f8 *minimum, f8 *out)
{
	f8 s = *scale, m = *minimum, sum = FLOATS((i8)s & 0);

	for (int i = 0; i < n; i++) {
		f8 d = (s * q[i] + m) - x[i];

		sum += w[i] * (absolute ? ABS(d) : d * d);
	}
	*out = sum;
}

/* The scale and minimum of least squares for codes q; a lane of `valid` is false if all its codes are equal. */
QL_INLINE void ql_search_solve(int n, const struct ql_search_fixed *f, const f8 *x, const f8 *w, const f8 *q, f8 *scale,
	f8 *minimum, i8 *valid)
{
	f8 zero = FLOATS((i8)f->sum_w & 0), sl = zero, sl2 = zero, sxl = zero, d, s, m;
	i8 above;

	for (int i = 0; i < n; i++) {
		f8 wq = w[i] * q[i];

		sl += wq;
		sl2 += wq * q[i];
		sxl += wq * x[i];
	}
	d = f->sum_w * sl2 - sl * sl;
	s = (f->sum_w * sxl - f->sum_x * sl) / d;
	m = (sl2 * f->sum_x - sl * sxl) / d;
	above = m > 0;
	*minimum = (f8)(~above & (i8)m);
	*scale = PICK(above, sxl / sl2, s);
	*valid = d > 0;
}

/* Gives the codes, the scale and the negated minimum. A block with no values above its minimum has scale 0. */
QL_INLINE void ql_search_minimum(
	int n, int top, const struct ql_search_grid *g, const f8 *x, const f8 *w, i8 *code, f8 *scale, f8 *minimum)
{
	struct ql_search_fixed fixed = {.sum_w = w[0], .sum_x = w[0] * x[0], .most = x[0]};
	f8 low = x[0], start, range, inverse, found, best, from, q[QL_SEARCH_MOST];
	i8 flat;

	for (int i = 1; i < n; i++) {
		low = PICK(x[i] < low, x[i], low);
		fixed.most = PICK(x[i] > fixed.most, x[i], fixed.most);
		fixed.sum_w += w[i];
		fixed.sum_x += w[i] * x[i];
	}
	start = low = (f8)(~(low > 0) & (i8)low);
	flat = fixed.most <= low;
	range = fixed.most - low;
	inverse = (float)top / range;
	found = 1.0f / inverse;
	from = low;
	ql_search_codes(n, top, x, &inverse, &low, q);
	ql_search_error(n, g->absolute, x, w, q, &found, &low, &best);
	for (int k = 0; k <= g->steps; k++) {
		f8 trial = ((g->least + g->step * (float)k) + (float)top) / (fixed.most - low), s, m, error;
		i8 better;

		ql_search_codes(n, top, x, &trial, &low, q);
		ql_search_solve(n, &fixed, x, w, q, &s, &m, &better);
		ql_search_error(n, g->absolute, x, w, q, &s, &m, &error);
		better &= error < best;
		inverse = PICK(better, trial, inverse);
		from = PICK(better, low, from);
		best = PICK(better, error, best);
		found = PICK(better, s, found);
		low = PICK(better, m, low); /* later trials start from it */
	}
	for (int i = 0; i < n; i++) {
		code[i] = ROUND(inverse * (x[i] - from));
		ql_lanes_clamp(&code[i], 0, top);
		code[i] &= ~flat;
	}
	*scale = (f8)(~flat & (i8)found);
	*minimum = -PICK(flat, start, low);
}

#endif
