/* SPDX-License-Identifier: MIT
 * Rounding, sign, magnitude, bounds, and tests for nan and infinity. Functions that are constant almost everywhere
 * give no gradient; that of clamp is 0 on the bounds and outside, as in PyTorch.
 */
#include <math.h>

#include "tensor/ops/ops.h"

#define ROUND(op_name, op_text, op_example, f32_of, f64_of, i64_of, ...) \
	QL_MAP_F32_1(op_name##_f32, f32_of) \
	QL_MAP_F64_1(op_name##_f64, f64_of) \
	QL_MAP_I64_1(op_name##_i64, i64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_PROMOTE, .f32 = op_name##_f32, .f64 = op_name##_f64, .i64 = op_name##_i64}; \
	QL_UNARY(op_name, "x:" #op_name "()  x:" #op_name "{out=spec}", op_text, op_example, QL_INPLACE, \
		op_name##_map, __VA_ARGS__)

/* 0 at 0, as in PyTorch */
QL_SLOPE(abs, in, 6, b > 0 ? a : b < 0 ? -a : b * 0, b > 0 ? a : b < 0 ? -a : b * 0)
ROUND(abs, "The magnitude. Of the smallest integer it wraps to itself.",
	"print(tensor{-1,2}:abs())  --> float32(2)  1  2", fabsf(a), fabs(a), a < 0 ? 0 - (uint64_t)a : (uint64_t)a,
	.backward = abs_backward, .saves = QL_SAVE(0));
ROUND(round, "The nearest integer, ties to the even one.",
	"print(tensor{0.5,1.5,-2.5}:round())  --> float32(3)  0  2 -2", rintf(a), rint(a), a,
	.backward = ql_backward_none);
ROUND(floor, "The largest integer that is not greater.", "print(tensor{1.7,-1.2}:floor())  --> float32(2)  1 -2",
	floorf(a), floor(a), a, .backward = ql_backward_none);
ROUND(ceil, "The smallest integer that is not less.", "print(tensor{1.2,-1.7}:ceil())  --> float32(2)  2 -1", ceilf(a),
	ceil(a), a, .backward = ql_backward_none);
ROUND(trunc, "The integer part: rounded towards 0.", "print(tensor{1.7,-1.7}:trunc())  --> float32(2)  1 -1", truncf(a),
	trunc(a), a, .backward = ql_backward_none);
ROUND(sign, "-1, 0 or 1; nan stays nan.", "print(tensor{-3,0,5}:sign())  --> float32(3) -1  0  1",
	a > 0    ? 1
	: a < 0  ? -1
	: a == 0 ? 0
		 : a,
	a > 0    ? 1
	: a < 0  ? -1
	: a == 0 ? 0
		 : a,
	(a > 0) - (a < 0), .backward = ql_backward_none);

/* ---- clamp ---- */

static const struct ql_attr clamp_attrs[] = {
	{"low", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "smallest value (default: none)"},
	{"high", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "largest value (default: none)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

QL_SIMD(void, clamp_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *restrict x = in[0];
	float low = (float)args->p[0], high = (float)args->p[1];

	for (int64_t i = 0; i < n; i++) {
		float v = x[i] < low ? low : x[i];

		out[i] = v > high ? high : v;
	}
})
QL_MAP_F64_1(clamp_f64, a<args->p[0] ? args->p[0] : a> args->p[1] ? args->p[1] : a)

QL_ROW bool clamp_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	int64_t low = args->i[0], high = args->i[1];

	for (int64_t i = 0; i < n; i++) {
		int64_t v = in[0][i] < low ? low : in[0][i];

		out[i] = v > high ? high : v;
	}
	return true;
}

/* The integers of the dtype within the bounds; false if there are none. */
static bool integer_bounds(const struct ql_dtype_info *d, struct ql_map_args *args)
{
	double low = ceil(args->p[0]), high = floor(args->p[1]);

	args->i[0] = low > (double)d->lo ? low < (double)d->hi ? (int64_t)low : d->hi : d->lo;
	args->i[1] = high < (double)d->hi ? high > (double)d->lo ? (int64_t)high : d->lo : d->hi;
	return low <= high && low <= (double)d->hi && high >= (double)d->lo;
}

static enum ql_status clamp_prepare(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	unsigned dtype = call->result[0].dtype;

	args->p[0] = ql_call_float(call, "low", -INFINITY);
	args->p[1] = ql_call_float(call, "high", INFINITY);
	if (isnan(args->p[0]) || isnan(args->p[1]))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "clamp: wanted bounds that are numbers, got %g and %g", args->p[0],
			args->p[1]);
	if (args->p[0] > args->p[1]) /* everything becomes high, as in PyTorch, NumPy and ONNX */
		args->p[0] = args->p[1];
	if (ql_dtype_is_integer(dtype) && !integer_bounds(&ql_dtypes[dtype], args))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"clamp: wanted bounds with an integer of %s between them, got %g and %g", ql_dtype_name(dtype),
			args->p[0], args->p[1]);
	return QL_OK;
}

static const struct ql_map clamp_map = {
	.result = QL_MAP_PROMOTE, .f32 = clamp_f32, .f64 = clamp_f64, .i64 = clamp_i64, .prepare = clamp_prepare};

QL_SIMD(void, clamp_slope_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args),
	{
		const float *g = in[0];
		const float *x = in[1];
		float low = (float)args->p[0], high = (float)args->p[1];

		for (int64_t i = 0; i < n; i++)
			out[i] = ((x[i] > low) & (x[i] < high)) ? g[i] : 0;
	})
QL_MAP_F64_2(clamp_slope_f64, ((b > args->p[0]) & (b < args->p[1])) ? a : 0)
static const struct ql_map clamp_slope_map = {
	.result = QL_MAP_FLOAT, .f32 = clamp_slope_f32, .f64 = clamp_slope_f64, .prepare = clamp_prepare};
/* Only the bounds, because gradients are not quantized. */
static const struct ql_attr clamp_slope_attrs[] = {
	{"low", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, ""},
	{"high", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, ""},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
static const struct ql_op clamp_slope = {.doc = {.name = "clamp_slope", .attrs = clamp_slope_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &clamp_slope_map};

static enum ql_status clamp_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &clamp_slope, ql_back_grad(b, 0), ql_back_in(b, 0)));
	return b->status;
}

