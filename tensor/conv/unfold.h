/* SPDX-License-Identifier: MIT
 * Unfolds (im2col) the source of a convolution for a product: for each channel and tap a row of the numbers that
 * this tap reads for consecutive pixels. Works block by block, never on a whole batch.
 *
 * The pixels are a grid of gh x gw per image. Tap t of pixel (i, j) reads the source at (i * step[0] + y[t], j *
 * step[1] + x[t]), or 0 outside of it. This describes a convolution and, with step 1, the gradient of its input.
 */
#ifndef QUOLL_TENSOR_CONV_UNFOLD_H
#define QUOLL_TENSOR_CONV_UNFOLD_H

#include "tensor/base.h"

#define QL_UNFOLD_SLACK 32 /* numbers that may be read or written after a patch and an unfolded row */

struct ql_unfold {
	const float *from; /* (images, planes, h, w) */
	int64_t images, planes, h, w;
	int64_t gh, gw, step[2];
	int64_t taps;
	const int64_t *y, *x;
	int64_t low[2], high[2]; /* least and greatest of y and x */
	int variant;             /* of the loops of tensor/vmath/simd.h */
};

/* A block of pixels: whole images, rows of one image, or columns of one row. */
struct ql_unfold_block {
	int64_t image, images, row, rows, column, columns, pixels;
};

/* The division of the pixels into blocks. */
struct ql_unfold_cut {
	int64_t images, rows, columns; /* of a block */
	int64_t image_blocks, row_blocks, column_blocks, count;
};

/* Numbers of one channel of a block's patch: a copy with the padding, in which the columns that one tap reads for
 * neighbouring pixels are adjacent. */
struct ql_patch {
	int64_t rows, phase, pitch; /* columns that a tap may read from its first one; columns of a row */
	int64_t plane, image;       /* numbers of a channel of one image; of an image with the given channels */
	const int64_t *tap;         /* offset of each tap in a plane */
};

/* A run of pixels in one row of the grid. */
struct ql_run {
	int64_t from, to, n; /* in the patch, for the least tap; in the unfolded row */
};

/* Blocks of about `pixels` pixels. */
struct ql_unfold_cut ql_unfold_cut_of(const struct ql_unfold *u, int64_t pixels);
struct ql_unfold_block ql_unfold_block_at(const struct ql_unfold *u, const struct ql_unfold_cut *cut, int64_t i);
/* The patch of the largest block with `channels` channels; it keeps `tap`, which has room for u->taps. False: its
 * size exceeds 61 bits. */
bool ql_patch_of(const struct ql_unfold *u, const struct ql_unfold_cut *cut, int64_t channels, int64_t *tap,
	struct ql_patch *p, uint64_t *numbers);
/* Copies planes first..first+channels-1 of the block's images into `to`. */
void ql_patch_fill(const struct ql_unfold *u, const struct ql_unfold_block *b, const struct ql_patch *p, int64_t first,
	int64_t channels, float *to);
/* The runs of pixels first..first+n-1 of the block; at most n. */
int64_t ql_unfold_runs(const struct ql_unfold *u, const struct ql_unfold_block *b, const struct ql_patch *p,
	int64_t first, int64_t n, struct ql_run *runs);
/* Rows for all taps of `channels` channels, `pitch` numbers apart; up to 3 numbers after a run are overwritten. */
void ql_unfold_rows(const struct ql_unfold *u, const struct ql_patch *p, const float *patch, int64_t channels,
	const struct ql_run *runs, int64_t n_runs, float *to, int64_t pitch);

#endif
