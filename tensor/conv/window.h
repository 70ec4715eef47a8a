/* SPDX-License-Identifier: MIT
 * A window that slides over the last two axes of (N, C, H, W): shared by convolutions and pooling of any dtype.
 * Index 0 is the vertical direction, 1 the horizontal one.
 */
#ifndef QUOLL_TENSOR_CONV_WINDOW_H
#define QUOLL_TENSOR_CONV_WINDOW_H

#include "tensor/op.h"

#define QL_WINDOW_MOST ((int64_t)1 << 30) /* largest kernel, stride, padding and dilation */

struct ql_window {
	int64_t in[2], kernel[2], stride[2], dilation[2];
	int64_t before[2], after[2]; /* padding: top and left, bottom and right */
	int64_t out[2];
};

/* The window of a pooling op over x (n, c, h, w): also reads k=, by default the whole plane. Padding is at most
 * half of k. */
enum ql_status ql_pool_window(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w);

/* The results along direction d for which the tap at offset `shift` (k * dilation - before) is inside the input:
 * *from .. *to - 1. */
void ql_window_reach(const struct ql_window *w, int d, int64_t shift, int64_t *from, int64_t *to);

/* The attributes that it reads, for the attribute list of an op. */
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

/* Reads stride=, pad=, dilation= and groups= of the call for these shapes; both must have four axes, but for w with k=, the size of the
 * kernel: (o, c / groups * kh * kw). */
enum ql_status ql_conv_read(struct ql_ctx *ctx, const struct ql_call *call, int x_rank, const int64_t *x, int w_rank,
	const int64_t *w, struct ql_conv *out);

#endif
