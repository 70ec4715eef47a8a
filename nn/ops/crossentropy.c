/* SPDX-License-Identifier: MIT
 * Cross-entropy of logits and class numbers, mean over the positions: with L = log sum exp x of a row of c logits,
 *   loss = L - (1 - s) x[target] - s mean(x), s the smoothing (Szegedy et al., "Rethinking the Inception architecture",
 *   2016), gradient (softmax(x) - (1 - s) onehot(target) - s / c) / positions.
 * With weights w of the classes, as in PyTorch:
 *   loss = (1 - s) w[target] (L - x[target]) + s mean(w (L - x)), and the mean divides by the sum of w[target].
 * nll is the same of log-probabilities: L is 0, and the gradient has no softmax.
 * Forward and backward are one pass over the rows each; only the logits are saved. The rows' losses are double and
 * summed in order.
 */
#include <math.h>
#include <string.h>

#include "nn/loss.h"
#include "tensor/autograd/back.h"
#include "tensor/loops/dense.h"
#include "tensor/loops/exponentials.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/lanes.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/loops/rows.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

#define CHUNK 16384 /* elements claimed at a time */
#define SKIP 0      /* class number of an ignored position; classes start at 1 */

struct job {
	int variant;
	bool wide;
	int64_t rows, c;
	double smoothing;
	bool plain;           /* nll: x are log-probabilities */
	const double *weight; /* (c); NULL: all 1 */
	double weights;       /* their sum */
	const int64_t *class; /* (rows): 1..c or SKIP */
	const void *x;        /* (rows, c) */
	double *loss;         /* (rows) */
	void *dx;             /* backward: (rows, c) */
	double g;             /* gradient of one position's loss, times each[row] if that is not NULL */
	const double *each;   /* (rows) */
};

static double value(const struct job *j, int64_t i)
{
	return j->wide ? ((const double *)j->x)[i] : (double)((const float *)j->x)[i];
}

static double weight_of(const struct job *j, int64_t r)
{
	return j->weight ? j->weight[j->class[r] - 1] : 1;
}

/* s mean(w (L - x)) */
static double smoothed(const struct job *j, int64_t r, double all)
{
	double sum = 0;

	for (int64_t i = 0; i < j->c; i++)
		sum += j->weight[i] * (all - value(j, r * j->c + i));
	return j->smoothing * sum / (double)j->c;
}

static double loss_of(const struct job *j, int64_t r)
{
	const float *x = (const float *)j->x + r * j->c;
	const double *wide = (const double *)j->x + r * j->c;
	double target = value(j, r * j->c + j->class[r] - 1), all, sum;

	if (j->plain)
		return -weight_of(j, r) * target;
	all = j->wide ? ql_row_logsum_f64(wide, j->c) : ql_row_logsum(j->variant, x, j->c);
	if (j->weight)
		return (1 - j->smoothing) * weight_of(j, r) * (all - target) +
		       (j->smoothing == 0 ? 0 : smoothed(j, r, all));
	all -= (1 - j->smoothing) * target;
	if (j->smoothing == 0) /* 0 times infinity is not 0 */
		return all;
	sum = j->wide ? ql_sum_f64(wide, j->c) : ql_sum_f32(j->variant, x, j->c);
	return all - j->smoothing * sum / (double)j->c;
}

static void forward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++)
		j->loss[r] = j->class[r] == SKIP ? 0 : loss_of(j, r);
}

QL_SIMD(void, slopes, (int64_t n, float *x, float by, float less), {
	for (int64_t i = 0; i < n; i++)
		x[i] = x[i] * by - less;
})

/* Factors of a row's gradient: that of softmax(x), what is subtracted of each class (times its weight), and of the target. */
struct factors {
	double softmax, each, target;
};

static struct factors factors_of(const struct job *j, int64_t r)
{
	double g = j->each ? j->g * j->each[r] : j->g, own = (1 - j->smoothing) * weight_of(j, r);

