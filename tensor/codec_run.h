/* SPDX-License-Identifier: MIT
 * For tensor/codec.c: one conversion, and its runs of elements.
 */
#ifndef QUOLL_TENSOR_CODEC_RUN_H
#define QUOLL_TENSOR_CODEC_RUN_H

#include <stdatomic.h>

#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"

struct ql_ragged;
struct ql_stochastic;

#define QL_CODEC_BUFFER 512 /* elements of one conversion buffer on the stack */

struct ql_codec {
	struct ql_grain g;
	const struct ql_scheme *scheme;
	const struct ql_kernels *kernels;
	struct ql_codes codes;
	unsigned dtype;
	const float *scale;
	const float *shift;             /* NULL: all 0 */
	const int32_t *zero;            /* NULL: all 0 */
	const int32_t *lo, *hi;         /* encode: range of the codes of each scale; NULL: that of `codes` */
	bool stream;                    /* the result is larger than the caches */
	void *q;                        /* contiguous codes */
	const struct ql_ragged *ragged; /* decode: codes from element `first` on; NULL: they are in `q` */
	int64_t first;
	const float *in;                    /* encode */
	const struct ql_stochastic *random; /* encode: rounding; NULL: to nearest */
	float *out;                         /* decode */
	int64_t origin;                     /* index of the value at `out`: 0, or of a part */
	int64_t piece, pieces;              /* elements per piece; pieces per row */
	const struct ql_codec_fit *fit;     /* encode: finds scales, zero points and shifts; NULL: they are known */
	_Atomic bool given_up;
	_Atomic int64_t nan, inf;
};

/* Consecutive elements with one scale, or with a scale per element (affine.each). */
struct ql_codec_run {
	struct ql_affine affine;
	int64_t code, plain, n; /* index of the first element in the codes and in the floats; number of elements */
	const float *in;        /* encode: the values */
	const float *shift;     /* one, or one per element with `each`; NULL: 0 */
	const int32_t *lo, *hi; /* with `each`: a range per element, within affine's; NULL: affine's */
};

/* True if codes are converted by kernels or a grid, whose runs may have a scale per element. */
bool ql_codec_has_kernel(const struct ql_codec *c);
/* Blocks that kernels divide rows into themselves, for affine.log_block: whole vectors. Packed codes go through buffers of whole
 * blocks. 0: the scales of blocks must be expanded to one per element. */
int ql_codec_log_block(const struct ql_codec *c);
void ql_codec_run(struct ql_codec *c, const struct ql_codec_run *r);

#endif
