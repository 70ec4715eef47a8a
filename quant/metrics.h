/* SPDX-License-Identifier: MIT
 * How far one tensor is from another.
 */
#ifndef QUOLL_QUANT_METRICS_H
#define QUOLL_QUANT_METRICS_H

#include "tensor/tensor.h"

/* All in double over the decoded values. sqnr in dB: 10 log10(sum x^2 / sum (x - y)^2), infinite when equal; clipped:
 * share of the x that lie more than half a step outside what y's codes can hold (0 when y is not quantized). */
struct ql_error_report {
	double mse, rmse, max, mean, sqnr, cosine, clipped;
	int64_t count;
};

/* x is the reference, y what became of it; equal shapes. */
enum ql_status ql_error_measure(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *y, struct ql_error_report *out);

#endif
