/* SPDX-License-Identifier: MIT
 * A kernel's call in parts: operands brought to dense numbers of one type, other ops as steps of its own, and the memory for
 * both. The same function goes through the parts twice: for the plan, which counts memory and asks whether each inner op has
 * a kernel, and for the run, which queues them.
 */
#ifndef QUOLL_GPU_KERNELS_INNER_H
#define QUOLL_GPU_KERNELS_INNER_H

#include "gpu/kernels/strided.h"

struct ql_inner {
	const struct ql_gpu_place *place; /* NULL: the plan */
	char *workspace;
	uint64_t used;
	uint32_t flags; /* of the call */
	struct ql_gpu_plan *plan;
	cudaError_t error;
	bool refused;
};

static inline bool ql_inner_good(const struct ql_inner *p)
{
	return !p->refused && !p->error;
}

/* Memory of the workspace; of the plan: NULL. */
static inline void *ql_inner_take(struct ql_inner *p, int64_t n, int64_t size)
{
	uint64_t at = p->used;

	p->used += ((uint64_t)n * (uint64_t)size + 255) / 256 * 256;
	return p->place ? p->workspace + at : NULL;
}

/* Runs op on `in` into `out`; exactness and workspace of the plan follow. */
static inline void ql_inner_op(
	struct ql_inner *p, const char *op, const struct ql_gpu_tensor *in, int n_in, const struct ql_gpu_tensor *out)
{
	struct ql_gpu_call call = {};
	struct ql_gpu_plan plan;

	call.size = sizeof(call);
	call.op = op;
	call.n_in = n_in;
	call.n_out = 1;
	call.flags = p->flags;
	call.in = in;
	call.out = out;
	if (!ql_inner_good(p))
		return;
	if (!ql_part_plan(&call, &plan)) {
		p->refused = true;
		ql_refuse(p->plan, plan.why);
		return;
	}
	if (plan.exact == QL_GPU_TOLERANCE)
		p->plan->exact = QL_GPU_TOLERANCE;
	if (plan.workspace)
		call.workspace = ql_inner_take(p, (int64_t)plan.workspace, 1);
	if (p->place)
		p->error = ql_part_run(p->place, &call);
}

/* Whether op has a kernel for it. */
static inline bool ql_inner_can(const struct ql_inner *p, const char *op, const struct ql_gpu_tensor *in, int n_in,
	const struct ql_gpu_tensor *out)
{
	struct ql_gpu_call call = {};
	struct ql_gpu_plan plan;

	call.size = sizeof(call);
	call.op = op;
	call.n_in = n_in;
	call.n_out = 1;
	call.flags = p->flags;
	call.in = in;
	call.out = out;
	return ql_part_plan(&call, &plan);
}

/* A dense tensor of that shape at `at`. */
static inline struct ql_gpu_tensor ql_dense_tensor(void *at, int element, int rank, const int64_t *shape)
{
	struct ql_gpu_tensor t = {};
	int64_t n = 1;

	t.at = at;
	t.dtype = ql_element_get(element).name;
	t.rank = rank;
	for (int d = rank - 1; d >= 0; d--) {
		t.shape[d] = shape[d];
		t.stride[d] = n;
		n *= shape[d] > 0 ? shape[d] : 1;
	}
	return t;
}

/* Writes t's numbers, decoded, to `at`. */
static inline void ql_inner_copy(struct ql_inner *p, const struct ql_gpu_tensor *t, int element, void *at)
{
	struct ql_gpu_tensor out = ql_dense_tensor(at, element, t->rank, t->shape);

	ql_inner_op(p, t->codes ? "dequantize" : "copy", t, 1, &out);
}

/* t as dense numbers of that type: its own memory, or a copy in the workspace. */
static inline void *ql_inner_plain(struct ql_inner *p, const struct ql_gpu_tensor *t, int element)
{
	void *at;

	if (!t->codes && ql_element_of(t->dtype) == element && ql_dense(t))
		return t->at;
	at = ql_inner_take(p, ql_count(t), ql_element_get(element).bits / 8);
	ql_inner_copy(p, t, element, at);
	return at;
}

/* Codes in whole bytes, as linear reads them: t's own, or packed ones as they will be, without memory. */
static inline struct ql_gpu_tensor ql_bytes_of(const struct ql_gpu_tensor *t)
{
	struct ql_element_info e = ql_element_get(ql_element_of(t->dtype));
	struct ql_gpu_tensor bytes = *t;

	if (e.bits >= 8)
		return bytes;
	bytes = ql_dense_tensor(NULL, e.kind == QL_E_UINT ? QL_E_uint8 : QL_E_int8, t->rank, t->shape);
	bytes.codes = t->codes;
	return bytes;
}

/* The same with memory of the workspace. */
static inline struct ql_gpu_tensor ql_inner_bytes(struct ql_inner *p, const struct ql_gpu_tensor *t)
{
	struct ql_gpu_tensor bytes = ql_bytes_of(t), packed = *t, out;

	if (ql_element_get(ql_element_of(t->dtype)).bits >= 8)
		return bytes;
	bytes.at = ql_inner_take(p, ql_count(t), 1);
	packed.codes = NULL;
	out = bytes;
	out.codes = NULL;
	ql_inner_op(p, "copy", &packed, 1, &out);
	return bytes;
}

#endif
