/* SPDX-License-Identifier: MIT
 * linear and matmul of 8-bit codes by mma.sync m16n8k32 (compute capability 8.0): tiles of 128 x 128 results, 64 codes of k
 * at a time, three stages of cp.async. Eight warps have 64 x 32 results each. Lines that cannot be read 16 bytes at a time
 * are staged byte by byte.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define TILE 128
#define DEEP 64           /* codes of k in a stage */
#define PITCH (DEEP + 16) /* the rows of ldmatrix then lie in different banks */
#define STAGES 3
#define ROWS 64 /* results of a warp */
#define COLUMNS 32

struct stage {
	uint8_t a[TILE][PITCH], b[TILE][PITCH];
};
struct tiles {
	union {
		struct stage stage[STAGES];
		int32_t product[TILE][TILE + 4]; /* afterwards */
	};
	int32_t sum[2][TILE]; /* of the codes of each line */
};

/* ---- from global to shared memory ---- */

/* Codes k0 .. k0 + DEEP - 1 of the lines first .. first + TILE - 1; 0 beyond the ends. */
QL_DEVICE void fetch(uint8_t (*to)[PITCH], const ql_code_matrix &l, const uint8_t *from, int64_t first, int64_t lines,
	int64_t k0, int64_t k)
{
	for (int c = (int)threadIdx.x; c < TILE * DEEP / 16; c += THREADS) {
		int line = c / (DEEP / 16), at = c % (DEEP / 16) * 16;
		int64_t left = k - k0 - at, n = left < 0 ? 0 : left < 16 ? left : 16;
		const uint8_t *source = from + (first + line) * l.line;

		if (first + line >= lines && !QL_BUG(mma_line_bound))
			n = 0;
		if (QL_BUG(mma_tail))
			n = n ? 16 : 0;
		if (l.wide) {
			ql_async_16(&to[line][at], n ? source + k0 + at : from, (int32_t)n);
			continue;
		}
		for (int i = 0; i < 16; i++)
			to[line][at + i] = i < n ? source[(k0 + at + i) * l.step] : 0;
	}
}

QL_DEVICE void fetch_stage(
	tiles &t, const ql_code_product &x, const ql_batch &from, int64_t i0, int64_t j0, int64_t step)
{
	struct stage &s = t.stage[step % STAGES];

	if (step * DEEP < x.k) {
		fetch(s.a, x.a, from.a, i0, x.m, step * DEEP, x.k);
		fetch(s.b, x.b, from.b, j0, x.n, step * DEEP, x.k);
	}
	ql_async_commit();
}

/* ---- products ---- */

template <bool A, bool B>
QL_DEVICE void multiply(const stage &s, int row, int column, int32_t sum[ROWS / 16][COLUMNS / 8][4])
{
	int lane = (int)threadIdx.x & 31;

	QL_UNROLL
	for (int k = 0; k < DEEP; k += 32) {
		uint32_t b[COLUMNS / 16][4];

		/* two columns of 8, each in two halves of k */
		QL_UNROLL
		for (int j = 0; j < COLUMNS / 16; j++)
			ql_load_matrices(b[j], &s.b[column + j * 16 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 16]);
		QL_UNROLL
		for (int i = 0; i < ROWS / 16; i++) {
			uint32_t a[4];

			ql_load_matrices(a, &s.a[row + i * 16 + lane % 16][k + lane / 16 * 16]);
			QL_UNROLL
			for (int j = 0; j < COLUMNS / 8; j++)
				ql_mma_i8<A, B>(sum[i][j], a, &b[j / 2][j % 2 * 2]);
		}
	}
}

/* Adds the codes of one line of the stage: thread i has line i of a, thread TILE + i line i of b. */
template <bool A, bool B> QL_DEVICE int32_t add_line(const stage &s, int32_t sum)
{
	int line = (int)threadIdx.x % TILE;

	for (int k = 0; k < DEEP; k += 4) {
		uint32_t word;

		memcpy(&word, threadIdx.x < TILE ? &s.a[line][k] : &s.b[line][k], sizeof(word));
		sum = threadIdx.x < TILE ? ql_dp4a<A, false>(word, 0x01010101u, sum)
					 : ql_dp4a<B, false>(word, 0x01010101u, sum);
	}
	return sum;
}