	return (struct factors){g * (j->weight ? own + j->smoothing * j->weights / (double)j->c : 1),
		g * j->smoothing / (double)j->c, g * own};
}

static void slopes_f32(const struct job *j, int64_t r)
{
	const float *x = (const float *)j->x + r * j->c;
	float *dx = (float *)j->dx + r * j->c;
	struct factors k = factors_of(j, r);

	ql_row_exp(j->variant, j->c, dx, x, ql_row_largest(j->variant, x, j->c));
	slopes[j->variant](
		j->c, dx, (float)(k.softmax / ql_sum_f32(j->variant, dx, j->c)), j->weight ? 0 : (float)k.each);
	for (int64_t i = 0; i < j->c && j->weight && j->smoothing != 0; i++)
		dx[i] -= (float)(k.each * j->weight[i]);
	dx[j->class[r] - 1] -= (float)k.target;
}

static void slopes_f64(const struct job *j, int64_t r)
{
	const double *x = (const double *)j->x + r * j->c;
	double *dx = (double *)j->dx + r * j->c, all = ql_row_logsum_f64(x, j->c);
	struct factors k = factors_of(j, r);

	for (int64_t i = 0; i < j->c; i++)
		dx[i] = k.softmax * exp(x[i] - all) - k.each * (j->weight ? j->weight[i] : 1);
	dx[j->class[r] - 1] -= k.target;
}

static void backward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	size_t bytes = ql_size_array(j->c, j->wide ? sizeof(double) : sizeof(float));

	for (int64_t r = begin; r < end; r++) {
		int64_t at = r * j->c + j->class[r] - 1;

		if (j->class[r] == SKIP || j->plain)
			memset((char *)j->dx + (size_t)r * bytes, 0, bytes);
		if (j->class[r] == SKIP)
			continue;
		if (j->plain && j->wide)
			((double *)j->dx)[at] = -factors_of(j, r).target;
		else if (j->plain)
			((float *)j->dx)[at] = (float)-factors_of(j, r).target;
		else if (j->wide)
			slopes_f64(j, r);
		else
			slopes_f32(j, r);
	}
}

/* ---- the op ---- */

/* Gives t with the class axis last, or with `back` the inverse. */
static enum ql_status turn(struct ql_ctx *ctx, struct ql_tensor *t, int axis, bool back, struct ql_tensor **out)
{
	int order[QL_MAX_RANK], last = t->rank - 1;

	for (int d = 0; d <= last; d++)
		if (back)
			order[d] = d < axis ? d : d == axis ? last : d - 1;
		else
			order[d] = d < axis ? d : d == last ? axis : d + 1;
	return ql_view_permute(ctx, "crossentropy", t, order, out);
}

static enum ql_status class_axis(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = call->in[0]->rank - 1;
	return ql_call_axis(ctx, call, "axis", axis);
}

static enum ql_status check_shapes(struct ql_ctx *ctx, const struct ql_call *call, int axis)
{
	const struct ql_tensor *x = call->in[0], *target = call->in[1];
	const char *op = call->op->doc.name;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT], text[QL_SHAPE_TEXT];
	int64_t shape[QL_MAX_RANK];

	for (int d = 0; d < x->rank - 1; d++)
		shape[d] = x->shape[d < axis ? d : d + 1];
	if (target->rank != x->rank - 1 || memcmp(shape, target->shape, (size_t)target->rank * sizeof(*shape)))
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: target: wanted shape %s, that of the logits %s without axis %d, got %s", op,
			ql_shape_text(x->rank - 1, shape, a), ql_shape_text(x->rank, x->shape, b), axis + 1,
			ql_shape_text(target->rank, target->shape, text));
	if (ql_tensor_nelem(x) == 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at least one position and class, got logits %s", op,
			ql_shape_text(x->rank, x->shape, a));
	return QL_OK;
}

static enum ql_status check_weights(struct ql_ctx *ctx, const struct ql_call *call, int axis)
{
	const struct ql_tensor *x = call->in[0], *weight = call->in[2];
	char text[QL_SHAPE_TEXT];

