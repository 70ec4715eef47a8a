/* SPDX-License-Identifier: MIT
 * Losses of the difference d = y - target: its square, its magnitude, and two between them (Huber 1964; Girshick 2015), whose
 * slopes are bounded. The slope of the magnitude at 0 is 0, as in PyTorch.
 */
#include <math.h>

#include "nn/ops/loss.h"

extern const struct ql_op ql_op_mse, ql_op_l1, ql_op_smoothl1, ql_op_huber;

QL_LOSS_TERMS(mse_terms, NULL, NULL, (a - b) * (a - b), (a - b) * (a - b));
QL_LOSS_TERMS(mse_slope, NULL, NULL, 2 * (a - b), 2 * (a - b));
static const struct ql_loss mse = {.terms = &ql_op_mse_terms, .slope = &ql_op_mse_slope};
QL_LOSS_OP(mse, "nn.mse(y, target)  nn.mse(y, target, {reduction=})",
	"Mean squared error of two tensors of the same shape: mean((y - target)^2), a tensor of one number; reduction= gives the sum or all "
	"squares. A loss: it has a gradient.",
	"print(nn.mse(tensor{1, 2}, tensor{1, 4}):item())  --> 2.0", ql_loss_attrs, mse, 2);

#define SIGN(d) ((d) > 0 ? 1 : (d) < 0 ? -1 : 0 * (d))

QL_LOSS_TERMS(l1_terms, NULL, NULL, fabsf(a - b), fabs(a - b));
QL_LOSS_TERMS(l1_slope, NULL, NULL, SIGN(a - b), SIGN(a - b));
static const struct ql_loss l1 = {.terms = &ql_op_l1_terms, .slope = &ql_op_l1_slope};
QL_LOSS_OP(l1, "nn.l1(y, target)  nn.l1(y, target, {reduction=})",
	"Mean absolute error of two tensors of the same shape: mean(|y - target|); reduction= gives the sum or all of them. A loss: it has a "
	"gradient.",
	"print(nn.l1(tensor{1, 2}, tensor{1, 4}):item())  --> 1.0", ql_loss_attrs, l1, 2);

/* ---- smoothl1: 0.5 d^2 / beta below beta, else |d| - 0.5 beta ---- */

#define BETA \
	{ \
		"beta", QL_ATTR_FLOAT, 0, NULL, "where the parabola ends; 0 is nn.l1 (default 1)" \
	}
static const struct ql_attr beta_attrs[] = {BETA, {NULL, QL_ATTR_END, 0, NULL, NULL}};
static const struct ql_attr smoothl1_attrs[] = {BETA, QL_LOSS_REDUCTION, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static enum ql_status beta_option(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	args->p[0] = ql_call_float(call, "beta", 1);
	return args->p[0] >= 0 && isfinite(args->p[0])
		       ? QL_OK
		       : ql_fail(ctx, QL_ERR_ARGUMENT, "smoothl1: beta: wanted a finite number of at least 0, got %g",
				 args->p[0]);
}

QL_INLINE float smooth_f32(float d, float beta)
{
	float a = fabsf(d);

	return a < beta ? 0.5f * a * a / beta : a - 0.5f * beta;
}

QL_INLINE double smooth_f64(double d, double beta)
{
	double a = fabs(d);

	return a < beta ? 0.5 * a * a / beta : a - 0.5 * beta;
}

QL_LOSS_TERMS(smoothl1_terms, beta_attrs, beta_option, smooth_f32(a - b, QL_P32(0)), smooth_f64(a - b, QL_P64(0)));
QL_LOSS_TERMS(smoothl1_slope, beta_attrs, beta_option, fabsf(a - b) < QL_P32(0) ? (a - b) / QL_P32(0) : SIGN(a - b),
	fabs(a - b) < QL_P64(0) ? (a - b) / QL_P64(0) : SIGN(a - b));
static const struct ql_loss smoothl1 = {.terms = &ql_op_smoothl1_terms, .slope = &ql_op_smoothl1_slope};
QL_LOSS_OP(smoothl1, "nn.smoothl1(y, target)  nn.smoothl1(y, target, {beta=, reduction=})",
	"Smooth L1 loss of two tensors of the same shape: the mean of 0.5 d^2 / beta where d = |y - target| is below beta, else of d - 0.5 beta. "
	"A loss: it has a gradient. It is `nn.huber` divided by beta.",
	"print(nn.smoothl1(tensor{0, 2}, tensor{0.5, 4}, {reduction='none'}))  --> float32(2)  0.1250  1.5000",
	smoothl1_attrs, smoothl1, 2);

/* ---- huber: 0.5 d^2 up to delta, else delta (|d| - 0.5 delta) ---- */

#define DELTA \
	{ \
		"delta", QL_ATTR_FLOAT, 0, NULL, "where the parabola ends, above 0 (default 1)" \
	}
static const struct ql_attr delta_attrs[] = {DELTA, {NULL, QL_ATTR_END, 0, NULL, NULL}};
static const struct ql_attr huber_attrs[] = {DELTA, QL_LOSS_REDUCTION, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static enum ql_status delta_option(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	args->p[0] = ql_call_float(call, "delta", 1);
	return args->p[0] > 0 && isfinite(args->p[0])
		       ? QL_OK
		       : ql_fail(ctx, QL_ERR_ARGUMENT, "huber: delta: wanted a finite number above 0, got %g",
				 args->p[0]);
}

QL_INLINE float huber_f32(float d, float delta)
{
	float a = fabsf(d);

	return a <= delta ? 0.5f * a * a : delta * (a - 0.5f * delta);
}

QL_INLINE double huber_f64(double d, double delta)
{
	double a = fabs(d);

	return a <= delta ? 0.5 * a * a : delta * (a - 0.5 * delta);
}

QL_LOSS_TERMS(huber_terms, delta_attrs, delta_option, huber_f32(a - b, QL_P32(0)), huber_f64(a - b, QL_P64(0)));
QL_LOSS_TERMS(huber_slope, delta_attrs, delta_option, fabsf(a - b) > QL_P32(0) ? QL_P32(0) * SIGN(a - b) : a - b,
	fabs(a - b) > QL_P64(0) ? QL_P64(0) * SIGN(a - b) : a - b);
static const struct ql_loss huber = {.terms = &ql_op_huber_terms, .slope = &ql_op_huber_slope};
QL_LOSS_OP(huber, "nn.huber(y, target)  nn.huber(y, target, {delta=, reduction=})",
	"Huber loss of two tensors of the same shape: the mean of 0.5 d^2 where d = |y - target| is at most delta, else of delta (d - 0.5 delta). "
	"A loss: it has a gradient.",
	"print(nn.huber(tensor{0, 2}, tensor{0.5, 4}, {reduction='none'}))  --> float32(2)  0.1250  1.5000",
	huber_attrs, huber, 2);
