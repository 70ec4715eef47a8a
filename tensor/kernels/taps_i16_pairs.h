/* SPDX-License-Identifier: MIT
 * Sums of taps with the instruction that multiplies pairs of 16-bit numbers and adds the two products, for vectors of any
 * length. A pair of neighbours (x[p], x[p + 1]) is one 32-bit lane of a load at p. With step 2 the lanes of one load belong
 * to consecutive sums. With step 1 those of a load at p belong to every other sum, and those of a load at p + 1 to the
 * sums between them; ZIP puts both in order.
 *
 * The including file defines VECTOR, LANES (32-bit lanes), LOAD(p), SPREAD(p) (one pair of weights into every lane),
 * DOT(sum, x, w), ZERO(), STORE(p, v), ZIP(even, odd, to).
 */
#ifndef QUOLL_TENSOR_TAPS_I16_PAIRS_H
#define QUOLL_TENSOR_TAPS_I16_PAIRS_H

#include "tensor/kernels/kernels.h"
#include "tensor/simd.h"

#define MOST 4 /* vectors of sums in registers */

/* step and vectors are constants wherever this is inlined */
QL_INLINE void block(const int step, const int vectors, int64_t pairs, const int16_t *x, const int64_t *at, const int16_t *w,
	int32_t *to)
{
	VECTOR sum[MOST];

#pragma GCC unroll 4
	for (int v = 0; v < vectors; v++)
		sum[v] = ZERO();
	for (int64_t l = 0; l < pairs; l++) {
		const int16_t *from = x + at[l];
		VECTOR by = SPREAD(w + 2 * l);

#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			sum[v] = DOT(sum[v], LOAD(from + (step == 2 ? v : v / 2) * 2 * LANES + (step == 2 ? 0 : v % 2)), by);
	}
#pragma GCC unroll 4
	for (int v = 0; v < vectors; v++)
		if (step == 2)
			STORE(to + v * LANES, sum[v]);
		else if (v % 2)
			ZIP(sum[v - 1], sum[v], to + (v - 1) * LANES);
}

/* least: the fewest vectors that give sums in order */
QL_INLINE void run(const int step, const int least, int64_t n, int64_t pairs, const int16_t *x, const int64_t *at,
	const int16_t *w, int32_t *to)
{
	int64_t i = 0;

	for (; i + (MOST - least) * LANES < n; i += MOST * LANES)
		block(step, MOST, pairs, x + i * step, at, w, to + i);
	for (; i < n; i += least * LANES)
		block(step, least, pairs, x + i * step, at, w, to + i);
}

static void sums(int64_t n, int step, int64_t pairs, const int16_t *x, const int64_t *at, const int16_t *w, int32_t *to)
{
	if (step == 2)
		run(2, 1, n, pairs, x, at, w, to);
	else
		run(1, 2, n, pairs, x, at, w, to);
}

#endif
