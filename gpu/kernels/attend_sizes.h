/* SPDX-License-Identifier: MIT
 * Sizes of a call of attention, which the core has checked: (batch, head, query or key, number) with four axes, else heads beside
 * each other in the last of three. Several heads of q may share one of k and v.
 */
#ifndef QUOLL_GPU_KERNELS_ATTEND_SIZES_H
#define QUOLL_GPU_KERNELS_ATTEND_SIZES_H

#include <math.h>

#include "gpu/kernels/options.h"

struct attended_sizes {
	int64_t batches, queries, keys;
	int32_t heads, shared, d, e; /* heads of q, of k and v; numbers of a head of q and k, of v */
	bool causal;
};

static inline void attended_sizes_of(
	const struct ql_gpu_call *call, const struct ql_gpu_tensor *in, struct attended_sizes *a)
{
	const struct ql_gpu_tensor *q = &in[0], *k = &in[1], *v = &in[2];
	bool split = q->rank == 4;

	a->batches = q->shape[0];
	a->heads = (int32_t)(split ? q->shape[1] : ql_option_integer(call, "heads", 1));
	a->queries = q->shape[q->rank - 2];
	a->keys = k->shape[k->rank - 2];
	a->d = (int32_t)(split ? q->shape[3] : q->shape[2] / a->heads);
	a->shared = (int32_t)(split ? k->shape[1] : k->shape[2] / a->d);
	a->e = (int32_t)(split ? v->shape[3] : v->shape[2] / a->shared);
	a->causal = ql_option_integer(call, "causal", 0);
}

/* Whether the call, with q at `in`, has a mask, lengths, window or softcap. */
static inline bool ql_attended_more(const struct ql_gpu_call *call, const struct ql_gpu_tensor *in)
{
	return call->n_in - (in - call->in) > 3 || ql_option_integer(call, "window", 0) ||
	       ql_option_number(call, "softcap", 0) > 0;
}

/* What products of q and k are multiplied by. */
static inline double attended_scale_of(const struct ql_gpu_call *call, const struct attended_sizes *a)
{
	return ql_option_number(call, "scale", 1 / sqrt((double)a->d));
}

#endif
