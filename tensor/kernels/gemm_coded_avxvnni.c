/* SPDX-License-Identifier: MIT
 * Strips of codes with AVX-VNNI.
 */
#include "tensor/kernels/gemm_coded_avx2.h"

#define ADD_16(sum, a, b) _mm256_dpwssd_avx_epi32(sum, a, b)
#define DOT(bits, sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)

#include "tensor/kernels/gemm_coded_vectors.h"

extern const struct ql_gemm_coded gemm_coded_avxvnni;
const struct ql_gemm_coded gemm_coded_avxvnni = {
	.name = "gemm_coded_avxvnni", .rate = 8, .floats = floats, .row = row, .dots = dots};
