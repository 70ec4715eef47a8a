/* SPDX-License-Identifier: MIT
 * bincount: how often each number occurs, or the sum of its weights. Sums are float64, in the order of the elements.
 */
#include <string.h>

#include "tensor/loops/places.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const struct ql_attr attrs[] = {
	{"n", QL_ATTR_INT, QL_POSITIONAL, NULL, "bins, at least (default: the largest number in x)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Gives x as contiguous int64; *bins is the number of bins. */
static enum ql_status read_numbers(
	struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **out, int64_t *bins)
{
	int64_t n = ql_tensor_nelem(call->in[0]), *x;
	enum ql_status status = ql_tensor_cast(ctx, call->in[0], QL_int64, out);

	x = status || !n ? NULL : ql_tensor_data(*out);
	*bins = ql_call_int(call, "n", 0);
	if (!status && *bins < 0)
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "bincount: n: wanted 0 or more, got %lld", (long long)*bins);
	for (int64_t i = 0; i < n && !status; i++) {
		if (x[i] < 1)
			status = ql_fail(
				ctx, QL_ERR_ARGUMENT, "bincount: wanted numbers from 1, got %lld", (long long)x[i]);
		*bins = ql_max64(*bins, x[i]);
	}
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return status;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL;
	const struct ql_tensor *weights = call->n_in > 1 ? call->in[1] : NULL;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	unsigned dtype = weights ? ql_operand_dtype(weights) : QL_int64;
	int64_t bins = 0;
	enum ql_status status = ql_places_check(ctx, "bincount", call->in[0]);

	if (!status && weights && !ql_tensor_same_shape(weights, call->in[0]))
		return ql_fail(ctx, QL_ERR_SHAPE, "bincount: weights: wanted the shape of x %s, got %s",
			ql_shape_text(call->in[0]->rank, call->in[0]->shape, a),
			ql_shape_text(weights->rank, weights->shape, b));
	if (!status)
		status = read_numbers(ctx, call, &x, &bins);
	ql_tensor_release(ctx, x);
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_int64, 1, &bins);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL, *weights = NULL, *sums = NULL, *out = call->out[0];
	bool real = ql_dtype_is_float(out->dtype);
	unsigned dtype = real ? QL_float64 : QL_int64;
	int64_t bins = 0, n = ql_tensor_nelem(call->in[0]);
	enum ql_status status = read_numbers(ctx, call, &x, &bins);

	call->path = ql_dtype_name(out->dtype);
	if (!status)
		status = ql_tensor_zeros(ctx, dtype, 1, &bins, &sums);
	if (!status && call->n_in > 1)
		status = ql_tensor_cast(ctx, call->in[1], dtype, &weights);
	for (int64_t i = 0; i < n && !status; i++) {
		int64_t at = ((const int64_t *)ql_tensor_data(x))[i] - 1;

		if (real)
			((double *)ql_tensor_data(sums))[at] += ((const double *)ql_tensor_data(weights))[i];
		else
			((uint64_t *)ql_tensor_data(sums))[at] +=
				weights ? ((const uint64_t *)ql_tensor_data(weights))[i] : 1;
	}
	if (!status)
		status = ql_tensor_copy(ctx, out, sums);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, weights);
	ql_tensor_release(ctx, sums);
	return status;
}

static enum ql_status backward(struct ql_back *b)
{
	struct ql_named first[] = {{"axis", {.i = 1}}, {NULL, {.set = false}}};

	if (b->node->n_in > 1 && ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_with(b, &ql_op_indexselect, ql_back_grad(b, 0), ql_back_in(b, 0), first));
	return b->status;
}

const struct ql_op ql_op_bincount = {
	.doc = {.name = "bincount",
		.usage = "x:bincount()  x:bincount(n)  x:bincount(weights, {n=})",
		.text = "How often each number from 1 occurs in x, an integer tensor of any shape: int64, as long as the largest number, or "
			"n if that is more. With weights of the shape of x it is the sum of the weights of each number, in their dtype "
			"(integers: int64).",
		.example =
			"print(tensor{1,3,3, dtype='int64'}:bincount())  --> int64(3)  1 0 2\n"
			"print(tensor{1,3,3, dtype='int64'}:bincount(tensor{0.5,1,2}, {n=4}))  --> float32(4)  0.5 0.0 3.0 0.0",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE(0),
};
