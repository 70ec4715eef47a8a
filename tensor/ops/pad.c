/* SPDX-License-Identifier: MIT
 * pad: a border of one value, or of elements of x that are mirrored, repeated or continued periodically. The modes are
 * those of NumPy and ONNX. Negative sizes remove elements, before the border is made.
 */
#include <math.h>
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/loops/places.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"

static const struct ql_attr attrs[] = {
	{"sizes", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL,
		"elements before and after, from the last axis on: pad(1, 2) or pad(1, 2, 3, 4); one number: on both sides of the last "
		"axis; negative ones remove elements"},
	{"value", QL_ATTR_FLOAT, 0, NULL, "what is put there (default 0)"},
	{"mode", QL_ATTR_STRING, 0, "constant reflect edge wrap",
		"the border: the value; x mirrored without its edge; its edge repeated (PyTorch: replicate); x again and again (circular) "
		"(default constant)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

void ql_pad_sizes(const struct ql_call *call, int d, int64_t *before, int64_t *after)
{
	const struct ql_ints *s = &ql_call_attr(call, "sizes")->ints;
	int pair = call->in[0]->rank - 1 - d;

	*before = *after = 0;
	if (s->n == 1 && pair == 0) {
		*before = *after = s->at[0];
	} else if (2 * pair + 1 < s->n) {
		*before = s->at[2 * pair];
		*after = s->at[2 * pair + 1];
	}
}

bool ql_pad_is_constant(const struct ql_call *call)
{
	return !strcmp(ql_call_string(call, "mode", "constant"), "constant");
}

struct ql_tensor ql_pad_cropped(const struct ql_call *call, const struct ql_tensor *t)
{
	struct ql_tensor h = *t;
	int64_t before, after;

	for (int d = 0; d < t->rank; d++) {
		ql_pad_sizes(call, d, &before, &after);
		h.shape[d] += ql_min64(before, 0) + ql_min64(after, 0);
		h.offset -= ql_min64(before, 0) * t->stride[d];
	}
	return h;
}

enum ql_status ql_fill(struct ql_ctx *ctx, struct ql_tensor *t, double value)
{
	struct ql_storage storage = {.refs = 1, .bytes = 8, .data = &value, .device = &ql_device_cpu};
	struct ql_tensor one = *t;

	/* an expanded number */
	one.dtype = QL_float64;
	one.storage = &storage;
	one.offset = 0;
	for (int d = 0; d < one.rank; d++)
		one.stride[d] = 0;
	return ql_tensor_copy(ctx, t, &one);
}

/* ---- sizes ---- */

static bool value_fits(const struct ql_call *call, const struct ql_dtype_info *d)
{
	double v = ql_call_float(call, "value", 0);

	if (d->kind == QL_KIND_FLOAT || d->kind == QL_KIND_BOOL || !ql_call_attr(call, "value"))
		return true;
	return v == nearbyint(v) && v >= (double)d->lo && v <= (double)d->hi;
}

static enum ql_status check(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_ints *s = &ql_call_attr(call, "sizes")->ints;
	const struct ql_tensor *t = call->in[0];

	if (!ql_pad_is_constant(call) && ql_call_attr(call, "value"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "pad: value: wanted none with mode='%s', got %.14g",
			ql_call_string(call, "mode", ""), ql_call_float(call, "value", 0));
	if (!value_fits(call, &ql_dtypes[ql_operand_dtype(t)]))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "pad: value: wanted an integer that fits %s, got %.14g",
			ql_dtype_name(t->dtype), ql_call_float(call, "value", 0));
	if ((s->n != 1 && s->n % 2) || s->n > 2 * t->rank || (s->n == 1 && t->rank == 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "pad: sizes: wanted one number or up to %d pairs, got %d numbers",
			t->rank, s->n);
	return QL_OK;
}

/* The size of the result along axis d. */
static enum ql_status padded_size(struct ql_ctx *ctx, const struct ql_call *call, int d, int64_t *size)
{
	int64_t n = call->in[0]->shape[d], before, after, left;

	ql_pad_sizes(call, d, &before, &after);
	if (before < -n || after < -n || before > INT64_MAX / 4 || after > INT64_MAX / 4 ||
		n + ql_min64(before, 0) + ql_min64(after, 0) < 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"pad: sizes: wanted numbers that remove at most the %lld elements of axis %d, got %lld and %lld",
			(long long)n, d + 1, (long long)before, (long long)after);
	left = n + ql_min64(before, 0) + ql_min64(after, 0);
	if (left == 0 && (before > 0 || after > 0) && !ql_pad_is_constant(call))
		return ql_fail(ctx, QL_ERR_SHAPE,
			"pad: wanted elements along axis %d for a border of mode='%s', got none", d + 1,
			ql_call_string(call, "mode", ""));
	*size = ql_add64(n, before + after);
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *t = call->in[0];
	int64_t shape[QL_MAX_RANK];
	enum ql_status status = check(ctx, call);

	for (int d = 0; d < t->rank && !status; d++)
		status = padded_size(ctx, call, d, &shape[d]);
	if (!status)
		ql_result_set(call, 0, ql_operand_dtype(t), t->rank, shape);
	return status;
}

/* ---- a value ---- */

static enum ql_status pad_constant(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor from = ql_pad_cropped(call, call->in[0]), inner = *call->out[0];
	int64_t before, after;
	enum ql_status status = ql_fill(ctx, call->out[0], ql_call_float(call, "value", 0));

	for (int d = 0; d < from.rank; d++) {
		ql_pad_sizes(call, d, &before, &after);
		inner.offset += ql_max64(before, 0) * inner.stride[d];
		inner.shape[d] = from.shape[d];
	}
	return status ? status : ql_tensor_copy(ctx, &inner, &from);
}

/* ---- elements of x ---- */

/* The index of x, of n, that index i of the border shows; i counts from the first one of x. */
static int64_t shown(const char *mode, int64_t i, int64_t n)
{
	int64_t period = *mode == 'r' ? ql_max64(1, 2 * (n - 1)) : n, at;

	if (*mode == 'e')
		return ql_max64(0, ql_min64(n - 1, i));
	at = i % period < 0 ? i % period + period : i % period;
	return *mode == 'r' && at >= n ? period - at : at;
}

/* The indices of x, without what is removed, that the result shows along axis d, in scratch memory. */
static int64_t *shown_along(struct ql_ctx *ctx, const struct ql_call *call, int d, int64_t n, int64_t size)
{
	const char *mode = ql_call_string(call, "mode", "edge");
	int64_t *at = ql_scratch_array(ctx, size, sizeof(*at)), before, after;

	ql_pad_sizes(call, d, &before, &after);
	for (int64_t i = 0; at && i < size; i++)
		at[i] = shown(mode, i - ql_max64(before, 0), n);
	return at;
}

/* Replaces *t by one with the border along axis d. */
static enum ql_status border(struct ql_ctx *ctx, const struct ql_call *call, int d, int64_t size, struct ql_tensor **t)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *next = NULL;
	int64_t *at;
	enum ql_status status = QL_OK;

	if ((*t)->shape[d] == size)
		return QL_OK;
	at = shown_along(ctx, call, d, (*t)->shape[d], size);
	status = at ? ql_places_take(ctx, *t, d, at, size, &next) : QL_ERR_MEMORY;
	ql_scratch_release(ctx, mark);
	ql_tensor_release(ctx, *t);
	*t = next;
	return status;
}

static enum ql_status pad_shown(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor from = ql_pad_cropped(call, call->in[0]), *t = NULL;
	enum ql_status status = ql_tensor_new(ctx, from.dtype, from.rank, from.shape, &t);

	if (!status)
		status = ql_tensor_copy(ctx, t, &from);
	for (int d = from.rank - 1; d >= 0 && !status; d--)
		status = border(ctx, call, d, call->result[0].shape[d], &t);
	if (!status)
		status = ql_tensor_copy(ctx, call->out[0], t);
	ql_tensor_release(ctx, t);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "copy";
	return ql_eval_in_bytes(ctx, call, ql_pad_is_constant(call) ? pad_constant : pad_shown);
}

static const char *host_only(const struct ql_call *call)
{
	return ql_pad_is_constant(call) ? NULL : "mode";
}

/* ---- gradients ---- */

static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_ints *size = &ql_call_attr(call, "size")->ints;

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(call->in[0]->dtype), size->n, size->at);
	return QL_OK;
}

