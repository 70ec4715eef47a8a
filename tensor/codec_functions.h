/* SPDX-License-Identifier: MIT
 * Codecs that are functions of the host program (in Lua: quant.scheme{encode=, decode=}). They convert matrices that have a
 * row for each scale: this file gathers the elements of the rows, calls the function, checks what it returns, and puts the
 * elements back. Everything runs on the interpreter's thread, outside of parallel loops, because the functions may do
 * anything, including quantizing by the same format.
 */
#ifndef QUOLL_TENSOR_CODEC_FUNCTIONS_H
#define QUOLL_TENSOR_CODEC_FUNCTIONS_H

#include "tensor/grain.h"

/* x is float32 (rows, n) and finite; scale float32 (rows, 1); codes int32 (rows, n). Each function gives a tensor that is not
 * checked yet. They are called with matrices of at least one element. */
struct ql_codec_functions {
	const char *name; /* of the format, for messages */
	const void *key;  /* identifies the functions to the host */
	float unit;       /* without `fit`: what the largest |x| is scaled to */
	/* One scale for each row, of shape (rows) or (rows, 1), or one number for one row. importance: the shape of x, or NULL.
	 * NULL: max|x| over `unit`. */
	enum ql_status (*fit)(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *x,
		struct ql_tensor *importance, struct ql_tensor **scale);
	enum ql_status (*encode)(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *x,
		struct ql_tensor *scale, struct ql_tensor **codes);
	enum ql_status (*decode)(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *codes,
		struct ql_tensor *scale, struct ql_tensor **x);
};

/* One conversion of a contiguous tensor. */
struct ql_codec_rows {
	const struct ql_codec_functions *functions;
	struct ql_grain g;
	unsigned dtype;     /* of the codes */
	int32_t lo, hi;     /* their range */
	const float *scale; /* g.scales of them */
};

/* NaN is passed as 0, infinity as the largest finite |x| of its row; both are counted. */
enum ql_status ql_codec_functions_encode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const float *x, void *codes, int64_t *nan, int64_t *inf);
enum ql_status ql_codec_functions_decode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const void *codes, float *out);
/* Gives a scale for each row. importance: one number for each of g->rows * g->row elements, or NULL. */
enum ql_status ql_codec_functions_fit(struct ql_ctx *ctx, const struct ql_codec_functions *f, const struct ql_grain *g,
	const float *x, const float *importance, double *scale);

#endif
