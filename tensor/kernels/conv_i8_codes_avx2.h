/* SPDX-License-Identifier: MIT
 * The sums of a panel to codes in 256-bit registers, for conv_i8_avx2.c and conv_i8_avxvnni.c.
 */
#ifndef QUOLL_TENSOR_CONV_I8_CODES_AVX2_H
#define QUOLL_TENSOR_CONV_I8_CODES_AVX2_H

#include <string.h>

#include "tensor/kernels/fixed_times.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

QL_INLINE __m256i rounded(__m256 v, float lo, float hi)
{
	return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(lo)), _mm256_set1_ps(hi)));
}

#define V(op) _mm256_##op
QL_FIXED_TIMES(__m256i, V, _mm256_and_si256, _mm256_xor_si256)
#undef V

QL_INLINE __m256i numbers(const int32_t *from)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* The product of a multiplier, bounded. */
QL_INLINE __m256i fixed(const struct ql_conv_i8_codes *c, __m256i v, int o)
{
	v = fixed_times(v, numbers(c->multiplier + o), numbers(c->right + o));
	v = _mm256_max_epi32(v, _mm256_set1_epi32((int32_t)c->lo));
	return _mm256_min_epi32(v, _mm256_set1_epi32((int32_t)c->hi));
}

/* The sum with 8 codes of the second operand; v: the codes minus their zero point. */
QL_INLINE __m256i add_other(const struct ql_conv_i8_codes *c, __m256i v, const uint8_t *other)
{
	__m128i bytes =
		_mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)other), _mm_set1_epi8((char)c->flip));
	__m256i b = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(c->other_zero));
	__m256 sum = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(v), _mm256_set1_ps(c->by[0])),
		_mm256_mul_ps(_mm256_cvtepi32_ps(b), _mm256_set1_ps(c->by[1])));

	return rounded(sum, c->sum_lo, c->sum_hi);
}

QL_INLINE __m256i half(const struct ql_conv_i8_codes *c, __m256i sum, int o, const uint8_t *other)
{
	__m256i v = _mm256_max_epi32(_mm256_add_epi32(sum, numbers(c->bias + o)), _mm256_set1_epi32(c->least));

	v = c->multiplier ? fixed(c, v, o)
			  : rounded(_mm256_mul_ps(_mm256_cvtepi32_ps(v), _mm256_loadu_ps(c->factor + o)), c->lo, c->hi);
	return other ? _mm256_add_epi32(add_other(c, v, other), _mm256_set1_epi32(c->sum_zero))
		     : _mm256_add_epi32(v, _mm256_set1_epi32(c->zero));
}

/* The low bytes of 16 numbers. */
QL_INLINE __m128i narrow(__m256i lo, __m256i hi)
{
	__m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xd8);

	both = _mm256_and_si256(both, _mm256_set1_epi16(255));
	return _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

QL_INLINE void finish(
	const struct ql_conv_i8_codes *c, const __m256i *sum, int o, int columns, const uint8_t *other, uint8_t *to)
{
	int n = columns - o < QL_CONV_PANEL ? columns - o : QL_CONV_PANEL;
	uint8_t bytes[QL_CONV_PANEL] = {0};
	__m128i v;

	if (other && n < QL_CONV_PANEL) {
		memcpy(bytes, other + o, (size_t)n);
		other = bytes - o;
	}
	v = narrow(half(c, sum[0], o, other ? other + o : NULL), half(c, sum[1], o + 8, other ? other + o + 8 : NULL));
	if (n == QL_CONV_PANEL) {
		_mm_storeu_si128((__m128i *)(void *)(to + o), v);
		return;
	}
	_mm_storeu_si128((__m128i *)(void *)bytes, v);
	memcpy(to + o, bytes, (size_t)n);
}

#endif
