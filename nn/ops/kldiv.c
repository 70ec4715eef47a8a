/* SPDX-License-Identifier: MIT
 * Kullback-Leibler divergence of log-probabilities y from targets t: the mean of t (log t - y) over all elements, with 0 log 0 = 0, as
 * in PyTorch; with logtarget=true t is a logarithm, too.
 */
#include <math.h>

#include "nn/ops/loss.h"
#include "tensor/vmath/log.h"

#define LOG_TARGET \
	{ \
		"logtarget", QL_ATTR_BOOL, 0, NULL, "true: target is the logarithm of probabilities (default false)" \
	}
static const struct ql_attr log_attrs[] = {LOG_TARGET, {NULL, QL_ATTR_END, 0, NULL, NULL}};
static const struct ql_attr kldiv_attrs[] = {LOG_TARGET, QL_LOSS_REDUCTION, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static enum ql_status options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	(void)ctx;
	args->i[0] = ql_call_bool(call, "logtarget", false);
	return QL_OK;
}

QL_INLINE float term_f32(float y, float t, bool log)
{
	float p = log ? ql_exp(t) : t, l = log ? t : ql_log(t);

	return p == 0 ? 0 : p * (l - y);
}

QL_INLINE double term_f64(double y, double t, bool by_log)
{
	double p = by_log ? exp(t) : t, l = by_log ? t : log(t);

	return p == 0 ? 0 : p * (l - y);
}

/* a: y, b: t */
QL_LOSS_TERMS(kldiv_terms, log_attrs, options, term_f32(a, b, args->i[0] != 0), term_f64(a, b, args->i[0] != 0));
QL_LOSS_TERMS(kldiv_slope, log_attrs, options,
	a != a       ? a
	: args->i[0] ? -ql_exp(b)
		     : -b,
	a != a       ? a
	: args->i[0] ? -exp(b)
		     : -b);
QL_LOSS_TERMS(kldiv_target_slope, log_attrs, options, args->i[0] ? ql_exp(b) * (b - a + 1) : ql_log(b) + 1 - a,
	args->i[0] ? exp(b) * (b - a + 1) : log(b) + 1 - a);
static const struct ql_loss kldiv = {&ql_op_kldiv_terms, &ql_op_kldiv_slope, &ql_op_kldiv_target_slope, NULL, NULL};
extern const struct ql_op ql_op_kldiv;
QL_LOSS_OP(kldiv, "nn.kldiv(y, target)  nn.kldiv(y, target, {logtarget=, reduction=})",
	"Kullback-Leibler divergence of log-probabilities y, as from `x:logsoftmax`, from probabilities target of the same shape: the mean of "
	"target * (log(target) - y) over all elements. The divergence of each distribution is the sum over its elements: PyTorch's 'batchmean' "
	"is reduction='sum' divided by the number of rows. A loss: it has a gradient.",
	"y = tensor{{0.5, 0.5}}:log()\nprint(nn.kldiv(y, tensor{{1, 0}}, {reduction='sum'}))  --> 0.6931", kldiv_attrs,
	kldiv, 2);
