/* SPDX-License-Identifier: MIT
 * The range of one tensor: on a device by a kernel, whose 8 bytes are read.
 */
#include <math.h>

#include "quant/ranges/observer.h"
#include "tensor/loops/dense.h"
#include "tensor/op.h"
#include "tensor/remote.h"

/* An op in no table. The result: the smallest and the largest finite value of the operand as float32. */
static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	ql_result_set(call, 0, QL_float32, 1, (const int64_t[]){2});
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	float *out = ql_tensor_data(call->out[0]);
	struct ql_tensor *x;
	enum ql_status status = ql_dense_of(ctx, call->in[0], QL_float32, &x);
	int64_t n = status ? 0 : ql_tensor_nelem(x);
	const float *v = status ? NULL : ql_tensor_data(x);

	out[0] = INFINITY;
	out[1] = -INFINITY;
	for (int64_t i = 0; i < n; i++)
		if (isfinite(v[i])) {
			out[0] = v[i] < out[0] || (v[i] == out[0] && signbit(v[i])) ? v[i] : out[0];
			out[1] = v[i] > out[1] || (v[i] == out[1] && !signbit(v[i])) ? v[i] : out[1];
		}
	ql_tensor_release(ctx, x);
	return status;
}

static const struct ql_op finite_range = {
	.doc = {.name = "finite_range"}, .arity_min = 1, .arity_max = 1, .infer = infer, .eval = eval};

enum ql_status ql_finite_range(struct ql_ctx *ctx, struct ql_tensor *x, double *lo, double *hi)
{
	struct ql_tensor *found, *host = NULL;
	enum ql_status status;

	ctx->nograd++;
	status = ql_op_run(ctx, &finite_range, x, NULL, &found);
	ctx->nograd--;
	if (!status)
		status = ql_tensor_host(ctx, found, &host);
	if (!status) {
		*lo = ql_tensor_at_f64(host, 0);
		*hi = ql_tensor_at_f64(host, 1);
	}
	ql_tensor_release(ctx, host);
	ql_tensor_release(ctx, found);
	return status;
}
