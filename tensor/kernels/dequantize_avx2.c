/* SPDX-License-Identifier: MIT
 * Decode with 256-bit vectors; the row loop is dequantize_simd.h's.
 */
#include <immintrin.h>

#define LANES 8
#define ALIGN 32
#define FLOATS __m256
#define INTS __m256i
#define LOADF(p) _mm256_loadu_ps(p)
#define LOADI(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREADF(x) _mm256_set1_ps(x)
#define SPREADI(x) _mm256_set1_epi32(x)
#define TO_FLOAT(i) _mm256_cvtepi32_ps(i)
#define SUB_I(a, b) _mm256_sub_epi32(a, b)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define SIGNED(bits, a, b) signed_by(bits, a, b)
#define STOREF(p, v) _mm256_storeu_ps(p, v)
#define STREAMF(p, v) _mm256_stream_ps(p, v)
#define WIDEN_int8_t(p) _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define WIDEN_uint8_t(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define WIDEN_int16_t(p) _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define WIDEN_uint16_t(p) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))

static inline __m256 signed_by(unsigned bits, __m256 a, __m256 b)
{
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), bit);

	return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit)));
}

#include "tensor/kernels/dequantize_simd.h"

extern const struct ql_dequantize dequantize_avx2;
const struct ql_dequantize dequantize_avx2 = {
	.name = "dequantize_avx2",
	.from_i8 = from_i8,
	.from_u8 = from_u8,
	.from_i16 = from_i16,
	.from_u16 = from_u16,
	.from_signs = from_signs,
};
