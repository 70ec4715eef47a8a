/* SPDX-License-Identifier: MIT
 * What the kernels of products of 8-bit codes share: all tiles of a result, the plan, the launch. Include it behind TILE, THREADS,
 * struct tiles and tile<A, B>; A, B: the codes of an operand are unsigned.
 */
template <bool A, bool B> QL_KERNEL(THREADS, 2) gemm(ql_code_product x)
{
	QL_SHARED(struct tiles, t);
	int64_t down = (x.m + TILE - 1) / TILE, across = (x.n + TILE - 1) / TILE, all = down * across * x.batches;

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x)
		tile<A, B>(t, x, i / (down * across), i % down * TILE, i / down % across * TILE);
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_code_product x;

	return ql_product_of(call, &x, p);
}

template <bool A, bool B> static cudaError_t launch(const struct ql_gpu_place *place, const ql_code_product &x)
{
	int64_t all = (x.m + TILE - 1) / TILE * ((x.n + TILE - 1) / TILE) * x.batches;

	return ql_launch(gemm<A, B>, ql_blocks(all, 1), dim3(THREADS), sizeof(struct tiles), place->stream, x);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct ql_code_product x;
	cudaError_t error;

	if (!ql_product_of(call, &x, &p))
		return cudaErrorInvalidValue;
	error = ql_product_begin(x, place->stream);
	if (error || x.m * x.n * x.batches == 0)
		return error;
	if (x.a.is_unsigned)
		return x.b.is_unsigned ? launch<true, true>(place, x) : launch<true, false>(place, x);
	return x.b.is_unsigned ? launch<false, true>(place, x) : launch<false, false>(place, x);
}
