/* SPDX-License-Identifier: MIT
 * conv2d of quantized operands in integers: exact sums of codes minus zero points, then the rules of linear: y = (float)sum *
 * (sx * sw) [+ bias], or codes y = sat(rint((float)(sum + bias) * M) + zero).
 *
 * The sums are products of the weight (o, c kh kw) with the unfolded codes (c kh kw, pixels), some images at a time: each row
 * of the unfolded matrix is an image of codes, shifted; where the window leaves the image stands the zero point of x, which
 * adds nothing. Results are rows of pixels, so they are written in place.
 */
#include <math.h>
#include <string.h>

#include "quant/quantize.h"
#include "quant/rescale.h"
#include "tensor/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/matmul.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/simd.h"
#include "tensor/window.h"

#define PIXELS 4096                  /* columns of a product that are enough for its threads */
#define BYTES ((int64_t)8 << 20)     /* of the unfolded matrix */
#define SAFE ((int64_t)1 << 30)      /* sums and biases below it add in 32 bits */
#define ROUND 12582912.0f            /* 1.5 2^23: adding it to |v| < 2^22 rounds half to even */

/* ---- when ---- */

static bool fits(const struct ql_tensor *t, const char **reason)
{
	if (!t->q)
		*reason = ql_dtype_is_float(t->dtype) ? "an operand is not quantized" : "an operand is a plain integer tensor";
	else if (!t->q->scheme->affine)
		*reason = "codes of the scheme log are not multiples of a scale";
	else if (t->q->block)
		*reason = "scale varies in blocks";
	else if (ql_dtypes[t->dtype].bits > 8 || t->dtype == QL_binary)
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
	*reason = "scale varies along the summed axes";
	return x->q->axis < 0 && w->q->axis <= 0;
}

/* ---- the job ---- */

struct job {
	struct ql_ctx *ctx;
	struct ql_conv c;
	int64_t k, rows, pixels; /* of a group: summed, results; of an image */
	int64_t images, first;   /* together; the first of them */
	int64_t group;
	const uint8_t *x;        /* codes (n, c, h, w) */
	unsigned dtype;          /* of x: int8 or uint8 */
	int32_t zero_in;         /* the zero point of x, and */
	uint8_t pad;             /* its byte */
	uint8_t *patch;          /* (k, images * pixels) */
	const float *scale;      /* (o): sx * sw */
	struct ql_epilogue e;    /* bias per output; act */
	int variant;
	float *y;                /* a float result, or */
	struct ql_tensor *out;   /* codes, by: */
	const int64_t *bias;     /* (o) */
	const float *factor;     /* (o) */
	float lo, hi;
	int32_t zero;
	bool relu, narrow;       /* narrow: sum + bias fits 32 bits */
};

/* ---- unfolding ---- */

/* Pixels j of a row that the tap reaches inside of the image: *from .. *to - 1. */
static void reached(const struct ql_window *w, int d, int64_t shift, int64_t *from, int64_t *to)
{
	int64_t lo = shift < 0 ? ql_ceil_div(-shift, w->stride[d]) : 0;
	int64_t hi = shift >= w->in[d] ? 0 : (w->in[d] - 1 - shift) / w->stride[d] + 1;

	*from = ql_min64(lo, w->out[d]);
	*to = ql_max64(*from, ql_min64(hi, w->out[d]));
}

/* Of the same width as the image and with stride 1 the plane is the image shifted as a whole, but for the edges. */
static void shift_plane(const struct job *j, const uint8_t *plane, int64_t up, int64_t left, uint8_t *to)
{
	const struct ql_window *w = &j->c.window;
	int64_t top, bottom, from, end, width = w->out[1];

	reached(w, 0, up, &top, &bottom);
	reached(w, 1, left, &from, &end);
	if (top == bottom || from == end) {
		memset(to, j->pad, (size_t)(w->out[0] * width));
		return;
	}
	memset(to, j->pad, (size_t)(top * width));
	memcpy(to + top * width + from, plane + (top + up) * width + from + left,
		(size_t)((bottom - top - 1) * width + end - from));
	for (int64_t i = top; i < bottom; i++) {
		for (int64_t p = 0; p < from; p++)
			to[i * width + p] = j->pad;
		for (int64_t p = end; p < width; p++)
			to[i * width + p] = j->pad;
	}
	memset(to + bottom * width, j->pad, (size_t)((w->out[0] - bottom) * width));
}

