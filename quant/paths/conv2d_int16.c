/* SPDX-License-Identifier: MIT
 * conv2d of quantized operands, one or both of 16 bits: exact 64-bit sums of codes minus zero points,
 * then the rules of the 8-bit convolution: y = (float)sum * (sx * sw) [+ bias], or codes y = sat(rint((float)(sum +
 * bias) * M) + zero) with M = (float)((double)sx * sw / sy), or in fixed point (quant/integer/fixed.h).
 *
 * The sums are products of the weight (o, c kh kw) with unfolded codes (c kh kw, pixels), some lines of pixels of
 * one image at a time, padded with the zero point of x, which adds nothing.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "quant/ranges/quantize.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/gemm/matmul.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/conv/window.h"

#define BYTES ((int64_t)8 << 20) /* of the unfolded matrix */
#define PIECE 256                /* sums converted to codes at a time */

static bool fits(const struct ql_tensor *t, const char **reason)
{
	*reason = "an operand is not quantized";
	if (!t->q)
		return false;
	*reason = "codes of this scheme are not multiples of a scale";
	if (!ql_qparams_affine(t->q))
		return false;
	*reason = "scale varies in blocks";
	if (t->q->block)
		return false;
	*reason = "+-1 codes have no 16-bit convolution";
	return !ql_dtype_is_binary(t->dtype);
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	if (!fits(x, reason) || !fits(w, reason))
		return false;
	*reason = w->rank == 4 ? "scale varies along the summed axes" : "operand 2 is a matrix";
	return x->q->axis < 0 && w->q->axis <= 0 && w->rank == 4;
}

struct job {
	struct ql_ctx *ctx;
	struct ql_conv c;
	int64_t k, rows, pixels; /* per group: summed elements, outputs; per image: pixels */
	int64_t image, group;
	int64_t line, lines;         /* of unfolded pixels */
	const uint16_t *x;           /* codes (n, c, h, w), int16 or uint16 */
	uint16_t pad;                /* the zero point of x */
	uint16_t *patch;             /* (k, lines * width) */
	const float *scale, *factor; /* (o): sx * sw; the same divided by the result's scale */
	const int64_t *bias;         /* (o) */
	struct ql_epilogue e;
	float *y;                     /* float result; or codes: */
	struct ql_tensor *out;        /* NULL: float result */
	const struct ql_fixed *fixed; /* (o): replaces factor for a fixed-point rule */
	enum ql_requant rule;
	struct ql_rounding r;
};

/* ---- unfolding ---- */

static void unfold_line(const struct job *j, const uint16_t *plane, int64_t row, int64_t left, uint16_t *to)
{
	const struct ql_window *w = &j->c.window;

	for (int64_t p = 0; p < w->out[1]; p++) {
		int64_t column = p * w->stride[1] + left;
		bool inside = row >= 0 && row < w->in[0] && column >= 0 && column < w->in[1];

		to[p] = inside ? plane[row * w->in[1] + column] : j->pad;
	}
}

static void unfold_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_window *w = &j->c.window;
	int64_t taps = w->kernel[0] * w->kernel[1], per = j->c.c / j->c.groups, width = w->out[1];

	for (int64_t r = begin; r < end; r++) {
		int64_t channel = j->group * per + r / taps, up = r % taps / w->kernel[1], left = r % w->kernel[1];
		const uint16_t *plane = j->x + (j->image * j->c.c + channel) * w->in[0] * w->in[1];

		for (int64_t i = 0; i < j->lines; i++)
			unfold_line(j, plane, (j->line + i) * w->stride[0] + up * w->dilation[0] - w->before[0],
				left * w->dilation[1] - w->before[1], j->patch + (r * j->lines + i) * width);
	}
}

/* ---- results ---- */

static void store_codes(const struct job *j, int64_t o, int64_t at, int64_t n, const int64_t *sum)
{
	const struct ql_dtype_info *d = &ql_dtypes[j->out->dtype];
	int64_t codes[PIECE];

	for (int64_t done = 0; done < n; done += PIECE) {
		int64_t part = ql_min64(PIECE, n - done);

		for (int64_t l = 0; l < part; l++) {
			int64_t s = sum[done + l] + j->bias[o];

			s = j->e.act && s < 0 ? 0 : s;
			codes[l] = j->rule ? ql_fixed_code(j->rule, true, s, j->fixed[o], &j->r)
					   : ql_round((float)s * j->factor[o], j->r.lo, j->r.hi, j->r.zero);
		}
		d->from_i64(j->out->storage->data, at + done, 1, part, codes);
	}
}

