/* SPDX-License-Identifier: MIT
 * What depth_i8_tile.h wants of vectors of 256 bits: 8 of the 16 registers hold sums of 2 pixels.
 */
#ifndef QUOLL_TENSOR_DEPTH_I8_AVX2_H
#define QUOLL_TENSOR_DEPTH_I8_AVX2_H

#include <immintrin.h>

#define VECTOR __m256i
#define FLOATS __m256
#define LANES 2
#define MOST 2
#define V(op) _mm256_##op
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ZERO() _mm256_setzero_si256()
#define AND(a, b) _mm256_and_si256(a, b)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define MAX(a, b) _mm256_max_epi32(a, b)
#define FIXED(s, m, right) fixed_times(s, m, right)

#include "tensor/kernels/fixed_times.h"

QL_FIXED_TIMES(__m256i, V, AND, XOR)

#endif
