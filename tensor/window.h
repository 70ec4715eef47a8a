/* SPDX-License-Identifier: MIT
 * A window that slides over the last two axes of (N, C, H, W): what convolutions and pooling of any dtype
 * share. Index 0 is the vertical direction, 1 the horizontal one.
 */
#ifndef QUOLL_TENSOR_WINDOW_H
#define QUOLL_TENSOR_WINDOW_H

#include "tensor/op.h"

#define QL_WINDOW_MOST ((int64_t)1 << 30) /* largest kernel, stride, padding and dilation */

struct ql_window {
	int64_t in[2], kernel[2], stride[2], dilation[2];
	int64_t before[2], after[2]; /* padding: top and left, bottom and right */
	int64_t out[2];
};

/* Reads stride=, pad= and dilation= of the call (those that its op has) for w->in and w->kernel and sets the
 * rest. Without stride= it is `stride`; 0: as large as the kernel. */
enum ql_status ql_window_read(
	struct ql_ctx *ctx, const struct ql_call *call, int64_t stride, struct ql_window *w);

/* The window of a pooling op over x (n, c, h, w): also k=, the whole plane without it. Padding is at most half of it. */
enum ql_status ql_pool_window(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w);

/* Results that the tap `shift` elements behind their place (k * dilation - before) reaches inside of the input, along
 * direction d: *from .. *to - 1. */
void ql_window_reach(const struct ql_window *w, int d, int64_t shift, int64_t *from, int64_t *to);

/* The attributes that it reads, for the table of an op. */
#define QL_WINDOW_STRIDE(text) \
	{ \
		"stride", QL_ATTR_INTS, 0, NULL, text \
	}
#define QL_WINDOW_PAD \
	{ \
		"pad", QL_ATTR_INTS, 0, NULL, \
			"rows and columns added at the edges: a number, {h, w} or {top, bottom, left, right} (default 0)" \
	}

/* x (n, c, h, w) and w (o, c / groups, kh, kw) */
struct ql_conv {
	struct ql_window window;
	int64_t n, c, o, groups;
};

/* From the shapes and stride=, pad=, dilation=, groups= of the call; both must have four axes. */
enum ql_status ql_conv_read(struct ql_ctx *ctx, const struct ql_call *call, int x_rank, const int64_t *x,
	int w_rank, const int64_t *w, struct ql_conv *out);

#endif
