/* SPDX-License-Identifier: MIT
 * Decode with 512-bit vectors; the row loop is dequantize_simd.h's.
 */
#include <immintrin.h>

#define LANES 16
#define ALIGN 64
#define FLOATS __m512
#define INTS __m512i
#define LOADF(p) _mm512_loadu_ps(p)
#define LOADI(p) _mm512_loadu_si512(p)
#define SPREADF(x) _mm512_set1_ps(x)
#define SPREADI(x) _mm512_set1_epi32(x)
#define TO_FLOAT(i) _mm512_cvtepi32_ps(i)
#define SUB_I(a, b) _mm512_sub_epi32(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define SIGNED(bits, a, b) _mm512_mask_blend_ps(bits, b, a)
#define STOREF(p, v) _mm512_storeu_ps(p, v)
#define STREAMF(p, v) _mm512_stream_ps(p, v)
#define WIDEN_int8_t(p) _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define WIDEN_uint8_t(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define WIDEN_int16_t(p) _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define WIDEN_uint16_t(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))

#include "tensor/kernels/dequantize_simd.h"

extern const struct ql_dequantize dequantize_avx512;
const struct ql_dequantize dequantize_avx512 = {
	.name = "dequantize_avx512",
	.from_i8 = from_i8,
	.from_u8 = from_u8,
	.from_i16 = from_i16,
	.from_u16 = from_u16,
	.from_signs = from_signs,
};
