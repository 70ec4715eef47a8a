/* SPDX-License-Identifier: MIT
 * Rows of exponentials.
 */
#include "tensor/loops/exponentials.h"

#include <math.h>

#include "tensor/base.h"
#include "tensor/loops/lanes.h"
#include "tensor/vmath/log.h"

#define PIECE 1024

QL_FOLD_F32(max_f32, v > a ? v : a)

float ql_row_largest(int variant, const float *x, int64_t n)
{
	float lane[QL_REDUCE_LANES], m = -INFINITY;
	int64_t whole = n / QL_REDUCE_LANES, rest = n % QL_REDUCE_LANES;

	for (int l = 0; l < QL_REDUCE_LANES; l++)
		lane[l] = -INFINITY;
	max_f32[variant](lane, x, QL_REDUCE_LANES, whole, QL_REDUCE_LANES);
	max_f32[variant](lane, x + whole * QL_REDUCE_LANES, 0, 1, rest);
	for (int l = 0; l < QL_REDUCE_LANES; l++)
		m = lane[l] > m ? lane[l] : m;
	return m;
}

QL_SIMD(void, exp_below, (int64_t n, float *restrict out, const float *restrict x, float m), {
	for (int64_t i = 0; i < n; i++)
		out[i] = ql_exp_below(x[i], m);
})
QL_SIMD(void, exp_below_own, (int64_t n, float *restrict x, float m), {
	for (int64_t i = 0; i < n; i++)
		x[i] = ql_exp_below(x[i], m);
})

void ql_row_exp(int variant, int64_t n, float *out, const float *x, float m)
{
	if (out == x)
		exp_below_own[variant](n, out, m);
	else
		exp_below[variant](n, out, x, m);
}

QL_SIMD(void, scale, (int64_t n, float *x, float by), {
	for (int64_t i = 0; i < n; i++)
		x[i] *= by;
})

void ql_row_scale(int variant, int64_t n, float *x, float by)
{
	scale[variant](n, x, by);
}

double ql_row_logsum(int variant, const float *x, int64_t n)
{
	float m = ql_row_largest(variant, x, n), piece[PIECE];
	double sum = 0;

	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t count = ql_min64(PIECE, n - i);

		exp_below[variant](count, piece, x + i, m);
		sum += ql_sum_f32(variant, piece, count);
	}
	return (double)m + ql_log_f64(ldexp(sum, -QL_EXP_SCALE));
}

double ql_row_logsum_f64(const double *x, int64_t n)
{
	double m = -INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		m = x[i] > m ? x[i] : m;
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i] - m);
	return m + log(sum);
}
