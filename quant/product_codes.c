/* SPDX-License-Identifier: MIT
 * A product that stays in integers, in one pass: where the scale of the result is known before, all sums fit 32 bits and
 * the scale of a does not vary, codes are written as the sums arrive. The rule, and so every bit, is that of
 * product_out.c.
 */
#include <math.h>

#include "quant/product.h"
#include "quant/rescale.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"
#include "tensor/simd.h"

#define SAFE ((int64_t)1 << 30) /* sums and biases below it add without overflow */
#define ROUND 12582912.0f       /* 1.5 2^23: adding it to |v| < 2^22 rounds half to even */

struct codes {
	const struct ql_product *p;
	const int32_t *bias; /* (n) */
	const float *factor; /* (n): sa sb / scale */
	float lo, hi;        /* of codes, without the zero point */
	int32_t zero, least; /* least: 0 for relu */
	int variant;
	struct ql_tensor *out;
	int64_t pitch;
};

#define CODES_ROW(name, type) \
	QL_SIMD(void, name, \
		(int64_t n, const int32_t *restrict sum, const struct codes *c, int64_t j, type *restrict out), { \
			const int32_t *restrict bias = c->bias + j; \
			const float *restrict factor = c->factor + j; \
			float lo = c->lo, hi = c->hi; \
			int32_t zero = c->zero, least = c->least; \
			for (int64_t l = 0; l < n; l++) { \
				int32_t s = sum[l] + bias[l]; \
				float v; \
				s = s < least ? least : s; \
				v = (float)s * factor[l]; \
				v = v < lo ? lo : v; \
				v = v > hi ? hi : v; \
				out[l] = (type)((int32_t)((v + ROUND) - ROUND) + zero); \
			} \
		})
CODES_ROW(row_u8, uint8_t)
CODES_ROW(row_i8, int8_t)

static void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct codes *c = arg;
	int32_t narrow[64];
	char *out = (char *)c->out->storage->data + i * c->pitch + j;

	for (int64_t l = 0, step; l < n; l += step) {
		step = sum32 ? n : ql_min64(64, n - l);
		for (int64_t e = 0; !sum32 && e < step; e++)
			narrow[e] = (int32_t)sum64[l + e];
		if (c->out->dtype == QL_uint8)
			row_u8[c->variant](step, sum32 ? sum32 : narrow, c, j + l, (uint8_t *)out + l);
		else
			row_i8[c->variant](step, sum32 ? sum32 : narrow, c, j + l, (int8_t *)out + l);
	}
}

/* |sum| of k products of codes less zero points */
static bool sums_fit(const struct ql_product *p)
{
	return p->plan.k < SAFE / (255 * 255);
}

static double bias_of(const struct ql_product *p, const struct ql_epilogue *e, int64_t j, int64_t sb_step)
{
	return rint((double)e->bias[j] / (double)(p->a.scale[0] * p->b.scale[j * sb_step]));
}

/* Fills the arrays; false when a bias is too large. */
static bool prepare(const struct ql_product *p, const struct ql_epilogue *e, float scale, int32_t *bias, float *factor)
{
	int64_t sb_step = p->b.per == QL_PER_LINE;

	for (int64_t j = 0; j < p->plan.n; j++) {
		double b = e->bias ? bias_of(p, e, j, sb_step) : 0;

		if (!(fabs(b) < (double)SAFE))
			return false;
		bias[j] = (int32_t)b;
		factor[j] = (float)((double)p->a.scale[0] * (double)p->b.scale[j * sb_step] / (double)scale);
	}
	return true;
}

bool ql_product_codes_fit(const struct ql_product *p, const struct ql_spec *spec)
{
	return spec->has_scale && (spec->dtype == QL_uint8 || spec->dtype == QL_int8) && !p->bits && !p->wide &&
		p->plan.batches == 1 && p->a.per == QL_PER_TENSOR && p->b.per != QL_PER_BATCH && sums_fit(p);
}

enum ql_status ql_product_codes(struct ql_ctx *ctx, struct ql_product *p, const struct ql_epilogue *e, bool relu,
	struct ql_tensor *out, bool *done)
{
	const struct ql_codes *codes = &out->q->codes;
	struct codes c = {.p = p, .out = out, .variant = ctx->kernels->simd->variant, .least = relu ? 0 : INT32_MIN};
	int32_t *bias = ql_scratch_take(ctx, (size_t)p->plan.n * sizeof(*bias));
	float *factor = ql_scratch_take(ctx, (size_t)p->plan.n * sizeof(*factor));

	*done = false;
	if (!bias || !factor)
		return QL_ERR_MEMORY;
	if (!prepare(p, e, (float)ql_tensor_at_f64(out->q->scale, 0), bias, factor))
		return QL_OK;
	c.bias = bias;
	c.factor = factor;
	c.zero = out->q->zero_point ? (int32_t)ql_tensor_at_f64(out->q->zero_point, 0) : 0;
	c.lo = (float)(codes->lo - c.zero);
	c.hi = (float)(codes->hi - c.zero);
	c.pitch = out->rank > 1 ? out->stride[out->rank - 2] : p->plan.n;
	*done = true;
	return ql_product_run(ctx, p, 0, store, &c);
}
