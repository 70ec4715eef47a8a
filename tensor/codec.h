/* SPDX-License-Identifier: MIT
 * Conversion between codes and real values, for any scheme and granularity.
 */
#ifndef QUOLL_TENSOR_CODEC_H
#define QUOLL_TENSOR_CODEC_H

#include "tensor/grain.h"

/* Decodes the quantized t into *out, a new contiguous float32 tensor of the same shape. Errors: out of memory; those
 * of a format whose codec is a function of the host. */
enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Decodes one element of the quantized t; index has t->rank 0-based numbers. For printing a few elements of a large
 * tensor. */
enum ql_status ql_decode_element(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *index, float *value);
/* Encodes x (same shape as t, any dtype and strides) into the quantized t, with t's own params. *nan and *inf receive
 * the numbers of NaN and infinite values; both may be NULL. Errors as in ql_decode. All encoding goes through this
 * function or the next one. */
enum ql_status ql_encode(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf);

/* Consecutive runs of values, and where the numbers of their scales belong. */
struct ql_codec_runs {
	const float *x; /* `count` runs of n values each, one after the other */
	int64_t n, count;
	int64_t first; /* number of the first scale */
	float *scale, *shift;
	int32_t *zero;
};

/* Finds the scales of some consecutive runs of values: fills scale, and zero and shift where the tensor has them. Called
 * for runs of a tensor in any order, on any thread; false: the runs are not encoded, as nothing more of the tensor. */
struct ql_codec_fit {
	bool (*runs)(void *arg, const struct ql_codec_runs *runs);
	void *arg;
};

/* Whether ql_encode_fitted can convert a tensor of this granularity: each scale has one run of values, which fits in the
 * cache. */
bool ql_encode_fits(const struct ql_grain *g);
/* ql_encode for a contiguous float32 x and a new t, on the CPU, that finds the scales of each part just before it is
 * encoded, so that its values are read from memory once. */
enum ql_status ql_encode_fitted(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	const struct ql_codec_fit *fit, int64_t *nan, int64_t *inf);

/* The same with stochastic rounding (tensor/stochastic.h), which uses one random word of the context per element. */
enum ql_status ql_encode_stochastic(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf);

/* Decodes parts of the rows (along the last axis) of the quantized t, of rank 1 and more and in the host's memory, whose codec is no
 * function of the host; the bits are those of ql_decode. The decoder is in scratch memory, and uses t until it is closed; close it
 * after an error, too. Reading neither fails nor allocates: threads may read concurrently. n elements from `column` on may end in a later
 * row. Of signs, a read begins at a multiple of 8 elements. */
struct ql_decoder;
enum ql_status ql_decoder_open(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_decoder **out);
void ql_decoder_read(const struct ql_decoder *d, int64_t row, int64_t column, int64_t n, float *out);
void ql_decoder_close(struct ql_ctx *ctx, struct ql_decoder *d);

/* Sets codes->table to the scheme's table, in scratch memory; NULL if the scheme has none. */
enum ql_status ql_codes_table(struct ql_ctx *ctx, const struct ql_scheme *scheme, struct ql_codes *codes);

#endif
