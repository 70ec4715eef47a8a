/* SPDX-License-Identifier: MIT
 * Error measures between two tensors.
 */
#ifndef QUOLL_QUANT_METRICS_H
#define QUOLL_QUANT_METRICS_H

#include "tensor/tensor.h"

/* All in double, over the decoded values. sqnr in dB: 10 log10(sum x^2 / sum (x - y)^2), infinite when equal.
 * clipped: share of the x that are more than half a step outside the range of y's codes (0 when y is not
 * quantized). */
struct ql_error_report {
	double mse, rmse, max, mean, sqnr, cosine, clipped;
	int64_t count;
};

/* x is the reference, y its approximation; shapes must be equal. */
enum ql_status ql_error_measure(
	struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *y, struct ql_error_report *out);

#endif
