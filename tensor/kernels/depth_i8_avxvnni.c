/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 32 channels, VEX encoded: 8 of the 16 registers hold sums; weights are read from memory by the products.
 */
#include "tensor/kernels/depth_i8_avx2.h"

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
	.name = "depth_i8_avxvnni", .rate = 40, .most = MOST, .lanes = LANES, .fixed = true, .codes = codes};
