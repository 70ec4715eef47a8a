/* SPDX-License-Identifier: MIT
 * Sums of dense rows: runs of 8 additions per float32 lane, then float64 lanes.
 */
#include "tensor/loops/lanes.h"

QL_SIMD(void, widen, (double *restrict wide, const float *restrict acc, int64_t n), {
	for (int64_t i = 0; i < n; i++)
		wide[i] += (double)acc[i];
})

QL_SIMD(void, sum_runs, (double *restrict wide, const float *restrict x, int64_t n), {
	double sum[QL_REDUCE_LANES];

	for (int k = 0; k < QL_REDUCE_LANES; k++)
		sum[k] = wide[k];
	for (; n >= QL_SUM_RUN; n -= QL_SUM_RUN) {
		float lane[QL_REDUCE_LANES] = {0};

		for (int r = 0; r < QL_SUM_RUN / QL_REDUCE_LANES; r++)
			for (int k = 0; k < QL_REDUCE_LANES; k++)
				lane[k] += x[r * QL_REDUCE_LANES + k];
		for (int k = 0; k < QL_REDUCE_LANES; k++)
			sum[k] += (double)lane[k];
		x += QL_SUM_RUN;
	}
	if (n > 0) {
		float lane[QL_REDUCE_LANES] = {0};

		for (; n >= QL_REDUCE_LANES; n -= QL_REDUCE_LANES) {
			for (int k = 0; k < QL_REDUCE_LANES; k++)
				lane[k] += x[k];
			x += QL_REDUCE_LANES;
		}
		for (int64_t k = 0; k < n; k++)
			lane[k] += x[k];
		for (int k = 0; k < QL_REDUCE_LANES; k++)
			sum[k] += (double)lane[k];
	}
	for (int k = 0; k < QL_REDUCE_LANES; k++)
		wide[k] = sum[k];
})

void ql_widen(int variant, double *wide, const float *acc, int64_t n)
{
	widen[variant](wide, acc, n);
}

void ql_sum_runs(int variant, double *wide, const float *x, int64_t n)
{
	sum_runs[variant](wide, x, n);
}

/* A fixed order: four chains, so that the additions overlap. */
double ql_join_lanes(const double *lane, int64_t lanes, int64_t stride)
{
	double s[4] = {0};

	for (int64_t l = 0; l < lanes; l++)
		s[l & 3] += lane[l * stride];
	return (s[0] + s[1]) + (s[2] + s[3]);
}

double ql_sum_f32(int variant, const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t p = 0; p < n; p += QL_REDUCE_PART) {
		int64_t m = ql_min64(QL_REDUCE_PART, n - p);
		double wide[QL_REDUCE_LANES] = {0};

		sum_runs[variant](wide, x + p, m);
		sum += ql_join_lanes(wide, ql_min64(m, QL_REDUCE_LANES), 1);
	}
	return sum;
}

double ql_sum_f64(const double *x, int64_t n)
{
	double sum = 0;

	for (int64_t p = 0; p < n; p += QL_REDUCE_BLOCK) {
		int64_t m = ql_min64(QL_REDUCE_BLOCK, n - p), whole = m / QL_REDUCE_LANES, rest = m % QL_REDUCE_LANES;
		double lane[QL_REDUCE_LANES] = {0};

		ql_fold_sum_f64(lane, x + p, QL_REDUCE_LANES, whole, QL_REDUCE_LANES);
		ql_fold_sum_f64(lane, x + p + whole * QL_REDUCE_LANES, 0, 1, rest);
		sum += ql_join_lanes(lane, ql_min64(m, QL_REDUCE_LANES), 1);
	}
	return sum;
}
