/* SPDX-License-Identifier: MIT
 * gathernd and scatternd: elements or slices by tuples of indices along the leading axes, as in ONNX.
 */
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/autograd/scattered.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const struct ql_attr gather_attrs[] = {
	{"batch", QL_ATTR_INT, 0, NULL, "leading axes that x and the index have in common (default 0)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int batch_of(const struct ql_call *call)
{
	return (int)ql_max64(-1, ql_min64(ql_call_int(call, "batch", 0), QL_MAX_RANK));
}

/* The sizes of what the tuples name, and the number of axes of x that they and the batch take. */
static enum ql_status named_shape(
	struct ql_ctx *ctx, const struct ql_call *call, int *rank, int64_t shape[QL_MAX_RANK], int *axes)
{
	const struct ql_tensor *x = call->in[0], *index = call->in[1];
	const char *op = call->op->doc.name;
	int batch = batch_of(call);
	int64_t k = index->rank ? index->shape[index->rank - 1] : 0;
	bool fits = index->rank > 0 && batch >= 0 && batch < index->rank && batch + k <= x->rank;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	enum ql_status status = ql_places_check(ctx, op, index);

	if (status)
		return status;
	for (int d = 0; d < batch && fits; d++)
		fits = x->shape[d] == index->shape[d];
	if (!fits)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: index: wanted tuples of at most %d indices along its last axis and the same %d batch axes as %s, got %s",
			op, batch > 0 && batch <= x->rank ? x->rank - batch : x->rank, batch,
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(index->rank, index->shape, b));
	*axes = batch + (int)k;
	*rank = index->rank - 1 + x->rank - *axes;
	if (*rank > QL_MAX_RANK)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "%s: wanted a result of at most %d axes, got %d", op, QL_MAX_RANK, *rank);
	memcpy(shape, index->shape, (size_t)(index->rank - 1) * sizeof(*shape));
	memcpy(shape + index->rank - 1, x->shape + *axes, (size_t)(x->rank - *axes) * sizeof(*shape));
	return ql_shape_check(ctx, op, *rank, shape);
}

static enum ql_status infer_gather(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t shape[QL_MAX_RANK];
	int rank = 0, axes = 0;
	enum ql_status status = named_shape(ctx, call, &rank, shape, &axes);

	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(call->in[0]), rank, shape);
	return status;
}

/* Gives x, of whole bytes, as a contiguous matrix: one row for each tuple of indices along the first `axes` axes. */
static enum ql_status rows_of(struct ql_ctx *ctx, struct ql_tensor *x, int axes, struct ql_tensor **out)
{
	struct ql_tensor *dense = NULL;
	int64_t shape[2] = {1, 1};
	enum ql_status status = ql_dense_of(ctx, x, ql_dtype_whole(x->dtype), &dense);

	for (int d = 0; d < x->rank; d++)
		shape[d >= axes] *= x->shape[d];
	if (!status)
		status = ql_view_reshape(ctx, "gathernd", dense, 2, shape, out);
	ql_tensor_release(ctx, dense);
	return status;
}

static enum ql_status eval_gather(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *to = call->out[0], *rows = NULL, *number = NULL, *taken = NULL, *result = NULL;
	int64_t shape[QL_MAX_RANK];
	int rank = 0, axes = 0;
	enum ql_status status = named_shape(ctx, call, &rank, shape, &axes);

	call->path = ql_dtype_name(to->dtype);
	call->kernel = "copy";
	if (!status)
		status = rows_of(ctx, call->in[0], axes, &rows);
	if (!status)
		status = ql_places_of_tuples(ctx, "gathernd", call->in[1], call->in[0], batch_of(call), &number);
	if (!status)
		status = ql_places_take(ctx, rows, 0, ql_tensor_data(number), ql_tensor_nelem(number), &taken);
	if (!status)
		status = ql_view_reshape(ctx, "gathernd", taken, rank, shape, &result);
	if (!status)
		status = ql_tensor_copy(ctx, to, result);
	ql_tensor_release(ctx, rows);
	ql_tensor_release(ctx, number);
	ql_tensor_release(ctx, taken);
	ql_tensor_release(ctx, result);
	return status;
}

static struct ql_placer placer(const struct ql_back *b)
{
	return (struct ql_placer){
		&ql_op_scatternd, &ql_op_gathernd, {"batch", {.i = ql_call_int(&b->call, "batch", 0)}}};
}

static enum ql_status gather_backward(struct ql_back *b)
{
	struct ql_tensor *zeros = ql_back_zeros(b, ql_back_shape(b, 0));
	struct ql_placer p = placer(b);

	ql_back_give(b, 0, ql_placed_put(b, &p, zeros, ql_back_in(b, 1), ql_back_grad(b, 0), "add"));
	return b->status;
}

