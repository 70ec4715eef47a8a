/* SPDX-License-Identifier: MIT
 * max, min, aminmax, argmax and argmin on codes: under one scale, codes are ordered like the values they represent. The results
 * of max, min and aminmax keep the params; positions are plain integers. With a scale of 0 (an all-zero binary tensor) all
 * values are equal: max and min are right for any code, and argmax and argmin fall back.
 */
#include <string.h>

#include "tensor/op.h"
#include "tensor/loops/reduce.h"

/* The reduced axes as a mask; 0 if the call is not valid, but infer has already checked it. */
static unsigned reduced(const struct ql_call *call)
{
	struct ql_ctx unused = {0};
	unsigned mask = 0;

	return ql_reduce_axes(&unused, call, &mask) ? 0 : mask;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *t = call->in[0];

	*reason = "plain operand";
	if (!t->q)
		return false;
	*reason = "codes are not ordered like their values";
	if (!ql_qparams_monotone(t->q))
		return false;
	*reason = "scale varies along a reduced axis";
	if (t->q->block || (t->q->axis >= 0 && reduced(call) >> t->q->axis & 1))
		return false;
	*reason = "+-1 codes of a zero scale have no order";
	return !ql_dtype_is_binary(t->dtype) || strncmp(call->op->doc.name, "arg", 3) != 0;
}

/* Gives t's params with the axis renumbered after removing the reduced ones. */
static enum ql_status result_params(
	struct ql_ctx *ctx, const struct ql_tensor *t, unsigned mask, bool keep, struct ql_qparams **out)
{
	unsigned before = 0;

	for (int d = 0; d < t->q->axis; d++)
		before += mask >> d & 1;
	if (t->q->axis < 0 || keep || !before) {
		*out = ql_qparams_keep(t->q);
		return QL_OK;
	}
	*out = ql_qparams_copy(ctx, t->q);
	if (!*out)
		return QL_ERR_MEMORY;
	(*out)->axis = (int8_t)((*out)->axis - (int)before);
	return QL_OK;
}

/* Runs the op itself on the plain codes, with its kernel and result. */
static enum ql_status on_codes(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *codes)
{
	struct ql_call plain = *call;
	enum ql_status status;

	plain.in = &codes;
	status = plain.op->infer(ctx, &plain);
	for (int i = 0; i < plain.n_out && !status; i++)
		status = ql_tensor_new(
			ctx, plain.result[i].dtype, plain.result[i].rank, plain.result[i].shape, &plain.out[i]);
	if (!status)
		status = plain.op->eval(ctx, &plain);
	for (int i = 0; i < plain.n_out; i++)
		call->out[i] = plain.out[i];
	call->kernel = plain.kernel;
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0], *codes;
	unsigned mask;
	enum ql_status status = ql_reduce_axes(ctx, call, &mask);

	if (!status)
		status = ql_tensor_alias(ctx, t, &codes);
	if (status)
		return status;
	ql_qparams_release(ctx, codes->q);
	codes->q = NULL;
	status = on_codes(ctx, call, codes);
	for (int i = 0; i < call->n_out && !status; i++)
		if (call->out[i]->dtype == t->dtype)
			status = result_params(ctx, t, mask, ql_call_bool(call, "keep", false), &call->out[i]->q);
	ql_tensor_release(ctx, codes);
	return status;
}

#define EXTREME(path_name, op_name, text_of) \
	extern const struct ql_path ql_path_##path_name; \
	const struct ql_path ql_path_##path_name = { \
		.op = op_name, \
		.name = "integer", \
		.codes = "8 16 packed binary", \
		.text = text_of, \
		.match = match, \
		.eval = eval, \
	}

EXTREME(max_int, "max", "on codes, within one scale");
EXTREME(min_int, "min", "on codes, within one scale");
EXTREME(aminmax_int, "aminmax", "on codes, within one scale");
EXTREME(argmax_int, "argmax", "positions on codes, within one scale");
EXTREME(argmin_int, "argmin", "positions on codes, within one scale");
