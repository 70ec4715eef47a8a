/* SPDX-License-Identifier: MIT
 * Running sums, products and extremes along an axis: sums and products of floats are accumulated in float64 in order,
 * those of integers in int64.
 */
#include "tensor/loops/lines.h"
#include "tensor/ops/ops.h"

struct scan_args {
	bool exclusive, reverse;
};

/* a: what is accumulated; x: an element */
#define SCAN(name, type, total, first, step) \
	static void name(const struct ql_line *l) \
	{ \
		const struct scan_args *o = l->args; \
		const type *in = l->in; \
		type *out = l->out; \
		total a = first; \
\
		for (int64_t k = 0; k < l->n; k++) { \
			int64_t i = o->reverse ? l->n - 1 - k : k; \
			total x = (total)in[i]; \
\
			if (o->exclusive) \
				out[i] = (type)a; \
			a = step; \
			if (!o->exclusive) \
				out[i] = (type)a; \
		} \
	}
SCAN(cumsum_f32, float, double, 0, a + x)
SCAN(cumsum_f64, double, double, 0, a + x)
SCAN(cumsum_i64, int64_t, uint64_t, 0, a + x)
SCAN(cumprod_f32, float, double, 1, a *x)
SCAN(cumprod_f64, double, double, 1, a *x)
SCAN(cumprod_i64, int64_t, uint64_t, 1, a *x)

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_operand_dtype(call->in[0]);
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_int64, call->in[0]->rank, call->in[0]->shape);
	return status;
}

/* The second operand of a pair, or the second result, is a line, too. */
static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct scan_args args = {ql_call_bool(call, "exclusive", false), ql_call_bool(call, "reverse", false)};
	const struct ql_tensor *more = call->n_in > 1 ? call->in[1] : call->out[1];
	struct ql_tensor in, out, other;
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	if (status)
		return status;
	in = ql_line_axis(call->in[0], axis);
	out = ql_line_axis(call->out[0], axis);
	if (more)
		other = ql_line_axis(more, axis);
	return ql_lines_run(ctx, call, call->op->impl, &in, &out, more ? &other : NULL, &args);
}

static const struct ql_attr attrs[] = {
	QL_LINE_ATTR,
	{"exclusive", QL_ATTR_BOOL, 0, NULL, "element i is of the elements before it only (default false)"},
	{"reverse", QL_ATTR_BOOL, 0, NULL, "from the end (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

#define SCAN_OP(op_name, op_usage, op_text, op_example, ...) \
	static const struct ql_lines op_name = { \
		.f32 = op_name##_f32, .f64 = op_name##_f64, .i64 = op_name##_i64, .ns_per_element = 1}; \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example, .attrs = attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.infer = infer, \
		.eval = eval, \
		.impl = &(op_name), \
		__VA_ARGS__}

/* ---- sums ---- */

/* The gradient runs the other way, because element i is in all sums from i on. */
static enum ql_status cumsum_backward(struct ql_back *b)
{
	struct ql_named other[] = {
		{"reverse", {.b = !ql_call_bool(&b->call, "reverse", false)}}, {NULL, {.set = false}}};
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, ql_back_all(b, &ql_op_cumsum, &g, 1, other, NULL));
	return b->status;
}

SCAN_OP(cumsum, "x:cumsum()  x:cumsum(axis)  x:cumsum{axis=, exclusive=, reverse=}",
	"Running sum along the axis: element i is the sum of elements 1 to i. Integers and bool give "
	"int64 (wrapping); floats keep their dtype and are accumulated in float64.",
	"print(tensor{1,2,3}:cumsum())  --> float32(3)  1 3 6\n"
	"print(tensor{1,2,3}:cumsum{exclusive=true, reverse=true})  --> float32(3)  5 3 0",
	.backward = cumsum_backward);

/* ---- products ---- */

/* With s(i) = g(i) + x(i+1) s(i+1), the sum of all gradients after i by the factors between, the gradient of x(i) is s(i) times the
 * product of the elements before it; of exclusive products g(i+1) takes the place of g(i). So nothing is divided. */
#define CUMPROD_SLOPE(name, type) \
	static void name(const struct ql_line *l) \
	{ \
		const struct scan_args *o = l->args; \
		const type *g = l->in, *x = l->with; \
		type *out = l->out; \
		double *before = l->work, a = 1, s = 0; \
\
		for (int64_t k = 0; k < l->n; k++) { \
			before[k] = a; \
			a *= (double)x[o->reverse ? l->n - 1 - k : k]; \
		} \
		for (int64_t k = l->n - 1; k >= 0; k--) { \
			int64_t i = o->reverse ? l->n - 1 - k : k; \
\
			if (!o->exclusive) \
				s += (double)g[i]; \
			out[i] = (type)(before[k] * s); \
			s = s * (double)x[i] + (o->exclusive ? (double)g[i] : 0); \
		} \
	}
CUMPROD_SLOPE(cumprod_slope_f32, float)
CUMPROD_SLOPE(cumprod_slope_f64, double)

static size_t slope_work(int64_t n, int64_t m)
{
	(void)m;
	return ql_size_array(n, sizeof(double));
}

static const struct ql_lines cumprod_slope_lines = {
	.f32 = cumprod_slope_f32, .f64 = cumprod_slope_f64, .work = slope_work, .pair = true, .ns_per_element = 2};
/* Not in the table of ops. Operands: the gradient of the result, x. */
static const struct ql_op cumprod_slope = {.doc = {.name = "cumprod_slope", .attrs = attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.impl = &cumprod_slope_lines};

static enum ql_status cumprod_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &cumprod_slope, ql_back_grad(b, 0), ql_back_in(b, 0)));
	return b->status;
}

