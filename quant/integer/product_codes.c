/* SPDX-License-Identifier: MIT
 * An integer product as 8-bit codes, if all sums fit 32 bits and a has one scale. Where the scale of the result is given, codes are
 * written while sums are computed; else the sums are stored, and the range is found from the least and the largest one of each column:
 * within a column values grow with the sums (or fall, all of them). The rule is that of product_out.c, bit for bit.
 */
#include "quant/integer/fixed.h"
#include "quant/integer/product.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define COLUMNS 64 /* of a task that finds a range */

struct codes {
	struct ql_product *p;
	struct ql_sum_codes to; /* bias and factor, or fixed, (n): sa sb / scale */
	int32_t *bias;
	float *factor;          /* until the scale is known 1, or 0 where the bias is nan */
	struct ql_fixed *fixed; /* NULL under the float rule */
	struct ql_tensor *out;
	int64_t pitch; /* bytes between rows of out */
	int32_t *sum;  /* (m, n), or NULL: not stored */
	float *ends;   /* (n, 2): least and largest values of columns */
};

/* ---- arrays of the columns ---- */

QL_SIMD(void, set_float_factors,
	(int64_t n, double a, double out, const float *restrict b, int64_t step, float *restrict factor), {
		if (step)
			for (int64_t j = 0; j < n; j++) {
				float by = (float)(a * (double)b[j] / out);
				factor[j] = factor[j] != 0 ? by : 0;
			}
		else
			for (int64_t j = 0; j < n; j++)
				factor[j] = factor[j] != 0 ? (float)(a * (double)*b / out) : 0;
	})

static float scale_of_column(const struct ql_product *p, int64_t j)
{
	return p->b.scale[p->b.per == QL_PER_LINE ? j : 0];
}

/* False when a bias is too large. */
static bool round_biases(struct codes *c, const struct ql_epilogue *e)
{
	for (int64_t j = 0; j < c->p->plan.n; j++) {
		int64_t b = 0;

		c->factor[j] = 1;
		if (e->bias)
			b = ql_round_bias(e->bias[j], *c->p->a.scale * scale_of_column(c->p, j), &c->factor[j]);
		if (b <= -QL_SUM_SAFE || b >= QL_SUM_SAFE)
			return false;
		c->bias[j] = (int32_t)b;
	}
	return true;
}

static void set_factors(struct codes *c, float scale)
{
	set_float_factors[c->to.variant](c->p->plan.n, (double)*c->p->a.scale, (double)scale, c->p->b.scale,
		c->p->b.per == QL_PER_LINE, c->factor);
	for (int64_t j = 0; c->fixed && j < c->p->plan.n; j++) {
		double by = (double)*c->p->a.scale * (double)scale_of_column(c->p, j) / (double)scale;

		c->fixed[j] = ql_fixed_of(c->factor[j] == 0 ? 0 : by);
	}
}

/* ---- codes of sums ---- */

