/* SPDX-License-Identifier: MIT
 * linear and matmul of 8-bit codes by dp4a: tiles of 64 x 64 results, 64 codes of k at a time; a thread has 4 x 4 results,
 * 16 lines apart.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define SIDE 16 /* threads of a row of the block */
#define TILE 64
#define EACH (TILE / SIDE)
#define DEEP 64
#define WORDS (DEEP / 4)

struct tiles {
	union {
		uint32_t line[2][TILE][WORDS + 1]; /* of a and b */
		int32_t product[TILE][TILE + 1];   /* afterwards */
	};
	int32_t sum[2][TILE]; /* of the codes of each line */
};

/* Codes k0 .. k0 + 3 of a line, 0 beyond its end. */
QL_DEVICE uint32_t four(const ql_code_matrix &l, const uint8_t *line, int64_t k0, int64_t k)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		if (k0 + i < k + QL_BUG(dp4a_tail))
			word |= (uint32_t)line[(k0 + i) * l.step] << 8 * i;
	return word;
}

QL_DEVICE void fetch(uint32_t (*to)[WORDS + 1], const ql_code_matrix &l, const uint8_t *from, int64_t first,
	int64_t lines, int64_t k0, int64_t k)
{
	for (int c = (int)threadIdx.x; c < TILE * WORDS / 4; c += THREADS) {
		int line = c / (WORDS / 4), at = c % (WORDS / 4) * 4;
		const uint8_t *source = from + (first + line) * l.line;
		int64_t begin = k0 + at * 4;
		uint4 v = {0, 0, 0, 0};

		if (first + line < lines && l.wide && begin + 16 <= k)
			v = ql_load_16(source + begin);
		else if (first + line < lines)
			v = {four(l, source, begin, k), four(l, source, begin + 4, k), four(l, source, begin + 8, k),
				four(l, source, begin + 12, k)};
		to[line][at] = v.x;
		to[line][at + 1] = v.y;
		to[line][at + 2] = v.z;
		to[line][at + 3] = v.w;
	}
}

struct sums {
	int32_t product[EACH][EACH], a[EACH], b[EACH];
};

template <bool A, bool B> QL_DEVICE void multiply(const tiles &t, bool zeros, sums &s)
{
	int column = (int)threadIdx.x % SIDE, row = (int)threadIdx.x / SIDE;

	for (int k = 0; k < WORDS; k++) {
		uint32_t a[EACH], b[EACH];

		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			a[i] = t.line[0][row + i * SIDE][k];
			b[i] = t.line[1][column + i * SIDE][k];
		}
		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			QL_UNROLL
			for (int j = 0; j < EACH; j++)
				s.product[i][j] = ql_dp4a<A, B>(a[i], b[j], s.product[i][j]);
			s.a[i] = zeros ? ql_dp4a<A, false>(a[i], 0x01010101u, s.a[i]) : 0;
			s.b[i] = zeros ? ql_dp4a<B, false>(b[i], 0x01010101u, s.b[i]) : 0;
		}
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
		multiply<A, B>(t, zeros, s);
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
