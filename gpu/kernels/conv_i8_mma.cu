/* SPDX-License-Identifier: MIT
 * conv2d of 8-bit codes by mma.sync m16n8k32 (compute capability 8.0). Eight warps have 32 pixels x 32 outputs each.
 */
#include "gpu/kernels/conv_i8.h"

#define SIDE 32 /* pixels and outputs of a warp */

struct products {
	int32_t of[SIDE / 16][SIDE / 8][4];
};

template <bool A, bool B> QL_DEVICE void multiply(const struct stage &s, struct products &sum)
{
	int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32;
	int row = warp % (PIXELS / SIDE) * SIDE, column = warp / (PIXELS / SIDE) * SIDE;

	QL_UNROLL
	for (int k = 0; k < DEEP; k += 32) {
		uint32_t b[SIDE / 16][4];

		QL_UNROLL
		for (int j = 0; j < SIDE / 16; j++)
			ql_load_matrices(b[j], &s.b[column + j * 16 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 16]);
		QL_UNROLL
		for (int i = 0; i < SIDE / 16; i++) {
			uint32_t a[4];

			ql_load_matrices(a, &s.a[row + i * 16 + lane % 16][k + lane / 16 * 16]);
			QL_UNROLL
			for (int j = 0; j < SIDE / 8; j++)
				ql_mma_i8<A, B>(sum.of[i][j], a, &b[j / 2][j % 2 * 2]);
		}
	}
}

/* Puts the sums of this warp where all can read them. */
QL_DEVICE void keep(tiles &t, const struct products &sum)
{
	int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32;
	int row = warp % (PIXELS / SIDE) * SIDE, column = warp / (PIXELS / SIDE) * SIDE;

	QL_UNROLL
	for (int i = 0; i < SIDE / 16; i++) {
		QL_UNROLL
		for (int j = 0; j < SIDE / 8; j++) {
			QL_UNROLL
			for (int e = 0; e < 4; e++)
				t.product[column + j * 8 + lane % 4 * 2 + e % 2][row + i * 16 + lane / 4 + e / 2 * 8] =
					sum.of[i][j][e];
		}
	}
}

#include "gpu/kernels/conv_i8_run.h"

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_conv_i8_mma;
const struct ql_gpu_kernel ql_gpu_kernel_conv_i8_mma = {"conv2d", "conv_i8_mma", "mma", QL_GPU_BITS, 80, plan, run};
