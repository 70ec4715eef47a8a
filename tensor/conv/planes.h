/* SPDX-License-Identifier: MIT
 * The largest number or the mean of each window of many planes, and the gradients.
 */
#ifndef QUOLL_TENSOR_CONV_PLANES_H
#define QUOLL_TENSOR_CONV_PLANES_H

#include "tensor/conv/window.h"

/* The columns of a row that one tap covers, in first..first+n-1: columns skipped in front, start in x, number of
 * columns. */
struct ql_plane_run {
	int64_t skip, from, n;
};

/* The caller fills w, mean, wide and the planes, which are contiguous. */
struct ql_planes {
	struct ql_window w;
	bool mean, wide;       /* wide: float64, else float32 */
	const void *x, *y, *g; /* for the gradient: the result y and its gradient g; for means only g */
	void *out;             /* result, or gradient of x */
	/* set here */
	struct ql_plane_run *runs; /* for each piece of a row the kernel's columns */
	int variant;
	double share;    /* 1 / size of a window */
	int64_t *across; /* of means of different numbers: how many a column of the result has along a row; else NULL */
};

enum ql_status ql_planes_result(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j);
enum ql_status ql_planes_gradient(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j);
/* From x and the largest numbers y: the place of the first equal one in its plane, from 1 on; 0: there is none. out: int64. */
enum ql_status ql_planes_places(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j);

#endif
