/* SPDX-License-Identifier: MIT
 * Strips of codes: a strip is one vector. 8 rows of integer sums and their floats take half of the registers; a table of 16 values is
 * a register, looked up by one vpermps, which reads the low 4 bits of a lane only.
 */
#include <immintrin.h>
#include <stdint.h>

/* 32 values in two registers, eight times; a gather takes twice as long. */
static inline __m512 look_256(const float *values, __m512i code)
{
	__mmask16 by_32 = _mm512_test_epi32_mask(code, _mm512_set1_epi32(32)),
		  by_64 = _mm512_test_epi32_mask(code, _mm512_set1_epi32(64));
	__mmask16 by_128 = _mm512_test_epi32_mask(code, _mm512_set1_epi32(128));
	__m512 x[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		x[i] = _mm512_permutex2var_ps(
			_mm512_loadu_ps(values + 32 * i), code, _mm512_loadu_ps(values + 32 * i + 16));
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		x[i] = _mm512_mask_blend_ps(by_32, x[2 * i], x[2 * i + 1]);
	x[0] = _mm512_mask_blend_ps(by_64, x[0], x[1]);
	x[1] = _mm512_mask_blend_ps(by_64, x[2], x[3]);
	return _mm512_mask_blend_ps(by_128, x[0], x[1]);
}

/* The half of it. */
static inline __m512 look_128(const float *values, __m512i code)
{
	__mmask16 by_32 = _mm512_test_epi32_mask(code, _mm512_set1_epi32(32)),
		  by_64 = _mm512_test_epi32_mask(code, _mm512_set1_epi32(64));
	__m512 x[4];

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		x[i] = _mm512_permutex2var_ps(
			_mm512_loadu_ps(values + 32 * i), code, _mm512_loadu_ps(values + 32 * i + 16));
	x[0] = _mm512_mask_blend_ps(by_32, x[0], x[1]);
	x[1] = _mm512_mask_blend_ps(by_32, x[2], x[3]);
	return _mm512_mask_blend_ps(by_64, x[0], x[1]);
}

/* The part of 16 bytes of a table, in each quarter. */
static inline __m512i part_of(const uint8_t *table, int i)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
}

/* Bit 7 after a shift chooses. */
static inline __m512i look_64_bytes(const uint8_t *table, __m512i v)
{
	__mmask64 by_16 = _mm512_movepi8_mask(_mm512_slli_epi16(v, 3)),
		  by_32 = _mm512_movepi8_mask(_mm512_slli_epi16(v, 2));
	__m512i low = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(part_of(table, 0), v), by_16, part_of(table, 1), v);
	__m512i high = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(part_of(table, 2), v), by_16, part_of(table, 3), v);

	return _mm512_mask_blend_epi8(by_32, low, high);
}

#define INTS __m512i
#define FLOATS __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_si512(p)
#define SPREAD(x) _mm512_set1_epi32(x)
#define SHIFT(v, n) _mm512_srlv_epi32(v, _mm512_set1_epi32(n))
#define SHIFT_UP(v, n) _mm512_sllv_epi32(v, _mm512_set1_epi32(n))
#define OR(a, b) _mm512_or_si512(a, b)
#define AS_FLOATS(v) _mm512_castsi512_ps(v)
#define AS_INTS(v) _mm512_castps_si512(v)
#define AND(a, b) _mm512_and_si512(a, b)
#define ADD_8(a, b) _mm512_add_epi8(a, b)
#define SUB_8(a, b) _mm512_sub_epi8(a, b)
#define ABS_8(v) _mm512_abs_epi8(v)
#define BLEND(at, bit, a, b) _mm512_mask_blend_ps(_mm512_test_epi32_mask(at, _mm512_set1_epi32(bit)), a, b)
#define ADD_I(a, b) _mm512_add_epi32(a, b)
#define SUB_I(a, b) _mm512_sub_epi32(a, b)
#define MUL_I(a, b) _mm512_mullo_epi32(a, b)
#define TO_FLOATS(v) _mm512_cvtepi32_ps(v)
#define BYTES(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define HALVES(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define LOAD_F(p) _mm512_loadu_ps(p)
#define STORE_F(p, v) _mm512_storeu_ps(p, v)
#define SPREAD_F(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define LOOK_16(values, v) _mm512_permutexvar_ps(v, _mm512_loadu_ps(values))
#define LOOK_32(values, v) _mm512_permutex2var_ps(_mm512_loadu_ps(values), v, _mm512_loadu_ps((values) + 16))
#define LOOK_128(values, v) look_128(values, v)
#define LOOK_256(values, v) look_256(values, v)
#define LOOK_16_BYTES(table, v) _mm512_shuffle_epi8(part_of(table, 0), v)
#define LOOK_64_BYTES(table, v) look_64_bytes(table, v)
#define ADD_16(sum, a, b) _mm512_dpwssd_epi32(sum, a, b)
#define DOT(bits, sum, u, s) _mm512_dpbusd_epi32(sum, u, s)

#include "tensor/kernels/gemm_coded_vectors.h"

extern const struct ql_gemm_coded gemm_coded_avx512vnni;
const struct ql_gemm_coded gemm_coded_avx512vnni = {
	.name = "gemm_coded_avx512vnni", .rate = 16, .floats = floats, .row = row, .dots = dots};
