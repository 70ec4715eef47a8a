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
	int64_t before[2],
		after[2]; /* padding: top and left, bottom and right; with ceilmode= also what the last window needs */
	int64_t out[2];
	int64_t counted[2][2]; /* of a mean, by direction: padding before and after that is part of it */
};

/* The window of a pooling op over x (n, c, h, w): also reads k=, by default the whole plane. */
enum ql_status ql_pool_window(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w);

/* Along direction d the numbers that are part of the mean of result i; padding may be. */
int64_t ql_window_count(const struct ql_window *w, int d, int64_t i);
/* Whether each mean is of as many numbers as the kernel has. */
bool ql_window_even(const struct ql_window *w);

/* Along direction d the first input that result i reads, and the number of those, dilation apart. */
int64_t ql_window_inside(const struct ql_window *w, int d, int64_t i, int64_t *first);

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
#define QL_WINDOW_AUTOPAD \
	{ \
		"autopad", QL_ATTR_STRING, 0, "same same_upper same_lower valid", \
			"pad for ceil(size / stride) results, an odd row or column last (same, same_upper) or first (same_lower); valid: none" \
	}
#define QL_WINDOW_CEIL \
	{ \
		"ceilmode", QL_ATTR_BOOL, 0, NULL, \
			"a last window that begins inside of x, but does not fit, counts (default false)" \
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

/* Of a transposed convolution of x (n, c, h, w) with w (c, o / groups, kh, kw): the convolution that has x as its result. Also reads
 * outputpad=. */
enum ql_status ql_convtranspose_read(struct ql_ctx *ctx, const struct ql_call *call, int x_rank, const int64_t *x,
	int w_rank, const int64_t *w, struct ql_conv *out);

#endif
