/* SPDX-License-Identifier: MIT
 * Tile of 6 pixels x 16 outputs in 256-bit registers, VEX encoded: 12 of the 16 registers hold sums, 2 the weights, one
 * the bytes of a pixel.
 */
#include <immintrin.h>

#define VECTOR __m256i
#define STEP __m256i
#define LANES 8
#define PARTS 2
#define MOST_ROWS 6
#define MOST_VECTORS 2
#define WEIGHTS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPREAD(x) _mm256_set1_epi32(x)
#define DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)
#define ZERO() _mm256_setzero_si256()

#include "tensor/kernels/conv_i8_codes_avx2.h"
#include "tensor/kernels/conv_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 1)
		ROWS_CASE(2, 1)
		ROWS_CASE(3, 1)
		ROWS_CASE(4, 1)
		ROWS_CASE(5, 1)
		ROWS_CASE(6, 1)
	}
}

extern const struct ql_conv_i8 conv_i8_avxvnni;
const struct ql_conv_i8 conv_i8_avxvnni = {.name = "conv_i8_avxvnni", .rate = 100, .most = {0, 6}, .codes = codes};