/* Replaces *t by the sums of what shows the same index along axis d. */
static enum ql_status fold(struct ql_ctx *ctx, const struct ql_call *call, int d, int64_t n, struct ql_tensor **t)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *sums = NULL;
	int64_t shape[QL_MAX_RANK], *at;
	enum ql_status status;

	if ((*t)->shape[d] == n)
		return QL_OK;
	memcpy(shape, (*t)->shape, sizeof(shape));
	shape[d] = n;
	status = ql_tensor_zeros(ctx, (*t)->dtype, (*t)->rank, shape, &sums);
	at = status ? NULL : shown_along(ctx, call, d, n, (*t)->shape[d]);
	if (!status)
		status = at ? ql_places_put(ctx, sums, d, at, (*t)->shape[d], *t, QL_PLACE_ADD) : QL_ERR_MEMORY;
	ql_scratch_release(ctx, mark);
	ql_tensor_release(ctx, *t);
	*t = sums;
	return status;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *g = NULL, inner = ql_pad_cropped(call, call->out[0]);
	enum ql_status status = ql_dense_of(ctx, call->in[0], call->out[0]->dtype, &g);

	call->path = ql_dtype_name(call->out[0]->dtype);
	call->kernel = "ref";
	for (int d = 0; d < inner.rank && !status; d++)
		status = fold(ctx, call, d, inner.shape[d], &g);
	if (!status)
		status = ql_fill(ctx, call->out[0], 0);
	if (!status)
		status = ql_tensor_copy(ctx, &inner, g);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_attr back_attrs[] = {
	{"sizes", QL_ATTR_INTS, 0, NULL, "of pad"},
	{"mode", QL_ATTR_STRING, 0, "reflect edge wrap", "of pad"},
	{"size", QL_ATTR_INTS, 0, NULL, "shape of x"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* not in the table of ops */
static const struct ql_op pad_back = {.doc = {.name = "pad_back", .attrs = back_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = back_infer,
	.eval = back_eval};

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	struct ql_named size[] = {
		{"size", {.ints = {in->rank, (int64_t *)(uintptr_t)in->shape}}}, {NULL, {.set = false}}};
	struct ql_tensor *g = ql_back_grad(b, 0), *all, *view;

	if (!ql_pad_is_constant(&b->call)) {
		ql_back_give(b, 0, ql_back_all(b, &pad_back, &g, 1, size, NULL));
		return b->status;
	}
	all = view = ql_back_zeros(b, in);
	for (int d = 0; d < in->rank; d++) {
		int64_t before, after, n;

		ql_pad_sizes(&b->call, d, &before, &after);
		n = in->shape[d] + ql_min64(before, 0) + ql_min64(after, 0);
		g = ql_back_narrow(b, g, d, ql_max64(before, 0), n);
		view = ql_back_narrow(b, view, d, ql_max64(-before, 0), n);
	}
	ql_back_put(b, view, g);
	ql_back_give(b, 0, all);
	return b->status;
}

const struct ql_op ql_op_pad = {
	.doc = {.name = "pad",
		.usage = "x:pad(1, 2)  x:pad{1, 1, 2, 2, value=}  x:pad{1, 1, mode='reflect'}",
		.text = "A border around x: pairs of sizes before and after, counted from the last axis. It is filled with a value, or "
			"with mode= by elements of x, as often as its size needs. Negative sizes remove elements, which happens before. "
			"Codes are padded with the code that is nearest to the value.",
		.example = "print(tensor{1,2}:pad(1, 2))  --> float32(5)  0  1  2  0  0\n"
			   "print(tensor{1,2,3}:pad{2, -1, mode='wrap'})  --> float32(4)  1  2  1  2",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_ANYWHERE | QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.host_only = host_only,
};
