/* SPDX-License-Identifier: MIT
 * Binary cross-entropy: the mean of -t log(y) - (1 - t) log(1 - y). On probabilities the logarithms are at least -100
 * and the gradient's denominator y (1 - y) at least 1e-12, as in PyTorch; on logits x, where y = 1 / (1 + exp(-x)), it
 * is max(x, 0) - x t + log(1 + exp(-|x|)), exact for large x, with the gradient y - t.
 */
#include <math.h>

#include "nn/ops/loss.h"
#include "tensor/loops/rows.h"
#include "tensor/vmath/act.h"
#include "tensor/vmath/log.h"

#define LEAST_LOG (-100)
#define LEAST_SLOPE 1e-12

QL_INLINE float log_f32(float x)
{
	float y = ql_log(x);

	return y < LEAST_LOG ? LEAST_LOG : y;
}

QL_INLINE double log_f64(double x)
{
	double y = log(x);

	return y < LEAST_LOG ? LEAST_LOG : y;
}

QL_INLINE float slope_f32(float y, float t)
{
	float d = y * (1 - y);

	return (y - t) / (d < (float)LEAST_SLOPE ? (float)LEAST_SLOPE : d);
}

QL_INLINE double slope_f64(double y, double t)
{
	double d = y * (1 - y);

	return (y - t) / (d < LEAST_SLOPE ? LEAST_SLOPE : d);
}

/* NaN is accepted: the loss is then NaN. */
static enum ql_status check_probabilities(struct ql_ctx *ctx, struct ql_tensor *y)
{
	struct ql_tensor *ends[2] = {NULL, NULL};
	enum ql_status status = ql_op_run(ctx, &ql_op_min, y, NULL, &ends[0]);
	double lo = 0, hi = 1;
	char text[QL_SHAPE_TEXT];

	if (!status)
		status = ql_op_run(ctx, &ql_op_max, y, NULL, &ends[1]);
	if (!status) {
		lo = ql_tensor_at_f64(ends[0], 0);
		hi = ql_tensor_at_f64(ends[1], 0);
	}
	for (int i = 0; i < 2; i++)
		ql_tensor_release(ctx, ends[i]);
	if (status || (!(lo < 0) && !(hi > 1)))
		return status;
	for (int64_t i = 0; i < ql_tensor_nelem(y); i++)
		if (ql_tensor_at_f64(y, i) == (lo < 0 ? lo : hi))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"bce: y: wanted probabilities from 0 to 1, got %g at position %s; nn.bcelogits takes any number",
				lo < 0 ? lo : hi, ql_position_text(y->rank, y->shape, i, text));
	return QL_OK;
}

/* a: y or x, b: t */
#define TERMS(op_name, ...) QL_LOSS_TERMS(op_name, NULL, NULL, __VA_ARGS__)
TERMS(bce_terms, -(b *log_f32(a) + (1 - b) * log_f32(1 - a)), -(b *log_f64(a) + (1 - b) * log_f64(1 - a)));
TERMS(bce_slope, slope_f32(a, b), slope_f64(a, b));
TERMS(bce_target_slope, log_f32(1 - a) - log_f32(a) + 0 * b, log_f64(1 - a) - log_f64(a) + 0 * b);

QL_INLINE double softplus(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

TERMS(logit_terms, ql_softplus(a) - a * b, softplus(a) - a * b);
TERMS(logit_slope, ql_sigmoid(a) - b, 1 / (1 + exp(-a)) - b);
TERMS(logit_target_slope, 0 * b - a, 0 * b - a);

/* The same where a positive target weighs w + 1 instead of 1: (1 - t) x + (1 + w t) log(1 + exp(-x)) and its slopes. */
#define WEIGHTED(op_name, f32_of, f64_of) \
	QL_SIMD(void, op_name##_f32, \
		(int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), { \
			const float *x = in[0]; \
			const float *y = in[1]; \
			const float *z = in[2]; \
\
			(void)args; \
			for (int64_t i = 0; i < n; i++) { \
				float a = x[i], b = y[i], w = z[i] - 1; \
\
				out[i] = (float)(f32_of); \
			} \
		}) \
	QL_ROW void op_name##_f64(int64_t n, double *out, const double *const *in, const struct ql_map_args *args) \
	{ \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			double a = in[0][i], b = in[1][i], w = in[2][i] - 1; \
\
			out[i] = f64_of; \
		} \
	} \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_f32, .f64 = op_name##_f64, .ns_per_16 = 30}; \
	static const struct ql_op op_name = {.doc = {.name = #op_name}, \
		.arity_min = 3, \
		.arity_max = 3, \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &op_name##_map}

WEIGHTED(positive_terms, (1 - b) * a + (1 + w * b) * ql_softplus(-a), (1 - b) * a + (1 + w * b) * softplus(-a));
WEIGHTED(positive_slope, (1 - b) - (1 + w * b) * ql_sigmoid(-a), (1 - b) - (1 + w * b) / (1 + exp(a)));
WEIGHTED(positive_target_slope, w *ql_softplus(-a) - a + 0 * b, w *softplus(-a) - a + 0 * b);

static const struct ql_loss by_probability = {
	&ql_op_bce_terms, &ql_op_bce_slope, &ql_op_bce_target_slope, check_probabilities, NULL};
static const struct ql_loss by_weighted_logit = {&positive_terms, &positive_slope, &positive_target_slope, NULL, NULL};
static const struct ql_loss by_logit = {
	&ql_op_logit_terms, &ql_op_logit_slope, &ql_op_logit_target_slope, NULL, &by_weighted_logit};

extern const struct ql_op ql_op_bce, ql_op_bcelogits;

QL_LOSS_OP(bce, "nn.bce(y, target)  nn.bce(y, target, {reduction=})",
	"Binary cross-entropy of probabilities y and targets from 0 to 1, of the same shape: mean(-target * log(y) - (1 - target) * log(1 - y)), "
	"with logarithms of at least -100. y outside 0 to 1 is an error. Weights of elements: the mean of what reduction='none' gives times "
	"the weights. A loss: it has a gradient. See `nn.bcelogits` for numbers before the sigmoid.",
	"print(nn.bce(tensor{0.5, 0.25}, tensor{1, 0}))  --> 0.4904", ql_loss_attrs, by_probability, 2);
QL_LOSS_OP(bcelogits, "nn.bcelogits(x, target)  nn.bcelogits(x, target, positive, {reduction=})",
	"Binary cross-entropy of sigmoid(x) and targets from 0 to 1, of the same shape, without overflow for any x: mean(max(x, 0) - x * target + "
	"log(1 + exp(-|x|))). `positive` broadcasts to x and multiplies the part of target 1 (PyTorch's pos_weight); it gets no gradient. "
	"A loss: it has a gradient.",
	"print(nn.bcelogits(tensor{0, 1000}, tensor{1, 1}))  --> 0.3466", ql_loss_attrs, by_logit, 3);
