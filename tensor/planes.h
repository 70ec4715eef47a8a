/* SPDX-License-Identifier: MIT
 * The largest number or the mean of each window of many planes, and the gradients.
 */
#ifndef QUOLL_TENSOR_PLANES_H
#define QUOLL_TENSOR_PLANES_H

#include "tensor/window.h"

/* What one tap of a row meets, in columns first..first+n-1: columns left out in front, where it begins in x,
 * columns. */
struct ql_plane_run {
	int64_t skip, from, n;
};

/* The caller fills w, mean, wide and the planes, which are contiguous. */
struct ql_planes {
	struct ql_window w;
	bool mean, wide; /* wide: float64, else float32 */
	const void *x, *y, *g; /* y and g, result and its gradient: for the gradient; of means only g */
	void *out;             /* result, or gradient of x */
	/* set here */
	struct ql_plane_run *runs; /* for each piece of a row the kernel's columns */
	int variant;
	double share; /* 1 / numbers of a window */
};

enum ql_status ql_planes_result(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j);
enum ql_status ql_planes_gradient(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j);

#endif
