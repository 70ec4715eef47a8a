/* SPDX-License-Identifier: MIT
 * Row functions of softmax, cross-entropy and attention: the largest element of a dense row, and the exponentials
 * of the differences from it (tensor/vmath/below.h). They are multiplied by 2^QL_EXP_SCALE, so that none is denormal; a
 * division by their sum cancels the factor.
 */
#ifndef QUOLL_TENSOR_LOOPS_EXPONENTIALS_H
#define QUOLL_TENSOR_LOOPS_EXPONENTIALS_H

#include "tensor/vmath/below.h"

/* The largest element of x (n), ignoring NaN: its exponential is NaN, and so is the sum. -inf when there is none.
 * `variant` as in tensor/vmath/simd.h. */
float ql_row_largest(int variant, const float *x, int64_t n);
/* out = exp(x - m) 2^QL_EXP_SCALE for x <= m; out is x or does not overlap it. Differences are clamped to >= -104,
 * where results are below half of the smallest number. */
void ql_row_exp(int variant, int64_t n, float *out, const float *x, float m);
/* x *= by */
void ql_row_scale(int variant, int64_t n, float *x, float by);
/* log sum exp x, in double, without storing the exponentials */
double ql_row_logsum(int variant, const float *x, int64_t n);
double ql_row_logsum_f64(const double *x, int64_t n);

#endif
