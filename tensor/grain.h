/* SPDX-License-Identifier: MIT
 * Maps elements of a contiguous tensor to their scales, for any granularity: rows with one scale, rows divided into
 * blocks, or rows with one scale per element.
 */
#ifndef QUOLL_TENSOR_GRAIN_H
#define QUOLL_TENSOR_GRAIN_H

#include "tensor/qparams.h"

/* ROW: one scale for whole rows. BLOCK: rows are divided into blocks. COLUMN: one scale per element of the row,
 * shared by all rows. ELEMENT: one scale per element of the row and block of rows. */
enum ql_grain_kind { QL_GRAIN_ROW, QL_GRAIN_BLOCK, QL_GRAIN_COLUMN, QL_GRAIN_ELEMENT };

struct ql_grain {
	enum ql_grain_kind kind;
	int64_t rows, row; /* row: logical elements */
	int64_t pitch;     /* distance of rows in elements of the codes (packed rows are padded); row for floats */
	int64_t repeat;    /* ROW: consecutive rows that share a scale; ELEMENT: rows per step of the block axis */
	int64_t period;    /* ROW: number of scales; ELEMENT: size of the block axis */
	int64_t block;     /* BLOCK, ELEMENT */
	int64_t scales;    /* total number of scales */
};

/* axis, block_axis and block are those of ql_qparams. */
struct ql_grain ql_grain_of(int rank, const int64_t *shape, unsigned dtype, int axis, int block_axis, int64_t block);
/* Index of the first scale for element `column` of row r, and how many elements share it (ROW, BLOCK) or have
 * consecutive scales (COLUMN, ELEMENT). */
int64_t ql_grain_scale(const struct ql_grain *g, int64_t r, int64_t column, int64_t *run);
/* Shape of the scale tensor; returns its rank. */
int ql_grain_shape(int rank, const int64_t *shape, int axis, int block_axis, int64_t block, int64_t *out);

/* Mean magnitude of the finite values among n consecutive ones, and their number in *count: what ql_grain_stats finds for a
 * scale that has these values only; blocks: they are a block. */
double ql_grain_mean(int variant, const float *x, int64_t n, bool blocks, int64_t *count);
/* Statistics of the finite values of the contiguous float32 x under each scale; `stats` has g->scales entries.
 * Also counts NaN and Inf. */
enum ql_status ql_grain_stats(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats,
	int64_t *nan, int64_t *inf);

#endif