SCAN_OP(cumprod, "x:cumprod()  x:cumprod(axis)  x:cumprod{axis=, exclusive=, reverse=}",
	"Running product along the axis: element i is the product of elements 1 to i. Integers and bool give int64 (wrapping); floats "
	"keep their dtype and are accumulated in float64.",
	"print(tensor{1,2,3}:cumprod())  --> float32(3)  1 2 6", .backward = cumprod_backward, .saves = QL_SAVE(0));

/* ---- extremes ---- */

#define EXTREME(name, type, order) \
	static void name(const struct ql_line *l) \
	{ \
		const type *in = l->in; \
		type *out = l->out; \
		int64_t best = 0; \
\
		for (int64_t i = 0; i < l->n; i++) { \
			if (in[i] != in[i] || in[i] order in[best]) \
				best = i; \
			out[i] = in[best]; \
			l->index[i] = best + 1; \
		} \
	}
EXTREME(cummax_f32, float, >=)
EXTREME(cummax_f64, double, >=)
EXTREME(cummax_i64, int64_t, >=)
EXTREME(cummin_f32, float, <=)
EXTREME(cummin_f64, double, <=)
EXTREME(cummin_i64, int64_t, <=)

static enum ql_status infer_extreme(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	int axis;
	enum ql_status status = ql_line_attr(ctx, call, &axis);

	call->n_out = 2;
	ql_result_set(call, 0, ql_operand_dtype(x), x->rank, x->shape);
	ql_result_set(call, 1, QL_int64, x->rank, x->shape);
	return status;
}

/* The gradient goes to the elements that the positions name. */
static enum ql_status extreme_backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0);
	struct ql_tensor *in[3] = {ql_back_zeros(b, x), ql_back_out(b, 1), ql_back_grad(b, 0)};
	struct ql_named attrs_of[] = {
		{"axis", {.i = ql_call_int(&b->call, "axis", -1)}}, {"add", {.b = true}}, {NULL, {.set = false}}};

	if (x->rank == 0)
		ql_back_give(b, 0, in[2]);
	else
		ql_back_give(b, 0, ql_back_many(b, &ql_op_scatter, in, 3, attrs_of));
	return b->status;
}

static const struct ql_attr extreme_attrs[] = {QL_LINE_ATTR, {NULL, QL_ATTR_END, 0, NULL, NULL}};

#define EXTREME_OP(op_name, op_usage, op_text, op_example) \
	static const struct ql_lines op_name = { \
		.f32 = op_name##_f32, .f64 = op_name##_f64, .i64 = op_name##_i64, .ns_per_element = 1}; \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = op_usage, \
			.text = op_text, \
			.example = op_example, \
			.attrs = extreme_attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.outputs = 2, \
		.infer = infer_extreme, \
		.eval = eval, \
		.impl = &(op_name), \
		.backward = extreme_backward, \
		.saves = QL_SAVE_RESULT, \
	}

EXTREME_OP(cummax, "values, indices = x:cummax()  x:cummax(axis)",
	"Running maximum along the axis and the 1-based position (int64) of each, of equal elements the last one; nan stays.",
	"values, indices = tensor{1,3,2}:cummax()\nprint(values, indices)  --> float32(3)  1 3 3 int64(3)  1 2 2");
EXTREME_OP(cummin, "values, indices = x:cummin()  x:cummin(axis)",
	"Running minimum along the axis and the 1-based position (int64) of each, of equal elements the last one; nan stays.",
	"values, indices = tensor{3,1,2}:cummin()\nprint(values, indices)  --> float32(3)  3 1 1 int64(3)  1 2 2");
