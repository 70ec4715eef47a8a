/* SPDX-License-Identifier: MIT
 * What tiles of a convolution read besides x: the weights in panels (conv_stored.c), and for each output a bias and a factor. With
 * zero points z of x and 0 of the weight,
 *   sum of (x - z) w = sum of x w - z * sum of w,
 * so the second part, which is the same for all pixels because the padding is z, is added to the bias. x is unsigned in
 * the tiles: int8 codes and their zero point are 128 larger there.
 *
 * The panels replace codes of 8 bits from the second call on. Those of packed codes and of channels with bits of their own are made
 * for each call: no more than the weight's own bytes are held. (One thread, one image, with channels last: int4 256 x 256 x 9 and
 * 8 x 8 pixels 0.41 ms, float32 0.61; 512 x 512 x 9 and 4 x 4 pixels 0.91, float32 0.89.) Bias and factors depend on x, the result and the bias of the call, too: they are computed each time, in vectors, which takes
 * less than comparing with earlier ones.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "quant/ranges/quantize.h"
#include "tensor/closed.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"

#define MOST ((int64_t)8 << 20) /* bytes that a row of the result reads; taps far apart are unfolded */
#define LEAST_DEPTH 8           /* channels; with fewer a vector would be mostly empty */

static const char maker;

/* Whether a call has the rules of tiles, for so many channels in a line. */
static bool rules_fit(
	const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec, int64_t channels)
{
	const struct ql_window *v = &j->c.window;
	int64_t zeros = w->q->zero_point ? ql_tensor_nelem(w->q->zero_point) : 0;
	int64_t lines = (v->kernel[0] - 1) * v->dilation[0] + 1;
	int64_t pixels = ql_add64(ql_mul64(v->out[1], v->stride[1]), ql_mul64(v->kernel[1], v->dilation[1]));

	if (ql_mul64(ql_mul64(lines, pixels), channels) > MOST)
		return false;
	for (int64_t i = 0; i < zeros; i++)
		if (ql_tensor_at_f64(w->q->zero_point, i) != 0)
			return false;
	return (spec->requant == QL_REQUANT_FLOAT || spec->requant == QL_REQUANT_DOUBLE) &&
	       ql_dtypes[spec->dtype].bits == 8 && ql_dtype_whole(w->dtype) == QL_int8 && ql_sums_fit(j->k) && j->k > 0;
}

bool ql_conv_tiles_fit(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec)
{
	int64_t channels = j->c.c / j->c.groups;

	/* few channels or outputs: a panel would be mostly empty */
	return (j->c.groups == 1 || (j->rows >= QL_CONV_PANEL / 2 && channels >= 4)) && rules_fit(j, w, spec, channels);
}

bool ql_conv_depth_fits(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec)
{
	return j->c.groups > 1 && j->c.c == j->c.groups && j->c.o >= LEAST_DEPTH && rules_fit(j, w, spec, j->c.o) &&
	       (spec->requant == QL_REQUANT_FLOAT || j->ctx->kernels->depth_i8->fixed);
}

/* ---- weights ---- */

enum ql_status ql_conv_int_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (ql_dtypes[t->dtype].bits == 8 && !ql_is_closed(t))
		return ql_tensor_contiguous(ctx, t, out);
	return ql_tensor_cast(ctx, t, ql_dtype_whole(t->dtype), out);
}

static struct ql_derived *place_of(const struct ql_conv_int *j, const struct ql_tensor *w)
{
	const struct ql_window *v = &j->c.window;
	struct ql_derived_key key = {.maker = &maker,
		.offset = w->offset,
		.dtype = w->dtype,
		.size = {j->c.o, j->c.groups},
		.stride = {v->kernel[0] * 65536 + v->kernel[1] * 2 + (v->dilation[1] == 1), j->k}};
	bool fits = ql_tensor_is_contiguous(w) && v->kernel[0] < 65536 && v->kernel[1] < 32768;

	return fits ? ql_storage_derived(j->ctx, w->storage, &key) : NULL;
}

