/* SPDX-License-Identifier: MIT
 * Encode with 256-bit vectors; the row loop is quantize_simd.h's.
 */
#include <immintrin.h>

#define LANES 8
#define BLOCK 32
#define ALIGN 32
#define FLOATS __m256
#define INTS __m256i
#define LOADF(p) _mm256_loadu_ps(p)
#define LOADI(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREADF(x) _mm256_set1_ps(x)
#define SPREADI(x) _mm256_set1_epi32(x)
#define ZERO_F() _mm256_setzero_ps()
#define TO_FLOAT(i) _mm256_cvtepi32_ps(i)
#define SUB_I(a, b) _mm256_sub_epi32(a, b)
#define ADD_I(a, b) _mm256_add_epi32(a, b)
#define SUB_F(a, b) _mm256_sub_ps(a, b)
#define OR_F(a, b) _mm256_or_ps(a, b)
#define DIV(a, b) _mm256_div_ps(a, b)
#define ANY(f) (!_mm256_testz_si256(_mm256_castps_si256(f), _mm256_castps_si256(f)))
#define CONVERT(v, lo, hi) convert(v, lo, hi)
#define PACK_8(a, b, c, d) pack_8(a, b, c, d)
#define PACK_16(a, b) pack_16(a, b)
#define MIN(a, b) _mm256_min_ps(a, b)
#define MAX(a, b) _mm256_max_ps(a, b)
#define ADD_F(a, b) _mm256_add_ps(a, b)
#define STOREF(p, v) _mm256_storeu_ps(p, v)
#define JOIN_MIN(v) join_min(v)
#define JOIN_MAX(v) join_max(v)
#define NEGATIVE(v) _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)

static inline __m256i convert(__m256 v, __m256 lo, __m256 hi)
{
	__m256 number = _mm256_cmp_ps(v, v, _CMP_ORD_Q);
	__m256i code = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, lo), hi));

	return _mm256_and_si256(code, _mm256_castps_si256(number));
}

/* Low bytes of 32 codes in order: the packs work within 128-bit halves, the permutation restores the order. */
static inline __m256i pack_8(__m256i a, __m256i b, __m256i c, __m256i d)
{
	const __m256i low = _mm256_set1_epi32(0xff), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i ab = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
	__m256i cd = _mm256_packus_epi32(_mm256_and_si256(c, low), _mm256_and_si256(d, low));

	return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ab, cd), order);
}

static inline __m256i pack_16(__m256i a, __m256i b)
{
	const __m256i low = _mm256_set1_epi32(0xffff);
	__m256i ab = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));

	return _mm256_permute4x64_epi64(ab, _MM_SHUFFLE(3, 1, 2, 0));
}

/* The extremes of 8 vectors, as lanes of one: neighbours are interleaved and compared until each has one value left. */
#define JOIN(name, op) \
	static inline __m256 name(const __m256 *v) \
	{ \
		__m256 pair[4], four[2]; \
\
		for (int i = 0; i < 4; i++) \
			pair[i] = op(_mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]), \
				_mm256_unpackhi_ps(v[2 * i], v[2 * i + 1])); \
		for (int i = 0; i < 2; i++) { \
			__m256d c = _mm256_castps_pd(pair[2 * i]), d = _mm256_castps_pd(pair[2 * i + 1]); \
\
			four[i] = op(_mm256_castpd_ps(_mm256_unpacklo_pd(c, d)), \
				_mm256_castpd_ps(_mm256_unpackhi_pd(c, d))); \
		} \
		return op(_mm256_permute2f128_ps(four[0], four[1], 0x20), \
			_mm256_permute2f128_ps(four[0], four[1], 0x31)); \
	}
JOIN(join_min, _mm256_min_ps)
JOIN(join_max, _mm256_max_ps)

#include "tensor/kernels/quantize_simd.h"

extern const struct ql_quantize quantize_avx2;
const struct ql_quantize quantize_avx2 = {
	.name = "quantize_avx2", .to_8 = to_8, .to_16 = to_16, .ranges = ranges, .to_signs = to_signs};
