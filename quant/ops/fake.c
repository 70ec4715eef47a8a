/* SPDX-License-Identifier: MIT
 * x:fake(spec): quantizes and dequantizes in floats. The gradient is straight-through if x is inside the range of the
 * codes, ends included, which the integer before clamping decides:
 *   y = (sat(rne(x / s) + z) - z) s     dx = dy [qmin <= rne(x / s) + z <= qmax]
 * One pass writes y and, if a gradient is required, the mask (a byte per element). Schemes that are not affine go
 * through codes, with the mask |x| <= scale for log and |x| <= 1 for binary (BinaryNet, arXiv 1602.02830).
 *
 * x:fake(v, scale, spec) rounds x / scale + v instead, with gradients of all operands (quant/ranges/offset.h).
 */
#include "quant/ranges/quantize.h"

#include <math.h>
#include <string.h>

#include "quant/blocks/block.h"
#include "quant/ranges/offset_call.h"
#include "tensor/autograd/back.h"
#include "tensor/codec.h"
#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIECE 4096
#define NEAREST 0x1.8p23f /* adding and subtracting it rounds half to even for |v| < 2^22 */

/* One element: the code without its zero point in lo..hi, or a value just outside if it exceeds them. */
#define UNCLAMPED(scale_of, lo_of, hi_of) \
	float v = x[i] / (scale_of); \
	float low = (lo_of)-1; \
	float high = (hi_of) + 1; \
\
	v = v < low ? low : v > high ? high : v == v ? v : 0; \
	v = (v + NEAREST) - NEAREST; \
	float c = v < (lo_of) ? (lo_of) : v > (hi_of) ? (hi_of) : v; \
	y[i] = c * (scale_of);

QL_SIMD(void, row_masked,
	(const float *restrict x, int64_t n, float scale, float lo, float hi, float *restrict y,
		uint8_t *restrict mask),
	{
		for (int64_t i = 0; i < n; i++) {
			UNCLAMPED(scale, lo, hi)
			mask[i] = c == v && x[i] == x[i];
		}
	})

QL_SIMD(void, row_plain, (const float *restrict x, int64_t n, float scale, float lo, float hi, float *restrict y), {
	for (int64_t i = 0; i < n; i++) {
		UNCLAMPED(scale, lo, hi)
	}
})

QL_SIMD(void, each_masked,
	(const float *restrict x, int64_t n, const float *restrict scale, const float *restrict lo,
		const float *restrict hi, float *restrict y, uint8_t *restrict mask),
	{
		for (int64_t i = 0; i < n; i++) {
			UNCLAMPED(scale[i], lo[i], hi[i])
			mask[i] = c == v && x[i] == x[i];
		}
	})

QL_SIMD(void, each_plain,
	(const float *restrict x, int64_t n, const float *restrict scale, const float *restrict lo,
		const float *restrict hi, float *restrict y),
	{
		for (int64_t i = 0; i < n; i++) {
			UNCLAMPED(scale[i], lo[i], hi[i])
		}
	})

struct job {
	struct ql_grain g;
	const float *x, *scale, *lo, *hi; /* lo, hi: codes without zero points, one per scale */
	float *y;
	uint8_t *mask;  /* NULL: not wanted */
	int64_t pieces; /* per row */
	int variant;
};

/* Processes n elements at `at` under scale s, or scales s and following. */
static void run(const struct job *j, int64_t at, int64_t n, int64_t s)
{
	const float *x = j->x + at;
	float *y = j->y + at;

	if (j->g.kind >= QL_GRAIN_COLUMN && j->mask)
		each_masked[j->variant](x, n, j->scale + s, j->lo + s, j->hi + s, y, j->mask + at);
	else if (j->g.kind >= QL_GRAIN_COLUMN)
		each_plain[j->variant](x, n, j->scale + s, j->lo + s, j->hi + s, y);
	else if (j->mask)
		row_masked[j->variant](x, n, j->scale[s], j->lo[s], j->hi[s], y, j->mask + at);
	else
		row_plain[j->variant](x, n, j->scale[s], j->lo[s], j->hi[s], y);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = i / j->pieces, column = i % j->pieces * PIECE, stop = ql_min64(column + PIECE, j->g.row),
			length;

		while (column < stop) {
			int64_t s = ql_grain_scale(&j->g, row, column, &length), n = ql_min64(length, stop - column);

			run(j, row * j->g.row + column, n, s);
			column += n;
		}
	}
}

