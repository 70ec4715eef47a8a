/* SPDX-License-Identifier: MIT
 * Codecs that are functions of the host program (in Lua: quant.scheme{encode=, decode=}). They convert matrices with
 * one row per scale: this file gathers the elements of each scale into a row, calls the function, checks its result,
 * and scatters the elements. Everything runs on the interpreter's thread, outside of parallel loops, because the
 * functions may run any code, including quantizing with the same format.
 */
#ifndef QUOLL_TENSOR_CODEC_FUNCTIONS_H
#define QUOLL_TENSOR_CODEC_FUNCTIONS_H

#include "tensor/grain.h"

/* x: float32 (rows, n), finite. scale: float32 (rows, 1). codes: int32 (rows, n). The functions return tensors that
 * have not been checked. They are never called with an empty matrix. */
struct ql_codec_functions {
	const char *name; /* of the format, for messages */
	const void *key;  /* identifies the functions to the host */
	float unit;       /* without `fit`: the value that the largest |x| is scaled to */
	/* Finds one scale per row: (rows), (rows, 1), or a number if there is one row. importance: same shape as x,
	 * or NULL. fit is NULL if the scale is max|x| / unit. */
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
	const float *scale; /* g.scales numbers */
};

/* Encodes g.rows * g.row values, or decodes as many codes. The function gets 0 for NaN and, for infinity, the largest
 * finite |x| of the row with the same sign; *nan and *inf are increased by their numbers. Errors: those of the
 * function; a result of another shape, or quantized; codes that are not integers in lo..hi. */
enum ql_status ql_codec_functions_encode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const float *x, void *codes, int64_t *nan, int64_t *inf);
enum ql_status ql_codec_functions_decode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const void *codes, float *out);
/* Finds g->scales scales with f->fit. x and importance have g->rows * g->row elements; importance may be NULL. The
 * scales of an empty tensor are 1. Errors: those of the function; a result of another shape; scales that are not
 * finite float32. */
enum ql_status ql_codec_functions_fit(struct ql_ctx *ctx, const struct ql_codec_functions *f, const struct ql_grain *g,
	const float *x, const float *importance, double *scale);

#endif