static void store_codes(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
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

/* Receives sums that are computed with 64 bits; those of 32 are written by the product. */
static void store_sums(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct codes *c = arg;

	for (int64_t l = 0; l < n; l++)
		c->sum[i * c->p->plan.n + j + l] = sum32 ? sum32[l] : (int32_t)sum64[l];
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
	const struct codes *c = arg;

	for (int64_t i = begin; i < end; i++)
		ql_round_sums(&c->to, 0, c->p->plan.n, c->sum + i * c->p->plan.n,
			(char *)c->out->storage->data + i * c->pitch);
}

/* ---- the range ---- */

QL_SIMD(void, extend, (int64_t n, const int32_t *restrict sum, int32_t *restrict least, int32_t *restrict most), {
	for (int64_t l = 0; l < n; l++) {
		least[l] = sum[l] < least[l] ? sum[l] : least[l];
		most[l] = sum[l] > most[l] ? sum[l] : most[l];
	}
})

/* 0 where the bias is nan */
static float value_of(const struct codes *c, int64_t j, int32_t sum)
{
	int32_t all = sum + c->bias[j];

	all = all < c->to.least ? c->to.least : all;
	return (float)(c->factor[j] == 0 ? 0 : all) * (*c->p->a.scale * scale_of_column(c->p, j));
}

static void range_of_columns(void *arg, int64_t begin, int64_t end)
{
	const struct codes *c = arg;
	int64_t columns = c->p->plan.n;

	for (int64_t g = begin; g < end; g++) {
		int64_t first = g * COLUMNS, n = ql_min64(COLUMNS, columns - first);
		int32_t least[COLUMNS], most[COLUMNS];

		for (int64_t l = 0; l < n; l++)
			least[l] = most[l] = c->sum[first + l];
		for (int64_t i = 1; i < c->p->plan.m; i++)
			extend[c->to.variant](n, c->sum + i * columns + first, least, most);
		for (int64_t l = 0; l < n; l++) {
			c->ends[2 * (first + l)] = value_of(c, first + l, least[l]);
			c->ends[2 * (first + l) + 1] = value_of(c, first + l, most[l]);
		}
	}
}

/* Stores the sums and gives the range of all values and 0. */
static enum ql_status find_range(struct ql_ctx *ctx, struct codes *c, float found[2])
{
	const struct ql_matmul *plan = &c->p->plan;
	enum ql_status status;

	c->ends = ql_scratch_array(ctx, ql_mul64(2, plan->n), sizeof(*c->ends));
	c->sum = ql_alloc_array(ctx, ql_mul64(plan->m, plan->n), sizeof(*c->sum));
	if (!c->ends || !c->sum)
		return QL_ERR_MEMORY;
	status = ql_product_run_to(
		ctx, c->p, 0, &(struct ql_gemm_i8_out){.store = store_sums, .arg = c, .s32 = c->sum, .ld = plan->n});
	if (!status && plan->m > 0)
		status = ql_parallel_for(
			ctx, ql_ceil_div(plan->n, COLUMNS), 1, plan->m * plan->n / 8, range_of_columns, c);
	for (int64_t l = 0; l < 2 * plan->n && plan->m > 0 && !status; l++) {
		found[0] = c->ends[l] < found[0] ? c->ends[l] : found[0];
		found[1] = c->ends[l] > found[1] ? c->ends[l] : found[1];
	}
	return status;
}

/* ---- the product ---- */

static bool fits(const struct ql_product *p, const struct ql_spec *spec)
{
	return (spec->dtype == QL_uint8 || spec->dtype == QL_int8) && !p->bits && !p->wide && p->plan.batches == 1 &&
	       p->a.per == QL_PER_TENSOR && p->b.per != QL_PER_BATCH && ql_sums_fit(p->plan.k);
}

static enum ql_status take_arrays(struct ql_ctx *ctx, struct codes *c)
{
	int64_t n = c->p->plan.n;

	c->to.bias = c->bias = ql_scratch_array(ctx, n, sizeof(*c->bias));
	c->to.factor = c->factor = ql_scratch_array(ctx, n, sizeof(*c->factor));
	if (c->to.rule)
		c->to.fixed = c->fixed = ql_scratch_array(ctx, n, sizeof(*c->fixed));
	return c->bias && c->factor && (c->fixed || !c->to.rule) ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status write_codes(struct ql_ctx *ctx, struct codes *c)
{
	const struct ql_matmul *plan = &c->p->plan;

	c->to.r = ql_rounding_of(c->out);
	set_factors(c, (float)ql_tensor_at_f64(c->out->q->scale, 0));
	c->pitch = c->out->rank > 1 ? c->out->stride[c->out->rank - 2] : plan->n;
	if (!c->sum)
		return ql_product_run(ctx, c->p, 0, store_codes, c);
	return ql_parallel_for(ctx, plan->m, 16, plan->m * plan->n / 4, write_rows, c);
}

enum ql_status ql_product_codes(struct ql_ctx *ctx, struct ql_product *p, const struct ql_spec *spec,
	const struct ql_epilogue *e, bool relu, int rank, const int64_t *shape, struct ql_tensor **out)
{
	struct codes c = {.p = p,
		.to = {.each = true,
			.least = relu ? 0 : INT32_MIN,
			.rule = spec->requant,
			.dtype = spec->dtype,
			.variant = ctx->kernels->simd->variant}};
	float found[2] = {0, 0};
	enum ql_status status;

	*out = NULL;
	if (!fits(p, spec))
		return QL_OK;
	status = take_arrays(ctx, &c);
	if (status || !round_biases(&c, e))
		return status;
	status = ql_tensor_new(ctx, spec->dtype, rank, shape, &c.out);
	if (!status && !spec->has_scale)
		status = find_range(ctx, &c, found);
	if (!status)
		status = ql_rescale_params(ctx, spec, found, rank, shape, &c.out->q);
	if (!status)
		status = write_codes(ctx, &c);
	ql_free(ctx, c.sum);
	if (status)
		ql_tensor_release(ctx, c.out);
	else
		*out = c.out;
	return status;
}
