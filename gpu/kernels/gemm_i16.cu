/* SPDX-License-Identifier: MIT
 * linear and matmul of codes of which those of one operand at least have 16 bits: sums in 64 bits, in tiles of 64 x 64 results, 32
 * numbers of k at a time; a thread has 4 x 4 results. Zero points are subtracted as codes are staged. Exact, so the CPU's bits
 * (quant/paths/matmul_int.c).
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"

#define THREADS 256
#define SIDE 16 /* threads of a row of the block */
#define EACH 4
#define TILE (SIDE * EACH)
#define DEEP 32

struct tiles {
	union {
		int32_t number[2][DEEP][TILE + 4]; /* of a and b */
		int64_t product[TILE][TILE + 1];   /* afterwards */
	};
};

QL_DEVICE int32_t code_at(const ql_code_matrix &l, const uint8_t *at)
{
	if (l.bytes == 1)
		return l.is_unsigned ? (int32_t)*at : (int32_t) * reinterpret_cast<const int8_t *>(at);
	return l.is_unsigned ? (int32_t) * reinterpret_cast<const uint16_t *>(at)
			     : (int32_t) * reinterpret_cast<const int16_t *>(at);
}

/* Numbers k0 .. k0 + DEEP - 1 of lines first .. first + TILE - 1, 0 beyond the ends; neighbours in memory by neighbouring
 * threads. */
QL_DEVICE void fetch(int32_t (*to)[TILE + 4], const ql_code_matrix &l, const uint8_t *from, int64_t scale,
	int64_t first, int64_t lines, int64_t k0, int64_t k)
{
	bool along = l.step == l.bytes;

	for (int e = (int)threadIdx.x; e < TILE * DEEP; e += THREADS) {
		int line = along ? e / DEEP : e % TILE, at = along ? e % DEEP : e / TILE;
		int64_t i = first + line;
		int32_t number = 0;

		if (i < lines && k0 + at < k + QL_BUG(i16_tail))
			number = code_at(l, from + i * l.line + (k0 + at) * l.step) -
				 ql_zero_at(l.scales, scale + i * l.per_line);
		to[at][line] = number;
	}
}

QL_DEVICE void multiply(const tiles &t, int64_t sum[EACH][EACH])
{
	int column = (int)threadIdx.x % SIDE * EACH, row = (int)threadIdx.x / SIDE * EACH;

	for (int k = 0; k < DEEP; k++) {
		int32_t a[EACH], b[EACH];

		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			a[i] = t.number[0][k][row + i];
			b[i] = t.number[1][k][column + i];
		}
		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			QL_UNROLL
			for (int j = 0; j < EACH; j++)
				sum[i][j] += (int64_t)a[i] * b[j];
		}
	}
}

QL_DEVICE void tile(tiles &t, const ql_code_product &x, int64_t number, int64_t i0, int64_t j0)
{
	ql_batch from = ql_batch_at(x, number);
	int column = (int)threadIdx.x % SIDE * EACH, row = (int)threadIdx.x / SIDE * EACH;
	int64_t sum[EACH][EACH] = {};

	for (int64_t k0 = 0; k0 < x.k; k0 += DEEP) {
		fetch(t.number[0], x.a, from.a, from.scale_a, i0, x.m, k0, x.k);
		fetch(t.number[1], x.b, from.b, from.scale_b, j0, x.n, k0, x.k);
		__syncthreads();
		multiply(t, sum);
		if (!QL_BUG(i16_barrier))
			__syncthreads(); /* before the tile is written again */
	}
	QL_UNROLL
	for (int i = 0; i < EACH; i++) {
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			t.product[row + i][column + j] = sum[i][j];
	}
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
		int64_t i = i0 + e / TILE, j = j0 + e % TILE;

		if (i < x.m && j < x.n)
			ql_product_finish(x, (number * x.m + i) * x.n + j, ql_code_line_of(x.a, from.scale_a, i, 0),
				ql_code_line_of(x.b, from.scale_b, j, 0), ql_bias_at(x, j),
				t.product[e / TILE][e % TILE]);
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

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_gpu_plan own = {};
	ql_code_product x;

	if (!ql_product_of(call, &x, &own, 2))
		return p->why[0] ? false : ql_refuse(p, own.why);
	if (x.a.bytes == 1 && x.b.bytes == 1) /* left to other families, also where these are not allowed */
		return false;
	p->path = x.rounding == QL_ROUNDING_SINGLE ? "int16 single" : x.rounding ? "int16 double" : "int16";
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	ql_code_product x;
	cudaError_t error;

	if (!ql_product_of(call, &x, &p, 2))
		return cudaErrorInvalidValue;
	error = ql_product_begin(x, place->stream);
	if (error || x.m * x.n * x.batches == 0)
		return error;
	return ql_launch(gemm, ql_blocks((x.m + TILE - 1) / TILE * ((x.n + TILE - 1) / TILE) * x.batches, 1),
		dim3(THREADS), sizeof(struct tiles), place->stream, x);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i16;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i16 = {"linear matmul", "gemm_i16", "simt", QL_GPU_BITS, 80, plan, run};