static void store(void *arg, int64_t i, int64_t column, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct job *j = arg;
	struct ql_epilogue act = {.act = j->e.act, .args = j->e.args, .variant = j->e.variant};
	int64_t o = j->group * j->rows + i,
		at = (j->image * j->c.o + o) * j->pixels + j->line * j->c.window.out[1] + column;

	(void)sum32; /* ql_gemm_i16 gives 64-bit sums */
	if (j->out) {
		store_codes(j, o, at, n, sum64);
		return;
	}
	for (int64_t l = 0; l < n; l++) {
		float t = (float)sum64[l] * j->scale[o];

		j->y[at + l] = j->e.bias ? t + j->e.bias[o] : t;
	}
	if (act.act)
		ql_epilogue_row(&act, 0, n, j->y + at);
}

/* ---- running ---- */

static enum ql_status run_lines(struct job *j, const struct ql_matrix_int *w, unsigned dtype, const int32_t *zero)
{
	int64_t n = j->lines * j->c.window.out[1];
	struct ql_matrix_int a = *w, b = {.data = j->patch, .dtype = dtype, .row = n, .column = 1, .zero = zero};
	enum ql_status status = ql_parallel_for(j->ctx, j->k, ql_max64(1, 65536 / n), j->k * n / 8, unfold_rows, j);

	a.data = (const uint16_t *)w->data + j->group * j->rows * j->k;
	a.zero = w->zero && w->zero_step ? w->zero + j->group * j->rows : w->zero;
	return status ? status : ql_gemm_i16(j->ctx, j->rows, n, j->k, &a, &b, store, j);
}

static enum ql_status run_all(struct job *j, const struct ql_matrix_int *w, unsigned dtype, const int32_t *zero)
{
	int64_t width = j->c.window.out[1], height = j->c.window.out[0];
	int64_t most = ql_min64(height, ql_max64(1, BYTES / ql_max64(1, ql_mul64(ql_mul64(j->k, width), 2))));
	enum ql_status status = QL_OK;

	j->patch = ql_scratch_array(j->ctx, ql_mul64(ql_mul64(most, width), j->k), sizeof(*j->patch));
	if (!j->patch)
		return QL_ERR_MEMORY;
	for (j->image = 0; j->image < j->c.n; j->image++)
		for (j->group = 0; j->group < j->c.groups; j->group++)
			for (j->line = 0; j->line < height && !status; j->line += j->lines) {
				j->lines = ql_min64(most, height - j->line);
				status = run_lines(j, w, dtype, zero);
			}
	return status;
}

/* ---- operands ---- */

/* Gives contiguous codes of 16 bits; t itself if its codes are. */
static enum ql_status wide_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (ql_dtypes[t->dtype].bits == 16)
		return ql_tensor_contiguous(ctx, t, out);
	return ql_tensor_cast(ctx, t, QL_int16, out);
}

static int64_t zero_of(const struct ql_tensor *t, int64_t i)
{
	return t->q->zero_point ? (int64_t)ql_tensor_at_f64(t->q->zero_point, i) : 0;
}

static enum ql_status read_params(
	struct job *j, const struct ql_tensor *x, const struct ql_tensor *w, struct ql_matrix_int *a)
{
	float *scale = ql_scratch_array(j->ctx, j->c.o, sizeof(*scale)), sx = (float)ql_tensor_at_f64(x->q->scale, 0);
	int32_t *zero = ql_scratch_array(j->ctx, j->c.o, sizeof(*zero));
	bool per = w->q->axis == 0;

	if (!scale || !zero)
		return QL_ERR_MEMORY;
	for (int64_t o = 0; o < j->c.o; o++) {
		scale[o] = sx * (float)ql_tensor_at_f64(w->q->scale, per ? o : 0);
		zero[o] = (int32_t)zero_of(w, per ? o : 0);
	}
	j->scale = scale;
	a->zero = w->q->zero_point ? zero : NULL;
	a->zero_step = 1;
	return QL_OK;
}

/* ---- results as codes ---- */

static bool stays_integer(const struct ql_call *call, const struct ql_spec *spec)
{
	return spec && spec->scheme && spec->scheme->affine && !spec->stochastic && spec->has_scale && !spec->axis &&
	       !spec->block && ql_dtypes[spec->dtype].bits >= 8 && !strcmp(ql_call_string(call, "act", "relu"), "relu");
}

