/* SPDX-License-Identifier: MIT
 * Sums of taps with the instruction that multiplies pairs of 16-bit numbers and adds the two products, for vectors
 * of any length. A pair of neighbours (x[p], x[p + 1]) is one 32-bit lane of a load at p. With step 2 the lanes of
 * one load belong to consecutive sums. With step 1 those of a load at p belong to every other sum, and those of a
 * load at p + 1 to the sums between them; ZIP interleaves both.
 *
 * The including file defines VECTOR, LANES (32-bit lanes), LOAD(p), SPREAD(p) (one pair of weights into every
 * lane), DOT(sum, x, w), ZERO(), STORE(p, v), ZIP(even, odd, to), SUMS (vectors of sums that fit the registers: 8
 * or 16).
 */
#ifndef QUOLL_TENSOR_TAPS_I16_PAIRS_H
#define QUOLL_TENSOR_TAPS_I16_PAIRS_H

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MOST 4 /* vectors of an output in registers */

/* step, outputs and vectors are constants wherever this is inlined, so that `sum` stays in registers */
QL_INLINE void block(const int step, const int outputs, const int vectors, int64_t pairs, const int16_t *x,
	const int64_t *at, const int16_t *w, int32_t *to, int64_t pitch)
{
	VECTOR sum[QL_TAPS_OUTPUTS][MOST];

#pragma GCC unroll 4
	for (int o = 0; o < outputs; o++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			sum[o][v] = ZERO();
	for (int64_t l = 0; l < pairs; l++) {
		const int16_t *from = x + at[l];
		VECTOR number[MOST];

#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			number[v] = LOAD(from + (step == 2 ? v : v / 2) * 2 * LANES + (step == 2 ? 0 : v % 2));
#pragma GCC unroll 4
		for (int o = 0; o < outputs; o++) {
			VECTOR by = SPREAD(w + 2 * (o * pairs + l));

#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				sum[o][v] = DOT(sum[o][v], number[v], by);
		}
	}
#pragma GCC unroll 4
	for (int o = 0; o < outputs; o++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			if (step == 2)
				STORE(to + o * pitch + v * LANES, sum[o][v]);
			else if (v % 2)
				ZIP(sum[o][v - 1], sum[o][v], to + o * pitch + (v - 1) * LANES);
}

/* most, least: vectors that fit the registers, and the fewest that give ordered sums */
QL_INLINE void run(const int step, const int outputs, const int most, int64_t n, int64_t pairs, const int16_t *x,
	const int64_t *at, const int16_t *w, int32_t *to, int64_t pitch)
{
	const int least = step == 2 ? 1 : 2;
	int64_t i = 0;

	for (; i + (most - least) * LANES < n; i += most * LANES)
		block(step, outputs, most, pairs, x + i * step, at, w, to + i, pitch);
	for (; i < n; i += least * LANES)
		block(step, outputs, least, pairs, x + i * step, at, w, to + i, pitch);
}

#define RUN(outputs, most) \
	do { \
		if (step == 2) \
			run(2, outputs, most, n, pairs, x, at, w, to, pitch); \
		else \
			run(1, outputs, most, n, pairs, x, at, w, to, pitch); \
	} while (0)

static void sums(int64_t n, int step, int outputs, int64_t pairs, const int16_t *x, const int64_t *at, const int16_t *w,
	int32_t *to, int64_t pitch)
{
	for (int o = 0; o < outputs % 4; o++, w += 2 * pairs, to += pitch)
		RUN(1, MOST);
	if (outputs == 4)
		RUN(4, SUMS / 4);
}

#endif
