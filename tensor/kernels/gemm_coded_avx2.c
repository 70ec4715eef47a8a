/* SPDX-License-Identifier: MIT
 * Strips of codes without VNNI. Products of 4-bit codes are added in pairs in 16 bits (2 * 15 * 128 fits); those of 8 bits might
 * saturate, so that even and odd bytes are widened and multiplied apart: exact.
 */
#include "tensor/kernels/gemm_coded_avx2.h"

#define ADD_16(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define DOT(bits, sum, u, s) ((bits) == 4 ? dot_4(sum, u, s) : dot_8(sum, u, s))

static inline __m256i dot_4(__m256i sum, __m256i u, __m256i s)
{
	return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}

static inline __m256i dot_8(__m256i sum, __m256i u, __m256i s)
{
	__m256i even = _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8), odd = _mm256_srai_epi16(s, 8);

	sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)), even));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(u, 8), odd));
}

#include "tensor/kernels/gemm_coded_vectors.h"

extern const struct ql_gemm_coded gemm_coded_avx2;
const struct ql_gemm_coded gemm_coded_avx2 = {
	.name = "gemm_coded_avx2", .rate = 6, .floats = floats, .row = row, .dots = dots};
