/* SPDX-License-Identifier: MIT
 * The tile of a depthwise convolution of codes, for vectors of any length: some pixels times one vector of channels. All sums stay
 * in registers, from the first product to the code.
 *
 * A dot product of four bytes needs four taps of a channel side by side, which are in four vectors of channels: two rounds of
 * interleaving, within 128 bits, give four vectors with 4 channels of each 128 bits. 8 shuffles and 4 products for 4 taps of all
 * channels; widening each code to 32 bits, as is usual, takes 16 and 16. Sums, biases and factors keep this order, and
 * packing the codes into bytes undoes it.
 *
 * The including file defines VECTOR, FLOATS, LANES (128-bit lanes), MOST, V(op) (the intrinsic of an op), LOAD(p), STORE(p, v), ZERO(), AND(a, b), XOR(a, b), MAX(a, b),
 * FIXED(s, m, right) (fixed_times.h; not if there are no shifts of lanes),
 * STEP (a type for what is prepared of one vector of weights), WEIGHTS(p) and DOT(sum, bytes, weights).
 */
#ifndef QUOLL_TENSOR_DEPTH_I8_TILE_H
#define QUOLL_TENSOR_DEPTH_I8_TILE_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define BLOCK (16 * LANES)
#define PART (4 * LANES) /* sums of a vector */

/* Four vectors of bytes: those of one channel side by side. */
QL_INLINE void interleave(const VECTOR *t, VECTOR *out)
{
	VECTOR lo01 = V(unpacklo_epi8)(t[0], t[1]), hi01 = V(unpackhi_epi8)(t[0], t[1]);
	VECTOR lo23 = V(unpacklo_epi8)(t[2], t[3]), hi23 = V(unpackhi_epi8)(t[2], t[3]);

	out[0] = V(unpacklo_epi16)(lo01, lo23);
	out[1] = V(unpackhi_epi16)(lo01, lo23);
	out[2] = V(unpacklo_epi16)(hi01, hi23);
	out[3] = V(unpackhi_epi16)(hi01, hi23);
}

QL_INLINE VECTOR rounded(FLOATS v, float lo, float hi)
{
	return V(cvtps_epi32)(V(min_ps)(V(max_ps)(v, V(set1_ps)(lo)), V(set1_ps)(hi)));
}

/* Those of a sum from place `at` of the block on, by factors or multipliers. */
QL_INLINE VECTOR scaled(const struct ql_conv_i8_codes *c, VECTOR v, int at)
{
#ifdef FIXED
	if (c->multiplier) {
		v = MAX(FIXED(v, LOAD(c->multiplier + at), LOAD(c->right + at)), V(set1_epi32)((int32_t)c->lo));
		return V(min_epi32)(v, V(set1_epi32)((int32_t)c->hi));
	}
#endif
	return rounded(V(mul_ps)(V(cvtepi32_ps)(v), V(loadu_ps)(c->factor + at)), c->lo, c->hi);
}

/* The sum with the second operand; v: the codes minus their zero point. */
QL_INLINE VECTOR add_other(const struct ql_conv_i8_codes *c, VECTOR v, VECTOR other)
{
	VECTOR b = V(sub_epi32)(other, V(set1_epi32)(c->other_zero));
	FLOATS sum = V(add_ps)(
		V(mul_ps)(V(cvtepi32_ps)(v), V(set1_ps)(c->by[0])), V(mul_ps)(V(cvtepi32_ps)(b), V(set1_ps)(c->by[1])));

	return V(add_epi32)(rounded(sum, c->sum_lo, c->sum_hi), V(set1_epi32)(c->sum_zero));
}

/* The codes of one pixel; those of the second operand are read in whole vectors. */
QL_INLINE VECTOR finish(const struct ql_conv_i8_codes *c, const VECTOR *sum, const uint8_t *other)
{
	VECTOR v[4], o[4] = {ZERO(), ZERO(), ZERO(), ZERO()};
	const VECTOR low = V(set1_epi16)(255);

	if (other) {
		o[0] = XOR(LOAD(other), V(set1_epi8)((char)c->flip));
		interleave((const VECTOR[]){o[0], ZERO(), ZERO(), ZERO()}, o);
	}
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		v[j] = MAX(V(add_epi32)(sum[j], LOAD(c->bias + j * PART)), V(set1_epi32)(c->least));
		v[j] = scaled(c, v[j], j * PART);
		v[j] = other ? add_other(c, v[j], o[j]) : V(add_epi32)(v[j], V(set1_epi32)(c->zero));
	}
	return V(packus_epi16)(AND(V(packs_epi32)(v[0], v[1]), low), AND(V(packs_epi32)(v[2], v[3]), low));
}

/* rows is a constant wherever this is inlined */
QL_INLINE void block(const int rows, int channels, const struct ql_depth_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, const int8_t *w, const uint8_t *other, uint8_t *to)
{
	VECTOR sum[MOST][4];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
			sum[i][j] = ZERO();
	for (int64_t q = 0; q < s->quads; q++, w += 4 * BLOCK) {
		const int64_t *at = s->at + 4 * q;
		STEP by[4];

#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
			by[j] = WEIGHTS(w + 4 * PART * j);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			const uint8_t *from = x + i * s->step;
			VECTOR t[4] = {LOAD(from + at[0]), LOAD(from + at[1]), LOAD(from + at[2]), LOAD(from + at[3])};

			interleave(t, t);
#pragma GCC unroll 4
			for (int j = 0; j < 4; j++)
				sum[i][j] = DOT(sum[i][j], t[j], by[j]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++, to += c->pitch, other += other ? c->pitch : 0) {
		uint8_t bytes[BLOCK];

		if (channels == BLOCK) {
			STORE(to, finish(c, sum[i], other));
			continue;
		}
		memset(bytes, 0, BLOCK);
		if (other)
			memcpy(bytes, other, (size_t)channels);
		STORE(bytes, finish(c, sum[i], other ? bytes : NULL));
		memcpy(to, bytes, (size_t)channels);
	}
}

#define ROWS_CASE(r) \
	case r: \
		block(r, channels, s, c, x, w, other, to); \
		break;

#define PARAMETERS \
	(int rows, int channels, const struct ql_depth_i8_sums *s, const struct ql_conv_i8_codes *c, const uint8_t *x, \
		const int8_t *w, const uint8_t *other, uint8_t *to)

#endif
