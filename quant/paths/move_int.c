/* SPDX-License-Identifier: MIT
 * Ops that only move elements, on codes: the op runs on the codes as plain integers, and the result has the params of the
 * operand. Scales along an axis move with it where the op names that one axis, and those of blocks with other axes than
 * theirs; otherwise elements must not change their scale.
 */
#include "tensor/op.h"
#include "tensor/ops/ops.h"

/* Whether axis d of operand 0 is among the axes that the call names, or it names none. */
static bool moves(const struct ql_call *call, int d)
{
	const struct ql_value *axis = ql_call_attr(call, "axis"), *axes = ql_call_attr(call, "axes");
	int rank = call->in[0]->rank;

	if (axis)
		return d == (axis->i < 0 ? axis->i + rank : axis->i - 1);
	for (int i = 0; axes && i < axes->ints.n; i++)
		if (d == (axes->ints.at[i] < 0 ? axes->ints.at[i] + rank : axes->ints.at[i] - 1))
			return true;
	return !axes;
}

static bool operands_fit(const struct ql_call *call, const char **reason)
{
	*reason = "plain operand";
	if (!call->in[0]->q)
		return false;
	*reason = "only the first operand may be codes";
	for (int i = 1; i < call->n_in; i++)
		if (call->in[i]->q)
			return false;
	return true;
}

static bool one_scale(const struct ql_call *call)
{
	const struct ql_qparams *q = call->in[0]->q;

	return q->axis < 0 && !q->block;
}

static bool match_one(struct ql_call *call, const char **reason)
{
	if (!operands_fit(call, reason))
		return false;
	*reason = "only codes with one scale";
	return one_scale(call);
}

/* Whether blocks stay whole. */
static bool blocks_stay(const struct ql_call *call)
{
	const struct ql_qparams *q = call->in[0]->q;

	return q->block && !moves(call, q->block_axis);
}

/* The axes stay what they are: other axes than those with the scales may move. */
static bool match_axes(struct ql_call *call, const char **reason)
{
	const struct ql_qparams *q = call->in[0]->q;

	if (!operands_fit(call, reason))
		return false;
	*reason = "only codes with one scale, or with scales along axes that do not move";
	return one_scale(call) || blocks_stay(call) || (!q->block && !moves(call, q->axis));
}

/* The same, or scales along the one axis that moves. */
static bool match_axis(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	if (!operands_fit(call, reason))
		return false;
	*reason = "only codes with one scale, or with scales along one axis that stays an axis";
	if (one_scale(call))
		return true;
	return call->result[0].rank == x->rank && ql_call_attr(call, "axis") && (!x->q->block || blocks_stay(call));
}

/* Runs the op of the call on t instead of operand 0; along the first axis if t has one only. */
static enum ql_status apply(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_call inner = {.op = call->op,
		.n_in = call->n_in,
		.weak = call->weak,
		.attr = call->attr,
		.device = call->device,
		.n_out = 1};
	struct ql_tensor *in[3] = {t};
	struct ql_value attr[8];
	const struct ql_attr *a = call->op->doc.attrs;
	enum ql_status status;

	for (int i = 1; i < call->n_in; i++)
		in[i] = call->in[i];
	for (int i = 0; a[i].type != QL_ATTR_END && t->rank < call->in[0]->rank; i++) {
		attr[i] = call->attr[i];
		if (a[i].type == QL_ATTR_AXIS)
			attr[i].i = 1;
		inner.attr = attr;
	}
	inner.in = in;
	status = ql_op_eval(ctx, &inner);
	*out = status ? NULL : inner.out[0];
	return status;
}

/* Replaces one of the params along the axis that moves. */
static enum ql_status follow(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **t)
{
	struct ql_tensor *moved;
	enum ql_status status;

	if (!*t)
		return QL_OK;
	status = apply(ctx, call, *t, &moved);
	if (status)
		return status;
	ql_tensor_release(ctx, *t);
	*t = moved;
	return QL_OK;
}

static enum ql_status params_of(struct ql_ctx *ctx, const struct ql_call *call, struct ql_qparams **out)
{
	struct ql_qparams *q = call->in[0]->q;
	enum ql_status status;

	if (one_scale(call) || (!q->block && !moves(call, q->axis))) {
		*out = ql_qparams_keep(q);
		return QL_OK;
	}
	*out = q = ql_qparams_copy(ctx, q);
	if (!q)
		return QL_ERR_MEMORY;
	status = follow(ctx, call, &q->scale);
	if (!status)
		status = follow(ctx, call, &q->zero_point);
	if (!status)
		status = follow(ctx, call, &q->shift);
	if (!status)
		status = follow(ctx, call, &q->bits);
	if (!status)
		ql_qparams_settle(ctx, q, call->in[0]->dtype);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *codes = NULL;
	struct ql_qparams *q = NULL;
	enum ql_status status = ql_tensor_alias(ctx, call->in[0], &codes);

	call->kernel = "codes";
	if (!status)
		status = params_of(ctx, call, &q);
	if (!status) {
		ql_qparams_release(ctx, codes->q);
		codes->q = NULL;
		status = apply(ctx, call, codes, &call->out[0]);
	}
	ql_tensor_release(ctx, codes);
	if (status)
		ql_qparams_release(ctx, q);
	else
		call->out[0]->q = q;
	return status;
}

/* A border of elements of x; pad_int takes one of zeros. */
static bool match_border(struct ql_call *call, const char **reason)
{
	if (!match_one(call, reason))
		return false;
	*reason = "a border of another value than 0, or around codes without an exact 0";
	return !ql_pad_is_constant(call);
}

#define MOVE(path_name, op_name, fits) \
	extern const struct ql_path ql_path_##path_name; \
	const struct ql_path ql_path_##path_name = { \
		.op = op_name, \
		.name = "integer", \
		.codes = "8 16 packed binary", \
		.text = "codes are moved under the same scales", \
		.match = fits, \
		.eval = eval, \
	}

MOVE(gather_int, "gather", match_one);
MOVE(gathernd_int, "gathernd", match_one);
MOVE(indexselect_int, "indexselect", match_axis);
MOVE(repeatinterleave_int, "repeatinterleave", match_axis);
MOVE(flip_int, "flip", match_axes);
MOVE(roll_int, "roll", match_axes);
MOVE(pad_border_int, "pad", match_border);
