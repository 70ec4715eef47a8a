/* SPDX-License-Identifier: MIT
 * groupnorm and instancenorm: the channels of each x[i] in groups, or each of its own, are rows of layernorm without weight
 * (Wu, He, "Group normalization", 2018; Ulyanov et al., "Instance normalization", 2016); then a weight and a bias for each channel. The
 * sums are those of tensor/ops/layernorm.c. Only the operands are saved.
 */
#include <math.h>
#include <string.h>

#include "tensor/autograd/back.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define EPSILON 1e-5
#define MOST_ATTRS 8

enum { X, WEIGHT, BIAS };

/* (n, channels, inner) in groups of `row` numbers */
struct groups {
	int64_t n, channels, inner, groups, row;
};

extern const struct ql_op ql_op_groupnorm, ql_op_instancenorm;

static struct groups groups_of(const struct ql_call *call, int rank, const int64_t *shape)
{
	struct groups g = {.n = shape[0], .channels = shape[1], .inner = 1};

	for (int d = 2; d < rank; d++)
		g.inner *= shape[d];
	g.groups = call->op == &ql_op_instancenorm ? g.channels : ql_call_int(call, "groups", 1);
	g.row = g.groups ? g.channels / g.groups * g.inner : 0;
	return g;
}

/* ---- forward ---- */

static enum ql_status check_vector(struct ql_ctx *ctx, const struct ql_call *call, int i, int64_t channels)
{
	const struct ql_tensor *t = call->in[i];
	char text[QL_SHAPE_TEXT];

	if (t->rank == 1 && t->shape[0] == channels && ql_dtype_is_float(ql_operand_dtype(t)))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: %s: wanted floats (%lld), one for each channel, got %s",
		call->op->doc.name, i == WEIGHT ? "weight" : "bias", (long long)channels, ql_tensor_text(t, text));
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[X];
	const char *name = call->op->doc.name;
	int least = call->op == &ql_op_instancenorm ? 3 : 2;
	int64_t groups = ql_call_int(call, "groups", 1);
	double epsilon = ql_call_float(call, "eps", EPSILON);
	enum ql_status status = QL_OK;
	char text[QL_SHAPE_TEXT];

	if (x->rank < least)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted x (n, channels%s), got %s", name,
			least > 2 ? ", length, …" : ", …", ql_shape_text(x->rank, x->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(x)))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: wanted floats, got %s", name, ql_tensor_text(x, text));
	if (groups < 1 || x->shape[1] % groups)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: groups: wanted a divisor of %lld channels, got %lld", name,
			(long long)x->shape[1], (long long)groups);
	if (!(epsilon >= 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: eps: wanted 0 or more, got %g", name, epsilon);
	for (int i = WEIGHT; i < call->n_in && !status; i++)
		status = check_vector(ctx, call, i, x->shape[1]);
	return status ? status : ql_infer_same(ctx, call);
}

/* Each row less its mean, over its deviation. */
static enum ql_status standard(struct ql_ctx *ctx, struct ql_tensor *x, double epsilon, struct ql_tensor **out)
{
	const struct ql_attr *attrs = ql_op_layernorm.doc.attrs;
	struct ql_value attr[MOST_ATTRS];
	struct ql_call call = {.op = &ql_op_layernorm, .in = &x, .n_in = 1, .attr = attr};
	enum ql_status status;

	memset(attr, 0, sizeof(attr));
	for (int i = 0; i < MOST_ATTRS && attrs[i].type != QL_ATTR_END; i++)
		if (!strcmp(attrs[i].name, "eps"))
			attr[i] = (struct ql_value){.set = true, .f = epsilon};
	status = ql_op_apply(ctx, &call);
	*out = status ? NULL : call.out[0];
	return status;
}

/* Replaces *y (n, channels, inner) with *y op vector, if it was given. */
static enum ql_status by_channel(
	struct ql_ctx *ctx, const struct ql_call *call, int i, const struct ql_op *op, struct ql_tensor **y)
{
	struct ql_tensor *vector = NULL, *wide = NULL, *out = NULL;
	int64_t shape[3] = {1, (*y)->shape[1], 1};
	enum ql_status status;

	if (i >= call->n_in)
		return QL_OK;
	status = ql_dense_of(ctx, call->in[i], (*y)->dtype, &vector);
	if (!status)
		status = ql_view_reshape(ctx, call->op->doc.name, vector, 3, shape, &wide);
	if (!status)
		status = ql_op_run(ctx, op, *y, wide, &out);
	ql_tensor_release(ctx, vector);
	ql_tensor_release(ctx, wide);
	if (status)
		return status;
	ql_tensor_release(ctx, *y);
	*y = out;
	return QL_OK;
}

/* Gives x as (n, groups, row), then normalized as (n, channels, inner). */
static enum ql_status normalize(
	struct ql_ctx *ctx, const struct ql_call *call, const struct groups *g, struct ql_tensor **y)
{
	struct ql_tensor *x = NULL, *rows = NULL, *h = NULL;
	unsigned dtype = ql_dense_dtype(call->result[0].dtype);
	enum ql_status status = ql_dense_of(ctx, call->in[X], dtype, &x);

	if (!status)
		status = ql_view_reshape(
			ctx, call->op->doc.name, x, 3, (const int64_t[]){g->n, g->groups, g->row}, &rows);
	if (!status)
		status = standard(ctx, rows, ql_call_float(call, "eps", EPSILON), &h);
	if (!status)
		status = ql_view_reshape(
			ctx, call->op->doc.name, h, 3, (const int64_t[]){g->n, g->channels, g->inner}, y);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, rows);
	ql_tensor_release(ctx, h);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	struct groups g = groups_of(call, r->rank, r->shape);
	struct ql_tensor *y = NULL, *shaped = NULL;
	enum ql_status status = normalize(ctx, call, &g, &y);

	call->path = ql_dtype_name(ql_dense_dtype(r->dtype));
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = by_channel(ctx, call, WEIGHT, &ql_op_mul, &y);
	if (!status)
		status = by_channel(ctx, call, BIAS, &ql_op_add, &y);
	if (!status)
		status = ql_view_reshape(ctx, call->op->doc.name, y, r->rank, r->shape, &shaped);
	if (!status)
		status = ql_dense_of(ctx, shaped, r->dtype, &call->out[0]);
	ql_tensor_release(ctx, y);
	ql_tensor_release(ctx, shaped);
	return status;
}

