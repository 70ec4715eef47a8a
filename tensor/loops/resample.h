/* SPDX-License-Identifier: MIT
 * Resampling along one axis: each output is a weighted sum of neighbouring inputs, listed in a table of taps. Sums
 * run from the first tap to the last, so results have the same bits on every level and number of threads.
 */
#ifndef QUOLL_TENSOR_LOOPS_RESAMPLE_H
#define QUOLL_TENSOR_LOOPS_RESAMPLE_H

#include "tensor/tensor.h"

enum ql_resample_mode { QL_RESAMPLE_NEAREST, QL_RESAMPLE_BILINEAR, QL_RESAMPLE_ANTIALIAS };

/* Output i is the sum of weight[begin[i] + k] * input[first[i] + k] over k < count[i]. In scratch memory. */
struct ql_taps {
	int64_t in, out;
	int64_t *first, *count, *begin;
	double *weight;
};

/* Taps of `out` outputs from `in` inputs, both at least 1; weights of 0 at the ends are dropped. */
enum ql_status ql_taps_make(
	struct ql_ctx *ctx, enum ql_resample_mode mode, int64_t in, int64_t out, struct ql_taps *taps);
/* The taps of the gradient: inputs and outputs exchanged. */
enum ql_status ql_taps_transpose(struct ql_ctx *ctx, const struct ql_taps *from, struct ql_taps *taps);
/* y (outer, taps->out, inner) from x (outer, taps->in, inner), both float, or double when `wide`. */
enum ql_status ql_resample(struct ql_ctx *ctx, const struct ql_taps *taps, bool wide, int64_t outer, int64_t inner,
	const void *x, void *y);

#endif
