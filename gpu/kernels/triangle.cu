/* SPDX-License-Identifier: MIT
 * tril and triu: the elements of each matrix on one side of a diagonal, 0 on
 * the other.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

struct triangle {
	ql_strided walk;
	const void *x;
	void *out;
	int64_t rows, columns, diagonal;
	bool lower;
};

template <typename T> QL_KERNEL(THREADS) cut(triangle t)
{
	for (int64_t i = ql_thread(); i < t.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST], above = i % t.columns - i / t.columns % t.rows - t.diagonal;

		ql_strided_at(t.walk, i, at);
		static_cast<T *>(t.out)[i] = (t.lower ? above <= -QL_BUG(triangle_diagonal) : above >= 0)
						     ? static_cast<const T *>(t.x)[at[0]]
						     : 0;
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in, *out = call->out;
	int type = ql_element_of(x->dtype);

	if (x->codes || out->codes || x->flags & QL_GPU_NUMBER || !ql_element_whole(type) || x->rank < 2)
		return ql_refuse(p, "wanted plain numbers of whole bytes on the device");
	if (ql_element_of(out->dtype) != type || !ql_dense(out))
		return ql_refuse(p, "wanted a dense result of the operand's dtype");
	if (type == QL_E_float8_e8m0)
		return ql_refuse(p, "a dtype without 0");
	p->path = ql_element_get(type).name;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *x = call->in;
	int64_t most = x->shape[x->rank - 1] + x->shape[x->rank - 2];
	dim3 blocks;
	triangle t = {};

	t.walk = ql_strided_of(x, NULL, ~0u);
	t.x = x->at;
	t.out = call->out->at;
	t.rows = x->shape[x->rank - 2];
	t.columns = x->shape[x->rank - 1];
	t.diagonal = ql_option_integer(call, "diagonal", 0);
	t.diagonal = t.diagonal > most ? most : t.diagonal < -most ? -most : t.diagonal;
	t.lower = !strcmp(call->op, "tril");
	blocks = ql_blocks(t.walk.count, THREADS);
	if (t.walk.count == 0)
		return cudaSuccess;
	switch (ql_element_get(ql_element_of(x->dtype)).bits) {
	case 8: return ql_launch_free(cut<uint8_t>, blocks, dim3(THREADS), place->stream, t);
	case 16: return ql_launch_free(cut<uint16_t>, blocks, dim3(THREADS), place->stream, t);
	case 32: return ql_launch_free(cut<uint32_t>, blocks, dim3(THREADS), place->stream, t);
	default: return ql_launch_free(cut<uint64_t>, blocks, dim3(THREADS), place->stream, t);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_triangle;
const struct ql_gpu_kernel ql_gpu_kernel_triangle = {"tril triu", "triangle", "simt", QL_GPU_BITS, 80, plan, run};
