/* SPDX-License-Identifier: MIT
 * Rows of codes: one loop for values, one for sums with a bias and a factor per element or for all.
 */
#include "quant/integer/rounding.h"

#include <math.h>

#include "quant/integer/fixed.h"

struct ql_rounding ql_rounding_of_params(const struct ql_qparams *q)
{
	int32_t zero = q->zero_point ? (int32_t)ql_tensor_at_f64(q->zero_point, 0) : 0;

	return (struct ql_rounding){(float)(q->codes.lo - zero), (float)(q->codes.hi - zero), zero};
}

struct ql_rounding ql_rounding_of(const struct ql_tensor *t)
{
	return ql_rounding_of_params(t->q);
}

#define ROW(name, type) \
	QL_SIMD(void, name, (int64_t n, const float *restrict v, const struct ql_rounding *r, type *restrict out), { \
		float lo = r->lo, hi = r->hi; \
		int32_t zero = r->zero; \
		for (int64_t i = 0; i < n; i++) \
			out[i] = (type)ql_round(v[i], lo, hi, zero); \
	})
ROW(row_u8, uint8_t)
ROW(row_i8, int8_t)

void ql_round_row(int variant, const struct ql_rounding *r, unsigned dtype, int64_t n, const float *v, void *out)
{
	if (dtype == QL_uint8)
		row_u8[variant](n, v, r, out);
	else
		row_i8[variant](n, v, r, out);
}

int64_t ql_round_bias(float bias, float scale, float *factor)
{
	double units = rint((double)bias / (double)scale);

	if (isnan(units)) {
		*factor = 0;
		return 0;
	}
	return (int64_t)fmin(fmax(units, -0x1p61), 0x1p61);
}

/* sum + bias, not below least, times the factor */
QL_INLINE float scaled(int32_t sum, int32_t bias, int32_t least, float factor)
{
	sum += bias;
	return (float)(sum < least ? least : sum) * factor;
}

#define SUMS(name, type) \
	QL_SIMD(void, name, \
		(int64_t n, const int32_t *restrict sum, const struct ql_sum_codes *c, const int32_t *restrict bias, \
			const float *restrict factor, type *restrict out), { \
			float lo = c->r.lo, hi = c->r.hi; \
			int32_t zero = c->r.zero, least = c->least, one = *bias; \
			float by = *factor; \
			if (c->each) \
				for (int64_t i = 0; i < n; i++) \
					out[i] = (type)ql_round(scaled(sum[i], bias[i], least, factor[i]), lo, hi, zero); \
			else \
				for (int64_t i = 0; i < n; i++) \
					out[i] = (type)ql_round(scaled(sum[i], one, least, by), lo, hi, zero); \
		})
SUMS(sums_u8, uint8_t)
SUMS(sums_i8, int8_t)

void ql_round_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out)
{
	int64_t at = c->each ? first : 0;

	if (c->rule)
		ql_fixed_sums(c, first, n, sum, out);
	else if (c->dtype == QL_uint8)
		sums_u8[c->variant](n, sum, c, c->bias + at, c->factor + at, out);
	else
		sums_i8[c->variant](n, sum, c, c->bias + at, c->factor + at, out);
}