	if (weight->rank == 1 && weight->shape[0] == x->shape[axis])
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: weight: wanted one number for each of %lld classes, got %s",
		call->op->doc.name, (long long)x->shape[axis], ql_tensor_text(weight, text));
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *op = call->op->doc.name;
	const struct ql_tensor *x = call->in[0], *target = call->in[1];
	double smoothing = ql_call_float(call, "smoothing", 0);
	char text[QL_SHAPE_TEXT];
	int axis = 0;
	enum ql_status status;

	if (x->rank < 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted logits with an axis of classes, got a number", op);
	if (target->q || !ql_dtype_is_integer(target->dtype) || ql_dtype_is_bool(target->dtype) ||
		ql_dtype_is_binary(target->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: target: wanted class numbers (integers), got %s", op,
			ql_tensor_text(target, text));
	if (!(smoothing >= 0 && smoothing <= 1))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "crossentropy: smoothing: wanted 0 to 1, got %g", smoothing);
	status = class_axis(ctx, call, &axis);
	if (!status)
		status = check_shapes(ctx, call, axis);
	if (!status && call->n_in > 2)
		status = check_weights(ctx, call, axis);
	ql_result_set(call, 0, ql_dense_dtype(ql_operand_dtype(x)), ql_loss_is_number(call) ? 0 : target->rank,
		target->shape);
	return status;
}

static enum ql_status fail_class(struct ql_ctx *ctx, const char *op, const struct ql_fault *fault)
{
	char text[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: target: wanted classes 1 to %lld, got %lld at position %s", op,
		(long long)fault->limit, (long long)fault->value,
		ql_position_text(fault->rank, fault->shape, fault->position, text));
}

/* Reads and checks the class numbers, and counts those that are not ignored. */
static enum ql_status read_classes(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *target,
	int64_t c, struct ql_tensor **out, int64_t *count)
{
	const struct ql_value *ignore = ql_call_attr(call, "ignore");
	enum ql_status status = ql_tensor_cast(ctx, target, QL_int64, out);
	int64_t *class, n = ql_tensor_nelem(target);

	if (status)
		return status;
	class = ql_tensor_data(*out);
	*count = 0;
	for (int64_t i = 0; i < n; i++) {
		if (ignore && class[i] == ignore->i) {
			class[i] = SKIP;
			continue;
		}
		if (class[i] < 1 || class[i] > c) {
			struct ql_fault fault = {i, class[i], c, target -> rank, target -> shape, -1};

			return fail_class(ctx, call->op->doc.name, &fault);
		}
		++*count;
	}
	return QL_OK;
}

struct operands {
	struct ql_tensor *x, *class, *weight;
	int axis;
	int64_t count;
};

static void release(struct ql_ctx *ctx, struct operands *o)
{
	ql_tensor_release(ctx, o->x);
	ql_tensor_release(ctx, o->class);
	ql_tensor_release(ctx, o->weight);
}

/* Of the sum of losses: the number of positions that count, or the sum of their weights. */
static double divisor(const struct ql_call *call, const struct operands *o, const struct job *j)
{
	double sum = 0;

	if (!ql_loss_is_mean(call))
		return 1;
	for (int64_t r = 0; r < j->rows && j->weight; r++)
		sum += j->class[r] == SKIP ? 0 : weight_of(j, r);
	return j->weight ? sum : (double)o->count;
}

/* Reads the weights of classes. */
static enum ql_status read_weights(struct ql_ctx *ctx, struct ql_tensor *weight, struct operands *o, struct job *j)
{
	enum ql_status status = ql_dense_of(ctx, weight, QL_float64, &o->weight);

	if (status)
		return status;
	j->weight = ql_tensor_data(o->weight);
	j->weights = ql_sum_f64(j->weight, j->c);
	return QL_OK;
}

