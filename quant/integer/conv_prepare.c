/* SPDX-License-Identifier: MIT
 * What tiles of a convolution read besides x: the weights in panels (tensor/kernels/kernels.h, conv_i8), and for each
 * output a bias and a factor. With zero points z of x and 0 of the weight,
 *   sum of (x - z) w = sum of x w - z * sum of w,
 * so the second part, which is the same for all pixels because the padding is z, is added to the bias. x is unsigned in
 * the tiles: int8 codes and their zero point are 128 larger there.
 *
 * All of it is cached with the weight's storage. Bias and factors also depend on x, the result and the bias of the call:
 * their values are kept and compared, because tensors that come and go may have the same addresses.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/conv_int.h"
#include "quant/ranges/quantize.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"

#define MOST ((int64_t)8 << 20) /* bytes that a row of the result reads; taps far apart are unfolded */

static const char maker;

/* One block of memory: this, then the arrays. */
struct block {
	bool filled, fine; /* bias and factors are set; they permit tiles */
	struct ql_conv_params p;
	double *scale; /* (o), as b: the values that they were made from */
	float *b;
	int32_t *sum, *bias; /* (o): the weights' sums; (groups, panels, 16) */
	float *factor;
	int8_t *w;
};

struct sizes {
	int64_t segments, quads, panels, panel, padded, bytes; /* padded: outputs of whole panels */
};

/* A segment is what lies together in the window: the channels of a row of taps, or of one tap if taps are apart. */
static struct sizes sizes_of(const struct ql_conv_int *j)
{
	const struct ql_window *w = &j->c.window;
	int64_t channels = j->c.c / j->c.groups, taps = w->dilation[1] == 1 ? w->kernel[1] : 1;
	struct sizes s = {.segments = w->kernel[0] * (w->dilation[1] == 1 ? 1 : w->kernel[1]),
		.quads = ql_ceil_div(taps * channels, 4),
		.panels = ql_ceil_div(j->rows, QL_CONV_PANEL)};

	s.panel = s.segments * s.quads * 4 * QL_CONV_PANEL;
	s.padded = j->c.groups * s.panels * QL_CONV_PANEL;
	s.bytes = (int64_t)sizeof(struct block) + ql_mul64(4, 4 * j->c.o + 2 * s.padded) +
		  ql_mul64(j->c.groups * s.panels, s.panel) + 64;
	return s;
}

bool ql_conv_tiles_fit(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec)
{
	const struct ql_window *v = &j->c.window;
	int64_t channels = j->c.c / j->c.groups, zeros = w->q->zero_point ? ql_tensor_nelem(w->q->zero_point) : 0;
	int64_t lines = (v->kernel[0] - 1) * v->dilation[0] + 1;
	int64_t pixels = ql_add64(ql_mul64(v->out[1], v->stride[1]), ql_mul64(v->kernel[1], v->dilation[1]));

	/* depthwise and the like: a panel would be mostly empty */
	if (ql_mul64(ql_mul64(lines, pixels), channels) > MOST)
		return false;
	if (j->c.groups > 1 && (j->rows < QL_CONV_PANEL / 2 || channels < 4))
		return false;
	for (int64_t i = 0; i < zeros; i++)
		if (ql_tensor_at_f64(w->q->zero_point, i) != 0)
			return false;
	return spec->requant == QL_REQUANT_FLOAT && ql_dtypes[spec->dtype].bits == 8 &&
	       ql_dtype_whole(w->dtype) == QL_int8 && ql_sums_fit(j->k) && j->k > 0;
}

/* ---- weights ---- */

static void pack_output(const struct ql_conv_int *j, const struct sizes *s, int64_t o, struct block *b)
{
	const struct ql_window *w = &j->c.window;
	int64_t taps = w->kernel[0] * w->kernel[1], channels = j->c.c / j->c.groups, group = o / j->rows,
		per = w->dilation[1] == 1 ? w->kernel[1] : 1, row = o % j->rows;
	const int8_t *from = (const int8_t *)j->w.data + o * j->k;
	int8_t *to = b->w + (group * s->panels + row / QL_CONV_PANEL) * s->panel + row % QL_CONV_PANEL * 4;
	int32_t sum = 0;

	for (int64_t t = 0; t < taps; t++)
		for (int64_t c = 0; c < channels; c++) {
			int64_t at = t % per * channels + c;

			to[(t / per * s->quads + at / 4) * 4 * QL_CONV_PANEL + at % 4] = from[c * taps + t];
			sum += from[c * taps + t];
		}
	b->sum[o] = sum;
}

static void lay_out(struct block *b, const struct ql_conv_int *j, const struct sizes *s)
{
	b->scale = (double *)(void *)(b + 1);
	b->b = (float *)(void *)(b->scale + j->c.o);
	b->sum = (int32_t *)(void *)(b->b + j->c.o);
	b->bias = b->sum + j->c.o;
	b->factor = (float *)(void *)(b->bias + s->padded);
	b->w = (int8_t *)(((uintptr_t)(b->factor + s->padded) + 63) / 64 * 64);
}

