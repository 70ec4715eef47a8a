/* SPDX-License-Identifier: MIT
 * Exponential linear units: x where it is positive, else a multiple of exp(x) - 1 (Clevert et al. 2015; selu: Klambauer et al. 2017;
 * celu: Barron 2017). exp(x) - 1 is computed as such, so small negative numbers keep their digits.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/vmath/vmath.h"

/* Where x is not positive it is `below`; both are computed first, so that loops have no branch. */
QL_INLINE float choose(float x, float above, float below)
{
	return x > 0 ? above : below;
}

QL_CURVE_ATTRS(elu, {"alpha", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "factor below 0 (default 1)"});

static enum ql_status elu_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	return ql_option_number(ctx, call, "alpha", 1, &args->p[0]);
}

QL_CURVE(elu, "x:elu()  x:elu(alpha)  x:elu{alpha=, out=spec}", "x where it is positive, else alpha * (exp(x) - 1).",
	"print(tensor{-1,0,2}:elu())  --> float32(3)  -0.6321   0.0000   2.0000", 16, elu_options,
	choose(a, a, QL_P32(0) * ql_expm1(a)), a > 0 ? a : QL_P64(0) * expm1(a), choose(b, a, a *QL_P32(0) * ql_exp(b)),
	b > 0 ? a : a * QL_P64(0) * exp(b));

QL_CURVE_ATTRS(celu, {"alpha", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "other than 0 (default 1)"});

static enum ql_status celu_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	enum ql_status status = ql_option_number(ctx, call, "alpha", 1, &args->p[0]);

	if (!status && (float)args->p[0] == 0)
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "celu: alpha: wanted a number other than 0, got %g", args->p[0]);
	return status;
}

QL_CURVE(celu, "x:celu()  x:celu(alpha)  x:celu{alpha=, out=spec}",
	"x where it is positive, else alpha * (exp(x / alpha) - 1): an elu whose slope at 0 is 1 for every alpha.",
	"print(tensor{-1,0,2}:celu(0.5))  --> float32(3)  -0.4323   0.0000   2.0000", 16, celu_options,
	choose(a, a, QL_P32(0) * ql_expm1(a / QL_P32(0))), a > 0 ? a : QL_P64(0) * expm1(a / QL_P64(0)),
	choose(b, a, a *ql_exp(b / QL_P32(0))), b > 0 ? a : a * exp(b / QL_P64(0)));

/* The fixed point of mean 0 and variance 1: scale and scale * alpha. */
#define SCALE 1.0507009873554804934
#define BELOW 1.7580993408473768600

QL_MAP_F32_1(selu_f32, a > 0 ? (float)SCALE * a : (float)BELOW * ql_expm1(a))
QL_MAP_F64_1(selu_f64, a > 0 ? SCALE * a : BELOW * expm1(a))
static const struct ql_map selu_map = {.result = QL_MAP_FLOAT, .f32 = selu_f32, .f64 = selu_f64, .ns_per_16 = 16};
QL_SLOPE(selu, in, 16, b > 0 ? (float)SCALE * a : a * ((float)BELOW * ql_exp(b)),
	b > 0 ? SCALE * a : a * (BELOW * exp(b)))
QL_UNARY(selu, "x:selu()  x:selu{out=spec}",
	"The elu that keeps mean 0 and variance 1: 1.0507 x where x is positive, else 1.0507 * 1.6733 * (exp(x) - 1).",
	"print(tensor{-1,0,2}:selu())  --> float32(3)  -1.1113   0.0000   2.1014", QL_INPLACE, selu_map,
	.backward = selu_backward, .saves = QL_SAVE(0));
