/* SPDX-License-Identifier: MIT
 * Strips of codes: a strip is two vectors. A table of 16 values is two registers, chosen by bit 3 of the code.
 */
#ifndef QUOLL_TENSOR_GEMM_CODED_AVX2_H
#define QUOLL_TENSOR_GEMM_CODED_AVX2_H

#include <immintrin.h>
#include <stdint.h>

/* The part of 16 bytes of a table, in each half. */
static inline __m256i part_of(const uint8_t *table, int i)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
}

/* Bit 7 after a shift chooses. */
static inline __m256i look_64_bytes(const uint8_t *table, __m256i v)
{
	__m256i by_16 = _mm256_slli_epi16(v, 3), by_32 = _mm256_slli_epi16(v, 2);
	__m256i low = _mm256_blendv_epi8(
		_mm256_shuffle_epi8(part_of(table, 0), v), _mm256_shuffle_epi8(part_of(table, 1), v), by_16);
	__m256i high = _mm256_blendv_epi8(
		_mm256_shuffle_epi8(part_of(table, 2), v), _mm256_shuffle_epi8(part_of(table, 3), v), by_16);

	return _mm256_blendv_epi8(low, high, by_32);
}

#define INTS __m256i
#define FLOATS __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREAD(x) _mm256_set1_epi32(x)
#define SHIFT(v, n) _mm256_srlv_epi32(v, _mm256_set1_epi32(n))
#define SHIFT_UP(v, n) _mm256_sllv_epi32(v, _mm256_set1_epi32(n))
#define OR(a, b) _mm256_or_si256(a, b)
#define AS_FLOATS(v) _mm256_castsi256_ps(v)
#define AS_INTS(v) _mm256_castps_si256(v)
#define AND(a, b) _mm256_and_si256(a, b)
#define ADD_8(a, b) _mm256_add_epi8(a, b)
#define ADD_I(a, b) _mm256_add_epi32(a, b)
#define SUB_I(a, b) _mm256_sub_epi32(a, b)
#define MUL_I(a, b) _mm256_mullo_epi32(a, b)
#define TO_FLOATS(v) _mm256_cvtepi32_ps(v)
#define BYTES(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define HALVES(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_F(p) _mm256_loadu_ps(p)
#define STORE_F(p, v) _mm256_storeu_ps(p, v)
#define SPREAD_F(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define LOOK_16(values, v) \
	_mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_loadu_ps(values), v), \
		_mm256_permutevar8x32_ps(_mm256_loadu_ps((values) + 8), v), \
		_mm256_castsi256_ps(_mm256_slli_epi32(v, 28)))
#define LOOK_32(values, v) \
	_mm256_blendv_ps(LOOK_16(values, v), LOOK_16((values) + 16, v), _mm256_castsi256_ps(_mm256_slli_epi32(v, 27)))
#define LOOK_256(values, v) _mm256_i32gather_ps(values, v, 4)

#define LOOK_16_BYTES(table, v) _mm256_shuffle_epi8(part_of(table, 0), v)
#define LOOK_64_BYTES(table, v) look_64_bytes(table, v)

#endif
