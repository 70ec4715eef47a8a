/* SPDX-License-Identifier: MIT
 * Activations made of straight lines: hardsigmoid, hardtanh, shrink (ONNX's Shrink; PyTorch's softshrink and hardshrink), and
 * threshold (PyTorch's; ONNX's ThresholdedRelu with the value 0). nan stays nan. Gradients at a kink are those of PyTorch.
 */
#include <math.h>

#include "tensor/ops/ops.h"

/* Two options with their defaults. */
static enum ql_status two_numbers(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args,
	const char *first, double first_default, const char *second, double second_default)
{
	enum ql_status status = ql_option_number(ctx, call, first, first_default, &args->p[0]);

	return status ? status : ql_option_number(ctx, call, second, second_default, &args->p[1]);
}

/* ---- hardsigmoid ---- */

QL_CURVE_ATTRS(hardsigmoid,
	{"alpha", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "slope (default 1/6, as in PyTorch; in ONNX 0.2)"},
	{"beta", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "value at 0 (default 0.5)"});

static enum ql_status hardsigmoid_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	return two_numbers(ctx, call, args, "alpha", 1.0 / 6, "beta", 0.5);
}

QL_INLINE float unit_f32(float v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

QL_INLINE double unit_f64(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

QL_INLINE bool within(double v)
{
	return (v > 0) & (v < 1);
}

QL_CURVE(hardsigmoid, "x:hardsigmoid()  x:hardsigmoid(alpha, beta)  x:hardsigmoid{alpha=, beta=, out=spec}",
	"alpha x + beta, limited to 0..1.",
	"print(tensor{-4,0,1.5}:hardsigmoid())  --> float32(3)  0.0000  0.5000  0.7500", 8, hardsigmoid_options,
	unit_f32(a *QL_P32(0) + QL_P32(1)), unit_f64(a *QL_P64(0) + QL_P64(1)),
	within((double)(b *QL_P32(0) + QL_P32(1))) ? a *QL_P32(0) : 0,
	within(b *QL_P64(0) + QL_P64(1)) ? a *QL_P64(0) : 0);

/* ---- hardtanh ---- */

QL_CURVE_ATTRS(hardtanh, {"low", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "smallest value (default -1)"},
	{"high", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "largest value (default 1)"});

static enum ql_status hardtanh_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	enum ql_status status = two_numbers(ctx, call, args, "low", -1, "high", 1);

	if (!status && args->p[0] > args->p[1])
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "hardtanh: wanted low of at most high, got %g and %g",
			args->p[0], args->p[1]);
	return status;
}

QL_CURVE(hardtanh, "x:hardtanh()  x:hardtanh(low, high)  x:hardtanh{low=, high=, out=spec}",
	"x limited to low..high. (x:clamp has no bounds by default, and keeps integers.)",
	"print(tensor{-3,0.5,2}:hardtanh())  --> float32(3)  -1.0000   0.5000   1.0000", 8, hardtanh_options,
	a<QL_P32(0) ? QL_P32(0) : a> QL_P32(1) ? QL_P32(1) : a, a<QL_P64(0) ? QL_P64(0) : a> QL_P64(1) ? QL_P64(1) : a,
	((b > QL_P32(0)) & (b < QL_P32(1))) ? a : 0, ((b > QL_P64(0)) & (b < QL_P64(1))) ? a : 0);

/* ---- shrink ---- */

QL_CURVE_ATTRS(shrink,
	{"lambda", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "from -lambda to lambda the result is 0 (default 0.5)"},
	{"bias", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "what other numbers come closer to 0 by (default 0)"});

static enum ql_status shrink_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	enum ql_status status = two_numbers(ctx, call, args, "lambda", 0.5, "bias", 0);

	if (!status && args->p[0] < 0)
		status = ql_fail(
			ctx, QL_ERR_ARGUMENT, "shrink: lambda: wanted a number of at least 0, got %g", args->p[0]);
	return status;
}

QL_INLINE float shrink_single(float x, float lambda, float bias)
{
	float more = x - bias, less = x + bias, rest = x != x ? x : 0, v = x < -lambda ? less : rest;

	return x > lambda ? more : v;
}

QL_CURVE(shrink, "x:shrink()  x:shrink(lambda, bias)  x:shrink{lambda=, bias=, out=spec}",
	"0 from -lambda to lambda, x - bias above, x + bias below. Hard shrinkage by default; with a bias of lambda it is soft shrinkage.",
	"print(tensor{-2,0.25,3}:shrink(), tensor{-2,0.25,3}:shrink(0.5, 0.5))  --> float32(3) -2 0 3 float32(3) -1.5000 0.0000 2.5000",
	8, shrink_options, shrink_single(a, QL_P32(0), QL_P32(1)),
	a > QL_P64(0)    ? a - QL_P64(1)
	: a < -QL_P64(0) ? a + QL_P64(1)
	: a != a         ? a
			 : 0,
	((b > QL_P32(0)) | (b < -QL_P32(0))) ? a : 0, ((b > QL_P64(0)) | (b < -QL_P64(0))) ? a : 0);

/* ---- threshold ---- */

QL_CURVE_ATTRS(threshold, {"threshold", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "x is kept above it (default 1)"},
	{"value", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "the result elsewhere (default 0)"});

static enum ql_status threshold_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	return two_numbers(ctx, call, args, "threshold", 1, "value", 0);
}

QL_CURVE(threshold, "x:threshold()  x:threshold(threshold, value)  x:threshold{threshold=, value=, out=spec}",
	"x where it is above the threshold, else value: with 0 the thresholded relu.",
	"print(tensor{-1,1,3}:threshold(1, -5))  --> float32(3)  -5  -5   3", 8, threshold_options,
	a <= QL_P32(0) ? QL_P32(1) : a, a <= QL_P64(0) ? QL_P64(1) : a, b <= QL_P32(0) ? 0 : a, b <= QL_P64(0) ? 0 : a);
