/* SPDX-License-Identifier: MIT
 * The avxvnni tile with the same instruction in its AVX-512 encoding, so that tests/kernels.c can run that code on
 * processors that have AVX-512-VNNI but not AVX-VNNI.
 */
#include <immintrin.h>

#define _mm256_dpbusd_avx_epi32(sum, u, s) _mm256_dpbusd_epi32(sum, u, s)
#define gemm_i8_avxvnni gemm_i8_evex

#include "tensor/kernels/gemm_i8_avxvnni.c"
