/* SPDX-License-Identifier: MIT
 * Products of four bytes without VNNI, for depth_i8_tile.h. vpmaddubsw would saturate, so bytes are widened to 16 bits in place,
 * even and odd ones separately. The including file defines VECTOR, V(op) and AND(a, b).
 */
#ifndef QUOLL_TENSOR_DEPTH_I8_PAIRS_H
#define QUOLL_TENSOR_DEPTH_I8_PAIRS_H

#include "tensor/vmath/simd.h"

#define STEP struct pair
#define WEIGHTS(p) widened(LOAD(p))
#define DOT(sum, u, s) add_four(sum, u, s)

struct pair {
	VECTOR even, odd;
};

/* signed bytes 0 and 2, and 1 and 3, of each lane as 16-bit numbers */
QL_INLINE struct pair widened(VECTOR v)
{
	return (struct pair){V(srai_epi16)(V(slli_epi16)(v, 8), 8), V(srai_epi16)(v, 8)};
}

QL_INLINE VECTOR add_four(VECTOR sum, VECTOR x, struct pair w)
{
	VECTOR even = AND(x, V(set1_epi16)(255)), odd = V(srli_epi16)(x, 8);

	sum = V(add_epi32)(sum, V(madd_epi16)(even, w.even));
	return V(add_epi32)(sum, V(madd_epi16)(odd, w.odd));
}

#endif
