/* SPDX-License-Identifier: MIT
 * gather and scatter along an axis by an index tensor of the same rank. Elements are copied without conversion. One
 * thread processes a line of the index in order, so the last of several writes to one element wins.
 */
#include <stdatomic.h>
#include <string.h>

#include "tensor/autograd/scattered.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/walk.h"

#define PIECE 256 /* indices converted at a time */

enum { INDEX, FROM, TO };

struct move_job {
	struct ql_walk walk; /* over lines of the index; operands as above */
	const struct ql_tensor *index;
	const void *from;
	void *to;
	const struct ql_dtype_info *from_dtype, *to_dtype;
	int64_t n;         /* indices of a line */
	int64_t size;      /* valid indices: 1..size, -size..-1 */
	int64_t stride[3]; /* along the axis */
	bool scatter;
	enum ql_placing how;
	_Atomic int64_t wrong; /* an index that is out of range, or 0 */
	atomic_bool bad;
};

/* Element i of `from` onto element k of `to`. */
static void move(const struct move_job *j, int64_t i, int64_t k)
{
	size_t size = j->to_dtype->bits / 8u;
	bool set = j->how == QL_PLACE_SET;

	if (j->from_dtype == j->to_dtype && size && set) {
		const char *source = (const char *)j->from + (size_t)i * size;
		char *target = (char *)j->to + (size_t)k * size;

		if (size == 4)
			memcpy(target, source, 4);
		else
			memcpy(target, source, size);
	} else if (j->how == QL_PLACE_ADD && j->from_dtype == j->to_dtype && j->to_dtype == &ql_dtypes[QL_float32]) {
		((float *)j->to)[k] += ((const float *)j->from)[i];
	} else if (j->to_dtype->kind == QL_KIND_FLOAT) {
		double x, y = 0;

		j->from_dtype->to_f64(j->from, i, 1, 1, &x);
		if (!set)
			j->to_dtype->to_f64(j->to, k, 1, 1, &y);
		x = ql_place_f64(j->how, y, x);
		j->to_dtype->from_f64(j->to, k, 1, 1, &x);
	} else {
		int64_t x, y = 0;

		j->from_dtype->to_i64(j->from, i, 1, 1, &x);
		if (!set)
			j->to_dtype->to_i64(j->to, k, 1, 1, &y);
		x = ql_place_i64(j->how, y, x);
		j->to_dtype->from_i64(j->to, k, 1, 1, &x);
	}
}

/* The 0-based index; -1, recording the index, if it is invalid. */
static int64_t checked(struct move_job *j, int64_t index)
{
	int64_t i = index < 0 ? index + j->size : index - 1;

	if (i >= 0 && i < j->size && index != 0)
		return i;
	j->wrong = index;
	j->bad = true;
	return -1;
}

static void move_line(struct move_job *j, int64_t line)
{
	int64_t at[QL_MAX_WALK], index[PIECE];
	const struct ql_dtype_info *d = &ql_dtypes[j->index->dtype];

	ql_walk_row(&j->walk, line / j->walk.row, at);
	for (int k = 0; k < 3; k++)
		at[k] += line % j->walk.row * ql_walk_stride(&j->walk, k);
	for (int64_t begin = 0; begin < j->n; begin += PIECE) {
		int64_t n = ql_min64(PIECE, j->n - begin);

		d->to_i64(j->index->storage->data, at[INDEX] + begin * j->stride[INDEX], j->stride[INDEX], n, index);
		for (int64_t i = 0; i < n; i++) {
			int64_t there = checked(j, index[i]), here = begin + i;

			if (there < 0)
				return;
			move(j, at[FROM] + (j->scatter ? here : there) * j->stride[FROM],
				at[TO] + (j->scatter ? there : here) * j->stride[TO]);
		}
	}
}

static void move_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		move_line(arg, i);
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct move_job *j, const struct ql_tensor *from,
	struct ql_tensor *to, int axis)
{
	const struct ql_tensor *index = call->in[1], *end[3] = {index, from, to};
	int64_t lines;
	enum ql_status status;