static enum ql_status start(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *x,
	struct ql_tensor *target, struct operands *o, struct job *j)
{
	struct ql_tensor *turned = NULL;
	unsigned dtype = ql_dense_dtype(ql_operand_dtype(x));
	enum ql_status status = class_axis(ctx, call, &o->axis);

	if (!status)
		status = turn(ctx, x, o->axis, false, &turned);
	if (!status)
		status = ql_dense_of(ctx, turned, dtype, &o->x);
	ql_tensor_release(ctx, turned);
	if (!status)
		status = read_classes(ctx, call, target, x->shape[o->axis], &o->class, &o->count);
	if (status)
		return status;
	*j = (struct job){.variant = ctx->kernels->simd->variant,
		.wide = dtype == QL_float64,
		.c = x->shape[o->axis],
		.rows = ql_tensor_nelem(target),
		.smoothing = ql_call_float(call, "smoothing", 0),
		.plain = call->op->impl != NULL,
		.class = ql_tensor_data(o->class),
		.x = ql_tensor_data(o->x)};
	return call->n_in > 2 ? read_weights(ctx, call->in[2], o, j) : QL_OK;
}

/* Writes the losses of positions, or their sum or mean. */
static void write_result(const struct ql_call *call, const struct operands *o, const struct job *j)
{
	struct ql_tensor *out = call->out[0];
	double sum;

	if (!ql_loss_is_number(call)) {
		ql_dtypes[out->dtype].from_f64(out->storage->data, 0, 1, j->rows, j->loss);
		return;
	}
	sum = ql_sum_f64(j->loss, j->rows) / divisor(call, o, j);
	ql_dtypes[out->dtype].from_f64(out->storage->data, 0, 1, 1, &sum);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct operands o = {.axis = 0};
	struct job j;
	enum ql_status status = start(ctx, call, call->in[0], call->in[1], &o, &j);

	if (!status) {
		call->path = ql_dtype_name(o.x->dtype);
		call->kernel = ctx->kernels->simd->name;
		j.loss = ql_scratch_array(ctx, j.rows, sizeof(*j.loss));
		status = j.loss ? ql_parallel_for(
					  ctx, j.rows, ql_max64(1, CHUNK / j.c), j.rows * j.c * 2, forward_body, &j)
				: QL_ERR_MEMORY;
	}
	if (!status)
		write_result(call, &o, &j);
	release(ctx, &o);
	return status;
}

