/* SPDX-License-Identifier: MIT
 * Formats that fit scales and codes together to the data of a block (those of GGUF). A kind encodes a tile of up to
 * QL_TILE consecutive elements of a row: one superblock, or up to 8 blocks of 32.
 *
 * All arithmetic is float32, each operation is rounded separately, and sums run over the elements of a block in
 * order, so codes are bit-identical to those of ggml's reference encoder. Loops process one block in each lane of a
 * vector.
 */
#ifndef QUOLL_QUANT_BLOCKS_BLOCK_H
#define QUOLL_QUANT_BLOCKS_BLOCK_H

#include "quant/spec.h"

#define QL_TILE 256
#define QL_TILE_BLOCKS 16 /* at most */

struct ql_block_tile {
	float x[QL_TILE];      /* finite; 0 from n on */
	float weight[QL_TILE]; /* importance of each element, >= 0 */
	bool weighted;
	float square; /* weighted: mean of x * x over the whole row */
	int n;
	/* Results. Signed codes are stored in two's complement. */
	uint8_t code[QL_TILE];
	float scale[QL_TILE_BLOCKS], shift[QL_TILE_BLOCKS]; /* of each block; if they are coded, [0]: outer ones */
	uint8_t scale_code[QL_TILE_BLOCKS], shift_code[QL_TILE_BLOCKS];
};

struct ql_block_kind {
	int block;                   /* elements per scale */
	int whole;                   /* size of the superblock, or of the block; rows are multiples of it */
	unsigned scale;              /* dtype of the scales; integers have an outer float16 scale per superblock */
	unsigned shift;              /* the same for the shifts; 0: none */
	bool wide;                   /* scales cover the range of float32 */
	bool importance, row_square; /* uses ql_block_tile.weight; and .square */
	int top;                     /* magnitude of the lowest signed code, or the highest unsigned code */
	void (*const *fit)(const struct ql_block_kind *kind, struct ql_block_tile *t); /* indexed by SIMD variant */
};

/* True if the spec's format has a kind. */
bool ql_block_fits(const struct ql_spec *spec);
/* Quantizes the plain contiguous float32 x by the format's kind into *out, with params. Blocks run along `axis`
 * (0-based). Errors: the size of that axis is not a multiple of the superblock; those of ql_importance. */
enum ql_status ql_block_quantize(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, int axis, struct ql_tensor **out);
/* Fails unless n is a multiple of the kind's superblock. */
enum ql_status ql_block_check(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n);
/* Fills the params q of a tensor of zeros: the layout of ql_block_quantize with scales of 0. q->block and
 * q->block_axis are set. Errors as in ql_block_check. */
enum ql_status ql_block_zeros(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams *q);
/* True if t, the scales (or, with `shift`, the shifts) of a file, has the dtype and params that q->format requires. */
bool ql_block_has(const struct ql_qparams *q, const struct ql_tensor *t, bool shift);
/* Bytes of the scales and shifts of `blocks` blocks. */
uint64_t ql_block_bytes(const struct ql_spec *spec, uint64_t blocks);

#endif
