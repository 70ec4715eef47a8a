/* SPDX-License-Identifier: MIT
 * Resampling along one axis: each output is a weighted sum of neighbouring inputs, listed in a table of taps. Sums
 * run from the first tap to the last, so results have the same bits on every level and number of threads.
 */
#ifndef QUOLL_TENSOR_LOOPS_RESAMPLE_H
#define QUOLL_TENSOR_LOOPS_RESAMPLE_H

#include "tensor/tensor.h"

enum ql_resample_mode {
	QL_RESAMPLE_NEAREST,
	QL_RESAMPLE_BILINEAR,
	QL_RESAMPLE_ANTIALIAS,
	QL_RESAMPLE_CUBIC,
	QL_RESAMPLE_AREA
};
/* Where output i is in the input; the names are those of ONNX's Resize. */
enum ql_resample_coords {
	QL_COORDS_HALF_PIXEL,
	QL_COORDS_PYTORCH_HALF_PIXEL,
	QL_COORDS_ALIGN_CORNERS,
	QL_COORDS_ASYMMETRIC,
	QL_COORDS_HALF_PIXEL_SYMMETRIC
};
enum ql_resample_nearest { QL_NEAREST_FLOOR, QL_NEAREST_CEIL, QL_NEAREST_PREFER_FLOOR, QL_NEAREST_PREFER_CEIL };

struct ql_resample {
	enum ql_resample_mode mode;
	enum ql_resample_coords coords;
	enum ql_resample_nearest nearest;
	double a; /* of the cubic */
	bool exclude; /* cubic: inputs outside have no weight, the others add up to 1; else those at the edges count for them */
};

/* Output i is the sum of weight[begin[i] + k] * input[first[i] + k] over k < count[i]. In scratch memory. */
struct ql_taps {
	int64_t in, out;
	int64_t *first, *count, *begin;
	double *weight;
};

/* Taps of `out` outputs from `in` inputs, both at least 1, `scale` times as many; 0: out / in. Weights of 0 at the ends are dropped. */
enum ql_status ql_taps_make(
	struct ql_ctx *ctx, const struct ql_resample *r, int64_t in, int64_t out, double scale, struct ql_taps *taps);
/* The taps of the gradient: inputs and outputs exchanged. */
enum ql_status ql_taps_transpose(struct ql_ctx *ctx, const struct ql_taps *from, struct ql_taps *taps);
/* y (outer, taps->out, inner) from x (outer, taps->in, inner), both float, or double when `wide`. */
enum ql_status ql_resample(struct ql_ctx *ctx, const struct ql_taps *taps, bool wide, int64_t outer, int64_t inner,
	const void *x, void *y);

#endif
