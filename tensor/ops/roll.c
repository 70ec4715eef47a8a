/* SPDX-License-Identifier: MIT
 * roll and repeatinterleave: copies of indices of one axis, or of all elements in row-major order.
 */
#include <math.h>
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/loops/places.h"
#include "tensor/autograd/scattered.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

/* ---- what both share ---- */

/* The axis of the call; -1: none is given. */
static enum ql_status axis_of(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = -1;
	return ql_call_axis(ctx, call, "axis", axis);
}

/* Elements along the axis, or all of them. */
static int64_t length_along(const struct ql_tensor *x, int axis)
{
	return axis < 0 ? ql_tensor_nelem(x) : x->shape[axis];
}

/* Gives the indices at[0..m-1] along the axis, or of all elements as one axis. */
static enum ql_status take_along(
	struct ql_ctx *ctx, struct ql_tensor *x, int axis, const int64_t *at, int64_t m, struct ql_tensor **out)
{
	int64_t n = ql_tensor_nelem(x);
	struct ql_tensor *flat = NULL;
	enum ql_status status;

	if (axis >= 0)
		return ql_places_take(ctx, x, axis, at, m, out);
	status = ql_places_reshape(ctx, x, 1, &n, &flat);
	if (!status)
		status = ql_places_take(ctx, flat, 0, at, m, out);
	ql_tensor_release(ctx, flat);
	return status;
}

/* ---- roll ---- */

static const struct ql_attr roll_attrs[] = {
	{"shift", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL,
		"indices to move by, towards the end; negative: the other way"},
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL, NULL, "the axis (default: all elements in row-major order)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_roll(struct ql_ctx *ctx, struct ql_call *call)
{
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);

	return status ? status : ql_infer_same(ctx, call);
}

static enum ql_status eval_roll(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *taken = NULL;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);
	int64_t n = status ? 0 : length_along(x, axis), shift = n ? ql_call_int(call, "shift", 0) % n : 0;
	int64_t *at = ql_scratch_array(ctx, n, sizeof(*at));

	call->path = ql_dtype_name(x->dtype);
	call->kernel = "copy";
	for (int64_t i = 0; at && i < n; i++)
		at[i] = (i - shift + n) % n;
	if (!status)
		status = at ? take_along(ctx, x, axis, at, n, &taken) : QL_ERR_MEMORY;
	if (!status)
		status = ql_places_reshape(ctx, taken, x->rank, x->shape, &call->out[0]);
	ql_scratch_release(ctx, mark);
	ql_tensor_release(ctx, taken);
	return status;
}

static enum ql_status roll_backward(struct ql_back *b)
{
	/* the least integer has no negative */
	int64_t shift = ql_call_int(&b->call, "shift", 0), back = shift == INT64_MIN ? shift : -shift;
	struct ql_named attrs[] = {{"shift", {.i = back}}, {NULL, {.set = false}}};
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, ql_back_all(b, &ql_op_roll, &g, 1, attrs, NULL));
	return b->status;
}

