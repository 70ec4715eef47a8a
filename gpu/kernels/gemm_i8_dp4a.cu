/* SPDX-License-Identifier: MIT
 * linear and matmul of 8-bit codes by dp4a: tiles of 64 x 64 results, 64 codes of k at a time; a thread has 4 x 4 results,
 * 16 lines apart.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define TILE 64
#define DEEP 64
#define SIDE 16 /* threads of a row of the block */
#define EACH (TILE / SIDE)
#define WORDS (DEEP / 4)

struct tiles {
	union {
		uint32_t line[2][TILE][WORDS + 1]; /* of a and b */
		int32_t product[TILE][TILE + 1];   /* afterwards */
	};
	int32_t sum[2][TILE]; /* of the codes of each line */
};

#include "gpu/kernels/gemm_i8_lines.h"

/* Puts the sums of this thread where all can read them. */
QL_DEVICE void keep(tiles &t, const sums &s)
{
	int column = (int)threadIdx.x % SIDE, row = (int)threadIdx.x / SIDE;

	QL_UNROLL
	for (int i = 0; i < EACH; i++) {
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			t.product[row + i * SIDE][column + j * SIDE] = s.product[i][j];
		if (column == 0)
			t.sum[0][row + i * SIDE] = s.a[i];
		if (row == 0)
			t.sum[1][column + i * SIDE] = s.b[i];
	}
}

template <bool A, bool B>
QL_DEVICE void tile(tiles &t, const ql_code_product &x, int64_t number, int64_t i0, int64_t j0)
{
	ql_batch from = ql_batch_at(x, number);
	bool zeros = x.a.scales.zero || x.b.scales.zero;
	sums s = {};

	for (int64_t k0 = 0; k0 < x.k; k0 += DEEP) {
		fetch(t.line[0], x.a, from.a, i0, x.m, k0, x.k);
		fetch(t.line[1], x.b, from.b, j0, x.n, k0, x.k);
		__syncthreads();
		multiply<A, B>(t.line, zeros, s);
		if (!QL_BUG(dp4a_barrier))
			__syncthreads(); /* before the tiles are written again */
	}
	keep(t, s);
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
		int r = e / TILE, c = e % TILE;

		if (i0 + r < x.m && j0 + c < x.n)
			ql_product_store(x, number, from, i0 + r, j0 + c, t.product[r][c], t.sum[0][r], t.sum[1][c]);
	}
	__syncthreads(); /* before the next tile is fetched */
}

#include "gpu/kernels/gemm_i8_run.h"

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_dp4a;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_dp4a = {
	"linear matmul", "gemm_i8_dp4a", "dp4a", QL_GPU_BITS, 80, plan, run};