/* Computes y of x with params q for codes of `dtype`. */
static enum ql_status affine(struct ql_ctx *ctx, const struct ql_qparams *q, unsigned dtype, struct ql_tensor *x,
	struct ql_tensor *y, uint8_t *mask)
{
	struct job j = {.g = ql_grain_of(x->rank, x->shape, QL_float32, q->axis, q->block_axis, q->block),
		.x = ql_tensor_data(x),
		.y = ql_tensor_data(y),
		.mask = mask,
		.variant = ctx->kernels->simd->variant};
	int64_t n = ql_tensor_nelem(q->scale);
	float *numbers = ql_scratch_array(ctx, n, 3 * sizeof(*numbers));

	if (!numbers)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		double zero = q->zero_point ? ql_tensor_at_f64(q->zero_point, i) : 0;
		struct ql_codes codes = ql_qparams_codes(q, dtype, i);

		numbers[i] = (float)ql_tensor_at_f64(q->scale, i);
		numbers[n + i] = (float)(codes.lo - zero);
		numbers[2 * n + i] = (float)(codes.hi - zero);
	}
	j.scale = numbers;
	j.lo = numbers + n;
	j.hi = numbers + 2 * n;
	j.pieces = ql_ceil_div(j.g.row, PIECE);
	return ql_parallel_for(ctx, j.g.rows * j.pieces, ql_max64(1, 65536 / ql_max64(1, ql_min64(PIECE, j.g.row))),
		j.g.rows * j.g.row, body, &j);
}

/* ---- schemes that are not affine ---- */

/* The smallest and largest value of codes with scale 1 and shift 0. */
static void reach_of(const struct ql_qparams *q, float *least, float *most)
{
	const struct ql_grid_table *grid = q->codes.grid;

	bool integers = q->scheme->affine && q->codes.bits > 1;

	*most = grid ? grid->value[grid->code[grid->ranks - 1]] : integers ? (float)q->codes.hi : 1;
	*least = grid ? grid->value[grid->code[0]] : integers ? (float)q->codes.lo : -1;
}

static enum ql_status mask_within(
	struct ql_ctx *ctx, const struct ql_tensor *x, const struct ql_qparams *q, uint8_t *mask)
{
	struct ql_grain g = ql_grain_of(x->rank, x->shape, QL_float32, q->axis, q->block_axis, q->block);
	const float *v = ql_tensor_data(x);
	int64_t length, n = ql_tensor_nelem(q->scale);
	float *scale = ql_scratch_array(ctx, n, 2 * sizeof(*scale)), *shift = scale + n, least, most;
	enum ql_status status = scale ? ql_qparams_scales(ctx, q->scale, scale) : QL_ERR_MEMORY;

	if (!status && q->shift)
		status = ql_qparams_scales(ctx, q->shift, shift);
	reach_of(q, &least, &most);
	for (int64_t r = 0; r < g.rows && !status; r++)
		for (int64_t c = 0; c < g.row; c++) {
			int64_t k = ql_grain_scale(&g, r, c, &length);
			float one = q->codes.bits == 1 ? 1 : scale[k], from = q->shift ? shift[k] : 0;
			float value = v[r * g.row + c];

			float a = least * one + from, b = most * one + from;

			mask[r * g.row + c] = value >= fminf(a, b) && value <= fmaxf(a, b);
		}
	return status;
}

static enum ql_status through_codes(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, struct ql_tensor **y, uint8_t *mask)
{
	struct ql_tensor *codes = NULL;
	enum ql_status status = ql_quantize(ctx, x, spec, &codes);

