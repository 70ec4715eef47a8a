/* SPDX-License-Identifier: MIT
 * Choosing between elements: maximum, minimum, where. nan wins, as in PyTorch, and -0 is below 0, as in IEEE
 * 754-2019, so the result does not depend on the order of the operands. Two equal elements share the gradient.
 */
#include "tensor/ops/ops.h"

/* The part of the gradient g of max(x, y) that goes to x: half of it where both are equal. With x and y exchanged
 * it is that of min(x, y). Not in the table of ops. */
QL_SIMD(void, larger_slope_f32,
	(int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
		const float *g = in[0];
		const float *x = in[1];
		const float *y = in[2];

		(void)args;
		for (int64_t i = 0; i < n; i++) {
			float share = x[i] == y[i] ? 0.5f : 1;

			out[i] = x[i] < y[i] ? 0 : g[i] * share;
		}
	})

QL_ROW void larger_slope_f64(int64_t n, double *out, const double *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++)
		out[i] = in[1][i] < in[2][i] ? 0 : in[1][i] == in[2][i] ? in[0][i] / 2 : in[0][i];
}

static const struct ql_map larger_slope_map = {
	.result = QL_MAP_FLOAT, .f32 = larger_slope_f32, .f64 = larger_slope_f64};
static const struct ql_op larger_slope = {.doc = {.name = "larger_slope"},
	.arity_min = 3,
	.arity_max = 3,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &larger_slope_map};

static enum ql_status maximum_backward(struct ql_back *b)
{
	for (int i = 0; i < 2; i++)
		if (ql_back_wants(b, i))
			ql_back_give(b, i,
				ql_back_run3(
					b, &larger_slope, ql_back_grad(b, 0), ql_back_in(b, i), ql_back_in(b, 1 - i)));
	return b->status;
}

static enum ql_status minimum_backward(struct ql_back *b)
{
	for (int i = 0; i < 2; i++)
		if (ql_back_wants(b, i))
			ql_back_give(b, i,
				ql_back_run3(
					b, &larger_slope, ql_back_grad(b, 0), ql_back_in(b, 1 - i), ql_back_in(b, i)));
	return b->status;
}

#define LARGER ((a == 0) & (b == 0)) ? a + b : a > b || a != a ? a : b
#define SMALLER ((a == 0) & (b == 0)) ? -(-a - b) : a < b || a != a ? a : b

QL_MAP_F32_2(maximum_f32, LARGER)
QL_MAP_F64_2(maximum_f64, LARGER)
QL_MAP_I64_2(maximum_i64, a > b ? a : b)
static const struct ql_map maximum_map = {
	.result = QL_MAP_PROMOTE, .f32 = maximum_f32, .f64 = maximum_f64, .i64 = maximum_i64};
QL_BINARY_WITH(maximum, ql_out_attrs, "x:maximum(y, {out=spec})",
	"The larger of two elements; nan if one is. -0 is below 0. (max reduces a tensor.)",
	"print(tensor{1,5}:maximum(3))  --> float32(2)  3  5", QL_INPLACE | QL_ELEMENTWISE, maximum_map,
	.backward = maximum_backward, .saves = QL_SAVE(0) | QL_SAVE(1));

QL_MAP_F32_2(minimum_f32, SMALLER)
QL_MAP_F64_2(minimum_f64, SMALLER)
QL_MAP_I64_2(minimum_i64, a < b ? a : b)
static const struct ql_map minimum_map = {
	.result = QL_MAP_PROMOTE, .f32 = minimum_f32, .f64 = minimum_f64, .i64 = minimum_i64};
QL_BINARY_WITH(minimum, ql_out_attrs, "x:minimum(y, {out=spec})",
	"The smaller of two elements; nan if one is. -0 is below 0. (min reduces a tensor.)",
	"print(tensor{1,5}:minimum(3))  --> float32(2)  1  3", QL_INPLACE | QL_ELEMENTWISE, minimum_map,
	.backward = minimum_backward, .saves = QL_SAVE(0) | QL_SAVE(1));

/* ---- where: the condition does not take part in promotion ---- */

static enum ql_status infer_where(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *condition = call->in[0];
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (!ql_dtype_is_bool(condition->dtype))
		return ql_fail(
			ctx, QL_ERR_DTYPE, "where: condition: wanted bool, got %s", ql_tensor_text(condition, text));
	/* the dtype is that of the other two operands */
	call->in++;
	call->n_in--;
	call->weak >>= 1;
	status = ql_map_infer(ctx, call);
	call->in--;
	call->n_in++;
	call->weak <<= 1;
	if (!status && ql_dtype_is_bool(call->in[1]->dtype) && ql_dtype_is_bool(call->in[2]->dtype))
		call->result[0].dtype = QL_bool;
	return status ? status : ql_infer_broadcast(ctx, call);
}

QL_SIMD(void, where_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *c = in[0];
	const float *x = in[1];
	const float *y = in[2];

	(void)args;
	for (int64_t i = 0; i < n; i++) {
		float a = x[i], b = y[i]; /* reads both, so that the loop needs no branch */

		out[i] = c[i] != 0 ? a : b;
	}
})

QL_ROW void where_f64(int64_t n, double *out, const double *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		double a = in[1][i], b = in[2][i];

		out[i] = in[0][i] != 0 ? a : b;
	}
}

QL_ROW bool where_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		int64_t a = in[1][i], b = in[2][i];

		out[i] = in[0][i] != 0 ? a : b;
	}
	return true;
}

static const struct ql_map where_map = {.result = QL_MAP_PROMOTE, .f32 = where_f32, .f64 = where_f64, .i64 = where_i64};

static enum ql_status where_backward(struct ql_back *b)
{
	struct ql_tensor *c = ql_back_in(b, 0), *g = ql_back_grad(b, 0), *zero = ql_back_number(b, 0, g);

	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run3(b, &ql_op_where, c, g, zero));
	if (ql_back_wants(b, 2))
		ql_back_give(b, 2, ql_back_run3(b, &ql_op_where, c, zero, g));
	return b->status;
}

const struct ql_op ql_op_where = {
	.doc = {.name = "where",
		.usage = "tensor.where(condition, a, b)",
		.text = "Elements of a where the bool condition is true, else of b; all three broadcast, a and b may be numbers.",
		.example = "x = tensor{-1,2}\nprint(tensor.where(x:gt(0), x, 0))  --> float32(2)  0  2"},
	.arity_min = 3,
	.arity_max = 3,
	.flags = QL_NUMBERS | QL_FUNCTION,
	.infer = infer_where,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &where_map,
	.backward = where_backward,
	.saves = QL_SAVE(0),
};