const struct ql_op ql_op_roll = {
	.doc = {.name = "roll",
		.usage = "x:roll(shift)  x:roll(shift, axis)",
		.text = "Elements moved along an axis; those that leave it at one end come in at the other. Without an axis all elements "
			"move in row-major order. Several axes: one call after the other.",
		.example = "print(tensor{1,2,3,4}:roll(1))  --> float32(4)  4  1  2  3",
		.attrs = roll_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer_roll,
	.eval = eval_roll,
	.allocates = true,
	.backward = roll_backward,
};

/* ---- repeatinterleave ---- */

static const struct ql_attr repeat_attrs[] = {
	{"axis", QL_ATTR_AXIS, QL_POSITIONAL, NULL, "the axis (default: all elements in row-major order, as one axis)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status wrong_times(struct ql_ctx *ctx, int64_t n, const struct ql_tensor *times)
{
	char text[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"repeatinterleave: times: wanted a number of 0 or more, or a tensor of %lld of them, got %s",
		(long long)n, ql_tensor_text(times, text));
}

/* Whether t has integers, or is a number of Lua without a fraction: on the tape they are float64. */
static bool counts(const struct ql_tensor *t)
{
	double number = t->rank == 0 && ql_dtype_is_float(t->dtype) ? ql_tensor_at_f64(t, 0) : 0.5;

	return ql_dtype_is_integer(t->dtype) || number == floor(number);
}

/* Gives the repetitions as int64: one number, or one for each index; *total is their sum over all n indices. */
static enum ql_status times_of(
	struct ql_ctx *ctx, const struct ql_call *call, int64_t n, struct ql_tensor **out, int64_t *total)
{
	const struct ql_tensor *given = call->in[1];
	int64_t count = ql_tensor_nelem(given), *times;
	enum ql_status status = ql_tensor_cast(ctx, given, QL_int64, out);

	*total = 0;
	if (status)
		return status;
	if (given->q || !counts(given) || given->rank > 1 || (given->rank == 1 && count != n))
		status = wrong_times(ctx, n, given);
	times = status || !count ? NULL : ql_tensor_data(*out);
	for (int64_t i = 0; i < count && !status; i++)
		if (times[i] < 0 || __builtin_add_overflow(*total, times[i], total))
			status = wrong_times(ctx, n, given);
	if (!status && given->rank == 0 && __builtin_mul_overflow(*total, n, total))
		status = wrong_times(ctx, n, given);
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return status;
}

static enum ql_status infer_repeat(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor *times = NULL;
	int64_t shape[QL_MAX_RANK], total = 0;
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);

	if (!status && call->weak & 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "repeatinterleave: wanted a tensor, got a number");
	if (!status)
		status = times_of(ctx, call, length_along(x, axis), &times, &total);
	ql_tensor_release(ctx, times);
	if (status)
		return status;
	memcpy(shape, x->shape, sizeof(shape));
	shape[axis < 0 ? 0 : axis] = total;
	ql_result_set(call, 0, ql_operand_dtype(x), axis < 0 ? 1 : x->rank, shape);
	return ql_shape_check(ctx, "repeatinterleave", call->result[0].rank, shape);
}

/* Gives, in scratch memory, the index of x along the axis for each of the result. */
static enum ql_status sources(struct ql_ctx *ctx, const struct ql_tensor *times, int64_t n, int64_t total, int64_t **at)
{
	const int64_t *count = n ? ql_tensor_data(times) : NULL;
	int64_t k = 0;

	*at = ql_scratch_array(ctx, total, sizeof(**at));
	if (!*at)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++)
		for (int64_t r = count[times->rank ? i : 0]; r > 0; r--)
			(*at)[k++] = i;
	return QL_OK;
}

static enum ql_status eval_repeat(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *times = NULL;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t n, total = 0, *at = NULL;
	int axis;
	enum ql_status status = axis_of(ctx, call, &axis);

	call->path = ql_dtype_name(x->dtype);
	call->kernel = "copy";
	n = status ? 0 : length_along(x, axis);
	if (!status)
		status = times_of(ctx, call, n, &times, &total);
	if (!status)
		status = sources(ctx, times, n, total, &at);
	if (!status)
		status = take_along(ctx, x, axis, at, total, &call->out[0]);
	ql_scratch_release(ctx, mark);
	ql_tensor_release(ctx, times);
	return status;
}

/* Operands: the gradient of the result, times. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_ints *size = &ql_call_attr(call, "size")->ints;

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(call->in[0]->dtype), size->n, size->at);
	return QL_OK;
}

/* Sums what came from one index. */
static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *sums = call->out[0], *g = NULL, *times = NULL, flat = *sums;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int axis = (int)ql_call_int(call, "axis", 0) - 1;
	int64_t n, total = 0, *at = NULL;
	enum ql_status status = ql_fill(ctx, sums, 0);

	call->path = ql_dtype_name(sums->dtype);
	call->kernel = "ref";
	n = length_along(sums, axis);
	if (axis < 0) {
		flat.rank = 1;
		flat.shape[0] = n;
		flat.stride[0] = 1;
		axis = 0;
	}
	if (!status)
		status = ql_dense_of(ctx, call->in[0], sums->dtype, &g);
	if (!status)
		status = times_of(ctx, call, n, &times, &total);
	if (!status)
		status = sources(ctx, times, n, total, &at);
	if (!status)
		status = ql_places_put(ctx, &flat, axis, at, total, g, QL_PLACE_ADD);
	ql_scratch_release(ctx, mark);
	ql_tensor_release(ctx, times);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_attr repeat_back_attrs[] = {
	{"axis", QL_ATTR_INT, 0, NULL, "1-based; 0: all elements"},
	{"size", QL_ATTR_INTS, 0, NULL, "shape of x"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* not in the table of ops */
static const struct ql_op repeat_back = {.doc = {.name = "repeatinterleave_back", .attrs = repeat_back_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = back_infer,
	.eval = back_eval};

static enum ql_status repeat_backward(struct ql_back *b)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	int axis = -1;
	struct ql_named attrs[] = {{"axis", {.i = 0}}, {"size", {.ints = {in->rank, (int64_t *)(uintptr_t)in->shape}}},
		{NULL, {.set = false}}};

	b->status = b->status ? b->status : axis_of(b->ctx, &b->call, &axis);
	attrs[0].value.i = axis + 1;
	ql_back_give(b, 0, ql_back_with(b, &repeat_back, ql_back_grad(b, 0), ql_back_in(b, 1), attrs));
	return b->status;
}

const struct ql_op ql_op_repeatinterleave = {
	.doc = {.name = "repeatinterleave",
		.usage = "x:repeatinterleave(times)  x:repeatinterleave(times, axis)",
		.text = "Each index of an axis repeated, the copies beside one another: `times` is a number, or an integer tensor with "
			"one number for each index. Without an axis all elements, in row-major order, give one axis. tile repeats the "
			"whole.",
		.example =
			"print(tensor{1,2}:repeatinterleave(2))  --> float32(4)  1  1  2  2\n"
			"print(tensor{1,2,3}:repeatinterleave(tensor{2,0,1, dtype='int64'}, 1))  --> float32(3)  1  1  3",
		.attrs = repeat_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS,
	.infer = infer_repeat,
	.eval = eval_repeat,
	.allocates = true,
	.backward = repeat_backward,
	.saves = QL_SAVE(1),
};