/* ---- gradients ---- */

/* A vector of the channels as it is broadcast to x. */
static struct ql_tensor *spread(struct ql_back *b, struct ql_tensor *t, const struct ql_result *x)
{
	int64_t shape[QL_MAX_RANK];

	for (int d = 0; d < x->rank; d++)
		shape[d] = d == 1 ? x->shape[1] : 1;
	return ql_back_reshape(b, t, x->rank, shape);
}

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *s = ql_back_shape(b, X);
	struct groups g = groups_of(&b->call, s->rank, s->shape);
	int64_t rows[3] = {g.n, g.groups, g.row};
	struct ql_named eps[] = {{"eps", {.set = true, .f = ql_call_float(&b->call, "eps", EPSILON)}}, {NULL, {0}}};
	struct ql_tensor *grad = ql_back_grad(b, 0),
			 *x = ql_back_reshape(b, ql_back_real(b, ql_back_in(b, X)), 3, rows);
	struct ql_tensor *h, *up = grad;
	unsigned others = ((1u << s->rank) - 1) & ~2u;

	if (b->node->n_in > WEIGHT && ql_back_wants(b, WEIGHT)) {
		h = ql_back_reshape(b, ql_back_with(b, &ql_op_layernorm, x, NULL, eps), s->rank, s->shape);
		ql_back_give(b, WEIGHT, ql_back_sum(b, ql_back_run(b, &ql_op_mul, grad, h), others, false));
	}
	if (b->node->n_in > BIAS && ql_back_wants(b, BIAS))
		ql_back_give(b, BIAS, ql_back_sum(b, grad, others, false));
	if (!ql_back_wants(b, X))
		return b->status;
	if (b->node->n_in > WEIGHT)
		up = ql_back_run(b, &ql_op_mul, grad, spread(b, ql_back_real(b, ql_back_in(b, WEIGHT)), s));
	up = ql_back_all(
		b, &ql_layernorm_back, (struct ql_tensor *[]){ql_back_reshape(b, up, 3, rows), x}, 2, NULL, NULL);
	ql_back_give(b, X, ql_back_reshape(b, up, s->rank, s->shape));
	return b->status;
}

/* ---- the ops ---- */

#define NORM_ATTRS \
	{"eps", QL_ATTR_FLOAT, 0, NULL, "added to the variance (default 1e-5)"}, \
	{ \
		"out", QL_ATTR_SPEC, 0, NULL, \
			"spec of a quantized result; of codes it stays in integers (default: float32)" \
	}

static const struct ql_attr group_attrs[] = {
	{"groups", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "number of groups, a divisor of the channels"},
	NORM_ATTRS, {NULL, QL_ATTR_END, 0, NULL, NULL}};
static const struct ql_attr instance_attrs[] = {NORM_ATTRS, {NULL, QL_ATTR_END, 0, NULL, NULL}};

const struct ql_op ql_op_groupnorm = {
	.doc = {.name = "groupnorm",
		.usage = "nn.groupnorm(x, groups)  nn.groupnorm(x, groups, weight, bias, {eps=, out=spec})",
		.text = "Group normalization of x (n, channels, …): the channels of each x[i] are cut into groups of neighbours, each of which is "
			"normalized to mean 0 and variance 1 (of all its numbers, over their number) and then multiplied by the weight of its "
			"channel; the bias of the channel is added. One group is layer norm over all axes but the first, a group for each "
			"channel `nn.instancenorm`. With out= of a given scale codes stay in integers. Has a gradient; sums in float64.",
		.example =
			"x = tensor{{{1}, {3}, {10}, {30}}}\nprint(nn.groupnorm(x, 2, {eps=0}):view(4))  --> float32(4) -1  1 -1  1",
		.attrs = group_attrs},
	.arity_min = 1,
	.arity_max = 3,
	.flags = QL_FUNCTION | QL_AXIS_SECOND,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(X) | QL_SAVE(WEIGHT),
};

const struct ql_op ql_op_instancenorm = {
	.doc = {.name = "instancenorm",
		.usage = "nn.instancenorm(x)  nn.instancenorm(x, weight, bias, {eps=, out=spec})",
		.text = "Instance normalization of x (n, channels, length, …): each channel of each x[i] is normalized to mean 0 and variance 1 and "
			"multiplied by its weight; its bias is added. Has a gradient; sums in float64.",
		.example =
			"x = tensor{{{1, 3}, {10, 30}}}\nprint(nn.instancenorm(x, {eps=0}):view(4))  --> float32(4) -1  1 -1  1",
		.attrs = instance_attrs},
	.arity_min = 1,
	.arity_max = 3,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(X) | QL_SAVE(WEIGHT),
};
