/* SPDX-License-Identifier: MIT
 * cat and stack with out=spec: the codes of each item are rescaled to the result's units, M = (float)((double)s /
 * s_out), y = sat(rint((float)(q - z) * M) + z_out), or in fixed point (quant/integer/fixed.h). Packed codes are
 * first written one per byte, because items may share bytes.
 */
#include "quant/integer/rescale.h"
#include "tensor/view.h"

static bool match(struct ql_call *call, const char **reason)
{
	return ql_rescale_fits(call, reason);
}

/* Gives the view of the result for an item, starting at `start`. */
static enum ql_status part_of(
	struct ql_ctx *ctx, struct ql_call *call, int axis, int i, int64_t start, struct ql_tensor **part)
{
	if (call->result[0].rank > call->in[i]->rank)
		return ql_view_select(ctx, "stack", call->out[0], axis, i, part);
	return ql_view_narrow(ctx, "cat", call->out[0], axis, start, call->in[i]->shape[axis], part);
}

static enum ql_status write_items(struct ql_ctx *ctx, struct ql_call *call, enum ql_requant rule, int axis)
{
	int64_t start = 0;
	enum ql_status status = QL_OK;

	for (int i = 0; i < call->n_in && !status; i++) {
		struct ql_tensor *part, *t = call->in[i];

		status = part_of(ctx, call, axis, i, start, &part);
		if (status)
			return status;
		status = ql_rescale_write(ctx, &ql_rescale_one, rule, t, NULL, part);
		ql_tensor_release(ctx, part);
		start += t->rank == call->result[0].rank ? t->shape[axis] : 1;
	}
	return status;
}

/* Replaces *t with the same codes in another dtype. */
static enum ql_status pack(struct ql_ctx *ctx, unsigned dtype, struct ql_tensor **t)
{
	struct ql_tensor *packed;
	enum ql_status status = ql_tensor_cast(ctx, *t, dtype, &packed);

	if (status)
		return status;
	packed->q = (*t)->q;
	(*t)->q = NULL;
	ql_tensor_release(ctx, *t);
	*t = packed;
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, int axis)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const struct ql_result *r = &call->result[0];
	float range[2] = {0, 0};
	enum ql_status status = ql_tensor_new(ctx, ql_dtype_whole(spec->dtype), r->rank, r->shape, &call->out[0]);

	call->path = ql_requant_path("integer", spec->requant);
	for (int i = 0; i < call->n_in && !status && !spec->has_scale; i++)
		status = ql_rescale_range(
			ctx, &ql_rescale_one, call->in[i], NULL, call->in[i]->rank, call->in[i]->shape, range);
	if (!status)
		status = ql_rescale_params(ctx, spec, range, r->rank, r->shape, &call->out[0]->q);
	if (!status)
		status = write_items(ctx, call, spec->requant, axis);
	return !status && ql_dtype_is_packed(spec->dtype) ? pack(ctx, spec->dtype, &call->out[0]) : status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int axis = 0;
	enum ql_status status = ql_call_axis(ctx, call, "axis", &axis);

	call->kernel = "cat_int";
	return status ? status : run(ctx, call, axis);
}

static enum ql_status eval_stack(struct ql_ctx *ctx, struct ql_call *call)
{
	int axis = 0;
	enum ql_status status = ql_axis(ctx, "stack: axis", ql_call_int(call, "axis", 1), call->result[0].rank, &axis);

	call->kernel = "stack_int";
	return status ? status : run(ctx, call, axis);
}

extern const struct ql_path ql_path_cat_int;
const struct ql_path ql_path_cat_int = {
	.op = "cat",
	.name = "integer",
	.codes = "8 16 packed binary",
	.text = "with out=: codes rescaled to the result's units",
	.match = match,
	.eval = eval,
};

extern const struct ql_path ql_path_stack_int;
const struct ql_path ql_path_stack_int = {
	.op = "stack",
	.name = "integer",
	.codes = "8 16 packed binary",
	.text = "with out=: codes rescaled to the result's units",
	.match = match,
	.eval = eval_stack,
};