	j->index = index;
	j->from = from->storage->data;
	j->to = to->storage->data;
	j->from_dtype = &ql_dtypes[from->dtype];
	j->to_dtype = &ql_dtypes[to->dtype];
	j->n = index->shape[axis];
	j->walk = (struct ql_walk){.operands = 3};
	for (int d = 0; d < index->rank; d++) {
		if (d == axis)
			continue;
		j->walk.shape[j->walk.rank] = index->shape[d];
		for (int k = 0; k < 3; k++)
			j->walk.stride[k][j->walk.rank] = end[k]->stride[d];
		j->walk.rank++;
	}
	for (int k = 0; k < 3; k++) {
		j->walk.offset[k] = end[k]->offset;
		j->stride[k] = end[k]->stride[axis];
	}
	ql_walk_finish(&j->walk, false);
	lines = j->walk.rows * j->walk.row;
	call->path = ql_dtype_name(to->dtype);
	if (j->n == 0 || lines == 0)
		return QL_OK;
	/* neighbouring lines of a packed dtype share bytes: one thread */
	status = ql_parallel_for(ctx, lines, ql_max64(1, 16384 / j->n),
		ql_dtype_is_packed(to->dtype) ? 0 : lines * j->n * 2, move_body, j);
	if (!status && j->bad)
		return ql_places_fault(
			ctx, call->op->doc.name, &(struct ql_fault){.value = j->wrong, .limit = j->size, .axis = axis});
	return status;
}

/* Checks the index: integers, the rank of x, no axis but the gathered one longer than x's. */
static enum ql_status check_index(struct ql_ctx *ctx, const struct ql_call *call, int axis)
{
	const struct ql_tensor *x = call->in[0], *index = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	bool fits = x->rank == index->rank && x->rank > 0;
	enum ql_status status = ql_places_check(ctx, call->op->doc.name, index);

	if (status)
		return status;
	for (int d = 0; fits && d < x->rank; d++)
		fits = d == axis || index->shape[d] <= x->shape[d];
	if (!fits)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: index: wanted as many axes as %s and no longer ones but axis %d, got %s",
			call->op->doc.name, ql_shape_text(x->rank, x->shape, a), axis + 1,
			ql_shape_text(index->rank, index->shape, b));
	return QL_OK;
}

/* scatter and gather along the axis of the recorded call */
static struct ql_placer placer(const struct ql_back *b)
{
	return (struct ql_placer){&ql_op_scatter, &ql_op_gather, {"axis", {.i = ql_call_int(&b->call, "axis", 1)}}};
}

static enum ql_status infer_gather(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *index = call->in[1];
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (!status)
		status = check_index(ctx, call, axis);
	ql_result_set(call, 0, ql_operand_dtype(call->in[0]), index->rank, index->shape);
	return status;
}

static enum ql_status eval_gather(struct ql_ctx *ctx, struct ql_call *call)
{
	struct move_job j = {.scatter = false};
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	j.size = call->in[0]->shape[axis];
	return status ? status : run(ctx, call, &j, call->in[0], call->out[0], axis);
}

/* Adds the gradient of each element to its source. */
static enum ql_status gather_backward(struct ql_back *b)
{
	struct ql_tensor *zeros = ql_back_zeros(b, ql_back_shape(b, 0));
	struct ql_placer p = placer(b);

	ql_back_give(b, 0, ql_placed_put(b, &p, zeros, ql_back_in(b, 1), ql_back_grad(b, 0), "add"));
	return b->status;
}

static const struct ql_attr gather_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis that the index counts along"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_gather = {
	.doc = {.name = "gather",
		.usage = "x:gather(axis, index)",
		.text = "Elements of x by 1-based positions along the axis: for axis 1 of two, result[i][j] = "
			"x[index[i][j]][j]. The result has the shape of the index, an integer tensor with as many "
			"axes as x, nowhere longer than x but along the axis. Negative positions count from the end.",
		.example = "x = tensor{{1,2},{3,4}}\n"
			   "print(x:gather(2, tensor{{2},{1}, dtype='int64'}):view(2))  --> float32(2)  2 3",
		.attrs = gather_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_AXIS_SECOND,
	.infer = infer_gather,
	.eval = eval_gather,
	.fault = ql_places_fault,
	.backward = gather_backward,
	.saves = QL_SAVE(1),
};