const struct ql_op ql_op_gathernd = {
	.doc = {.name = "gathernd",
		.usage = "x:gathernd(index)  x:gathernd(index, {batch=})",
		.text = "Elements of x by tuples of 1-based indices along the last axis of an integer tensor: tuples of as many "
			"indices as x has axes give elements, shorter ones the slices along the axes that are left. Negative "
			"indices count from the end. The first `batch` axes are common to x and the index. ONNX's GatherND.",
		.example = "x = tensor{{1,2},{3,4}}\n"
			   "print(x:gathernd(tensor{{1,2},{2,1}, dtype='int64'}))  --> float32(2)  2 3\n"
			   "print(x:gathernd(tensor{{2}, dtype='int64'}))  --> float32(1, 2)\n--> 3 4",
		.attrs = gather_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer_gather,
	.eval = eval_gather,
	.backward = gather_backward,
	.saves = QL_SAVE(1),
};

/* ---- writing ---- */

static const struct ql_attr scatter_attrs[] = {
	{"batch", QL_ATTR_INT, 0, NULL, "leading axes that x and the index have in common (default 0)"},
	QL_PLACING_ATTR,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_scatter(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *src = call->in[2], *wide = NULL;
	int64_t shape[QL_MAX_RANK];
	int rank = 0, axes = 0;
	enum ql_status status;

	if (call->weak & 3)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scatternd: wanted x and index as tensors, got a number");
	status = named_shape(ctx, call, &rank, shape, &axes);
	if (!status && !src->q)
		status = ql_view_expand(ctx, "scatternd: src", src, rank, shape, &wide);
	ql_tensor_release(ctx, wide);
	return status ? status : ql_infer_same(ctx, call);
}

/* Gives src, cast and expanded, as a matrix of one row for each tuple. */
static enum ql_status source(struct ql_ctx *ctx, const struct ql_call *call, unsigned dtype, int64_t inner, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	struct ql_tensor *wide = NULL, *dense = NULL;
	const struct ql_tensor *index = call->in[1];
	int64_t matrix[2] = {1, inner};
	enum ql_status status = ql_view_expand(ctx, "scatternd: src", call->in[2], rank, shape, &wide);

	for (int d = 0; d < index->rank - 1; d++)
		matrix[0] *= index->shape[d];
	if (!status)
		status = ql_tensor_cast(ctx, wide, dtype, &dense);
	if (!status)
		status = ql_view_reshape(ctx, "scatternd", dense, 2, matrix, out);
	ql_tensor_release(ctx, wide);
	ql_tensor_release(ctx, dense);
	return status;
}

static enum ql_status eval_scatter(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *to = call->out[0], *out = NULL, *rows = NULL, *number = NULL, *src = NULL;
	int64_t shape[QL_MAX_RANK];
	int rank = 0, axes = 0;
	enum ql_status status = named_shape(ctx, call, &rank, shape, &axes);

	call->path = ql_dtype_name(to->dtype);
	call->kernel = "copy";
	if (!status)
		status = ql_dense_result(ctx, to, ql_dtype_whole(to->dtype), &out);
	if (!status)
		status = ql_tensor_copy(ctx, out, call->in[0]);
	if (!status)
		status = rows_of(ctx, out, axes, &rows); /* a view: out is dense */
	if (!status)
		status = ql_places_of_tuples(ctx, "scatternd", call->in[1], call->in[0], batch_of(call), &number);
	if (!status)
		status = source(ctx, call, out->dtype, rows->shape[1], rank, shape, &src);
	if (!status)
		status = ql_places_put(
			ctx, rows, 0, ql_tensor_data(number), ql_tensor_nelem(number), src, ql_placing_of(call));
	ql_tensor_release(ctx, rows);
	ql_tensor_release(ctx, number);
	ql_tensor_release(ctx, src);
	return ql_dense_finish(ctx, to, out, status);
}

static enum ql_status scatter_backward(struct ql_back *b)
{
	struct ql_placer p = placer(b);
	struct ql_tensor *like = ql_placed_take(b, &p, ql_back_grad(b, 0), ql_back_in(b, 1)), *src = NULL;

	if (like && ql_placed_saves(&b->call) & QL_SAVE(2))
		src = ql_back_expand(b, ql_back_in(b, 2), like->rank, like->shape);
	ql_back_give(b, 2, ql_placed_backward(b, &p, src));
	return b->status;
}

const struct ql_op ql_op_scatternd = {
	.doc = {.name = "scatternd",
		.usage = "x:scatternd(index, src)  x:scatternd(index, src, {reduce='add', batch=})",
		.text = "x with the elements or slices replaced that tuples of 1-based indices along the last axis of an integer "
			"tensor name, as in gathernd. src is a number, or a tensor that broadcasts to the shape of "
			"x:gathernd(index); it is cast to x's dtype. Of several writes to one place the last wins; with reduce= "
			"all are combined with what is there. ONNX's ScatterND.",
		.example =
			"x = tensor.zeros(2, 2)\n"
			"print(x:scatternd(tensor{{1,2},{2,1}, dtype='int64'}, tensor{5,6}):view(4))  --> float32(4)  0 5 6 0",
		.attrs = scatter_attrs},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_NUMBERS | QL_INPLACE,
	.infer = infer_scatter,
	.eval = eval_scatter,
	.backward = scatter_backward,
	.saves_for = ql_placed_saves,
};
