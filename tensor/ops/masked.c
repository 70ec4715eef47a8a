/* SPDX-License-Identifier: MIT
 * x[mask] and x[mask] = y with a bool tensor of x's own shape.
 */
#include "tensor/assign.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define POLL 65536 /* elements between two polls of the interrupt flag */

static enum ql_status check_mask(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *mask = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (!ql_dtype_is_bool(mask->dtype) || !ql_tensor_same_shape(x, mask))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a bool mask of shape %s, got %s", call->op->doc.name,
			ql_shape_text(x->rank, x->shape, a), ql_tensor_text(mask, b));
	return QL_OK;
}

/* Called for each element; polls the flag every POLL elements. */
static bool stopped(const struct ql_ctx *ctx, int64_t i)
{
	return i % POLL == 0 && ql_stopped(ctx);
}

static enum ql_status interrupted(struct ql_ctx *ctx)
{
	return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
}

static enum ql_status count_true(struct ql_ctx *ctx, const struct ql_tensor *mask, int64_t *count)
{
	int64_t n = ql_tensor_nelem(mask);

	*count = 0;
	for (int64_t i = 0; i < n; i++) {
		if (stopped(ctx, i))
			return interrupted(ctx);
		*count += ql_tensor_at_f64(mask, i) != 0;
	}
	return QL_OK;
}

static enum ql_status infer_select(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = check_mask(ctx, call);
	int64_t n;

	if (!status)
		status = count_true(ctx, call->in[1], &n);
	if (status)
		return status;
	ql_result_set(call, 0, ql_operand_dtype(call->in[0]), 1, &n);
	return QL_OK;
}

/* The position in memory of element i, in row-major order, of a contiguous tensor; rows of packed types are padded. */
static int64_t position(const struct ql_tensor *t, int64_t i)
{
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

	if (!ql_dtype_is_packed(t->dtype))
		return t->offset + i;
	return t->offset + i / row * ql_dtype_pitch(t->dtype, row) + i % row;
}

/* Copies element i of `from` to element j of `to`, both contiguous and of one dtype. */
static void copy_element(const struct ql_tensor *from, int64_t i, struct ql_tensor *to, int64_t j)
{
	const struct ql_dtype_info *d = &ql_dtypes[from->dtype];
	int64_t integer;
	double real;

	if (d->kind == QL_KIND_FLOAT) {
		d->to_f64(from->storage->data, position(from, i), 1, 1, &real);
		d->from_f64(to->storage->data, position(to, j), 1, 1, &real);
	} else {
		d->to_i64(from->storage->data, position(from, i), 1, 1, &integer);
		d->from_i64(to->storage->data, position(to, j), 1, 1, &integer);
	}
}

static enum ql_status eval_select(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL, *mask = call->in[1];
	int64_t n = ql_tensor_nelem(mask), at = 0;
	enum ql_status status = ql_tensor_contiguous(ctx, call->in[0], &x);

	call->path = ql_dtype_name(call->in[0]->dtype);
	if (status)
		return status;
	for (int64_t i = 0; i < n && !status; i++) {
		if (stopped(ctx, i))
			status = interrupted(ctx);
		else if (ql_tensor_at_f64(mask, i) != 0)
			copy_element(x, i, call->out[0], at++);
	}
	ql_tensor_release(ctx, x);
	return status;
}

static enum ql_status select_backward(struct ql_back *b)
{
	struct ql_tensor *zeros = ql_back_zeros(b, ql_back_shape(b, 0));

	ql_back_give(b, 0, ql_back_run3(b, &ql_op_maskedassign, zeros, ql_back_in(b, 1), ql_back_grad(b, 0)));
	return b->status;
}

const struct ql_op ql_op_maskedselect = {
	.doc = {.name = "maskedselect",
		.usage = "x[mask]",
		.text = "The elements of x where the bool tensor mask, of the same shape, is true, in order, with one axis.",
		.example = "x = tensor{1,-2,3}\nprint(x[x:gt(0)])  --> float32(2)  1 3"},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer_select,
	.eval = eval_select,
	.backward = select_backward,
	.saves = QL_SAVE(1),
};

static enum ql_status infer_assign(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = check_mask(ctx, call);

	return status ? status : ql_infer_same(ctx, call);
}

/* The result is x with the marked elements replaced by the value: one number, or as many values as marks. */
static enum ql_status eval_assign(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *mask = call->in[1], *value = NULL;
	int64_t n = ql_tensor_nelem(mask), marks, given = ql_tensor_nelem(call->in[2]), at = 0;
	enum ql_status status = count_true(ctx, mask, &marks);

	if (status)
		return status;
	if (given != 1 && given != marks)
		return ql_fail(ctx, QL_ERR_SHAPE, "index: wanted one value or %lld for the mask, got %lld",
			(long long)marks, (long long)given);
	status = ql_tensor_copy(ctx, out, call->in[0]);
	if (!status)
		status = ql_tensor_cast(ctx, call->in[2], out->dtype, &value);
	if (status)
		return status;
	for (int64_t i = 0; i < n && !status; i++) {
		if (stopped(ctx, i))
			status = interrupted(ctx);
		else if (ql_tensor_at_f64(mask, i) != 0)
			copy_element(value, given == 1 ? 0 : at++, out, i);
	}
	ql_tensor_release(ctx, value);
	return status;
}

/* The gradient of the marked elements goes to the value; a single number gets their sum. */
static enum ql_status assign_backward(struct ql_back *b)
{
	const struct ql_result *value = ql_back_shape(b, 2);
	struct ql_tensor *mask = ql_back_in(b, 1), *g = ql_back_grad(b, 0), *part;

	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run3(b, &ql_op_where, mask, ql_back_number(b, 0, g), g));
	if (!ql_back_wants(b, 2))
		return b->status;
	part = ql_back_run(b, &ql_op_maskedselect, g, mask);
	if (ql_tensor_nelem(b->call.in[2]) == 1)
		part = ql_back_sum(b, part, 1, false);
	ql_back_give(b, 2, ql_back_reshape(b, part, value->rank, value->shape));
	return b->status;
}

const struct ql_op ql_op_maskedassign = {
	.doc = {.name = "maskedassign",
		.usage = "x[mask] = y",
		.text = "x with the elements marked by the bool tensor mask replaced by y: one number, or one value per mark.",
		.example = "x = tensor{1,-2,3}\nx[x:lt(0)] = 0\nprint(x)  --> float32(3)  1 0 3"},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_INPLACE | QL_NUMBERS,
	.infer = infer_assign,
	.eval = eval_assign,
	.backward = assign_backward,
	.saves = QL_SAVE(1),
};
