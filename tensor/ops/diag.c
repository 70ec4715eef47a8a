/* SPDX-License-Identifier: MIT
 * diag: the diagonal of matrices, or a matrix with a diagonal.
 */
#include "tensor/ops/ops.h"

static const struct ql_attr attrs[] = {
	{"diagonal", QL_ATTR_INT, QL_POSITIONAL, NULL, "0: the main diagonal; positive: above it (default 0)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* Turns a header of matrices into one of their diagonals. */
static void take_diagonal(struct ql_tensor *h, int64_t diagonal)
{
	int row = h->rank - 2;
	int64_t m = h->shape[row], n = h->shape[row + 1], right = ql_max64(0, ql_min64(n, diagonal)),
		down = diagonal < 0 ? (diagonal < -m ? m : -diagonal) : 0;
	int64_t length = ql_max64(0, ql_min64(m - down, n - right));

	if (length > 0)
		h->offset += right * h->stride[row + 1] + down * h->stride[row];
	h->shape[row] = length;
	h->stride[row] += h->stride[row + 1];
	h->rank--;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	int64_t k = ql_call_int(call, "diagonal", 0);
	struct ql_tensor h = *x;

	if (x->rank == 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "diag: wanted a vector or matrices, got a tensor without axes");
	if (x->rank >= 2) {
		take_diagonal(&h, k);
		ql_result_set(call, 0, ql_operand_dtype(x), h.rank, h.shape);
		return QL_OK;
	}
	if (k > INT32_MAX || k < -(int64_t)INT32_MAX)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "diag: diagonal: wanted a matrix that fits in memory, got %lld",
			(long long)k);
	h.shape[0] = h.shape[1] = ql_add64(x->shape[0], k < 0 ? -k : k);
	ql_result_set(call, 0, ql_operand_dtype(x), 2, h.shape);
	return ql_shape_check(ctx, "diag", 2, h.shape);
}

static enum ql_status diag(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor h = call->in[0]->rank > 1 ? *call->in[0] : *call->out[0];
	enum ql_status status;

	take_diagonal(&h, ql_call_int(call, "diagonal", 0));
	if (call->in[0]->rank > 1)
		return ql_tensor_copy(ctx, call->out[0], &h);
	status = ql_fill(ctx, call->out[0], 0);
	return status ? status : ql_tensor_copy(ctx, &h, call->in[0]);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
	return ql_eval_in_bytes(ctx, call, diag);
}

/* Of a vector: the same diagonal of the gradient. Of matrices: zeros with the gradient on the diagonal. */
static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	struct ql_tensor *g = ql_back_grad(b, 0), *all, *view = NULL;
	enum ql_status status;

	if (in->rank == 1) {
		ql_back_give(b, 0, ql_back_again(b, &ql_op_diag, g, NULL));
		return b->status;
	}
	all = ql_back_zeros(b, in);
	if (!all)
		return b->status;
	status = ql_tensor_alias(b->ctx, all, &view);
	view = ql_back_own(b, view, status);
	if (view)
		take_diagonal(view, ql_call_int(&b->call, "diagonal", 0));
	ql_back_put(b, view, g);
	ql_back_give(b, 0, all);
	return b->status;
}

const struct ql_op ql_op_diag = {
	.doc = {.name = "diag",
		.usage = "x:diag()  x:diag(diagonal)",
		.text = "Of a vector: the square matrix with it on the diagonal and zeros elsewhere. Of a matrix, or a batch of them along "
			"the last two axes: the elements of the diagonal. Copied.",
		.example = "print(tensor{{1,2},{3,4}}:diag())  --> float32(2)  1 4\n"
			   "print(tensor{5}:diag(1):view(4))  --> float32(4)  0 5 0 0",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_ANYWHERE,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
