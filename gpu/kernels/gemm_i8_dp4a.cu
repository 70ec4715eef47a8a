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

QL_DEVICE void fetch(uint32_t (*to)[WORDS + 1], const ql_code_matrix &l, const uint8_t *from, int64_t first,
	int64_t lines, int64_t k0, int64_t k)
{
	for (int c = (int)threadIdx.x; c < TILE * WORDS / 4; c += THREADS) {
		int line = c / (WORDS / 4), at = c % (WORDS / 4) * 4;

		put_16(&to[line][at], l, from + (first + line) * l.line, k0 + at * 4, first + line < lines ? k : 0);
	}
}

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

/* Stores result (i, j) from sums of the codes as they were multiplied, unsigned ones less 128. That they wrap does not matter. */
QL_DEVICE void store(const ql_code_product &x, int64_t number, const ql_batch &from, int64_t i, int64_t j,
	uint32_t product, uint32_t a, uint32_t b)
{
	uint32_t less_a = x.a.is_unsigned ? 128 : 0, less_b = x.b.is_unsigned ? 128 : 0, k = (uint32_t)x.k;

	product += less_a * b + less_b * a + k * less_a * less_b;
	ql_product_store(x, number, from, i, j, (int32_t)product, (int32_t)(a + k * less_a), (int32_t)(b + k * less_b));
}

QL_DEVICE void tile(tiles &t, const ql_code_product &x, int64_t number, int64_t i0, int64_t j0)
{
	ql_batch from = ql_batch_at(x, number);
	bool sums_of_lines = x.a.scales.zero || x.b.scales.zero || x.a.is_unsigned || x.b.is_unsigned;
	sums s = {};

	for (int64_t k0 = 0; k0 < x.k; k0 += DEEP) {
		fetch(t.line[0], x.a, from.a, i0, x.m, k0, x.k);
		fetch(t.line[1], x.b, from.b, j0, x.n, k0, x.k);
		__syncthreads();
		multiply(t.line, sums_of_lines, s);
		if (!QL_BUG(dp4a_barrier))
			__syncthreads(); /* before the tiles are written again */
	}
	keep(t, s);
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
		int r = e / TILE, c = e % TILE;

		if (i0 + r < x.m && j0 + c < x.n)
			store(x, number, from, i0 + r, j0 + c, (uint32_t)t.product[r][c], (uint32_t)t.sum[0][r],
				(uint32_t)t.sum[1][c]);
	}
	__syncthreads(); /* before the next tile is fetched */
}

QL_KERNEL(THREADS, 2) gemm(ql_code_product x)
{
	QL_SHARED(struct tiles, t);
	int64_t down = (x.m + TILE - 1) / TILE, across = (x.n + TILE - 1) / TILE, all = down * across * x.batches;

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x)
		tile(t, x, i / (down * across), i % down * TILE, i / down % across * TILE);
}

static cudaError_t start(const struct ql_gpu_place *place, const ql_code_product &x)
{
	int64_t all = (x.m + TILE - 1) / TILE * ((x.n + TILE - 1) / TILE) * x.batches;

	return ql_launch(gemm, ql_blocks(all, 1), dim3(THREADS), sizeof(struct tiles), place->stream, x);
}

#include "gpu/kernels/gemm_i8_run.h"

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_dp4a;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_dp4a = {
	"linear matmul", "gemm_i8_dp4a", "dp4a", QL_GPU_BITS, 80, plan, run};
