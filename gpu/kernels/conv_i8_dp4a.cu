/* SPDX-License-Identifier: MIT
 * conv2d of 8-bit codes by dp4a: a thread has 8 pixels and 4 outputs, 16 apart.
 */
#include "gpu/kernels/conv_i8.h"

#define SIDE 16 /* threads along pixels, and along outputs */

struct products {
	int32_t of[PIXELS / SIDE][OUTPUTS / SIDE];
};

template <bool A, bool B> QL_DEVICE void multiply(const struct stage &s, struct products &sum)
{
	int row = (int)threadIdx.x % SIDE, column = (int)threadIdx.x / SIDE;

	for (int k = 0; k < DEEP; k += 4) {
		uint32_t b[OUTPUTS / SIDE];

		QL_UNROLL
		for (int j = 0; j < OUTPUTS / SIDE; j++)
			b[j] = *reinterpret_cast<const uint32_t *>(&s.b[column + j * SIDE][k]);
		QL_UNROLL
		for (int i = 0; i < PIXELS / SIDE; i++) {
			uint32_t a = *reinterpret_cast<const uint32_t *>(&s.a[row + i * SIDE][k]);

			QL_UNROLL
			for (int j = 0; j < OUTPUTS / SIDE; j++)
				sum.of[i][j] = ql_dp4a<A, B>(a, b[j], sum.of[i][j]);
		}
	}
}

/* Puts the sums of this thread where all can read them. */
QL_DEVICE void keep(tiles &t, const struct products &sum)
{
	int row = (int)threadIdx.x % SIDE, column = (int)threadIdx.x / SIDE;

	QL_UNROLL
	for (int i = 0; i < PIXELS / SIDE; i++) {
		QL_UNROLL
		for (int j = 0; j < OUTPUTS / SIDE; j++)
			t.product[column + j * SIDE][row + i * SIDE] = sum.of[i][j];
	}
}

#include "gpu/kernels/conv_i8_run.h"

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_conv_i8_dp4a;
const struct ql_gpu_kernel ql_gpu_kernel_conv_i8_dp4a = {"conv2d", "conv_i8_dp4a", "dp4a", QL_GPU_BITS, 80, plan, run};
