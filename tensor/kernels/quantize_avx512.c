/* SPDX-License-Identifier: MIT
 * Encode with 512-bit vectors; the row loop is quantize_simd.h's.
 */
#include <immintrin.h>

#define LANES 16
#define BLOCK 64
#define ALIGN 64
#define FLOATS __m512
#define INTS __m512i
#define LOADF(p) _mm512_loadu_ps(p)
#define LOADI(p) _mm512_loadu_si512(p)
#define SPREADF(x) _mm512_set1_ps(x)
#define SPREADI(x) _mm512_set1_epi32(x)
#define ZERO_F() _mm512_setzero_ps()
#define TO_FLOAT(i) _mm512_cvtepi32_ps(i)
#define SUB_I(a, b) _mm512_sub_epi32(a, b)
#define ADD_I(a, b) _mm512_add_epi32(a, b)
#define SUB_F(a, b) _mm512_sub_ps(a, b)
#define OR_F(a, b) _mm512_or_ps(a, b)
#define DIV(a, b) _mm512_div_ps(a, b)
#define DIV_BY(a, b, inverse) divide_by(a, b, inverse)
#define ANY(f) (_mm512_test_epi32_mask(_mm512_castps_si512(f), _mm512_castps_si512(f)) != 0)
#define CONVERT(v, lo, hi) convert(v, lo, hi)
#define PACK_8(a, b, c, d) pack_8(a, b, c, d)
#define PACK_16(a, b) pack_16(a, b)
#define MIN(a, b) _mm512_min_ps(a, b)
#define MAX(a, b) _mm512_max_ps(a, b)
#define ADD_F(a, b) _mm512_add_ps(a, b)
#define STOREF(p, v) _mm512_storeu_ps(p, v)
#define JOIN_MIN(v) join_min(v)
#define JOIN_MAX(v) join_max(v)
#define NEGATIVE(v) _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)

/* a / b, with its bits, if inverse is 1 / b rounded to nearest and nothing is denormal: two corrections by exact remainders (P. Markstein,
 * Computation of elementary functions on the IBM RISC System/6000 processor, 1990, theorem 8.3; the first makes the estimate, up to one
 * and a half units off, one of the two nearest numbers). Five operations of half a cycle, where a division takes 16 cycles. Quotients
 * from 2^22 on, and those that are no numbers, are only estimated: they saturate, or are the zero point. */
static inline __m512 divide_by(__m512 a, __m512 b, __m512 inverse)
{
	__m512 q = _mm512_mul_ps(a, inverse);
	__mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(q), _mm512_set1_ps(0x1p22f), _CMP_LT_OQ);

	q = _mm512_mask3_fmadd_ps(_mm512_fnmadd_ps(b, q, a), inverse, q, small);
	return _mm512_mask3_fmadd_ps(_mm512_fnmadd_ps(b, q, a), inverse, q, small);
}

static inline __m512i convert(__m512 v, __m512 lo, __m512 hi)
{
	__mmask16 number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);

	return _mm512_maskz_cvtps_epi32(number, _mm512_min_ps(_mm512_max_ps(v, lo), hi));
}

/* Low bytes of 64 codes in order: the packs work within 128-bit quarters, the permutation restores the order. */
static inline __m512i pack_8(__m512i a, __m512i b, __m512i c, __m512i d)
{
	const __m512i low = _mm512_set1_epi32(0xff);
	const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	__m512i ab = _mm512_packus_epi32(_mm512_and_si512(a, low), _mm512_and_si512(b, low));
	__m512i cd = _mm512_packus_epi32(_mm512_and_si512(c, low), _mm512_and_si512(d, low));

	return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
}

static inline __m512i pack_16(__m512i a, __m512i b)
{
	const __m512i low = _mm512_set1_epi32(0xffff), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	__m512i ab = _mm512_packus_epi32(_mm512_and_si512(a, low), _mm512_and_si512(b, low));

	return _mm512_permutexvar_epi64(order, ab);
}

/* The extremes of 16 vectors, as lanes of one: neighbours are interleaved and compared until each has one value left. */
#define JOIN(name, op) \
	static inline __m512 name(const __m512 *v) \
	{ \
		__m512 pair[8], four[4], a, b; \
\
		for (int i = 0; i < 8; i++) \
			pair[i] = op(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]), \
				_mm512_unpackhi_ps(v[2 * i], v[2 * i + 1])); \
		for (int i = 0; i < 4; i++) { \
			__m512d c = _mm512_castps_pd(pair[2 * i]), d = _mm512_castps_pd(pair[2 * i + 1]); \
\
			four[i] = op(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)), \
				_mm512_castpd_ps(_mm512_unpackhi_pd(c, d))); \
		} \
		a = op(_mm512_shuffle_f32x4(four[0], four[1], 0x88), _mm512_shuffle_f32x4(four[0], four[1], 0xdd)); \
		b = op(_mm512_shuffle_f32x4(four[2], four[3], 0x88), _mm512_shuffle_f32x4(four[2], four[3], 0xdd)); \
		return op(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)); \
	}
JOIN(join_min, _mm512_min_ps)
JOIN(join_max, _mm512_max_ps)

#include "tensor/kernels/quantize_simd.h"

extern const struct ql_quantize quantize_avx512;
const struct ql_quantize quantize_avx512 = {
	.name = "quantize_avx512", .to_8 = to_8, .to_16 = to_16, .ranges = ranges, .to_signs = to_signs};