const struct ql_op ql_op_clamp = {
	.doc = {.name = "clamp",
		.usage = "x:clamp(low, high)  x:clamp{high=, out=spec}",
		.text = "Elements below low become low, those above high become high; nan stays nan. With low above high, all become high. Bounds that are tensors: `x:maximum(low):minimum(high)`. An integer tensor stays integer: "
			"its elements are brought to the nearest integer within the bounds.",
		.example = "print(tensor{-2,0.5,3}:clamp(-1, 1))  --> float32(3)  -1.0000   0.5000   1.0000",
		.attrs = clamp_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_INPLACE | QL_ELEMENTWISE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &clamp_map,
	.backward = clamp_backward,
	.saves = QL_SAVE(0),
};

/* ---- tests ---- */

#define TEST(op_name, op_text, op_example, float_of, i64_of) \
	QL_MAP_F32_1(op_name##_f32, float_of) \
	QL_MAP_F64_1(op_name##_f64, float_of) \
	QL_MAP_I64_1(op_name##_i64, i64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_BOOL, .f32 = op_name##_f32, .f64 = op_name##_f64, .i64 = op_name##_i64}; \
	QL_UNARY_WITH(op_name, NULL, "x:" #op_name "()", op_text, op_example, 0, op_name##_map)

TEST(isnan, "true where an element is not a number.", "print(tensor{0/0, 1}:isnan())  --> bool(2)   true  false",
	a != a, a != a);
TEST(isfinite, "true where an element is neither nan nor infinite.",
	"print(tensor{1/0, 1}:isfinite())  --> bool(2)  false   true", a - a == 0, a == a);

/* ---- isinf, of one sign too ---- */

static const struct ql_attr isinf_attrs[] = {
	{"sign", QL_ATTR_INT, QL_POSITIONAL, NULL, "1: inf only, -1: -inf only (default: both)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status isinf_prepare(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	int64_t sign = ql_call_int(call, "sign", 0);

	if (ql_call_attr(call, "sign") && sign != 1 && sign != -1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "isinf: sign: wanted 1 or -1, got %lld", (long long)sign);
	args->p[0] = sign == 1 ? 0 : -INFINITY; /* infinities that count, or 0 */
	args->p[1] = sign == -1 ? 0 : INFINITY;
	return QL_OK;
}

QL_MAP_F32_1(isinf_f32, (a - a != 0) & ((a == (float)args->p[0]) | (a == (float)args->p[1])))
QL_MAP_F64_1(isinf_f64, (a - a != 0) & ((a == args->p[0]) | (a == args->p[1])))
QL_MAP_I64_1(isinf_i64, a != a)
static const struct ql_map isinf_map = {
	.result = QL_MAP_BOOL, .f32 = isinf_f32, .f64 = isinf_f64, .i64 = isinf_i64, .prepare = isinf_prepare};
QL_UNARY_WITH(isinf, isinf_attrs, "x:isinf()  x:isinf(sign)",
	"true where an element is infinite, of both signs or one.",
	"print(tensor{1/0, 1, -1/0}:isinf(), tensor{1/0, 1, -1/0}:isinf(-1))  --> bool(3) true false true bool(3) false false true",
	0, isinf_map);
