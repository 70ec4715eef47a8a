/* SPDX-License-Identifier: MIT
 * x[mask] and x[mask] = y with a bool tensor of x's own shape, or of its leading axes: the slices along the others.
 */
#include "tensor/assign.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define POLL 65536 /* elements between two polls of the interrupt flag */

static enum ql_status check_mask(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *mask = call->in[1];
	bool fits = ql_dtype_is_bool(mask->dtype) && mask->rank <= x->rank && (mask->rank > 0 || x->rank == 0);
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	for (int d = 0; fits && d < mask->rank; d++)
		fits = mask->shape[d] == x->shape[d];
	if (!fits)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a bool mask of shape %s or of its leading axes, got %s",
			call->op->doc.name, ql_shape_text(x->rank, x->shape, a), ql_tensor_text(mask, b));
	return QL_OK;
}

/* Elements of x for each of the mask. */
static int64_t inner_of(const struct ql_call *call)
{
	int64_t n = 1;

	for (int d = call->in[1]->rank; d < call->in[0]->rank; d++)
		n *= call->in[0]->shape[d];
	return n;
}

/* The sizes of `marks` slices of x. */
static int chosen_shape(const struct ql_call *call, int64_t marks, int64_t shape[QL_MAX_RANK])
{
	const struct ql_tensor *x = call->in[0];
	int rank = 0;

	shape[rank++] = marks;
	for (int d = call->in[1]->rank; d < x->rank; d++)
		shape[rank++] = x->shape[d];
	return rank;
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
	int64_t n, shape[QL_MAX_RANK];

	if (!status)
		status = count_true(ctx, call->in[1], &n);
	if (status)
		return status;
	ql_result_set(call, 0, ql_operand_dtype(call->in[0]), chosen_shape(call, n, shape), shape);
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
	int64_t n = ql_tensor_nelem(mask), at = 0, inner = inner_of(call);
	enum ql_status status = ql_tensor_contiguous(ctx, call->in[0], &x);

	call->path = ql_dtype_name(call->in[0]->dtype);
	if (status)
		return status;
	for (int64_t i = 0; i < n && !status; i++) {
		if (stopped(ctx, i))
			status = interrupted(ctx);
		else if (ql_tensor_at_f64(mask, i) != 0)
			for (int64_t k = 0; k < inner; k++)
				copy_element(x, i * inner + k, call->out[0], at++);
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
		.text = "The elements of x where the bool tensor mask, of the same shape, is true, in order, with one axis. A mask of the "
			"shape of the leading axes chooses slices, as rows of a matrix: they have the axes that are left.",
		.example = "x = tensor{1,-2,3}\nprint(x[x:gt(0)])  --> float32(2)  1 3\n"
			   "y = tensor{{1,2},{3,4},{5,6}}\nprint(y[y:sum(2):gt(4)]:size())  --> 2\t2"},
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

/* Gives the values, cast: one, as many as there are marked elements, or such that broadcast to the marked slices. */
static enum ql_status values_of(
	struct ql_ctx *ctx, const struct ql_call *call, unsigned dtype, int64_t marks, struct ql_tensor **out)
{
	struct ql_tensor *given = call->in[2], *wide = NULL;
	int64_t n = ql_tensor_nelem(given), wanted = marks * inner_of(call), shape[QL_MAX_RANK];
	int rank = chosen_shape(call, marks, shape);
	enum ql_status status;

	if (n == 1 || n == wanted)
		return ql_tensor_cast(ctx, given, dtype, out);
	if (rank == 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "index: wanted one value or %lld for the mask, got %lld",
			(long long)marks, (long long)n);
	status = ql_view_expand(ctx, "index", given, rank, shape, &wide);
	if (!status)
		status = ql_tensor_cast(ctx, wide, dtype, out);
	ql_tensor_release(ctx, wide);
	return status;
}

/* The result is x with the marked elements replaced by the values. */
static enum ql_status eval_assign(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *mask = call->in[1], *value = NULL;
	int64_t n = ql_tensor_nelem(mask), marks, at = 0, inner = inner_of(call);
	enum ql_status status = count_true(ctx, mask, &marks);
	bool one = ql_tensor_nelem(call->in[2]) == 1;

	if (!status)
		status = values_of(ctx, call, out->dtype, marks, &value);
	if (!status)
		status = ql_tensor_copy(ctx, out, call->in[0]);
	for (int64_t i = 0; i < n && !status; i++) {
		if (stopped(ctx, i))
			status = interrupted(ctx);
		else if (ql_tensor_at_f64(mask, i) != 0)
			for (int64_t k = 0; k < inner; k++)
				copy_element(value, one ? 0 : at++, out, i * inner + k);
	}
	ql_tensor_release(ctx, value);
	return status;
}

/* The gradient of the marked elements goes to the value; a single number gets their sum. */
static enum ql_status assign_backward(struct ql_back *b)
{
	const struct ql_result *value = ql_back_shape(b, 2), *x = ql_back_shape(b, 0);
	struct ql_tensor *mask = ql_back_in(b, 1), *g = ql_back_grad(b, 0), *part, *marked = mask;
	int64_t shape[QL_MAX_RANK], n = ql_tensor_nelem(b->call.in[2]);

	for (int d = 0; mask && d < x->rank; d++)
		shape[d] = d < mask->rank ? mask->shape[d] : 1;
	if (mask && mask->rank < x->rank)
		marked = ql_back_expand(b, ql_back_reshape(b, mask, x->rank, shape), x->rank, x->shape);
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run3(b, &ql_op_where, marked, ql_back_number(b, 0, g), g));
	if (!ql_back_wants(b, 2))
		return b->status;
	part = ql_back_run(b, &ql_op_maskedselect, g, mask);
	if (part && n != 1 && n != ql_tensor_nelem(part)) {
		ql_back_give(b, 2, part); /* summed over what was broadcast */
		return b->status;
	}
	if (part && n == 1)
		part = ql_back_sum(b, part, (1u << part->rank) - 1, false);
	ql_back_give(b, 2, ql_back_reshape(b, part, value->rank, value->shape));
	return b->status;
}

const struct ql_op ql_op_maskedassign = {
	.doc = {.name = "maskedassign",
		.usage = "x[mask] = y",
		.text = "x with the elements marked by the bool tensor mask replaced by y: one number, or one value per mark. A mask of "
			"the shape of the leading axes marks slices: y is a number or broadcasts to x[mask].",
		.example = "x = tensor{1,-2,3}\nx[x:lt(0)] = 0\nprint(x)  --> float32(3)  1 0 3"},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_INPLACE | QL_NUMBERS,
	.infer = infer_assign,
	.eval = eval_assign,
	.backward = assign_backward,
	.saves = QL_SAVE(1),
};
