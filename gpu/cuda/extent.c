/* SPDX-License-Identifier: MIT
 * Whether the operands of a call lie within their allocations: a view that does not is a fault of the caller, which a
 * kernel would turn into damage elsewhere.
 */
#include "gpu/cuda/plugin.h"
#include "gpu/kernels/dtypes.h"

static bool inside(const struct ql_gpu_tensor *t)
{
	int element = ql_element_of(t->dtype);
	int64_t lo = 0, hi = 0, bits, at = (const char *)t->at - (const char *)t->base;

	if (t->flags & QL_GPU_NUMBER)
		return true;
	if (element < 0 || t->rank < 0 || t->rank > QL_GPU_MAX_RANK)
		return false;
	for (int d = 0; d < t->rank; d++) {
		if (t->shape[d] <= 0)
			return t->shape[d] == 0;
		*(t->stride[d] < 0 ? &lo : &hi) += (t->shape[d] - 1) * t->stride[d];
	}
	bits = ql_element_get(element).bits;
	return t->at && at + lo * bits / 8 >= 0 && at + ((hi + 1) * bits + 7) / 8 <= (int64_t)t->bytes;
}

static bool codes_inside(const struct ql_gpu_codes *c)
{
	return (!c->scale || inside(c->scale)) && (!c->zero_point || inside(c->zero_point)) &&
	       (!c->shift || inside(c->shift)) && (!c->each_bits || inside(c->each_bits));
}

int32_t ql_extent_outside(const struct ql_gpu_call *call)
{
	for (int32_t i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];

		if (!inside(t) || (t->codes && !codes_inside(t->codes)))
			return i + 1;
	}
	return 0;
}
