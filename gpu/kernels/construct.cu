/* SPDX-License-Identifier: MIT
 * zeros, empty, ones, full, arange and eye by tensor/ops/construct.c: numbers are computed in float64 and stored once.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

struct construction {
	void *out;
	int64_t n, stride;  /* elements to be written, and their distance */
	double first, step; /* of a constant: first */
	int32_t to;
	bool range;
};

QL_KERNEL(THREADS) construct(construction c)
{
	for (int64_t i = ql_thread(); i < c.n; i += ql_threads()) {
		double x = c.first;

		if (c.range)
			x = c.first + (double)(i + QL_BUG(construct_place)) * c.step;
		ql_store_f64(c.to, c.out, i * c.stride, x);
	}
}

/* ---- the call ---- */

static bool is_zero(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "zeros") || !strcmp(call->op, "empty");
}

/* The diagonal of the result. */
static void start_eye(const struct ql_gpu_call *call, construction *c)
{
	int64_t m = call->out->shape[0], n = call->out->shape[1], k = ql_option_integer(call, "diagonal", 0);
	int64_t right = k < 0 ? 0 : k < n ? k : n, down = k > 0 ? 0 : k > -m ? -k : m;

	c->n = m - down < n - right ? m - down : n - right;
	c->stride = n + 1;
	c->out = static_cast<char *>(c->out) + (down * n + right) * ql_element_get(c->to).bits / 8;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *out = call->out;
	bool is_eye = !strcmp(call->op, "eye");
	construction c = {};
	cudaError_t error;

	c.out = out->at;
	c.n = ql_count(out);
	c.stride = 1;
	c.to = ql_element_of(out->dtype);
	c.first = ql_option_number(call, "value", 1);
	if (c.n == 0)
		return cudaSuccess;
	if (is_zero(call) || is_eye) {
		error = cudaMemsetAsync(c.out, 0, (size_t)(c.n * ql_element_get(c.to).bits / 8), place->stream);
		if (error || !is_eye)
			return error;
		start_eye(call, &c);
		if (c.n <= 0)
			return cudaSuccess;
	}
	if (!strcmp(call->op, "arange")) {
		c.range = true;
		c.first = ql_option_number(call, "first", 0);
		c.step = ql_option_number(call, "step", 1);
	}
	return ql_launch_free(construct, ql_blocks(c.n, THREADS), dim3(THREADS), place->stream, c);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_construct;
const struct ql_gpu_kernel ql_gpu_kernel_construct = {
	"zeros empty ones full arange eye", "construct", "simt", QL_GPU_BITS, 80, ql_plan_made, run};
