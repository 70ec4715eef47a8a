/* SPDX-License-Identifier: MIT
 * conv2d of quantized operands in integers: exact sums of codes minus zero points, then the rules of linear: y =
 * (float)sum * (sx * sw) [+ bias], or codes y = sat(rint((float)(sum + bias) * M) + zero).
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "quant/ranges/quantize.h"
#include "quant/integer/rescale.h"
#include "tensor/closed.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/scratch.h"

/* ---- conditions ---- */

static bool fits(const struct ql_tensor *t, const char **reason)
{
	if (!t->q)
		*reason = ql_dtype_is_float(t->dtype) ? "an operand is not quantized"
						      : "an operand is a plain integer tensor";
	else if (!ql_qparams_affine(t->q))
		*reason = "codes of this scheme are not multiples of a scale";
	else if (t->q->block)
		*reason = "scale varies in blocks";
	else if (ql_dtypes[t->dtype].bits > 8)
		*reason = "only codes of up to 8 bits have an integer convolution";
	else
		return true;
	return false;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	if (!fits(x, reason) || !fits(w, reason))
		return false;
	*reason = w->rank == 4 ? "scale varies along the summed axes" : "operand 2 is a matrix";
	return x->q->axis < 0 && w->q->axis <= 0 && w->rank == 4;
}

/* ---- operands ---- */

/* Sets j->w to the codes of the weight in bytes, which are unpacked for this call if they are not stored as such. The caller
 * releases *keep. */
static enum ql_status weight_codes(
	struct ql_ctx *ctx, struct ql_tensor *w, struct ql_conv_int *j, struct ql_tensor **keep)
{
	enum ql_status status = ql_conv_int_codes(ctx, w, keep);

	j->w = (struct ql_matrix_int){.dtype = ql_dtype_whole(w->dtype), .row = j->k, .column = 1};
	if (!status)
		j->w.data = ql_tensor_data(*keep);
	return status;
}

static int64_t zero_of(const struct ql_tensor *t, int64_t i)
{
	return t->q->zero_point ? (int64_t)ql_tensor_at_f64(t->q->zero_point, i) : 0;
}

/* Scales of the outputs, and zero points of the weight's rows. */
static enum ql_status read_params(struct ql_conv_int *j, const struct ql_tensor *x, const struct ql_tensor *w)
{
	float *scale = ql_scratch_array(j->ctx, j->c.o, sizeof(*scale)), sx = (float)ql_tensor_at_f64(x->q->scale, 0);
	const float *plain = ql_conv_plain_scales(w->q);
	int32_t *zero = w->q->zero_point ? ql_scratch_array(j->ctx, j->c.o, sizeof(*zero)) : NULL;
	bool per = w->q->axis == 0;

	if (!scale || (w->q->zero_point && !zero))
		return QL_ERR_MEMORY;
	for (int64_t o = 0; o < j->c.o; o++) {
		int64_t i = per ? o : 0;

		scale[o] = sx * (plain ? plain[i] : (float)ql_tensor_at_f64(w->q->scale, i));
		if (zero)
			zero[o] = (int32_t)zero_of(w, i);
	}
	j->scale = scale;
	j->w.zero = zero;
	j->w.zero_step = zero != NULL;
	return QL_OK;
}

/* ---- results as codes ---- */

static bool stays_integer(const struct ql_call *call, const struct ql_spec *spec)
{
	return spec && spec->scheme && spec->scheme->affine && !spec->stochastic && spec->has_scale && !spec->axis &&
	       !spec->block && ql_dtypes[spec->dtype].bits >= 8 && !strcmp(ql_call_string(call, "act", "relu"), "relu");
}

static enum ql_status prepare_codes(
	struct ql_conv_int *j, struct ql_call *call, const struct ql_spec *spec, const struct ql_tensor *w, float sx)
{
	const float nothing[2] = {0, 0};
	const struct ql_result *r = &call->result[0];
	int64_t *bias = ql_scratch_array(j->ctx, j->c.o, sizeof(*bias));
	float *factor = ql_scratch_array(j->ctx, j->c.o, sizeof(*factor)), scale;
	struct ql_fixed *fixed = ql_scratch_array(j->ctx, j->c.o, sizeof(*fixed));
	enum ql_status status = bias && factor && fixed ? QL_OK : QL_ERR_MEMORY;

	if (!status)
		status = ql_tensor_new(j->ctx, spec->dtype, r->rank, r->shape, &call->out[0]);
	if (!status)
		status = ql_rescale_params(j->ctx, spec, nothing, r->rank, r->shape, &call->out[0]->q);
	if (status)
		return status;
	j->out = call->out[0];
	scale = (float)ql_tensor_at_f64(j->out->q->scale, 0);
	j->narrow = ql_sums_fit(j->k);
	for (int64_t o = 0; o < j->c.o; o++) {
		double sw = ql_tensor_at_f64(w->q->scale, w->q->axis == 0 ? o : 0), m = (double)sx * sw / (double)scale;

		factor[o] = (float)m;
		bias[o] = j->e.bias ? ql_round_bias(j->e.bias[o], j->scale[o], &factor[o]) : 0;
		fixed[o] = ql_fixed_of(factor[o] == 0 ? 0 : m);
		j->narrow = j->narrow && bias[o] > -QL_SUM_SAFE && bias[o] < QL_SUM_SAFE;
	}
	j->bias = bias;
	j->factor = factor;
	j->fixed = fixed;
	j->rule = spec->requant;
	call->path = ql_requant_path(call->path, spec->requant);
	j->r = ql_rounding_of(j->out);
	j->relu = j->e.act != NULL;
	return QL_OK;
}

