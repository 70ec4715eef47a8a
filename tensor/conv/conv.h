/* SPDX-License-Identifier: MIT
 * Sums of a convolution in float32: the result or the input's gradient (ql_conv_sums), the weight's gradient
 * (ql_conv_weight). Both work block by block of pixels on unfolded sources (unfold.h) and the tiles of
 * gemm_f32. wide.c has the same sums in float64 by plain loops.
 */
#ifndef QUOLL_TENSOR_CONV_CONV_H
#define QUOLL_TENSOR_CONV_CONV_H

#include "tensor/conv/decoder.h"
#include "tensor/gemm/matmul.h"
#include "tensor/conv/unfold.h"
#include "tensor/conv/window.h"
#include "tensor/slots.h"

/* target[image][g * rows + i][pixel] = sum over channels c of group g and taps t of
 * a[g * rows + i][c * taps + t] * unfolded[image][g * channels + c][t][pixel], in order of c and t. */
struct ql_conv_sums {
	struct ql_unfold u; /* planes: groups * channels */
	int64_t groups, channels, rows;
	const float *a;
	const struct ql_conv_decoder *codes; /* not NULL: in the place of a */
	float *target;                       /* (images, outputs, th, tw) */
	int64_t outputs;                     /* rows of the target; 0: groups * rows */
	int64_t th, tw;
	int64_t at[2], every[2]; /* pixel (i, j) goes to (at[0] + i * every[0], at[1] + j * every[1]) */
	struct ql_epilogue e;    /* bias per row of the target */
	/* Only where ql_conv_takes_other: a second operand, laid out like the target, that is added behind the bias, before the
	 * activation, which is none or relu. */
	const float *other;
};

static inline int64_t ql_conv_outputs(const struct ql_conv_sums *s)
{
	return s->outputs ? s->outputs : s->groups * s->rows;
}

/* QL_ERR_OVERFLOW: the taps are so far apart that a block's patch would be too large. */
enum ql_status ql_conv_sums(struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* True for many small images with many taps in the padding; ql_conv_sums then calls ql_conv_batch. */
bool ql_conv_is_batch(const struct ql_ctx *ctx, const struct ql_conv_sums *s);
enum ql_status ql_conv_batch(struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* Bias and activation of n numbers of one row of the target. */
void ql_conv_finish(const struct ql_conv_sums *s, int64_t row, float *y, int64_t n);
/* True if tiles can read the source, or copies of it; ql_conv_sums then calls ql_conv_taps. */
bool ql_conv_is_taps(const struct ql_ctx *ctx, const struct ql_conv_sums *s);
enum ql_status ql_conv_taps(struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* True for one or two rows of weights per group and up to 128 taps; ql_conv_sums then calls ql_conv_few. The bits of its own sums. */
#define QL_CONV_FEW_ROWS 2
bool ql_conv_is_few(const struct ql_conv_sums *s);
enum ql_status ql_conv_few(struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* With codes: decodes as many rows at a time as fit in the cache and computes their sums by ql_conv_sums. */
enum ql_status ql_conv_chunks(struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* True if ql_conv_sums takes that way. */
bool ql_conv_takes_other(const struct ql_ctx *ctx, const struct ql_conv_sums *s);
/* Channels whose products are summed before they are added to a result: QL_CONV_DEPTH products or fewer. */
#define QL_CONV_DEPTH 256
static inline int64_t ql_conv_piece(const struct ql_conv_sums *s)
{
	int64_t most = ql_max64(1, QL_CONV_DEPTH / ql_max64(1, s->u.taps));

	return ql_ceil_div(s->channels, ql_ceil_div(s->channels, most));
}
/* Name of the kernel that it uses: one of gemm_f32, or "simd" when there are too few rows for tiles. */
const char *ql_conv_kernel(const struct ql_ctx *ctx, int64_t rows);

/* weight[g * rows + i][c * taps + t] = sum over images and pixels of g[image][g * rows + i][pixel] *
 * unfolded. The division of the images into parts depends on the sizes only, and the parts' sums are added in order. */
struct ql_conv_weight {
	struct ql_unfold u;
	int64_t groups, channels, rows;
	const float *gradient; /* (images, groups * rows, gh, gw) */
	float *weight;         /* (groups * rows, channels * taps) */
};

enum ql_status ql_conv_weight(struct ql_ctx *ctx, const struct ql_conv_weight *s);

/* The gradient dx (n, c, in) of the input of c, from that of the result, g, and the weight; then bias, by channel of dx, and activation. */
enum ql_status ql_conv_input(struct ql_ctx *ctx, const struct ql_conv *c, const float *g, const float *w,
	const struct ql_epilogue *e, float *dx);

/* The unfolding of a convolution's input; taps from scratch memory. */
enum ql_status ql_conv_unfold(struct ql_ctx *ctx, const struct ql_conv *c, const float *x, struct ql_unfold *u);

/* float64: y = conv(x, w), the gradients dx (from g and w) and dw (from g and x). Exactly one of y, dx, dw is
 * written, the other operands are read; plain loops, for checks. */
enum ql_status ql_conv_wide_y(struct ql_ctx *ctx, const struct ql_conv *c, const double *x, const double *w, double *y);
enum ql_status ql_conv_wide_dx(
	struct ql_ctx *ctx, const struct ql_conv *c, const double *g, const double *w, double *dx);
enum ql_status ql_conv_wide_dw(
	struct ql_ctx *ctx, const struct ql_conv *c, const double *g, const double *x, double *dw);

#endif
