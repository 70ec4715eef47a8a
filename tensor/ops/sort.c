/* SPDX-License-Identifier: MIT
 * sort and topk along an axis: values and 1-based positions.
 */
#include "tensor/loops/lines.h"
#include "tensor/ops/ops.h"
#include "tensor/loops/order.h"

/* Polls for an interrupt; false: stop before element i. */
#define POLL_AT(i) ((i) % (1 << 20) != 0 || !ql_stopped(l->ctx))

struct sort_args {
	int descending;
	bool part; /* only the first m, selected before sorting */
};

static size_t work(int64_t n, int64_t m)
{
	(void)m;
	return ql_size_array(n, 2 * sizeof(struct ql_order));
}

static void order(const struct ql_line *l)
{
	const struct sort_args *args = l->args;
	struct ql_order *a = l->work, *spare = a + l->n;

	if (args->part)
		ql_order_select(l->ctx, a, l->n, l->m, spare);
	ql_order_sort(l->ctx, a, l->m, spare);
}

#define SORT_LINE(name, type, key_of) \
	static void name(const struct ql_line *l) \
	{ \
		const struct sort_args *args = l->args; \
		const type *in = l->in; \
		struct ql_order *a = l->work; \
		type *out = l->out; \
\
		for (int64_t i = 0; i < l->n && POLL_AT(i); i++) \
			a[i] = (struct ql_order){key_of(in[i], args->descending), i}; \
		if (!ql_stopped(l->ctx)) \
			order(l); \
		for (int64_t i = 0; i < l->m && POLL_AT(i); i++) { \
			out[i] = in[a[i].at]; \
			l->index[i] = a[i].at + 1; \
		} \
	}
SORT_LINE(sort_f32, float, ql_key_f32)
SORT_LINE(sort_f64, double, ql_key_f64)
SORT_LINE(sort_i64, int64_t, ql_key_i64)

static enum ql_status infer_m(struct ql_ctx *ctx, struct ql_call *call, int64_t m)
{
	const struct ql_tensor *in = call->in[0];
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	call->n_out = 2;
	for (int i = 0; i < 2; i++) {
		ql_result_set(call, i, i ? QL_int64 : ql_operand_dtype(in), in->rank, in->shape);
		if (in->rank && m >= 0)
			call->result[i].shape[axis] = m;
	}
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, const struct sort_args *args)
{
	static const struct ql_lines kind = {
		.f32 = sort_f32, .f64 = sort_f64, .i64 = sort_i64, .work = work, .ns_per_element = 20};
	struct ql_tensor in, out, index;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	in = ql_line_axis(call->in[0], axis);
	out = ql_line_axis(call->out[0], axis);
	index = ql_line_axis(call->out[1], axis);
	return ql_lines_run(ctx, call, &kind, &in, &out, &index, args);
}

/* Scatters the gradient to the positions of the values. A number has no axis to scatter along. */
static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0);
	struct ql_tensor *in[3] = {ql_back_zeros(b, x), ql_back_out(b, 1), ql_back_grad(b, 0)};
	struct ql_named attrs[] = {{"axis", {.i = 1}}, {NULL, {.set = false}}};
	int axis;

	if (!b->status)
		b->status = ql_line_attr(b->ctx, &b->call, &axis);
	if (b->status)
		return b->status;
	attrs[0].value.i = axis + 1;
	for (int i = 0; i < 3 && x->rank == 0; i++)
		in[i] = ql_back_reshape(b, in[i], 1, (const int64_t[]){1});
	ql_back_give(b, 0, ql_back_reshape(b, ql_back_many(b, &ql_op_scatter, in, 3, attrs), x->rank, x->shape));
	return b->status;
}

static enum ql_status infer_sort(struct ql_ctx *ctx, struct ql_call *call)
{
	return infer_m(ctx, call, -1);
}

static enum ql_status eval_sort(struct ql_ctx *ctx, struct ql_call *call)
{
	struct sort_args args = {.descending = ql_call_bool(call, "descending", false)};

	return run(ctx, call, &args);
}

static const struct ql_attr sort_attrs[] = {
	QL_LINE_ATTR,
	{"descending", QL_ATTR_BOOL, 0, NULL, "largest first (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_sort = {
	.doc = {.name = "sort",
		.usage = "values, indices = x:sort()  x:sort(axis)  x:sort{axis=, descending=}",
		.text = "The elements along the axis in ascending order and their 1-based positions (int64). Equal "
			"elements keep their order; nan comes last in both directions.",
		.example = "values, indices = tensor{3,1,2}:sort()\n"
			   "print(values, indices)  --> float32(3)  1 2 3 int64(3)  2 3 1",
		.attrs = sort_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.outputs = 2,
	.infer = infer_sort,
	.eval = eval_sort,
	.backward = backward,
	.saves = QL_SAVE_RESULT,
};

static enum ql_status infer_topk(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *in = call->in[0];
	int64_t k = ql_call_int(call, "k", 1), n;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	n = in->rank ? in->shape[axis] : 1;
	if (k < 0 || k > n)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "topk: k: wanted 0 to %lld, the size of axis %d, got %lld",
			(long long)n, axis + 1, (long long)k);
	return infer_m(ctx, call, k);
}

static enum ql_status eval_topk(struct ql_ctx *ctx, struct ql_call *call)
{
	struct sort_args args = {.descending = ql_call_bool(call, "largest", true), .part = true};

	return run(ctx, call, &args);
}

static const struct ql_attr topk_attrs[] = {
	{"k", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "how many"},
	QL_LINE_ATTR,
	{"largest", QL_ATTR_BOOL, 0, NULL, "false: the smallest ones (default true)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_topk = {
	.doc = {.name = "topk",
		.usage = "values, indices = x:topk(k)  x:topk(k, axis)  x:topk(k, {axis=, largest=})",
		.text = "The k largest elements along the axis, largest first, and their 1-based positions (int64); "
			"with largest=false the k smallest, smallest first. Of equal elements the first come first; "
			"nan only when there are not k numbers.",
		.example = "values, indices = tensor{3,1,2}:topk(2)\n"
			   "print(values, indices)  --> float32(2)  3 2 int64(2)  1 3",
		.attrs = topk_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.outputs = 2,
	.infer = infer_topk,
	.eval = eval_topk,
	.backward = backward,
	.saves = QL_SAVE_RESULT,
};