/* Only the outermost op may move the codes of its operand, and not those of x, which are at hand. */
static bool may_store(const struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_layout *l)
{
	const struct ql_tensor *w = call->in[1];
	struct ql_derived *place;

	if (!ql_closed_may_move(j->ctx) || call->in[0]->storage == w->storage || !ql_conv_can_store(w, l))
		return false;
	place = place_of(j, w);
	return place && place->asked;
}

/* Packs the codes for this call. */
static enum ql_status pack(
	struct ql_conv_int *j, struct ql_tensor *w, const struct ql_conv_layout *l, struct ql_conv_tiles *t)
{
	int8_t *to = ql_scratch_take(j->ctx, (size_t)ql_conv_packed_bytes(l));
	int32_t *sum = to ? (int32_t *)(void *)(to + ql_conv_panel_bytes(l)) : NULL;
	struct ql_tensor *bytes = NULL;
	struct ql_conv_codes codes;
	enum ql_status status = to ? ql_tensor_bytes(j->ctx, w, &bytes) : QL_ERR_MEMORY;

	if (!status) {
		codes = ql_conv_codes_in(bytes);
		status = ql_conv_pack(j->ctx, l, &codes, to, sum);
	}
	ql_tensor_release(j->ctx, bytes);
	t->w = to;
	t->sum = sum;
	return status;
}

static enum ql_status find_weights(struct ql_conv_int *j, const struct ql_call *call, struct ql_conv_tiles *t)
{
	struct ql_conv_layout l = ql_conv_layout_of(j);
	struct ql_tensor *w = call->in[1];
	enum ql_status status = QL_OK;

	t->panels = l.panels;
	t->panel = l.panel;
	if (ql_conv_stored(w, &l, &t->w, &t->sum))
		return QL_OK;
	if (may_store(j, call, &l))
		status = ql_conv_store(j->ctx, w, &l);
	if (status || ql_conv_stored(w, &l, &t->w, &t->sum))
		return status;
	return pack(j, w, &l, t);
}

/* ---- bias and factors ---- */

const float *ql_conv_plain_scales(const struct ql_qparams *q)
{
	const struct ql_tensor *s = q->scale;
	bool plain = s->dtype == QL_float32 && !s->q && s->storage->data && ql_tensor_is_contiguous(s);

	return plain ? ql_tensor_data(s) : NULL;
}

/* The weight's scales of the outputs. */
static enum ql_status read_scales(const struct ql_conv_int *j, const struct ql_tensor *w, const double **out)
{
	const struct ql_tensor *s = w->q->scale;
	double *scale = ql_scratch_array(j->ctx, j->c.o, sizeof(*scale));
	const float *plain = ql_conv_plain_scales(w->q);

	*out = scale;
	for (int64_t o = 0; scale && o < j->c.o; o++) {
		int64_t i = w->q->axis == 0 ? o : 0;

		scale[o] = plain ? (double)plain[i] : ql_tensor_at_f64(s, i);
	}
	return scale ? QL_OK : QL_ERR_MEMORY;
}

#define SAFE ((int32_t)QL_SUM_SAFE)

/* The rules of quant/paths/conv2d_int.c, prepare_codes, for n outputs. */
QL_SIMD(void, factors, (int64_t n, double x, double out, const double *restrict scale, float *restrict factor), {
	for (int64_t o = 0; o < n; o++)
		factor[o] = (float)(x * scale[o] / out);
})

/* ql_round_bias: adding 1.5 * 2^52 to a number below 2^51 drops its fraction, rounding half to even. */
QL_SIMD(void, biases,
	(int64_t n, float x, const double *restrict scale, const float *restrict b, int32_t *restrict bias,
		float *restrict factor),
	{
		for (int64_t o = 0; o < n; o++) {
			double units = (double)b[o] / (double)(x * (float)scale[o]);
			factor[o] = units == units ? factor[o] : 0;
			units = units == units ? units : 0;
			units = units < -SAFE ? -SAFE : units;
			units = units > SAFE ? SAFE : units;
			bias[o] = (int32_t)((units + 0x1.8p52) - 0x1.8p52);
		}
	})

