/* SPDX-License-Identifier: MIT
 * Formats whose scales and codes are found together from the data of a block: those of GGUF. A kind encodes a tile of
 * up to QL_TILE consecutive elements of a row, which is one superblock, or as many blocks of 32 as fit in it.
 *
 * All arithmetic is float32, each operation rounded by itself, and sums run over the elements of a block in order, so
 * that codes have the bits of ggml's reference encoder. Loops put one block in each lane of a vector.
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
	/* Results. A code that is signed is stored as its low 8 bits. */
	uint8_t code[QL_TILE];
	float scale[QL_TILE_BLOCKS], shift[QL_TILE_BLOCKS]; /* of each block; [0] only where they are coded */
	uint8_t scale_code[QL_TILE_BLOCKS], shift_code[QL_TILE_BLOCKS];
};

struct ql_block_kind {
	int block;                   /* elements per scale */
	int whole;                   /* elements that a row must be a multiple of: the superblock, or the block */
	unsigned scale;              /* dtype of the scales; integers have an outer float16 scale per superblock */
	unsigned shift;              /* the same for the shifts; 0: none */
	bool wide;                   /* scales reach the ends of float32 */
	bool importance, row_square; /* uses ql_block_tile.weight; and .square */
	int top;                     /* of the family: the number of codes above 0 */
	void (*const *fit)(const struct ql_block_kind *kind, struct ql_block_tile *t); /* by variant of QL_SIMD */
};

/* True if the spec's format has a kind. */
bool ql_block_fits(const struct ql_spec *spec);
/* Makes the plain contiguous float32 x into codes with params, by the format's kind. axis: along which blocks run, 0-based.
 * Errors: a size of that axis that the superblock does not divide; importance of another length, or not finite and >= 0. */
enum ql_status ql_block_quantize(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, int axis, struct ql_tensor **out);
/* Fails unless the kind's superblock divides n. */
enum ql_status ql_block_check(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n);
/* Params of a tensor of zeros: the layout of ql_block_quantize with scales of 0. q has block and block_axis. */
enum ql_status ql_block_zeros(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams *q);
/* True if scales (or shifts) of a file are what the kind of q->format makes. */
bool ql_block_has(const struct ql_qparams *q, const struct ql_tensor *t, bool shift);
/* Bytes of the scales and shifts of `blocks` blocks. */
uint64_t ql_block_bytes(const struct ql_spec *spec, uint64_t blocks);

#endif
