/* SPDX-License-Identifier: MIT
 * What softmax, cross-entropy and attention do to one dense row: its largest element, and the exponentials of the
 * differences from it.
 *
 * x - max is rounded, and exp turns an absolute error into a relative one, so for large differences most of the
 * digits of a naive result are lost; the rounding error of the difference (found exactly, Knuth's two-sum) is put
 * back into the reduced argument. The exponentials are kept times 2^QL_EXP_SCALE, where none is denormal; a division
 * by their sum takes the factor out.
 */
#ifndef QUOLL_TENSOR_EXPONENTIALS_H
#define QUOLL_TENSOR_EXPONENTIALS_H

#include <stdint.h>

#define QL_EXP_SCALE 24 /* as a power of 2 */

/* Largest element of x (n); NaN is passed over: its exponential is NaN, and so is their sum. -inf when there is none.
 * `variant` as in simd.h. */
float ql_row_largest(int variant, const float *x, int64_t n);
/* out = exp(x - m) 2^QL_EXP_SCALE for x <= m; out is x or apart from it. Differences below -104 count as that: they
 * give less than half of the smallest number. */
void ql_row_exp(int variant, int64_t n, float *out, const float *x, float m);
/* x *= by */
void ql_row_scale(int variant, int64_t n, float *x, float by);
/* log sum exp x, in double, without storing the exponentials */
double ql_row_logsum(int variant, const float *x, int64_t n);
double ql_row_logsum_f64(const double *x, int64_t n);

#endif
