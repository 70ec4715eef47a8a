/* SPDX-License-Identifier: MIT
 * logsumexp over any axes: relative to the largest element, so that nothing overflows (tensor/loops/exponentials.h).
 */
#include <math.h>

#include "tensor/loops/exponentials.h"
#include "tensor/loops/lines.h"
#include "tensor/loops/reduce.h"
#include "tensor/ops/ops.h"

#define LOGSUMEXP(suffix, type, logsum) \
	static void logsumexp_##suffix(const struct ql_line *l) \
	{ \
		const type *x = l->in; \
		type most = (type)-INFINITY, *out = l->out; \
		bool nan = false; \
\
		for (int64_t i = 0; i < l->n; i++) { \
			most = x[i] > most ? x[i] : most; \
			nan |= x[i] != x[i]; \
		} \
		if (nan) \
			*out = (type)NAN; \
		else if (isinf(most)) \
			*out = most; \
		else \
			*out = (type)(logsum); \
	}
LOGSUMEXP(f32, float, ql_row_logsum(l->variant, x, l->n))
LOGSUMEXP(f64, double, ql_row_logsum_f64(x, l->n))

static const struct ql_lines kind = {.f32 = logsumexp_f32, .f64 = logsumexp_f64, .ns_per_element = 2};

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);

	return ql_reduce_shape(ctx, call, ql_dtype_is_float(dtype) ? dtype : QL_float32);
}

/* Nothing to add gives the logarithm of 0. */
static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor in, out, *copy = NULL;
	unsigned mask;
	enum ql_status status = ql_reduce_axes(ctx, call, &mask);

	if (!status && ql_tensor_nelem(call->in[0]) == 0)
		return ql_fill(ctx, call->out[0], -INFINITY);
	if (!status)
		status = ql_lines_over(ctx, call->in[0], mask, &in, &copy);
	if (!status) {
		out = ql_lines_results(call->out[0], &in, 1);
		status = ql_lines_run(ctx, call, &kind, &in, &out, NULL, NULL);
	}
	ql_tensor_release(ctx, copy);
	return status;
}

/* g exp(x - result); of infinite results 0, where the difference has no value */
static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *x = ql_back_in(b, 0), *y = ql_back_out(b, 0), *g = ql_back_grad(b, 0), *share, *finite;

	finite = ql_back_run(b, &ql_op_isfinite, y, NULL);
	y = ql_back_run3(b, &ql_op_where, finite, y, ql_back_number(b, 0, y));
	g = ql_back_run3(b, &ql_op_where, finite, g, ql_back_number(b, 0, g));
	share = ql_back_run(b, &ql_op_exp, ql_back_run(b, &ql_op_sub, x, ql_back_spread(b, y)), NULL);
	ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, ql_back_spread(b, g), share));
	return b->status;
}

const struct ql_op ql_op_logsumexp = {
	.doc = {.name = "logsumexp",
		.usage = "x:logsumexp()  x:logsumexp(axis)  x:logsumexp{axis=, keep=}",
		.text = "Logarithm of the sum of the exponentials, over all elements or the given axes, without overflow. Integers give "
			"float32. Of nothing it is -inf.",
		.example = "print(tensor{1000,1000}:logsumexp():item())  --> 1000.6931762695",
		.attrs = ql_reduce_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};
