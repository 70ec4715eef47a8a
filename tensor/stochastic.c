/* SPDX-License-Identifier: MIT
 * Stochastic rounding to integers and to grids.
 */
#include "tensor/stochastic.h"

#include <math.h>

#include "tensor/rng.h"

#define UNIT 0x1p-24f /* of the random numbers in [0, 1) */

static int64_t round_integer(float t, float u, int32_t lo, int32_t hi, int32_t zero)
{
	float down = floorf(t), v = down + (u < t - down ? 1 : 0), least = (float)(lo - zero),
	      most = (float)(hi - zero);

	if (isnan(t))
		return zero;
	return (int64_t)(v < least ? least : v > most ? most : v) + zero;
}

/* The last rank whose value is <= t; the first rank if there is none. */
static int rank_below(const struct ql_grid_table *g, float t)
{
	int low = 0, high = g->ranks - 1;

	while (low < high) {
		int middle = (low + high + 1) / 2;

		if (g->value[g->code[middle]] <= t)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static int64_t round_grid(const struct ql_grid_table *g, float t, float u)
{
	int rank;
	float low, high;

	if (isnan(t))
		return g->nan;
	rank = rank_below(g, t);
	if (rank == g->ranks - 1)
		return g->code[rank];
	low = g->value[g->code[rank]];
	high = g->value[g->code[rank + 1]];
	return g->code[u * (high - low) < t - low ? rank + 1 : rank];
}

void ql_stochastic_encode(const struct ql_stochastic *s, const struct ql_affine *p, const struct ql_grid_table *grid,
	const int32_t *lo, const int32_t *hi, int64_t position, int64_t n, const float *x, int64_t *code)
{
	uint32_t words[QL_STOCHASTIC_MOST + 8];
	int64_t skip = position % 4;

	ql_rng_words(s->variant, s->seed, s->first + (uint64_t)(position / 4), (skip + n + 3) / 4, words);
	for (int64_t i = 0; i < n; i++) {
		int64_t k = p->each ? i : 0;
		float t = x[i] / p->scale[k], u = (float)(words[skip + i] >> 8) * UNIT;

		code[i] = grid ? round_grid(grid, t, u)
			       : round_integer(t, u, lo ? lo[i] : p->lo, hi ? hi[i] : p->hi, p->zero ? p->zero[k] : 0);
	}
}