	if (!status)
		status = codes->q ? ql_decode(ctx, codes, y) : ql_tensor_cast(ctx, codes, QL_float32, y);
	if (!status && mask && codes->q && !spec->scheme->host)
		status = mask_within(ctx, x, codes->q, mask);
	else if (!status && mask)
		memset(mask, 1,
			(size_t)ql_tensor_nelem(x)); /* a float dtype clips nothing; what functions clip is unknown */
	ql_tensor_release(ctx, codes);
	return status;
}

/* ---- the op ---- */

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);

	if (!ql_call_attr(call, "spec"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "fake: spec: wanted a spec, got false");
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, x->rank, x->shape);
	if (call->n_in > 1)
		return ql_offset_infer(ctx, call);
	if (ql_tape_wanted(ctx, call)) {
		ql_result_set(call, 1, QL_uint8, x->rank, x->shape); /* the mask */
		call->n_out = 2;
	}
	return QL_OK;
}

static enum ql_status compute(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, struct ql_tensor **y, uint8_t *mask)
{
	struct ql_qparams *q = NULL;
	enum ql_status status;

	if (!spec->scheme || ql_block_fits(spec) || !spec->scheme->affine || spec->scheme->shift || spec->outer ||
		spec->stochastic || ql_dtype_is_binary(spec->dtype))
		return through_codes(ctx, spec, x, y, mask);
	status = ql_quantize_params(ctx, spec, x->rank, x->shape, x, &q);
	if (!status)
		status = ql_tensor_new(ctx, QL_float32, x->rank, x->shape, y);
	if (!status && ql_tensor_nelem(x) > 0)
		status = affine(ctx, q, spec->dtype, x, *y, mask);
	ql_qparams_release(ctx, q);
	return status;
}

static enum ql_status eval_here(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	struct ql_tensor *x = NULL, *y = NULL, *mask = NULL;
	enum ql_status status = QL_OK;

	call->kernel = ctx->kernels->simd->name;
	if (call->n_out == 2)
		status = ql_tensor_new(ctx, QL_uint8, call->result[1].rank, call->result[1].shape, &mask);
	if (!status)
		status = ql_dense_of(ctx, call->in[0], QL_float32, &x);
	if (!status)
		status = compute(ctx, spec, x, &y, mask ? ql_tensor_data(mask) : NULL);
	if (!status)
		status = ql_dense_of(ctx, y, call->result[0].dtype, &call->out[0]);
	call->out[1] = mask;
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

/* ---- on a device ---- */

/* Values and mask under given scales, as an op in no table. Operands: x, and a tensor of x's shape that has the params; its
 * codes are read only if the scheme is not affine. */
static enum ql_status given_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);

	(void)ctx;
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, x->rank, x->shape);
	if (ql_call_bool(call, "mask", false)) {
		ql_result_set(call, 1, QL_uint8, x->rank, x->shape);
		call->n_out = 2;
	}
	return QL_OK;
}

static enum ql_status given_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *codes = call->in[1];
	bool affine_codes = codes->q->scheme->affine && !codes->q->shift && !ql_dtype_is_binary(codes->dtype);
	struct ql_tensor *x = NULL, *y = NULL;
	uint8_t *mask = call->n_out == 2 ? ql_tensor_data(call->out[1]) : NULL;
	enum ql_status status = ql_dense_of(ctx, call->in[0], QL_float32, &x);

	call->kernel = ctx->kernels->simd->name;
	if (!status && affine_codes)
		status = ql_tensor_new(ctx, QL_float32, x->rank, x->shape, &y);
	if (!status && affine_codes && ql_tensor_nelem(x) > 0)
		status = affine(ctx, codes->q, codes->dtype, x, y, mask);
	if (!status && !affine_codes)
		status = ql_decode(ctx, codes, &y);
	if (!status && !affine_codes && mask && !codes->q->scheme->host)
		status = mask_within(ctx, x, codes->q, mask);
	else if (!status && !affine_codes && mask)
		memset(mask, 1, (size_t)ql_tensor_nelem(x)); /* what functions clip is unknown */
	if (!status)
		status = ql_tensor_copy(ctx, call->out[0], y);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

