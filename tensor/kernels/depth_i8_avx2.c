/* SPDX-License-Identifier: MIT
 * Tile of 2 pixels x 32 channels without VNNI (depth_i8_pairs.h).
 */
#include "tensor/kernels/depth_i8_avx2.h"
#include "tensor/kernels/depth_i8_pairs.h"
#include "tensor/kernels/depth_i8_tile.h"

static void codes PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1)
		ROWS_CASE(2)
	}
}

extern const struct ql_depth_i8 depth_i8_avx2;
const struct ql_depth_i8 depth_i8_avx2 = {
	.name = "depth_i8_avx2", .rate = 25, .most = MOST, .lanes = LANES, .fixed = true, .codes = codes};
