/* SPDX-License-Identifier: MIT
 * matmul and linear of quantized operands in integers: exact sums of codes minus zero points, then
 * y = (float)sum * (sa * sb) [+ bias], each step rounded.
 */
#include <string.h>

#include "quant/integer/fixed.h"
#include "quant/integer/product.h"
#include "quant/ranges/quantize.h"
#include "tensor/half.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define PIECE 64 /* numbers that become 16-bit floats at a time */

/* ---- conditions ---- */

static bool factor_fits(const struct ql_tensor *t, int summed, const char **reason)
{
	if (!t->q)
		*reason = ql_dtype_is_float(t->dtype) ? "an operand is not quantized"
						      : "an operand is a plain integer tensor";
	else if (!ql_qparams_affine(t->q))
		*reason = "codes of this scheme are not multiples of a scale";
	else if (t->q->block && t->q->block_axis == summed)
		*reason = "scale varies along the summed axis (blocks)";
	else if (t->q->block)
		*reason = "scale varies in blocks";
	else if (t->q->axis == summed)
		*reason = "scale varies along the summed axis";
	else
		return true;
	return false;
}

static bool match_matmul(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *a = call->in[0], *b = call->in[1];

	return factor_fits(a, a->rank - 1, reason) && factor_fits(b, b->rank > 1 ? b->rank - 2 : 0, reason);
}

static bool match_linear(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	if (!factor_fits(x, x->rank - 1, reason) || !factor_fits(w, 1, reason))
		return false;
	*reason = "scale varies along one of several leading axes";
	return x->rank == 2 || x->q->axis < 0;
}

/* ---- float result ---- */

/* y = (float)sum * (sa * sb) for n columns with one scale each (step 1) or one for all (0). */
QL_SIMD(void, rescale,
	(float *restrict y, const int32_t *restrict sum, int64_t n, float sa, const float *restrict sb, int64_t step), {
		float s = sa * *sb;

		if (step)
			for (int64_t l = 0; l < n; l++)
				y[l] = (float)sum[l] * (sa * sb[l]);
		else
			for (int64_t l = 0; l < n; l++)
				y[l] = (float)sum[l] * s;
	})

/* One row of floats, to y; relu and the like included. */
static void scale_row(const struct ql_gemm_i8_out *out, int64_t i, int64_t j, int64_t n, const int32_t *sum32,
	const int64_t *sum64, float *y)
{
	float sa = out->row_scale[i * out->row_step];
	const float *sb = out->column_scale + j * out->column_step;

	if (sum32)
		rescale[out->end->variant](y, sum32, n, sa, sb, out->column_step);
	else
		for (int64_t l = 0; l < n; l++)
			y[l] = (float)sum64[l] * (sa * sb[l * out->column_step]);
	if (out->end->bias || out->end->act)
		ql_epilogue_row(out->end, j, n, y);
}

/* Sums that the product does not convert itself: of 64 bits, and of bits. */
static void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct ql_gemm_i8_out *out = arg;
	float y[PIECE];

	if (out->f32) {
		scale_row(out, i, j, n, sum32, sum64, out->f32 + i * out->ld + j);
		return;
	}
	for (int64_t at = 0; at < n; at += PIECE) {
		int64_t some = ql_min64(PIECE, n - at);

		scale_row(out, i, j + at, some, sum32 ? sum32 + at : NULL, sum64 ? sum64 + at : NULL, y);
		ql_half_from_f32(out->end->variant, out->half_dtype, some, y, out->half + i * out->ld + j + at);
	}
}

/* float32, or 16-bit floats if the spec asks for them */
static enum ql_status float_result(struct ql_ctx *ctx, struct ql_call *call, struct ql_product *p,
	const struct ql_spec *spec, const struct ql_epilogue *e)
{
	const struct ql_result *r = &call->result[0];
	bool half = spec && !spec->scheme && ql_dtype_is_half(spec->dtype);
	struct ql_gemm_i8_out out = {.store = store, .arg = &out, .ld = p->plan.n, .end = e};
	enum ql_status status = ql_tensor_new(ctx, half ? spec->dtype : QL_float32, r->rank, r->shape, &call->out[0]);

	for (int64_t i = 0; i < p->plan.batches && !status; i++) {
		int64_t at = i * p->plan.m * p->plan.n;

		out.row_scale = ql_factor_scale(p, &p->a, i, &out.row_step);
		out.column_scale = ql_factor_scale(p, &p->b, i, &out.column_step);
		out.f32 = half ? NULL : (float *)ql_tensor_data(call->out[0]) + at;
		out.half = half ? (uint16_t *)ql_tensor_data(call->out[0]) + at : NULL;
		out.half_dtype = call->out[0]->dtype;
		status = ql_product_run_to(ctx, p, i, &out);
	}
	return status || half ? status : ql_quantize_result(ctx, call, spec);
}

/* ---- the path ---- */

static bool stays_integer(const struct ql_call *call, const struct ql_spec *spec)
{
	const char *act = ql_call_string(call, "act", "relu");

	return spec && spec->scheme && spec->scheme->affine && !spec->scheme->shift && !spec->stochastic &&
	       !ql_dtype_is_binary(spec->dtype) && !spec->axis && !spec->block && !strcmp(act, "relu");
}

static enum ql_status finish(struct ql_ctx *ctx, struct ql_call *call, struct ql_product *p, struct ql_epilogue *e)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *spec = v ? v->spec : NULL;

	call->path = ql_product_path(p);
	call->kernel = ql_product_kernel(ctx, p);
	if (stays_integer(call, spec)) {
		call->path = ql_requant_path(call->path, spec->requant);
		return ql_product_requantize(
			ctx, p, spec, e, e->act != NULL, call->result[0].rank, call->result[0].shape, &call->out[0]);
	}
	return float_result(ctx, call, p, spec, e);
}

static enum ql_status eval_matmul(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_product p;
	struct ql_epilogue none = {.variant = ctx->kernels->simd->variant};
	enum ql_status status = ql_product_start(ctx, "matmul", call->in[0], call->in[1], &p);

	if (!status)
		status = finish(ctx, call, &p, &none);
	ql_product_done(ctx, &p);
	return status;
}

static enum ql_status eval_linear(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x, *w, *bias = NULL;
	struct ql_product p = {0};
	struct ql_epilogue e;
	enum ql_status status = ql_linear_operands(ctx, call, &x, &w);

	if (!status)
		status = ql_product_start(ctx, "linear", x, w, &p);
	if (!status)
		status = ql_epilogue_of(ctx, call, p.plan.n, &e, &bias);
	if (!status)
		status = finish(ctx, call, &p, &e);
	ql_product_done(ctx, &p);
	ql_tensor_release(ctx, bias);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	return status;
}

#define CODES "8 16=int16 packed binary=binary"

extern const struct ql_path ql_path_matmul_int;
const struct ql_path ql_path_matmul_int = {
	.op = "matmul",
	.name = "int8",
	.codes = CODES,
	.text = "exact integer sums; scales per tensor, row of a, column of b or batch",
	.match = match_matmul,
	.eval = eval_matmul,
	.closed = true,
};

extern const struct ql_path ql_path_linear_int;
const struct ql_path ql_path_linear_int = {
	.op = "linear",
	.name = "int8",
	.codes = CODES,
	.text = "exact integer sums; scales per tensor, row of x or row of w",
	.match = match_linear,
	.eval = eval_linear,
	.closed = true,
	.waiting = true,
};