/* ---- tiles ---- */

/* A sum with the result that has the tiles' rules (quant/integer/rescale_bytes.c): both operands and the result are bytes
 * of one shape with one scale, and the other operand has its channels last. Sets *q to the params of the sum and
 * join->done; else leaves both. `codes`: the result of the convolution, without its bytes. */
static enum ql_status join_sum(struct ql_ctx *ctx, struct ql_join *join, struct ql_tensor *codes,
	struct ql_conv_sum *sum, struct ql_qparams **q)
{
	struct ql_call *call = join->second;
	struct ql_tensor *other = call->in[1 - join->at];
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *spec = v ? v->spec : NULL;
	const float nothing[2] = {0, 0};
	const char *unused;
	const struct ql_path *path;
	enum ql_status status;

	call->in[join->at] = codes;
	call->n_out = 1;
	if (join->third || !spec || !spec->has_scale || spec->requant != QL_REQUANT_FLOAT ||
		ql_dtypes[spec->dtype].bits != 8 || !other->q || other->q->axis >= 0 || other->q->block ||
		!ql_images_last(other) || !ql_tensor_same_shape(other, codes) || call->op->infer(ctx, call))
		return QL_OK;
	path = ql_call_path(ctx, call, &unused);
	if (!path || strcmp(path->op, "add"))
		return QL_OK;
	status = ql_rescale_params(ctx, spec, nothing, codes->rank, codes->shape, q);
	if (status)
		return status;
	join->done = true;
	join->operands = ql_ledger_key(call);
	call->path = path->name;
	sum->other = ql_images_data(other);
	sum->dtype = other->dtype;
	sum->other_zero = (int32_t)zero_of(other, 0);
	sum->r = ql_rounding_of_params(*q);
	if (ql_call_attr(call, "act"))
		sum->r.lo = sum->r.lo < 0 ? 0 : sum->r.lo;
	sum->by[0] = (float)((double)(float)ql_tensor_at_f64(codes->q->scale, 0) / ql_tensor_at_f64((*q)->scale, 0));
	sum->by[1] = (float)((double)(float)ql_tensor_at_f64(other->q->scale, 0) / ql_tensor_at_f64((*q)->scale, 0));
	return QL_OK;
}

/* Allocates the result under the params q, or under those of a sum that follows. */
static enum ql_status open_result(
	struct ql_conv_int *j, struct ql_call *call, unsigned dtype, struct ql_qparams *q, struct ql_conv_sum *sum)
{
	const struct ql_result *r = &call->result[0];
	struct ql_tensor codes = {.refs = 1, .dtype = (uint8_t)dtype, .rank = (uint8_t)r->rank, .q = q};
	struct ql_qparams *joined = NULL;
	enum ql_status status = QL_OK;

	for (int d = 0; d < r->rank; d++)
		codes.shape[d] = r->shape[d];
	if (call->join)
		status = join_sum(j->ctx, call->join, &codes, sum, &joined);
	if (!status)
		status = ql_tensor_new(j->ctx, joined ? ql_call_attr(call->join->second, "out")->spec->dtype : dtype,
			r->rank, r->shape, &call->out[0]);
	if (!status)
		call->out[0]->q = joined ? joined : ql_qparams_keep(q);
	else
		ql_qparams_release(j->ctx, joined);
	return status;
}

/* Computes codes with channels last, by tiles or channel by channel, where they fit; else sets *done to false. x: of whole bytes, as it is stored. */
static enum ql_status run_tiles(struct ql_conv_int *j, struct ql_call *call, const struct ql_spec *spec,
	struct ql_tensor *x, const struct ql_tensor *w, bool *done)
{
	const float nothing[2] = {0, 0};
	const struct ql_result *r = &call->result[0];
	struct ql_conv_params p = {.x_scale = (float)ql_tensor_at_f64(call->in[0]->q->scale, 0),
		.x_zero = j->zero + (j->dtype == QL_int8 ? 128 : 0),
		.relu = j->e.act != NULL,
		.rule = spec ? spec->requant : QL_REQUANT_FLOAT};
	struct ql_conv_sum sum = {0};
	struct ql_conv_tiles t;
	struct ql_qparams *q = NULL;
	enum ql_status status;

	bool depth;

