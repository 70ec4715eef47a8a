/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 32 channels, VEX encoded: 8 of the 16 registers hold sums; weights are read from memory by the products.
 */
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
#define STEP __m256i
#define WEIGHTS(p) LOAD(p)
#define DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)

#include "tensor/kernels/depth_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1)
		ROWS_CASE(2)
	}
}

extern const struct ql_depth_i8 depth_i8_avxvnni;
const struct ql_depth_i8 depth_i8_avxvnni = {
	.name = "depth_i8_avxvnni", .rate = 40, .most = MOST, .lanes = LANES, .codes = codes};
