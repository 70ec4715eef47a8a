/* SPDX-License-Identifier: MIT
 * gather along an axis, elements as they are; an index counts from 1, or from
 * the end below 0. One that is out of range is noted and counts as 1.
 */
#include "gpu/kernels/fault.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

struct gathering {
	ql_strided walk; /* elements of the index; operand 1: of x, without the axis */
	const void *index, *x;
	void *out;
	int64_t size, stride; /* of the axis of x */
	int32_t type;
	uint64_t serial;
	ql_gpu_record *record;
};

template <typename T> QL_KERNEL(THREADS) gather_as(gathering g)
{
	for (int64_t i = ql_thread(); i < g.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST], index, k;

		ql_strided_at(g.walk, i, at);
		index = ql_load_i64(g.type, g.index, at[0]);
		k = index < 0 ? index + g.size : index - 1 + QL_BUG(gather_first);
		if (k < 0 || k >= g.size) {
			ql_note(g.record, g.serial, QL_GPU_FAULT_INDEX, i, index, g.size);
			k = 0;
		}
		static_cast<T *>(g.out)[i] = static_cast<const T *>(g.x)[at[1] + k * g.stride];
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = &call->in[0], *index = &call->in[1], *out = call->out;
	int type = ql_element_of(x->dtype);

	if (x->codes || out->codes)
		return ql_refuse(p, "elements of codes");
	if (((x->flags | index->flags) & QL_GPU_NUMBER) || !ql_element_whole(type) ||
		!ql_element_whole(ql_element_of(index->dtype)))
		return ql_refuse(p, "wanted numbers of whole bytes on the device");
	if (ql_element_of(out->dtype) != type || !ql_dense(out))
		return ql_refuse(p, "wanted a dense result of the operand's dtype");
	p->path = ql_element_get(type).name;
	p->faults = 1;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *index = &call->in[1];
	struct ql_gpu_tensor x = call->in[0];
	int axis = (int)ql_option_integer(call, "axis", 0);
	dim3 blocks;
	gathering g = {};

	g.size = x.shape[axis];
	g.stride = x.stride[axis];
	x.stride[axis] = 0;
	g.walk = ql_strided_of(index, &x, ~0u);
	g.index = index->at;
	g.x = x.at;
	g.out = call->out->at;
	g.type = ql_element_of(index->dtype);
	g.serial = call->serial;
	g.record = place->record;
	blocks = ql_blocks(g.walk.count, THREADS);
	if (g.walk.count == 0)
		return cudaSuccess;
	switch (ql_element_get(ql_element_of(x.dtype)).bits) {
	case 8: return ql_launch_free(gather_as<uint8_t>, blocks, dim3(THREADS), place->stream, g);
	case 16: return ql_launch_free(gather_as<uint16_t>, blocks, dim3(THREADS), place->stream, g);
	case 32: return ql_launch_free(gather_as<uint32_t>, blocks, dim3(THREADS), place->stream, g);
	default: return ql_launch_free(gather_as<uint64_t>, blocks, dim3(THREADS), place->stream, g);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gather;
const struct ql_gpu_kernel ql_gpu_kernel_gather = {"gather", "gather", "simt", QL_GPU_BITS, 80, plan, run};
