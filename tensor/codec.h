/* SPDX-License-Identifier: MIT
 * Conversion between codes and real values, for any scheme and granularity.
 */
#ifndef QUOLL_TENSOR_CODEC_H
#define QUOLL_TENSOR_CODEC_H

#include "tensor/qparams.h"

/* Gives a contiguous float32 tensor with the decoded values of the quantized t. */
enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Decodes one element of the quantized t at a 0-based index: for printing a few elements of a large tensor. */
enum ql_status ql_decode_element(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *index, float *value);
/* Writes the float32 values x (same shape as t, any strides) into the quantized t as codes under t's own
 * params; the counts of NaN and Inf are added to *nan and *inf unless NULL. All encoding goes through this function. */
enum ql_status ql_encode(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf);

/* The same with stochastic rounding (tensor/stochastic.h), which takes as many random words as there are elements. */
enum ql_status ql_encode_stochastic(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf);

/* Sets codes->table, in scratch memory, for a scheme that has one, else NULL. */
enum ql_status ql_codes_table(struct ql_ctx *ctx, const struct ql_scheme *scheme, struct ql_codes *codes);

#endif
