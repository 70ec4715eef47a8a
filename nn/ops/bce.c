/* SPDX-License-Identifier: MIT
 * Binary cross-entropy: the mean of -t log(y) - (1 - t) log(1 - y). On probabilities the logarithms are at least -100
 * and the gradient's denominator y (1 - y) at least 1e-12, as in PyTorch; on logits x, where y = 1 / (1 + exp(-x)), it
 * is max(x, 0) - x t + log(1 + exp(-|x|)), exact for large x, with the gradient y - t.
 */
#include <math.h>

#include "tensor/autograd/back.h"
#include "tensor/ops/ops.h"
#include "tensor/loops/rows.h"
#include "tensor/vmath/act.h"
#include "tensor/vmath/log.h"

#define LEAST_LOG (-100)
#define LEAST_SLOPE 1e-12

/* The four loops of one loss, as ops that are not in the table of ops: its terms, and the gradients of both
 * operands. */
#define TERMS(op_name, f32_of, f64_of) \
	QL_MAP_F32_2(op_name##_f32, f32_of) \
	QL_MAP_F64_2(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_f32, .f64 = op_name##_f64, .ns_per_16 = 30}; \
	static QL_BINARY(op_name, NULL, NULL, NULL, 0, op_name##_map)

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

/* a: y or x, b: t */
TERMS(bce_terms, -(b *log_f32(a) + (1 - b) * log_f32(1 - a)), -(b *log_f64(a) + (1 - b) * log_f64(1 - a)));
TERMS(bce_slope, slope_f32(a, b), slope_f64(a, b));
TERMS(bce_target_slope, log_f32(1 - a) - log_f32(a) + 0 * b, log_f64(1 - a) - log_f64(a) + 0 * b);
TERMS(logit_terms, ql_softplus(a) - a * b, (a > 0 ? a : 0) + log1p(exp(-fabs(a))) - a * b);
TERMS(logit_slope, ql_sigmoid(a) - b, 1 / (1 + exp(-a)) - b);
TERMS(logit_target_slope, 0 * b - a, 0 * b - a);

struct loss {
	const struct ql_op *terms, *slope, *target_slope;
};

static const struct loss by_probability = {&ql_op_bce_terms, &ql_op_bce_slope, &ql_op_bce_target_slope};
static const struct loss by_logit = {&ql_op_logit_terms, &ql_op_logit_slope, &ql_op_logit_target_slope};

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *y = call->in[0], *target = call->in[1];
	unsigned dtype = ql_dtype_promote(ql_operand_dtype(y), ql_operand_dtype(target));
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (!ql_tensor_same_shape(y, target))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted operands of the same shape, got %s and %s",
			call->op->doc.name, ql_shape_text(y->rank, y->shape, a),
			ql_shape_text(target->rank, target->shape, b));
	if (ql_tensor_nelem(y) == 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at least one element, got shape %s", call->op->doc.name,
			ql_shape_text(y->rank, y->shape, a));
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, 0, NULL);
	return QL_OK;
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

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct loss *loss = call->op->impl;
	struct ql_tensor *terms = NULL;
	enum ql_status status = loss == &by_probability ? check_probabilities(ctx, call->in[0]) : QL_OK;

	if (!status)
		status = ql_op_run(ctx, loss->terms, call->in[0], call->in[1], &terms);
	if (!status)
		status = ql_op_run(ctx, &ql_op_mean, terms, NULL, &call->out[0]);
	ql_tensor_release(ctx, terms);
	return status;
}

static enum ql_status backward(struct ql_back *b)
{
	const struct loss *loss = b->call.op->impl;
	struct ql_tensor *y = ql_back_in(b, 0), *target = ql_back_in(b, 1);
	struct ql_tensor *g = ql_back_scaled(b, ql_back_grad(b, 0), 1.0 / (double)ql_tensor_nelem(b->call.in[0]));

	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, ql_back_run(b, loss->slope, y, target), g));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run(b, &ql_op_mul, ql_back_run(b, loss->target_slope, y, target), g));
	return b->status;
}

extern const struct ql_op ql_op_bce, ql_op_bcelogits;

const struct ql_op ql_op_bce = {
	.doc = {.name = "bce",
		.usage = "nn.bce(y, target)",
		.text = "Binary cross-entropy of probabilities y and targets from 0 to 1, of the same shape: mean(-target * log(y) - (1 - "
			"target) * log(1 - y)), with logarithms of at least -100. y outside 0 to 1 is an error. A loss: it has a gradient. "
			"See `nn.bcelogits` for numbers before the sigmoid.",
		.example = "print(nn.bce(tensor{0.5, 0.25}, tensor{1, 0}))  --> 0.4904"},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_FUNCTION | QL_ANYWHERE,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
	.impl = &by_probability,
};

const struct ql_op ql_op_bcelogits = {
	.doc = {.name = "bcelogits",
		.usage = "nn.bcelogits(x, target)",
		.text = "Binary cross-entropy of sigmoid(x) and targets from 0 to 1, of the same shape, without overflow for any x: "
			"mean(max(x, 0) - x * target + log(1 + exp(-|x|))). A loss: it has a gradient.",
		.example = "print(nn.bcelogits(tensor{0, 1000}, tensor{1, 1}))  --> 0.3466"},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_FUNCTION | QL_ANYWHERE,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE(1),
	.impl = &by_logit,
};
