/* SPDX-License-Identifier: MIT
 * The sums of a panel to codes in 512-bit registers, for conv_i8_avx512vnni.c and conv_i8_amx.c.
 */
#ifndef QUOLL_TENSOR_CONV_I8_CODES_AVX512_H
#define QUOLL_TENSOR_CONV_I8_CODES_AVX512_H

#include <immintrin.h>

#include "tensor/kernels/fixed_times.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

QL_INLINE __m512 bounded(__m512 v, float lo, float hi)
{
	return _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(lo)), _mm512_set1_ps(hi));
}

#define V(op) _mm512_##op
#define _mm512_set1_epi64x(x) _mm512_set1_epi64(x)
QL_FIXED_TIMES(__m512i, V, _mm512_and_si512, _mm512_xor_si512)
#undef _mm512_set1_epi64x
#undef V

/* The product of a multiplier, bounded. */
QL_INLINE __m512i fixed(const struct ql_conv_i8_codes *c, __m512i v, int o)
{
	v = fixed_times(v, _mm512_loadu_si512(c->multiplier + o), _mm512_loadu_si512(c->right + o));
	v = _mm512_max_epi32(v, _mm512_set1_epi32((int32_t)c->lo));
	return _mm512_min_epi32(v, _mm512_set1_epi32((int32_t)c->hi));
}

/* The sum with the second operand; v: the codes minus their zero point. */
QL_INLINE __m512i add_other(const struct ql_conv_i8_codes *c, __m512i v, __mmask16 mask, const uint8_t *other)
{
	__m128i bytes = _mm_xor_si128(_mm_maskz_loadu_epi8(mask, other), _mm_set1_epi8((char)c->flip));
	__m512i b = _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(c->other_zero));
	__m512 sum = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(v), _mm512_set1_ps(c->by[0])),
		_mm512_mul_ps(_mm512_cvtepi32_ps(b), _mm512_set1_ps(c->by[1])));

	return _mm512_cvtps_epi32(bounded(sum, c->sum_lo, c->sum_hi));
}

QL_INLINE void finish(
	const struct ql_conv_i8_codes *c, const __m512i *sum, int o, int columns, const uint8_t *other, uint8_t *to)
{
	__mmask16 mask = (__mmask16)(columns - o >= QL_CONV_PANEL ? 0xffffu : (1u << (columns - o)) - 1);
	__m512i v = _mm512_add_epi32(*sum, _mm512_loadu_si512(c->bias + o));

	v = _mm512_max_epi32(v, _mm512_set1_epi32(c->least));
	v = c->multiplier
		    ? fixed(c, v, o)
		    : _mm512_cvtps_epi32(bounded(
			      _mm512_mul_ps(_mm512_cvtepi32_ps(v), _mm512_loadu_ps(c->factor + o)), c->lo, c->hi));
	v = other ? _mm512_add_epi32(add_other(c, v, mask, other + o), _mm512_set1_epi32(c->sum_zero))
		  : _mm512_add_epi32(v, _mm512_set1_epi32(c->zero));
	_mm_mask_storeu_epi8(to + o, mask, _mm512_cvtepi32_epi8(v));
}

#endif