/* One image of one row of the matrix: the plane seen through one tap. */
static void unfold_plane(const struct job *j, const uint8_t *plane, int64_t up, int64_t left, uint8_t *to)
{
	const struct ql_window *w = &j->c.window;
	int64_t top, bottom, from, end;

	if (w->stride[0] == 1 && w->stride[1] == 1 && w->out[1] == w->in[1]) {
		shift_plane(j, plane, up, left, to);
		return;
	}
	reached(w, 0, up, &top, &bottom);
	reached(w, 1, left, &from, &end);
	memset(to, j->pad, (size_t)(top * w->out[1]));
	for (int64_t i = top; i < bottom; i++) {
		const uint8_t *row = plane + (i * w->stride[0] + up) * w->in[1] + left;
		uint8_t *out = to + i * w->out[1];

		memset(out, j->pad, (size_t)from);
		if (w->stride[1] == 1)
			memcpy(out + from, row + from, (size_t)(end - from));
		else
			for (int64_t p = from; p < end; p++)
				out[p] = row[p * w->stride[1]];
		memset(out + end, j->pad, (size_t)(w->out[1] - end));
	}
	memset(to + bottom * w->out[1], j->pad, (size_t)((w->out[0] - bottom) * w->out[1]));
}

static void unfold_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_window *w = &j->c.window;
	int64_t taps = w->kernel[0] * w->kernel[1], per = j->c.c / j->c.groups, plane = w->in[0] * w->in[1];

	for (int64_t r = begin; r < end; r++) {
		int64_t channel = j->group * per + r / taps, up = r % taps / w->kernel[1], left = r % w->kernel[1];

		for (int64_t i = 0; i < j->images; i++)
			unfold_plane(j, j->x + ((j->first + i) * j->c.c + channel) * plane, up * w->dilation[0] - w->before[0],
				left * w->dilation[1] - w->before[1], j->patch + (r * j->images + i) * j->pixels);
	}
}

/* ---- results ---- */

QL_SIMD(void, rescale, (int64_t n, float *restrict y, const int32_t *restrict sum, float scale), {
	for (int64_t l = 0; l < n; l++)
		y[l] = (float)sum[l] * scale;
})

QL_SIMD(void, add_bias, (int64_t n, float *y, float bias), {
	for (int64_t l = 0; l < n; l++)
		y[l] += bias;
})

static void store_floats(const struct job *j, int64_t o, int64_t at, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	struct ql_epilogue act = {.act = j->e.act, .variant = j->e.variant};
	float *y = j->y + at;

	if (sum32)
		rescale[j->variant](n, y, sum32, j->scale[o]);
	else
		for (int64_t l = 0; l < n; l++)
			y[l] = (float)sum64[l] * j->scale[o];
	if (j->e.bias)
		add_bias[j->variant](n, y, j->e.bias[o]);
	if (act.act)
		ql_epilogue_row(&act, 0, n, y);
}

struct output {
	int32_t bias, least, zero;
	float factor, lo, hi;
};

#define CODES(name, type) \
	QL_SIMD(void, name, (int64_t n, const int32_t *restrict sum, const struct output *o, type *restrict out), { \
		int32_t bias = o->bias, least = o->least, zero = o->zero; \
		float factor = o->factor, lo = o->lo, hi = o->hi; \
		for (int64_t l = 0; l < n; l++) { \
			int32_t s = sum[l] + bias; \
			float v; \
			s = s < least ? least : s; \
			v = (float)s * factor; \
			v = v < lo ? lo : v; \
			v = v > hi ? hi : v; \
			out[l] = (type)((int32_t)((v + ROUND) - ROUND) + zero); \
		} \
	})
CODES(codes_u8, uint8_t)
CODES(codes_i8, int8_t)

static void store_codes(const struct job *j, int64_t o, int64_t at, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	struct output out = {(int32_t)j->bias[o], j->relu ? 0 : INT32_MIN, j->zero, j->factor[o], j->lo, j->hi};
	uint8_t *to = (uint8_t *)j->out->storage->data + at;

	if (sum32 && j->narrow) {
		if (j->out->dtype == QL_uint8)
			codes_u8[j->variant](n, sum32, &out, to);
		else
			codes_i8[j->variant](n, sum32, &out, (int8_t *)to);
		return;
	}
	for (int64_t l = 0; l < n; l++) {
		int64_t s = (sum32 ? sum32[l] : sum64[l]) + j->bias[o];
		float v = rintf((float)(j->relu && s < 0 ? 0 : s) * j->factor[o]);

		to[l] = (uint8_t)((int32_t)(v < j->lo ? j->lo : v > j->hi ? j->hi : v) + j->zero);
	}
}