/* Whether all factors are finite and all biases small enough to be added in 32 bits. */
QL_SIMD(bool, permit, (int64_t n, const int32_t *restrict bias, const float *restrict factor), {
	int bad = 0;
	for (int64_t o = 0; o < n; o++)
		bad |= (factor[o] - factor[o] != 0) | (bias[o] <= -SAFE) | (bias[o] >= SAFE);
	return !bad;
})

QL_SIMD(void, subtract, (int64_t n, uint32_t zero, const int32_t *restrict sum, int32_t *restrict bias), {
	for (int64_t o = 0; o < n; o++)
		bias[o] = (int32_t)((uint32_t)bias[o] - zero * (uint32_t)sum[o]);
})

enum ql_status ql_conv_ends_take(struct ql_ctx *ctx, int64_t n, enum ql_requant rule, struct ql_conv_ends *e)
{
	int arrays = rule == QL_REQUANT_FLOAT ? 2 : 4;
	int32_t *all = ql_scratch_array(ctx, ql_mul64(n, arrays), sizeof(*all));

	if (!all)
		return QL_ERR_MEMORY;
	memset(all, 0, (size_t)(n * arrays) * sizeof(*all));
	*e = (struct ql_conv_ends){.bias = all, .factor = (float *)(void *)(all + n)};
	if (arrays > 2) {
		e->multiplier = all + 2 * n;
		e->right = all + 3 * n;
	}
	return QL_OK;
}

/* The factors of n outputs from place `at` on in fixed point. Whether all are fractions, which are shifted to the right. */
static bool fix(const struct ql_conv_params *p, int64_t n, const double *scale, int64_t at, struct ql_conv_ends *e)
{
	bool fine = true;

	for (int64_t o = at; o < at + n; o++) {
		double m = (double)p->x_scale * scale[o - at] / (double)p->out_scale;
		struct ql_fixed fixed = ql_fixed_of(e->factor[o] == 0 ? 0 : m);

		e->multiplier[o] = fixed.multiplier;
		e->right[o] = -fixed.shift;
		fine = fine && fixed.shift <= 0;
	}
	return fine;
}

enum ql_status ql_conv_factors(const struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p,
	int64_t rows, int64_t pitch, struct ql_conv_ends *e, bool *fine)
{
	const double *scale;
	enum ql_status status = ql_conv_ends_take(j->ctx, ql_mul64(j->c.o / rows, pitch), p->rule, e);

	if (!status)
		status = read_scales(j, call->in[1], &scale);
	*fine = true;
	for (int64_t o = 0, at = 0; o < j->c.o && !status; o += rows, at += pitch) {
		factors[j->variant](rows, (double)p->x_scale, (double)p->out_scale, scale + o, e->factor + at);
		if (j->e.bias)
			biases[j->variant](rows, p->x_scale, scale + o, j->e.bias + o, e->bias + at, e->factor + at);
		*fine = permit[j->variant](rows, e->bias + at, e->factor + at) && *fine;
		if (e->multiplier)
			*fine = fix(p, rows, scale + o, at, e) && *fine;
	}
	return status;
}

enum ql_status ql_conv_tiles_prepare(
	struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p, struct ql_conv_tiles *t)
{
	int64_t pitch = ql_ceil_div(j->rows, QL_CONV_PANEL) * QL_CONV_PANEL;
	bool fine;
	enum ql_status status;

	*t = (struct ql_conv_tiles){.panels = 0};
	status = ql_conv_factors(j, call, p, j->rows, pitch, &t->e, &fine);
	if (status || !fine)
		return status;
	status = find_weights(j, call, t);
	for (int64_t g = 0; g < j->c.groups && !status; g++)
		subtract[j->variant](j->rows, (uint32_t)p->x_zero, t->sum + g * j->rows, t->e.bias + g * pitch);
	return status;
}
