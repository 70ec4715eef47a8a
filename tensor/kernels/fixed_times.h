/* SPDX-License-Identifier: MIT
 * The product of sums and factors in fixed point with two roundings (quant/integer/fixed.h, double), for a shift to the right, in vectors:
 * QL_FIXED_TIMES(vector, V, AND, XOR) defines fixed_times(sums, multipliers, shifts) for vectors of 32-bit lanes, where V(op) is the
 * intrinsic of an op.
 *
 * The high half of the doubled product, rounded, is floor((s * m + 2^30) / 2^31) for either sign. It has 32 bits, so a logical shift
 * of the 64-bit products gives it.
 */
#ifndef QUOLL_TENSOR_FIXED_TIMES_H
#define QUOLL_TENSOR_FIXED_TIMES_H

#include "tensor/vmath/simd.h"

#define QL_FIXED_TIMES(vector, V, AND, XOR) \
	QL_INLINE vector fixed_times(vector s, vector m, vector right) \
	{ \
		const vector half = V(set1_epi64x)(1 << 30), low = V(set1_epi64x)(0xffffffff), one = V(set1_epi32)(1); \
		vector even = V(add_epi64)(V(mul_epi32)(s, m), half); \
		vector odd = V(add_epi64)(V(mul_epi32)(V(srli_epi64)(s, 32), V(srli_epi64)(m, 32)), half); \
		vector high = XOR(AND(V(srli_epi64)(even, 31), low), V(slli_epi64)(V(srli_epi64)(odd, 31), 32)); \
		vector mask = V(sub_epi32)(V(sllv_epi32)(one, right), one); \
		vector most = V(add_epi32)(V(srli_epi32)(mask, 1), V(srli_epi32)(high, 31)); \
		vector above = V(srli_epi32)(V(sub_epi32)(most, AND(high, mask)), 31); \
\
		return V(add_epi32)(V(srav_epi32)(high, right), above); \
	}

#endif
