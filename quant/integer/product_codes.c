/* SPDX-License-Identifier: MIT
 * An integer product in one pass: if the scale of the result is given, all sums fit 32 bits and a has one scale, codes
 * are written while sums are computed. The rule is that of product_out.c, bit for bit.
 */
#include "quant/integer/fixed.h"
#include "quant/integer/product.h"
#include "quant/integer/rounding.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"

struct codes {
	struct ql_sum_codes to; /* bias and factor, or fixed, (n): sa sb / scale */
	struct ql_tensor *out;
	int64_t pitch;
};

static void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct codes *c = arg;
	int32_t narrow[64];
	char *out = (char *)c->out->storage->data + i * c->pitch + j;

	for (int64_t l = 0, step; l < n; l += step) {
		step = sum32 ? n : ql_min64(64, n - l);
		for (int64_t e = 0; !sum32 && e < step; e++)
			narrow[e] = (int32_t)sum64[l + e];
		ql_round_sums(&c->to, j + l, step, sum32 ? sum32 : narrow, out + l);
	}
}

/* Fills the arrays; false when a bias is too large. */
static bool prepare(const struct ql_product *p, const struct ql_epilogue *e, float scale, int32_t *bias, float *factor,
	struct ql_fixed *fixed)
{
	int64_t sb_step = p->b.per == QL_PER_LINE;

	for (int64_t j = 0; j < p->plan.n; j++) {
		float sa = *p->a.scale, sb = p->b.scale[j * sb_step];
		int64_t b = 0;

		factor[j] = (float)((double)sa * (double)sb / (double)scale);
		if (e->bias)
			b = ql_round_bias(e->bias[j], sa * sb, &factor[j]);
		if (b <= -QL_SUM_SAFE || b >= QL_SUM_SAFE)
			return false;
		bias[j] = (int32_t)b;
		fixed[j] = ql_fixed_of(factor[j] == 0 ? 0 : (double)sa * (double)sb / (double)scale);
	}
	return true;
}

bool ql_product_codes_fit(const struct ql_product *p, const struct ql_spec *spec)
{
	return spec->has_scale && (spec->dtype == QL_uint8 || spec->dtype == QL_int8) && !p->bits && !p->wide &&
	       p->plan.batches == 1 && p->a.per == QL_PER_TENSOR && p->b.per != QL_PER_BATCH && ql_sums_fit(p->plan.k);
}

enum ql_status ql_product_codes(struct ql_ctx *ctx, struct ql_product *p, const struct ql_epilogue *e, bool relu,
	enum ql_requant rule, struct ql_tensor *out, bool *done)
{
	struct codes c = {.to = {.r = ql_rounding_of(out),
				  .each = true,
				  .least = relu ? 0 : INT32_MIN,
				  .dtype = out->dtype,
				  .variant = ctx->kernels->simd->variant},
		.out = out};
	int32_t *bias = ql_scratch_array(ctx, p->plan.n, sizeof(*bias));
	float *factor = ql_scratch_array(ctx, p->plan.n, sizeof(*factor));
	struct ql_fixed *fixed = ql_scratch_array(ctx, p->plan.n, sizeof(*fixed));

	*done = false;
	if (!bias || !factor || !fixed)
		return QL_ERR_MEMORY;
	if (!prepare(p, e, (float)ql_tensor_at_f64(out->q->scale, 0), bias, factor, fixed))
		return QL_OK;
	c.to.bias = bias;
	c.to.factor = factor;
	c.to.fixed = fixed;
	c.to.rule = rule;
	c.pitch = out->rank > 1 ? out->stride[out->rank - 2] : p->plan.n;
	*done = true;
	return ql_product_run(ctx, p, 0, store, &c);
}