static void pack(const struct ql_conv_int *j, const struct sizes *s, struct block *b)
{
	memset(b, 0, (size_t)s->bytes);
	lay_out(b, j, s);
	for (int64_t o = 0; o < j->c.o; o++)
		pack_output(j, s, o, b);
}

/* Gives the packed weights, which are cached from the second call on. */
static enum ql_status block_of(
	const struct ql_conv_int *j, const struct ql_tensor *w, const struct sizes *s, struct block **out)
{
	const struct ql_window *v = &j->c.window;
	struct ql_derived_key key = {.maker = &maker,
		.offset = w->offset,
		.dtype = w->dtype,
		.size = {j->c.o, j->c.groups},
		.stride = {v->kernel[0] * 65536 + v->kernel[1] * 2 + (v->dilation[1] == 1), j->k}};
	struct ql_derived *place = NULL;

	if (ql_tensor_is_contiguous(w) && v->kernel[0] < 65536 && v->kernel[1] < 32768)
		place = ql_storage_derived(j->ctx, w->storage, &key);
	*out = place ? place->data : NULL;
	if (*out)
		return QL_OK;
	if (place && place->asked)
		*out = place->data = ql_alloc(j->ctx, (size_t)s->bytes);
	if (!*out)
		*out = ql_scratch_take(j->ctx, (size_t)s->bytes);
	if (!*out)
		return QL_ERR_MEMORY;
	pack(j, s, *out);
	return QL_OK;
}

/* ---- bias and factors ---- */

/* The weight's scales of the outputs where they lie in memory as float32; NULL: elsewhere. */
static const float *plain_scales(const struct ql_tensor *w)
{
	const struct ql_tensor *s = w->q->scale;

	return w->q->axis == 0 && s->dtype == QL_float32 && !s->q && s->storage->data && ql_tensor_is_contiguous(s)
		       ? ql_tensor_data(s)
		       : NULL;
}

static double scale_of(const struct ql_tensor *w, const float *plain, int64_t o)
{
	return plain ? (double)plain[o] : ql_tensor_at_f64(w->q->scale, w->q->axis == 0 ? o : 0);
}

static bool same_params(const struct ql_conv_params *a, const struct ql_conv_params *b)
{
	return a->x_scale == b->x_scale && a->out_scale == b->out_scale && a->x_zero == b->x_zero &&
	       a->relu == b->relu && a->r.lo == b->r.lo && a->r.hi == b->r.hi && a->r.zero == b->r.zero;
}

/* Whether bias and factors of the block are those of the call. */
static bool is_filled(
	const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_conv_params *p, const struct block *b)
{
	const float *plain = plain_scales(w);
	bool same = b->filled && same_params(&b->p, p);

	for (int64_t o = 0; same && o < j->c.o; o++)
		same = b->scale[o] == scale_of(w, plain, o) && b->b[o] == (j->e.bias ? j->e.bias[o] : 0);
	return same;
}

/* The rules of quant/paths/conv2d_int.c, prepare_codes. A bias of nan is never the same as before. */
static void fill(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_conv_params *p,
	const struct sizes *s, struct block *b)
{
	const float *plain = plain_scales(w);

	b->filled = b->fine = true;
	b->p = *p;
	for (int64_t o = 0; o < j->c.o; o++) {
		int64_t at = o / j->rows * s->panels * QL_CONV_PANEL + o % j->rows, bias = 0;
		double sw = scale_of(w, plain, o);
		float factor = (float)((double)p->x_scale * sw / (double)p->out_scale);

		b->b[o] = j->e.bias ? j->e.bias[o] : 0;
		b->scale[o] = sw;
		if (j->e.bias)
			bias = ql_round_bias(b->b[o], p->x_scale * (float)sw, &factor);
		b->fine = b->fine && isfinite(factor) && bias > -QL_SUM_SAFE && bias < QL_SUM_SAFE;
		b->factor[at] = factor;
		b->bias[at] = (int32_t)((uint32_t)bias - (uint32_t)p->x_zero * (uint32_t)b->sum[o]);
	}
}

enum ql_status ql_conv_tiles_prepare(
	const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_conv_params *p, struct ql_conv_tiles *t)
{
	struct sizes s = sizes_of(j);
	struct block *b;
	enum ql_status status = block_of(j, w, &s, &b);

	if (status)
		return status;
	if (!is_filled(j, w, p, b))
		fill(j, w, p, &s, b);
	*t = (struct ql_conv_tiles){
		.panels = s.panels, .panel = s.panel, .w = b->fine ? b->w : NULL, .bias = b->bias, .factor = b->factor};
	return QL_OK;
}