static enum ql_status prepare_codes(struct job *j, struct ql_call *call, const struct ql_spec *spec)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	const float nothing[2] = {0, 0};
	const struct ql_result *r = &call->result[0];
	int64_t *bias = ql_scratch_array(j->ctx, j->c.o, sizeof(*bias));
	float *factor = ql_scratch_array(j->ctx, j->c.o, sizeof(*factor));
	struct ql_fixed *fixed = ql_scratch_array(j->ctx, j->c.o, sizeof(*fixed));
	enum ql_status status = bias && factor && fixed ? QL_OK : QL_ERR_MEMORY;
	double sx = ql_tensor_at_f64(x->q->scale, 0);

	if (!status)
		status = ql_tensor_new(j->ctx, spec->dtype, r->rank, r->shape, &call->out[0]);
	if (!status)
		status = ql_rescale_params(j->ctx, spec, nothing, r->rank, r->shape, &call->out[0]->q);
	if (status)
		return status;
	j->out = call->out[0];
	for (int64_t o = 0; o < j->c.o; o++) {
		double sw = ql_tensor_at_f64(w->q->scale, w->q->axis == 0 ? o : 0);
		double m = sx * sw / ql_tensor_at_f64(j->out->q->scale, 0);

		factor[o] = (float)m;
		bias[o] = j->e.bias ? ql_round_bias(j->e.bias[o], j->scale[o], &factor[o]) : 0;
		fixed[o] = ql_fixed_of(factor[o] == 0 ? 0 : m);
	}
	j->bias = bias;
	j->factor = factor;
	j->fixed = fixed;
	j->rule = spec->requant;
	call->path = ql_requant_path(call->path, spec->requant);
	j->r = ql_rounding_of(j->out);
	return QL_OK;
}

/* ---- the path ---- */

static enum ql_status prepare_result(struct job *j, struct ql_call *call, const struct ql_spec *spec)
{
	const struct ql_result *r = &call->result[0];
	enum ql_status status;

	if (stays_integer(call, spec))
		return prepare_codes(j, call, spec);
	status = ql_tensor_new(j->ctx, QL_float32, r->rank, r->shape, &call->out[0]);
	if (!status)
		j->y = ql_tensor_data(call->out[0]);
	return status;
}

static enum ql_status compute(struct job *j, struct ql_call *call, struct ql_tensor *codes, struct ql_tensor *weight)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *spec = v ? v->spec : NULL;
	struct ql_matrix_int a = {.data = ql_tensor_data(weight), .dtype = weight->dtype, .row = j->k, .column = 1};
	int32_t zero = (int32_t)zero_of(call->in[0], 0);
	enum ql_status status = read_params(j, call->in[0], call->in[1], &a);

	j->x = ql_tensor_data(codes);
	j->pad = (uint16_t)zero;
	if (!status)
		status = prepare_result(j, call, spec);
	if (!status && j->c.n * j->c.o * j->pixels > 0)
		status = run_all(j, &a, codes->dtype, &zero);
	return status ? status : ql_quantize_result(j->ctx, call, spec);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *w = call->in[1], *codes = NULL, *weight = NULL, *bias = NULL;
	struct job j = {.ctx = ctx};
	enum ql_status status = ql_conv_read(ctx, call, x->rank, x->shape, w->rank, w->shape, &j.c);

	call->path = "int16";
	call->kernel = ctx->kernels->gemm_i16->name;
	if (!status)
		status = wide_codes(ctx, x, &codes);
	if (!status)
		status = wide_codes(ctx, w, &weight);
	if (!status)
		status = ql_epilogue_of(ctx, call, j.c.o, &j.e, &bias);
	if (!status) {
		j.rows = j.c.o / j.c.groups;
		j.k = j.c.c / j.c.groups * j.c.window.kernel[0] * j.c.window.kernel[1];
		j.pixels = j.c.window.out[0] * j.c.window.out[1];
		status = compute(&j, call, codes, weight);
	}
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, weight);
	ql_tensor_release(ctx, bias);
	return status;
}

extern const struct ql_path ql_path_conv2d_int16;
const struct ql_path ql_path_conv2d_int16 = {
	.op = "conv2d",
	.name = "int16",
	.codes = "16",
	.text = "exact integer sums in 64 bits; one scale for x, one for w or per output channel",
	.match = match,
	.eval = eval,
};
