/* SPDX-License-Identifier: MIT
 * Even bins of magnitudes. The bin of a value is the floor of |x| * bins / top, exactly: bins is a power of two, so
 * the product is exact, and a quotient of two floats that is not an integer is further from one than the rounding
 * of doubles.
 */
#include "quant/ranges/even.h"

#include <math.h>
#include <string.h>

#include "quant/ranges/range_error.h"

static void count(struct ql_even *e, const float *x, const struct ql_strand *s)
{
	double bins = e->bins, top = e->top;

	for (int64_t run = 0; run < s->runs; run++)
		for (int64_t i = 0; i < s->n; i++) {
			double a = fabs((double)x[s->offset + run * s->between + i * s->stride]);
			int at;

			if (!(a <= top))
				continue; /* not finite */
			at = (int)(a * bins / top);
			e->count[at < e->bins ? at : e->bins - 1]++;
		}
}

const struct ql_even *ql_even_take(struct ql_even *e, double most, const float *x, const struct ql_strand *s)
{
	memset(e->count, 0, (size_t)e->bins * sizeof(*e->count));
	e->top = most;
	if (most > 0)
		count(e, x, s);
	return e;
}

/* Least power of two above `most`. */
static double top_of(double most)
{
	int exponent;

	frexp(most, &exponent);
	return ldexp(1, exponent);
}

/* Merges pairs of bins until the top is at least `top`. */
static void grow(struct ql_even *e, double top)
{
	for (; e->top < top; e->top *= 2) {
		int half = e->bins / 2;

		for (int i = 0; i < half; i++)
			e->count[i] = e->count[2 * i] + e->count[2 * i + 1];
		memset(e->count + half, 0, (size_t)half * sizeof(*e->count));
	}
}

static void reach(struct ql_even *e, double top)
{
	if (e->top == 0)
		e->top = top;
	grow(e, top);
}

void ql_even_update(struct ql_even *e, double most, const float *x, const struct ql_strand *s)
{
	/* with zeros only, any top puts them in the first bin */
	reach(e, most > 0 ? top_of(most) : e->top > 0 ? e->top : 0x1p-149);
	count(e, x, s);
}

void ql_even_merge(struct ql_even *e, const struct ql_even *other)
{
	int shift = 0;

	if (other->top == 0)
		return;
	reach(e, other->top);
	for (double top = other->top; top < e->top; top *= 2)
		shift++;
	for (int i = 0; i < other->bins; i++)
		e->count[shift < 31 ? i >> shift : 0] += other->count[i];
}

void ql_even_bins(const struct ql_even *e, double most, int bins, double *out)
{
	double width = e->top / most * bins / e->bins; /* width of a bin of e in bins of the result */

	memset(out, 0, (size_t)bins * sizeof(*out));
	for (int i = 0; i < e->bins; i++)
		if (e->count[i] > 0)
			ql_bins_add(i * width, (i + 1) * width, e->count[i], bins, out);
}
