/* SPDX-License-Identifier: MIT
 * The call of attention: operands as heads of rows, which keys a query attends to.
 */
#ifndef QUOLL_GPU_KERNELS_ATTEND_CALL_H
#define QUOLL_GPU_KERNELS_ATTEND_CALL_H

#include "gpu/kernels/attend_sizes.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

#define WIDEST 256 /* numbers of a head */

/* (batches, heads, rows, d or e) */
struct operand {
	void *at;
	int64_t batch, head, row, column; /* strides */
	int32_t type;
};

struct attended : attended_sizes {
	operand q, k, v, o;         /* o: the result */
	operand g, dq, dk, dv;      /* backward: the gradient of o, and the results */
	float *largest, *by, *less; /* backward, of each query: the largest score, 1 / sum, sum of P dP */
	int32_t block;              /* queries of a block of nn/attention_f32.c */
	float scale;
};

/* Keys that query i attends to. */
QL_NUMBER int64_t seen_by(const attended &a, int64_t i)
{
	i = i < a.queries ? i : a.queries - 1;
	return a.causal ? i + 1 + a.keys - a.queries : a.keys;
}

/* Keys with which query i is multiplied: the others of its block attend to them. */
QL_NUMBER int64_t columns_of(const attended &a, int64_t i)
{
	return a.causal ? seen_by(a, i / a.block * a.block + a.block - 1) : a.keys;
}

/* ---- the call, on the host ---- */

static inline operand heads_of(const struct ql_gpu_tensor *t, int64_t width)
{
	operand h = {};

	h.at = t->at;
	h.type = ql_element_of(t->dtype);
	h.batch = t->stride[0];
	h.column = t->stride[t->rank - 1];
	h.head = t->rank == 4 ? t->stride[1] : width * h.column;
	h.row = t->stride[t->rank - 2];
	return h;
}

/* Sizes of q, k and v, which the core has checked. */
static inline attended attended_of(const struct ql_gpu_call *call, const struct ql_gpu_tensor *in)
{
	int64_t block;
	attended a = {};

	attended_sizes_of(call, in, &a);
	a.scale = (float)attended_scale_of(call, &a);
	block = a.keys ? 262144 / a.keys : 48; /* as in nn/attention_f32.c */
	a.block = (int32_t)(block > 48 ? 48 : block < 6 ? 6 : block);
	a.q = heads_of(&in[0], a.d);
	a.k = heads_of(&in[1], a.d);
	a.v = heads_of(&in[2], a.e);
	return a;
}

/* True if the kernels take q, k and v, which are at `in`, and the other operands. */
static inline bool attended_fit(const struct ql_gpu_call *call, const struct ql_gpu_tensor *in, struct ql_gpu_plan *p)
{
	attended a;

	if (ql_attended_more(call, in))
		return ql_refuse(p, "attention with a mask, lengths, window or softcap");
	for (int i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
		int type = ql_element_of(t->dtype);

		if (t->codes) /* attention_codes has said why not */
			return p->why[0] ? false : ql_refuse(p, "attention of codes");
		if (t->flags & QL_GPU_NUMBER || !ql_element_float(type) || type == QL_E_float64)
			return ql_refuse(p, "wanted floats of at most 32 bits on the device");
		if (i >= call->n_in && !ql_dense(t))
			return ql_refuse(p, "the result is a view");
	}
	a = attended_of(call, in);
	if (a.d > WIDEST || a.e > WIDEST)
		return ql_refuse(p, "heads of more than 256 numbers");
	p->path = "float32";
	p->exact = call->flags & QL_GPU_ORDERED ? QL_GPU_BITS : QL_GPU_TOLERANCE;
	return true;
}

#endif