static const struct ql_attr attrs[] = {
	{"axis", QL_ATTR_AXIS, 0, NULL, "the axis of the classes (default: the last)"},
	{"ignore", QL_ATTR_INT, 0, NULL, "a class number whose positions do not count, of any value (default: none)"},
	{"smoothing", QL_ATTR_FLOAT, 0, NULL,
		"share of the target that is spread over all classes, 0 to 1 (default 0)"},
	QL_LOSS_REDUCTION,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
static const struct ql_attr nll_attrs[] = {
	{"axis", QL_ATTR_AXIS, 0, NULL, "the axis of the classes (default: the last)"},
	{"ignore", QL_ATTR_INT, 0, NULL, "a class number whose positions do not count, of any value (default: none)"},
	QL_LOSS_REDUCTION,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_crossentropy, ql_op_nll;

/* ---- gradient: an op in no table ---- */

/* Operands: the gradient of the loss, logits, target, weights (may be left out). The result has the layout of the logits. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[1];

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(ql_operand_dtype(x)), x->rank, x->shape);
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_call forward = ql_back_forward(call, call->op->impl);
	struct ql_tensor *dx = NULL, *each = NULL;
	struct operands o = {.axis = 0};
	struct job j;
	enum ql_status status = start(ctx, &forward, forward.in[0], forward.in[1], &o, &j);

	if (!status)
		status = ql_tensor_new(ctx, o.x->dtype, o.x->rank, o.x->shape, &dx);
	if (!status) {
		call->path = ql_dtype_name(o.x->dtype);
		call->kernel = ctx->kernels->simd->name;
		j.dx = ql_tensor_data(dx);
		j.g = 1 / divisor(&forward, &o, &j);
		if (ql_loss_is_number(&forward))
			j.g *= ql_tensor_at_f64(call->in[0], 0);
		else
			status = ql_dense_of(ctx, call->in[0], QL_float64, &each);
	}
	if (!status) {
		j.each = each ? ql_tensor_data(each) : NULL;
		status = ql_parallel_for(ctx, j.rows, ql_max64(1, CHUNK / j.c), j.rows * j.c * 2, backward_body, &j);
	}
	if (!status)
		status = turn(ctx, dx, o.axis, true, &call->out[0]);
	ql_tensor_release(ctx, dx);
	ql_tensor_release(ctx, each);
	release(ctx, &o);
	return status;
}

#define BACK(op_name, op_attrs) \
	static const struct ql_op op_name##_back = { \
		.doc = {.name = #op_name "_back", .attrs = op_attrs}, \
		.arity_min = 3, \
		.arity_max = 4, \
		.flags = QL_NATIVE, \
		.infer = back_infer, \
		.eval = back_eval, \
		.allocates = true, \
		.fault = fail_class, \
		.impl = &ql_op_##op_name, \
	}
BACK(crossentropy, attrs);
BACK(nll, nll_attrs);

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *in[4] = {ql_back_grad(b, 0), ql_back_in(b, 0), ql_back_in(b, 1)};
	int n = b->node->n_in;

	if (n > 2)
		in[3] = ql_back_in(b, 2);
	ql_back_give(b, 0, ql_back_all(b, b->call.op->impl ? &nll_back : &crossentropy_back, in, 1 + n, NULL, NULL));
	return b->status;
}

#define LOSS_OF_CLASSES(op_name, op_usage, op_text, op_example, op_attrs, op_impl) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = op_usage, \
			.text = op_text, \
			.example = op_example, \
			.attrs = op_attrs}, \
		.arity_min = 2, \
		.arity_max = 3, \
		.flags = QL_FUNCTION, \
		.infer = infer, \
		.eval = eval, \
		.fault = fail_class, \
		.backward = backward, \
		.saves = QL_SAVE(0) | QL_SAVE(1) | QL_SAVE(2), \
		.impl = op_impl, \
	}

LOSS_OF_CLASSES(crossentropy,
	"nn.crossentropy(logits, target)  nn.crossentropy(logits, target, weight, {axis=, ignore=, smoothing=, reduction=})",
	"The mean over all positions of -log softmax(logits)[target]. Logits are (…, c) with the classes along the last axis "
	"(PyTorch has them along the second: axis=2), target is an integer tensor of class numbers 1 to c in the shape of the "
	"logits without that axis; another number is an error. Positions whose target is `ignore` do not count; when none "
	"counts the loss is nan. `weight` has a number for each class, by which its losses are multiplied; the mean then divides by the "
	"weights of the targets, as in PyTorch, and the weights get no gradient. reduction= gives the sum or the losses of all positions. A "
	"loss: it has a gradient, for logits. float64 for float64 logits, else float32.",
	"y = tensor{{0, math.log(3)}, {0, 0}}\n"
	"print(nn.crossentropy(y, tensor{2, 1, dtype='int64'}), nn.crossentropy(y, tensor{2, 0, dtype='int64'}, {ignore=0}))  --> "
	"0.4904 0.2877",
	attrs, NULL);

/* impl: not NULL, so that the logits are log-probabilities */
LOSS_OF_CLASSES(nll, "nn.nll(y, target)  nn.nll(y, target, weight, {axis=, ignore=, reduction=})",
	"Negative log-likelihood: the mean over all positions of -y[target] for log-probabilities y, as from `x:logsoftmax`; target, weight and "
	"options as in `nn.crossentropy`, which takes numbers before the softmax and is faster. A loss: it has a gradient, for y.",
	"y = tensor{{0, math.log(3)}}:logsoftmax()\nprint(nn.nll(y, tensor{2, dtype='int64'}))  --> 0.2877", nll_attrs,
	&ql_op_nll);
