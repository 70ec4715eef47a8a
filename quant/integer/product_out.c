/* SPDX-License-Identifier: MIT
 * An integer product with out=spec. The float rule of requantization: M = (float)((double)sa * sb / scale), y =
 * sat(rint((float)(sum + bias) * M) + zero), with the bias rounded to a multiple of sa * sb; or fixed point
 * (fixed.h). Sums are stored in 64 bits between the pass that finds the range and the one that writes codes.
 */
#include "quant/integer/fixed.h"
#include "quant/integer/product.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

struct sums {
	const struct ql_product *p;
	const struct ql_epilogue *e;
	bool relu;
	enum ql_requant rule;
	int64_t *sum; /* (batches, m, n) */
	int64_t batch;
	/* second pass */
	struct ql_tensor *out;
	int64_t pitch; /* distance of rows of out in elements */
	float scale;
	struct ql_rounding r;
};

/* Stores sums, adding the bias rounded to a multiple of sa * sb (0 if it is nan). */
static void keep(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct sums *s = arg;
	const struct ql_product *p = s->p;
	int64_t *to = s->sum + (s->batch * p->plan.m + i) * p->plan.n + j, sa_step, sb_step;
	const float *sa = ql_factor_scale(p, &p->a, s->batch, &sa_step),
		    *sb = ql_factor_scale(p, &p->b, s->batch, &sb_step);

	for (int64_t l = 0; l < n; l++) {
		int64_t sum = sum32 ? sum32[l] : sum64[l];

		if (s->e->bias) {
			float factor = 1;

			sum += ql_round_bias(s->e->bias[j + l], sa[i * sa_step] * sb[(j + l) * sb_step], &factor);
			sum = factor == 0 ? 0 : sum;
		}
		to[l] = s->relu && sum < 0 ? 0 : sum;
	}
}

/* Smallest and largest real value. */
static void range(const struct sums *s, float found[2])
{
	const struct ql_matmul *plan = &s->p->plan;

	found[0] = found[1] = 0;
	for (int64_t r = 0; r < plan->batches * plan->m; r++) {
		int64_t sa_step, sb_step;
		const float *sa = ql_factor_scale(s->p, &s->p->a, r / plan->m, &sa_step);
		const float *sb = ql_factor_scale(s->p, &s->p->b, r / plan->m, &sb_step);

		for (int64_t j = 0; j < plan->n; j++) {
			float y = (float)s->sum[r * plan->n + j] * (sa[r % plan->m * sa_step] * sb[j * sb_step]);

			found[0] = y < found[0] ? y : found[0];
			found[1] = y > found[1] ? y : found[1];
		}
	}
}

static void write_row(const struct sums *s, int64_t r)
{
	const struct ql_matmul *plan = &s->p->plan;
	int64_t sa_step, sb_step, row[256];
	const float *sa = ql_factor_scale(s->p, &s->p->a, r / plan->m, &sa_step);
	const float *sb = ql_factor_scale(s->p, &s->p->b, r / plan->m, &sb_step);

	for (int64_t j = 0; j < plan->n; j += 256) {
		int64_t n = ql_min64(256, plan->n - j);

		for (int64_t l = 0; l < n; l++) {
			double m = (double)sa[r % plan->m * sa_step] * (double)sb[(j + l) * sb_step] / (double)s->scale;
			int64_t sum = s->sum[r * plan->n + j + l];

			if (s->rule)
				row[l] = ql_fixed_code(s->rule, s->p->wide, sum, ql_fixed_of(m), &s->r);
			else
				row[l] = ql_round((float)sum * (float)m, s->r.lo, s->r.hi, s->r.zero);
		}
		ql_dtypes[s->out->dtype].from_i64(s->out->storage->data, r * s->pitch + j, 1, n, row);
	}
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++)
		write_row(arg, r);
}

/* Gives the params of the result: explicit, or fitted to the range found. */
static enum ql_status result_params(struct ql_ctx *ctx, const struct sums *s, const struct ql_spec *spec, int rank,
	const int64_t *shape, struct ql_qparams **out)
{
	float found[2] = {0, 0};

	if (!spec->has_scale)
		range(s, found);
	return ql_rescale_params(ctx, spec, found, rank, shape, out);
}

enum ql_status ql_product_requantize(struct ql_ctx *ctx, struct ql_product *p, const struct ql_spec *spec,
	const struct ql_epilogue *e, bool relu, int rank, const int64_t *shape, struct ql_tensor **out)
{
	const struct ql_matmul *plan = &p->plan;
	struct sums s = {.p = p, .e = e, .relu = relu, .rule = spec->requant};
	int64_t rows = plan->batches * plan->m;
	enum ql_status status = ql_product_codes(ctx, p, spec, e, relu, rank, shape, out);

	if (status || *out)
		return status;
	status = ql_tensor_new(ctx, spec->dtype, rank, shape, out);
	if (status)
		return status;
	s.sum = ql_alloc_array(ctx, ql_mul64(rows, plan->n), sizeof(*s.sum));
	if (!s.sum)
		status = QL_ERR_MEMORY;
	for (; s.batch < plan->batches && !status; s.batch++)
		status = ql_product_run(ctx, p, s.batch, keep, &s);
	if (!status)
		status = result_params(ctx, &s, spec, rank, shape, &(*out)->q);
	if (!status) {
		s.out = *out;
		s.scale = (float)ql_tensor_at_f64((*out)->q->scale, 0);
		s.r = ql_rounding_of(*out);
		/* a vector result has its n (or m) elements in one row */
		s.pitch = rank > 1 ? (*out)->stride[rank - 2] : plan->n;
		status =
			ql_parallel_for(ctx, rows, ql_dtype_is_packed(spec->dtype) && rank < 2 ? ql_max64(1, rows) : 16,
				rows * plan->n * 2, write_rows, &s);
	}
	ql_free(ctx, s.sum);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}