/* ---- a tile of results ---- */

QL_DEVICE void keep(tiles &t, int row, int column, const int32_t sum[ROWS / 16][COLUMNS / 8][4])
{
	int lane = (int)threadIdx.x & 31;

	QL_UNROLL
	for (int i = 0; i < ROWS / 16; i++) {
		QL_UNROLL
		for (int j = 0; j < COLUMNS / 8; j++) {
			QL_UNROLL
			for (int e = 0; e < 4; e++)
				t.product[row + i * 16 + lane / 4 + e / 2 * 8][column + j * 8 + lane % 4 * 2 + e % 2] =
					sum[i][j][e];
		}
	}
}

template <bool A, bool B>
QL_DEVICE void tile(tiles &t, const ql_code_product &x, int64_t number, int64_t i0, int64_t j0)
{
	ql_batch from = ql_batch_at(x, number);
	int warp = (int)threadIdx.x / 32;
	int row = warp % (TILE / ROWS) * ROWS, column = warp / (TILE / ROWS) * COLUMNS;
	int64_t steps = (x.k + DEEP - 1) / DEEP;
	int32_t sum[ROWS / 16][COLUMNS / 8][4] = {}, line = 0;

	for (int64_t s = 0; s < STAGES - 1; s++)
		fetch_stage(t, x, from, i0, j0, s);
	for (int64_t s = 0; s < steps; s++) {
		if (QL_BUG(mma_wait))
			ql_async_wait<STAGES - 1>();
		else
			ql_async_wait<STAGES - 2>();
		if (!QL_BUG(mma_barrier))
			__syncthreads(); /* the stage is there, and the one that is filled next has been read */
		fetch_stage(t, x, from, i0, j0, s + STAGES - 1);
		multiply<A, B>(t.stage[s % STAGES], row, column, sum);
		if (x.a.scales.zero || x.b.scales.zero)
			line = add_line<A, B>(t.stage[s % STAGES], line);
	}
	if (!QL_BUG(mma_reuse))
		__syncthreads(); /* the stages have been read, their memory is free */
	keep(t, row, column, sum);
	t.sum[threadIdx.x / TILE][threadIdx.x % TILE] = line;
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
		int r = e / TILE, c = e % TILE;

		if (i0 + r < x.m && (j0 + c < x.n || QL_BUG(mma_column_bound)))
			ql_product_store(x, number, from, i0 + r, j0 + c, t.product[r][c], t.sum[0][r], t.sum[1][c]);
	}
	__syncthreads(); /* before the next tile is fetched */
}

template <bool A, bool B> QL_KERNEL(THREADS, 2) gemm(ql_code_product x)
{
	QL_SHARED(struct tiles, t);
	int64_t down = (x.m + TILE - 1) / TILE, across = (x.n + TILE - 1) / TILE, all = down * across * x.batches;

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x)
		tile<A, B>(t, x, i / (down * across), i % down * TILE, i / down % across * TILE);
}

template <bool A, bool B> static cudaError_t launch(const struct ql_gpu_place *place, const ql_code_product &x)
{
	int64_t all = (x.m + TILE - 1) / TILE * ((x.n + TILE - 1) / TILE) * x.batches;

	return ql_launch(gemm<A, B>, ql_blocks(all, 1), dim3(THREADS), sizeof(struct tiles), place->stream, x);
}

static cudaError_t start(const struct ql_gpu_place *place, const ql_code_product &x)
{
	if (x.a.is_unsigned)
		return x.b.is_unsigned ? launch<true, true>(place, x) : launch<true, false>(place, x);
	return x.b.is_unsigned ? launch<false, true>(place, x) : launch<false, false>(place, x);
}

#include "gpu/kernels/gemm_i8_run.h"

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_mma;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_mma = {
	"linear matmul", "gemm_i8_mma", "mma", QL_GPU_BITS, 80, plan, run};
