/* SPDX-License-Identifier: MIT
 * The op of rounding with offsets: its operands, results and gradients. See offset.h.
 */
#include "quant/ranges/offset_call.h"

#include <string.h>

#include "quant/ranges/offset.h"
#include "tensor/loops/dense.h"

/* Sets the results for the backward: steps and slopes of the elements, and the place of the scales. */
static enum ql_status keep(struct ql_ctx *ctx, struct ql_call *call, const struct ql_offset *o)
{
	const int64_t place[] = {o->place.axis, o->place.block_axis, o->place.block, o->place.minimum};
	enum ql_status status = QL_OK;

	for (int i = 1; i < call->n_out && !status; i++)
		status = ql_tensor_new(
			ctx, call->result[i].dtype, call->result[i].rank, call->result[i].shape, &call->out[i]);
	if (!status)
		memcpy(ql_tensor_data(call->out[3]), place, sizeof(place));
	return status;
}

static enum ql_status values(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_offset *o, struct ql_tensor *x, struct ql_tensor *v)
{
	struct ql_tensor *y = NULL;
	bool wanted = call->n_out > 1;
	enum ql_status status = wanted ? keep(ctx, call, o) : QL_OK;

	if (!status)
		status = ql_tensor_new(ctx, QL_float32, x->rank, x->shape, &y);
	if (!status)
		status = ql_offset_values(ctx, o, ql_tensor_data(x), ql_tensor_data(v), ql_tensor_data(y),
			wanted ? ql_tensor_data(call->out[1]) : NULL, wanted ? ql_tensor_data(call->out[2]) : NULL);
	if (!status)
		status = ql_dense_of(ctx, y, call->result[0].dtype, &call->out[0]);
	ql_tensor_release(ctx, y);
	return status;
}

enum ql_status ql_offset_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor **in = call->in, *x = NULL, *v = NULL;
	struct ql_offset o;
	enum ql_status status = ql_offset_open(ctx, ql_call_attr(call, "spec")->spec, in[0]->rank, in[0]->shape, in[2],
		call->n_in > 3 ? in[3] : NULL, &o);

	call->kernel = "ref";
	if (!status)
		status = ql_dense_of(ctx, in[0], QL_float32, &x);
	if (!status)
		status = ql_dense_of(ctx, in[1], QL_float32, &v);
	if (!status)
		status = values(ctx, call, &o, x, v);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, v);
	return status;
}

static enum ql_status check_offsets(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *v = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (call->n_in < 3)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "fake: wanted a scale after the offsets, got none");
	if (!ql_dtype_is_float(v->dtype) || v->q)
		return ql_fail(ctx, QL_ERR_DTYPE, "fake: offset: wanted plain floats, got %s", ql_tensor_text(v, a));
	if (ql_tensor_same_shape(x, v))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "fake: offset: wanted shape %s, got %s", ql_shape_text(x->rank, x->shape, a),
		ql_shape_text(v->rank, v->shape, b));
}

enum ql_status ql_offset_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	enum ql_status status = check_offsets(ctx, call);

	if (status || !ql_tape_wanted(ctx, call))
		return status;
	ql_result_set(call, 1, QL_float32, x->rank, x->shape);
	ql_result_set(call, 2, QL_float32, x->rank, x->shape);
	ql_result_set(call, 3, QL_int64, 1, (const int64_t[]){4});
	call->n_out = 4;
	return QL_OK;
}

/* ---- gradients: an op in no table ---- */

/* Operands: the gradient of the result, steps, slopes, scale, place. Results: the gradients of x, offsets, scale and origin. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *y = call->in[0], *scale = call->in[3];

	(void)ctx;
	ql_result_set(call, 0, QL_float32, y->rank, y->shape);
	ql_result_set(call, 1, QL_float32, y->rank, y->shape);
	ql_result_set(call, 2, QL_float64, scale->rank, scale->shape);
	ql_result_set(call, 3, QL_float64, scale->rank, scale->shape);
	call->n_out = 4;
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *dy = NULL, *scale = NULL;
	const int64_t *place = ql_tensor_data(call->in[4]);
	struct ql_offset_slopes s = {.place = {place[0], place[1], place[2], place[3]}};
	enum ql_status status = ql_dense_of(ctx, call->in[0], QL_float32, &dy);

	call->path = "float32";
	call->kernel = "ref";
	if (!status)
		status = ql_dense_of(ctx, call->in[3], QL_float32, &scale);
	if (!status) {
		s.dy = ql_tensor_data(dy);
		s.step = ql_tensor_data(call->in[1]);
		s.slope = ql_tensor_data(call->in[2]);
		s.scale = ql_tensor_data(scale);
		s.dx = ql_tensor_data(call->out[0]);
		s.dv = ql_tensor_data(call->out[1]);
		s.ds = ql_tensor_data(call->out[2]);
		s.dorigin = ql_tensor_data(call->out[3]);
		status = ql_offset_slopes(ctx, &s, dy->rank, dy->shape);
	}
	ql_tensor_release(ctx, dy);
	ql_tensor_release(ctx, scale);
	return status;
}

static const struct ql_op offset_back = {.doc = {.name = "offset_back"},
	.arity_min = 5,
	.arity_max = 5,
	.outputs = 4,
	.infer = back_infer,
	.eval = back_eval};

enum ql_status ql_offset_backward(struct ql_back *b)
{
	struct ql_tensor *out[QL_MAX_OUT],
		*in[] = {ql_back_grad(b, 0), ql_back_out(b, 1), ql_back_out(b, 2), ql_back_in(b, 2), ql_back_out(b, 3)};

	ql_back_all(b, &offset_back, in, 5, NULL, out);
	for (int i = 0; i < b->node->n_in; i++)
		ql_back_give(b, i, out[i]);
	return b->status;
}