/* Columns of the product are pixels of one image after the other. */
static void store(void *arg, int64_t i, int64_t column, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct job *j = arg;
	int64_t o = j->group * j->rows + i;

	for (int64_t done = 0, part; done < n; done += part) {
		int64_t image = (column + done) / j->pixels, pixel = (column + done) % j->pixels;
		int64_t at = ((j->first + image) * j->c.o + o) * j->pixels + pixel;

		part = ql_min64(n - done, j->pixels - pixel);
		(j->out ? store_codes : store_floats)(
			j, o, at, part, sum32 ? sum32 + done : NULL, sum64 ? sum64 + done : NULL);
	}
}

/* ---- running ---- */

static enum ql_status run_group(struct job *j, const struct ql_matrix_int *w)
{
	struct ql_matrix_int a = *w;
	struct ql_matrix_int b = {.data = j->patch, .dtype = j->dtype, .row = j->images * j->pixels, .column = 1};
	enum ql_status status = ql_parallel_for(j->ctx, j->k, ql_max64(1, 65536 / (j->images * j->pixels)),
		j->k * j->images * j->pixels / 8, unfold_rows, j);

	a.data = (const char *)w->data + j->group * j->rows * j->k;
	a.zero = w->zero && w->zero_step ? w->zero + j->group * j->rows : w->zero;
	b.zero = j->zero_in ? &j->zero_in : NULL;
	return status ? status : ql_gemm_i8(j->ctx, j->rows, j->images * j->pixels, j->k, &a, &b, store, j);
}

static enum ql_status run_all(struct job *j, const struct ql_matrix_int *w)
{
	int64_t wanted = ql_max64(1, ql_min64(ql_ceil_div(PIXELS, j->pixels), BYTES / ql_max64(1, j->k * j->pixels)));
	enum ql_status status = QL_OK;

	wanted = ql_min64(wanted, j->c.n);
	j->patch = ql_scratch_take(j->ctx, (size_t)(wanted * j->pixels * j->k));
	if (!j->patch)
		return QL_ERR_MEMORY;
	for (j->first = 0; j->first < j->c.n && !status; j->first += j->images) {
		j->images = ql_min64(wanted, j->c.n - j->first);
		for (j->group = 0; j->group < j->c.groups && !status; j->group++)
			status = run_group(j, w);
	}
	return status;
}

/* ---- operands ---- */

/* gives contiguous codes of one byte: t itself when it has them */
static enum ql_status bytes_of(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (ql_dtypes[t->dtype].bits == 8)
		return ql_tensor_contiguous(ctx, t, out);
	return ql_tensor_cast(ctx, t, ql_dtypes[t->dtype].kind == QL_KIND_UINT ? QL_uint8 : QL_int8, out);
}

static int64_t zero_of(const struct ql_tensor *t, int64_t i)
{
	return t->q->zero_point ? (int64_t)ql_tensor_at_f64(t->q->zero_point, i) : 0;
}

/* Scales of the outputs, and zero points of the weight's rows. */
static enum ql_status read_params(struct job *j, const struct ql_tensor *x, const struct ql_tensor *w, struct ql_matrix_int *a)
{
	float *scale = ql_scratch_take(j->ctx, (size_t)j->c.o * sizeof(*scale)), sx = (float)ql_tensor_at_f64(x->q->scale, 0);
	int32_t *zero = ql_scratch_take(j->ctx, (size_t)j->c.o * sizeof(*zero));
	bool per = w->q->axis == 0;

	if (!scale || !zero)
		return QL_ERR_MEMORY;
	for (int64_t o = 0; o < j->c.o; o++) {
		scale[o] = sx * (float)ql_tensor_at_f64(w->q->scale, per ? o : 0);
		zero[o] = (int32_t)zero_of(w, per ? o : 0);
	}
	j->scale = scale;
	if (w->q->zero_point) {
		a->zero = zero;
		a->zero_step = 1;
	}
	return QL_OK;
}

/* ---- codes as the result ---- */

static bool stays_integer(const struct ql_call *call, const struct ql_spec *spec)
{
	return spec && spec->scheme && spec->scheme->affine && spec->has_scale && !spec->axis && !spec->block &&
	       (spec->dtype == QL_int8 || spec->dtype == QL_uint8) && !strcmp(ql_call_string(call, "act", "relu"), "relu");
}