static const struct ql_attr given_attrs[] = {
	{"mask", QL_ATTR_BOOL, 0, NULL, "whether the mask is a result, too"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
static const struct ql_op fake_given = {.doc = {.name = "fake_given", .attrs = given_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.outputs = 2,
	.flags = QL_NATIVE,
	.infer = given_infer,
	.eval = given_eval};

extern const struct ql_op ql_op_quantize;

/* Gives a tensor with the params of the spec: their numbers stay on the host if there is one scale for all, and go with the
 * call. Its elements are not set. */
static enum ql_status given_params(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_spec *spec, struct ql_tensor **out)
{
	const struct ql_tensor *x = call->in[0];
	enum ql_fit_rule fit;
	enum ql_status status;

	if (spec->axis || spec->block) {
		status = ql_quantize_on(ctx, spec, QL_float32, NULL, x->rank, x->shape, call->device, out, &fit);
		return status;
	}
	status = ql_tensor_new_on(ctx, call->device, spec->dtype, x->rank, x->shape, out);
	if (!status)
		status = ql_quantize_params(ctx, spec, x->rank, x->shape, NULL, &(*out)->q);
	return status;
}

static enum ql_status quantized(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_spec *spec, struct ql_tensor **out)
{
	const struct ql_value attr = {.set = true, .spec = spec};
	struct ql_call quantize = {.op = &ql_op_quantize, .in = call->in, .n_in = 1, .attr = &attr};
	enum ql_status status = ql_op_apply(ctx, &quantize);

	*out = quantize.out[0];
	return status;
}

/* A float dtype: rounds, clips nothing. */
static enum ql_status rounded(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	struct ql_tensor *y = NULL;
	enum ql_status status = ql_tensor_cast(ctx, call->in[0], spec->dtype, &y);

	if (!status)
		status = ql_tensor_cast(ctx, y, call->result[0].dtype, &call->out[0]);
	if (!status && call->n_out == 2)
		status = ql_tensor_new_on(
			ctx, call->device, QL_uint8, call->result[1].rank, call->result[1].shape, &call->out[1]);
	if (!status && call->n_out == 2)
		status = call->device->fill(
			call->device, call->out[1]->storage->remote->at, 1, call->out[1]->storage->bytes);
	ql_tensor_release(ctx, y);
	return status;
}

static enum ql_status eval_on(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	const struct ql_value mask = {.set = true, .b = call->n_out == 2};
	struct ql_tensor *in[2] = {call->in[0], NULL};
	struct ql_call given = {.op = &fake_given, .in = in, .n_in = 2, .attr = &mask};
	bool numbers = spec->has_scale && !spec->stochastic && spec->scheme && spec->scheme->affine && !spec->outer &&
		       !spec->scheme->shift && !ql_dtype_is_binary(spec->dtype) && !ql_block_fits(spec);
	enum ql_status status = QL_OK;

	if (!spec->scheme)
		return rounded(ctx, call, spec);
	if (numbers)
		status = given_params(ctx, call, spec, &in[1]);
	if (!status && !in[1])
		status = quantized(ctx, call, spec, &in[1]);
	if (!status)
		status = ql_op_apply(ctx, &given);
	if (!status) {
		call->out[0] = given.out[0];
		call->out[1] = given.out[1];
		call->kernel = given.kernel;
	}
	ql_tensor_release(ctx, in[1]);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "spec")->spec;

	call->path = ql_dtype_name(spec->dtype);
	if (call->n_in > 1)
		return ql_offset_eval(ctx, call);
	return call->device && call->device->remote ? eval_on(ctx, call, spec) : eval_here(ctx, call, spec);
}

/* Codes that are not x divided by their scale and rounded: only through_codes makes them. */
static const char *host_only(const struct ql_call *call)
{
	const struct ql_value *spec = ql_call_attr(call, "spec");

	if (call->n_in > 1)
		return "rounding with offsets";
	if (!spec || !spec->spec)
		return NULL;
	if (ql_block_fits(spec->spec))
		return "scales and codes are fitted together";
	return spec->spec->stochastic ? "stochastic rounding" : NULL;
}

/* ---- backward ---- */

struct slope {
	const void *g;
	void *out;
	const uint8_t *mask;
	bool wide;
	int64_t n;
	int variant;
};

QL_SIMD(void, slope_f32, (const float *restrict g, const uint8_t *restrict mask, int64_t n, float *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = mask[i] ? g[i] : 0;
})

QL_SIMD(void, slope_f64, (const double *restrict g, const uint8_t *restrict mask, int64_t n, double *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = mask[i] ? g[i] : 0;
})

static void slope_body(void *arg, int64_t begin, int64_t end)
{
	const struct slope *s = arg;

	for (int64_t i = begin * PIECE; i < ql_min64(s->n, end * PIECE); i += PIECE) {
		int64_t n = ql_min64(PIECE, s->n - i);

		if (s->wide)
			slope_f64[s->variant]((const double *)s->g + i, s->mask + i, n, (double *)s->out + i);
		else
			slope_f32[s->variant]((const float *)s->g + i, s->mask + i, n, (float *)s->out + i);
	}
}

/* The gradient as an op in no table. Operands: that of the result, the mask. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *g = call->in[0];

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(g->dtype), g->rank, g->shape);
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *g = NULL;
	struct slope s = {.variant = ctx->kernels->simd->variant, .wide = out->dtype == QL_float64};
	enum ql_status status = ql_dense_of(ctx, call->in[0], out->dtype, &g);

	call->path = ql_dtype_name(out->dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status) {
		s.g = ql_tensor_data(g);
		s.out = ql_tensor_data(out);
		s.mask = ql_tensor_data(call->in[1]);
		s.n = ql_tensor_nelem(out);
		status = ql_parallel_for(ctx, ql_ceil_div(s.n, PIECE), 16, s.n / 4, slope_body, &s);
	}
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_op fake_back = {
	.doc = {.name = "fake_back"}, .arity_min = 2, .arity_max = 2, .infer = back_infer, .eval = back_eval};

static uint32_t saves_for(const struct ql_call *call)
{
	return call->n_in > 1 ? QL_SAVE(2) : 0;
}

static enum ql_status backward(struct ql_back *b)
{
	if (b->node->n_in > 1)
		return ql_offset_backward(b);
	ql_back_give(b, 0, ql_back_run(b, &fake_back, ql_back_grad(b, 0), ql_back_out(b, 1)));
	return b->status;
}

static const struct ql_attr attrs[] = {
	{"spec", QL_ATTR_SPEC, QL_POSITIONAL | QL_REQUIRED, NULL, "a spec like 'int8/1' or {dtype='int8', axis=1}"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_fake;
const struct ql_op ql_op_fake = {
	.doc = {.name = "fake",
		.usage =
			"x:fake 'int8/1'  x:fake{dtype='uint8', scale=0.1, zero_point=128}  x:fake(v, scale, 'int4:32')  "
			"x:fake(v, scale, minimum, 'uint4:32+min')",
		.text = "Fake quantization: the values of x:quantize(spec):dequantize(), bit for bit, in the dtype of x. The gradient is "
			"straight-through for x inside the range of the codes (ends included) and 0 where x is clipped. The scale is "
			"not learned; x:lsq does that.\nWith offsets v, of the shape of x, x / scale + v is rounded: -0.5 to 0.5 choose between "
			"the two codes around x / scale (of formats with a table of values, too). scale has a number for each scale, as "
			"x:quantize(spec):qparams().scale has; formats with a minimum take it as the next operand, asymmetric codes their "
			"zero points as floats, which are rounded. Gradients are straight-through for x, v, scale, minimum and zero point, "
			"not rescaled as those of x:lsq are. Use scales that the format stores: float16 numbers in blocks.",
		.example =
			"x = tensor{-3, 0.4, 1, grad=true}\ny = x:fake{dtype='int8', scale=0.01}\n"
			"print(y)  --> float32(3)  -1.2800   0.4000   1.0000\ny:sum():backward()\nprint(x:grad())  --> float32(3)  0  1  1",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 4,
	.flags = QL_ANYWHERE,
	.host_only = host_only,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves_for = saves_for,
};
