/* SPDX-License-Identifier: MIT
 * Sums of dense rows in the order that reduce.h defines, and the steps of such a sum.
 */
#ifndef QUOLL_TENSOR_LOOPS_LANES_H
#define QUOLL_TENSOR_LOOPS_LANES_H

#include "tensor/loops/reduce.h"

#define QL_SUM_RUN (8 * QL_REDUCE_LANES) /* elements that are added in float32 before they are widened */

/* Sum of a row. `variant` as in tensor/vmath/simd.h. */
double ql_sum_f32(int variant, const float *x, int64_t n);
double ql_sum_f64(const double *x, int64_t n);

/* wide[i] += acc[i] */
void ql_widen(int variant, double *wide, const float *acc, int64_t n);
/* Adds the sums of the runs of x to the QL_REDUCE_LANES lanes of wide. */
void ql_sum_runs(int variant, double *wide, const float *x, int64_t n);
/* Sum of lanes that are `stride` apart. */
double ql_join_lanes(const double *lane, int64_t lanes, int64_t stride);

#endif