static enum ql_status prepare_codes(struct job *j, struct ql_call *call, const struct ql_spec *spec, const struct ql_tensor *w,
	float sx)
{
	const float nothing[2] = {0, 0};
	const struct ql_result *r = &call->result[0];
	int64_t *bias = ql_scratch_take(j->ctx, (size_t)j->c.o * sizeof(*bias));
	float *factor = ql_scratch_take(j->ctx, (size_t)j->c.o * sizeof(*factor)), scale;
	const struct ql_codes *codes;
	enum ql_status status = bias && factor ? QL_OK : QL_ERR_MEMORY;

	if (!status)
		status = ql_tensor_new(j->ctx, spec->dtype, r->rank, r->shape, &call->out[0]);
	if (!status)
		status = ql_rescale_params(j->ctx, spec, nothing, r->rank, r->shape, &call->out[0]->q);
	if (status)
		return status;
	j->out = call->out[0];
	codes = &j->out->q->codes;
	scale = (float)ql_tensor_at_f64(j->out->q->scale, 0);
	j->narrow = j->k < SAFE / (255 * 255);
	for (int64_t o = 0; o < j->c.o; o++) {
		double sw = ql_tensor_at_f64(w->q->scale, w->q->axis == 0 ? o : 0);
		double b = j->e.bias ? rint((double)j->e.bias[o] / (double)j->scale[o]) : 0;

		bias[o] = (int64_t)fmin(fmax(b, -0x1p61), 0x1p61);
		j->narrow = j->narrow && fabs(b) < (double)SAFE;
		factor[o] = (float)((double)sx * sw / (double)scale);
	}
	j->bias = bias;
	j->factor = factor;
	j->zero = (int32_t)zero_of(j->out, 0);
	j->lo = (float)(codes->lo - j->zero);
	j->hi = (float)(codes->hi - j->zero);
	j->relu = j->e.act != NULL;
	return QL_OK;
}

/* ---- the whole ---- */

static enum ql_status results(struct job *j, struct ql_call *call, const struct ql_spec *spec, const struct ql_tensor *x,
	const struct ql_tensor *w)
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

static enum ql_status quantize_result(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	struct ql_tensor *q;
	enum ql_status status;

	if (!spec || call->out[0]->q)
		return QL_OK;
	status = ql_quantize(ctx, call->out[0], spec, &q);
	if (status)
		return status;
	ql_tensor_release(ctx, call->out[0]);
	call->out[0] = q;
	return QL_OK;
}

static enum ql_status compute(struct job *j, struct ql_call *call, struct ql_tensor *codes, struct ql_tensor *weight,
	const struct ql_spec *spec)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	struct ql_matrix_int a = {.data = ql_tensor_data(weight), .dtype = weight->dtype, .row = j->k, .column = 1};
	enum ql_status status = read_params(j, x, w, &a);

	j->x = ql_tensor_data(codes);
	j->dtype = codes->dtype;
	j->zero_in = (int32_t)zero_of(x, 0);
	j->pad = (uint8_t)j->zero_in;
	if (!status)
		status = results(j, call, spec, x, w);
	if (!status && j->c.n * j->c.o * j->pixels > 0)
		status = run_all(j, &a);
	return status ? status : quantize_result(j->ctx, call, spec);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *w = call->in[1], *codes = NULL, *weight = NULL, *bias = NULL;
	const struct ql_value *v = ql_call_attr(call, "out");
	struct job j = {.ctx = ctx, .variant = ctx->kernels->simd->variant};
	enum ql_status status = ql_conv_read(ctx, call, x->rank, x->shape, w->rank, w->shape, &j.c);

	call->path = "int8";
	call->kernel = ctx->kernels->gemm_i8->name;
	if (!status)
		status = bytes_of(ctx, x, &codes);
	if (!status)
		status = bytes_of(ctx, w, &weight);
	if (!status)
		status = ql_epilogue_of(ctx, call, j.c.o, &j.e, &bias);
	if (!status) {
		j.rows = j.c.o / j.c.groups;
		j.k = j.c.c / j.c.groups * j.c.window.kernel[0] * j.c.window.kernel[1];
		j.pixels = j.c.window.out[0] * j.c.window.out[1];
		status = compute(&j, call, codes, weight, v ? v->spec : NULL);
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
	.dtypes = "int8 uint8 int4 uint4",
	.text = "exact integer sums; one scale for x, one for w or for each output channel",
	.match = match,
	.eval = eval,
};