static enum ql_status infer_scatter(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *index = call->in[1], *from = call->in[2];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int axis = 0;
	bool fits;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (!status && call->weak & 3)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scatter: wanted x and index as tensors, got a number");
	if (!status && ql_call_bool(call, "add", false) && ql_placing_of(call) != QL_PLACE_ADD)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"scatter: wanted reduce='add' or no reduce= with add=true, got '%s'",
			ql_call_string(call, "reduce", ""));
	if (!status)
		status = check_index(ctx, call, axis);
	if (status)
		return status;
	fits = from->rank == index->rank || call->weak >> 2 & 1;
	for (int d = 0; fits && d < from->rank; d++)
		fits = index->shape[d] <= from->shape[d];
	if (!fits)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"scatter: src: wanted a number or a tensor at least as large as the index %s, got %s",
			ql_shape_text(index->rank, index->shape, a), ql_shape_text(from->rank, from->shape, b));
	return ql_infer_same(ctx, call);
}

static enum ql_status eval_scatter(struct ql_ctx *ctx, struct ql_call *call)
{
	struct move_job j = {.scatter = true, .how = ql_placing_of(call)};
	const struct ql_tensor *index = call->in[1];
	struct ql_tensor from = *call->in[2];
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	if (!status)
		status = ql_tensor_copy(ctx, call->out[0], call->in[0]);
	if (status)
		return status;
	if (from.rank < index->rank) { /* a number for every index */
		from.rank = index->rank;
		memset(from.stride, 0, sizeof(from.stride));
	}
	j.size = call->out[0]->shape[axis];
	return run(ctx, call, &j, &from, call->out[0], axis);
}

static const struct ql_attr scatter_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL | QL_REQUIRED, NULL, "the axis that the index counts along"},
	{"add", QL_ATTR_BOOL, 0, NULL, "the same as reduce='add'"},
	QL_PLACING_ATTR,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* src cut or expanded to the places that are written */
static struct ql_tensor *source(struct ql_back *b, struct ql_tensor *index)
{
	struct ql_tensor *src = ql_back_in(b, 2);

	if (src && src->rank < index->rank) /* a number, which becomes a tensor where the index is */
		return ql_back_run3(b, &ql_op_where, ql_back_run(b, &ql_op_eq, index, index), src, src);
	for (int d = 0; src && d < index->rank; d++)
		src = ql_back_narrow(b, src, d, 0, index->shape[d]);
	return src;
}

/* src may be larger than the index: the rest gets no gradient. */
static enum ql_status scatter_backward(struct ql_back *b)
{
	struct ql_placer p = placer(b);
	struct ql_tensor *index = ql_back_in(b, 1), *part, *all, *view;
	bool reads = ql_placed_saves(&b->call) & QL_SAVE(2);

	part = index ? ql_placed_backward(b, &p, reads ? source(b, index) : NULL) : NULL;
	if (!part)
		return b->status;
	if (ql_back_shape(b, 2)->rank < index->rank) {
		ql_back_give(b, 2, part);
		return b->status;
	}
	all = view = ql_back_zeros(b, ql_back_shape(b, 2));
	for (int d = 0; view && d < view->rank; d++)
		view = ql_back_narrow(b, view, d, 0, index->shape[d]);
	ql_back_put(b, view, part);
	ql_back_give(b, 2, all);
	return b->status;
}

const struct ql_op ql_op_scatter = {
	.doc = {.name = "scatter",
		.usage = "x:scatter(axis, index, src)  x:scatter(axis, index, src, {reduce='add'})",
		.text = "x with elements replaced at 1-based positions along the axis: for axis 1 of two, "
			"result[index[i][j]][j] = src[i][j]. src is a tensor at least as large as the index, or a "
			"number; it is cast to x's dtype. Of several writes to one place the last wins, in row-major "
			"order of the index; with reduce= all are combined with what is there.",
		.example = "x = tensor.zeros(3)\n"
			   "print(x:scatter(1, tensor{3,1, dtype='int64'}, tensor{5,6}))  --> float32(3)  6 0 5",
		.attrs = scatter_attrs},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_AXIS_SECOND | QL_NUMBERS | QL_INPLACE,
	.infer = infer_scatter,
	.eval = eval_scatter,
	.backward = scatter_backward,
	.saves_for = ql_placed_saves,
};