	*done = false;
	if (!stays_integer(call, spec))
		return QL_OK;
	depth = ql_conv_depth_fits(j, w, spec);
	if (!depth && !ql_conv_tiles_fit(j, w, spec))
		return QL_OK;
	status = ql_rescale_params(j->ctx, spec, nothing, r->rank, r->shape, &q);
	if (!status) {
		p.out_scale = (float)ql_tensor_at_f64(q->scale, 0);
		p.r = ql_rounding_of_params(q);
		status = (depth ? ql_conv_depth_prepare : ql_conv_tiles_prepare)(j, call, &p, &t);
	}
	if (!status && t.w) {
		*done = true;
		status = open_result(j, call, spec->dtype, q, &sum);
	}
	if (!status && *done) {
		j->out = call->out[0];
		call->path = ql_requant_path(call->path, spec->requant);
		call->kernel = depth ? j->ctx->kernels->depth_i8->name : ql_conv_tiles_kernel(j)->name;
		if (call->join && call->join->done)
			call->join->second->kernel = call->kernel;
		if (j->c.n * j->c.o * j->pixels > 0)
			status = (depth ? ql_conv_depth : ql_conv_tiles)(j, &p, &t, &sum, x);
	}
	ql_qparams_release(j->ctx, q);
	return status;
}

/* ---- the path ---- */

static enum ql_status results(struct ql_conv_int *j, struct ql_call *call, const struct ql_spec *spec,
	const struct ql_tensor *x, const struct ql_tensor *w)
{
	const struct ql_result *r = &call->result[0];
	enum ql_status status;

	if (stays_integer(call, spec))
		return prepare_codes(j, call, spec, w, (float)ql_tensor_at_f64(x->q->scale, 0));
	status = ql_tensor_new(j->ctx, QL_float32, r->rank, r->shape, &call->out[0]);
	if (!status)
		j->y = ql_tensor_data(call->out[0]);
	return status;
}

static enum ql_status compute(struct ql_conv_int *j, struct ql_call *call, const struct ql_spec *spec)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	enum ql_status status = read_params(j, x, w);
	bool direct = ql_conv_int_is_direct(j);

	call->kernel = direct ? j->ctx->kernels->taps_i16->name : j->ctx->kernels->gemm_i8->name;
	if (!status)
		status = results(j, call, spec, x, w);
	if (!status && j->c.n * j->c.o * j->pixels > 0)
		status = (direct ? ql_conv_int_direct : ql_conv_int_unfolded)(j);
	return status ? status : ql_quantize_result(j->ctx, call, spec);
}

/* Gives x as bytes: with their channels last only if tiles compute the call. */
static enum ql_status read_x(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **codes)
{
	if (ql_images_last(x)) {
		*codes = ql_tensor_keep(x);
		return QL_OK;
	}
	return ql_conv_int_codes(ctx, x, codes);
}

/* An image of one column, as conv1d has them, is an image of one row: kernels make vectors of the pixels of a row. */
static void lay_column(struct ql_window *w)
{
	int64_t *const of[] = {w->in, w->kernel, w->stride, w->dilation, w->before, w->after, w->out};

	if (w->in[1] != 1 || w->kernel[1] != 1 || w->out[1] != 1 || w->before[1] != 0)
		return;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		int64_t first = of[i][0];

		of[i][0] = of[i][1];
		of[i][1] = first;
	}
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *w = call->in[1], *codes = NULL, *weight = NULL, *bias = NULL;
	const struct ql_value *v = ql_call_attr(call, "out");
	struct ql_conv_int j = {.ctx = ctx, .variant = ctx->kernels->simd->variant};
	enum ql_status status = ql_conv_read(ctx, call, x->rank, x->shape, w->rank, w->shape, &j.c);
	bool done = false;

	call->path = "int8";
	if (!status)
		status = read_x(ctx, x, &codes);
	if (!status)
		status = ql_epilogue_of(ctx, call, j.c.o, &j.e, &bias);
	if (!status) {
		lay_column(&j.c.window);
		j.rows = j.c.o / j.c.groups;
		j.k = j.c.c / j.c.groups * j.c.window.kernel[0] * j.c.window.kernel[1];
		j.pixels = j.c.window.out[0] * j.c.window.out[1];
		j.dtype = codes->dtype;
		j.zero = (int32_t)zero_of(x, 0);
		status = run_tiles(&j, call, v ? v->spec : NULL, codes, w, &done);
	}
	if (!status && !done)
		status = weight_codes(ctx, w, &j, &weight);
	if (!status && !done)
		status = ql_closed_open(ctx, codes->storage);
	if (!status && !done) {
		j.x = ql_tensor_data(codes);
		status = compute(&j, call, v ? v->spec : NULL);
		ql_closed_close(ctx, codes->storage);
	}
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, weight);
	ql_tensor_release(ctx, bias);
	return status;
}

extern const struct ql_path ql_path_conv2d_int;
const struct ql_path ql_path_conv2d_int = {
	.op = "conv2d",
	.name = "int8",
	.codes = "8 packed binary",
	.text = "exact integer sums; one scale for x, one for w or per output channel",
	.match = match,
	.eval = eval,
	.closed = true,
};
