/* SPDX-License-Identifier: MIT
 * Tile of 4 pixels x 64 channels: 16 of the 32 registers hold sums, 4 the weights of four taps.
 */
#include <immintrin.h>

#define VECTOR __m512i
#define FLOATS __m512
#define LANES 4
#define MOST 4
#define V(op) _mm512_##op
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define ZERO() _mm512_setzero_si512()
#define AND(a, b) _mm512_and_si512(a, b)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define MAX(a, b) _mm512_max_epi32(a, b)
#define FIXED(s, m, right) fixed_times(s, m, right)
#define STEP __m512i
#define WEIGHTS(p) LOAD(p)
#define DOT(sum, u, s) _mm512_dpbusd_epi32(sum, u, s)

#include "tensor/kernels/fixed_times.h"

#define _mm512_set1_epi64x(x) _mm512_set1_epi64(x)
QL_FIXED_TIMES(__m512i, V, AND, XOR)
#undef _mm512_set1_epi64x

#include "tensor/kernels/depth_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1)
		ROWS_CASE(2)
		ROWS_CASE(3)
		ROWS_CASE(4)
	}
}

extern const struct ql_depth_i8 depth_i8_avx512vnni;
const struct ql_depth_i8 depth_i8_avx512vnni = {
	.name = "depth_i8_avx512vnni", .rate = 60, .most = MOST, .lanes = LANES, .fixed = true, .codes = codes};
