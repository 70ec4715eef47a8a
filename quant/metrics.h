/* SPDX-License-Identifier: MIT
 * Error measures between two tensors.
 */
#ifndef QUOLL_QUANT_METRICS_H
#define QUOLL_QUANT_METRICS_H

#include "tensor/tensor.h"

/* Errors of the decoded values, computed in double. sqnr: 10 log10(sum x^2 / sum (x - y)^2) in dB, infinite if x equals
 * y. max, mean: of |x - y|. clipped: share of the values of x that are more than half a step outside the range of y's
 * codes; 0 if y is not quantized. */
struct ql_error_report {
	double mse, rmse, max, mean, sqnr, cosine, clipped;
	int64_t count;
};

/* x is the reference, y its approximation; either may be quantized. Error: different shapes. */
enum ql_status ql_error_measure(
	struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *y, struct ql_error_report *out);

#endif
