/* SPDX-License-Identifier: MIT
 * Quantizing by a spec: statistics per scale, the observer's range, the scheme's fit, encoding.
 */
#ifndef QUOLL_QUANT_RANGES_QUANTIZE_H
#define QUOLL_QUANT_RANGES_QUANTIZE_H

#include "quant/spec.h"
#include "tensor/op.h"

/* Gives x quantized: codes with params, same shape; a float dtype in the spec gives a plain cast. Errors: x already
 * quantized, an axis out of range, an explicit scale or zero point of the wrong shape or value. */
enum ql_status ql_quantize(struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out);
/* Gives the params of a tensor of `shape` under the spec without scale, zero_point and shift. */
enum ql_status ql_quantize_layout(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams **out);
/* The same if the codes may wait to be encoded (tensor/encode_later.h); *out is NULL if not. */
enum ql_status ql_quantize_later(
	struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out);
/* The function `result` of struct ql_quant (tensor/op.h). */
enum ql_status ql_quantize_on(struct ql_ctx *ctx, const struct ql_spec *spec, unsigned from, struct ql_tensor *x,
	int rank, const int64_t *shape, const struct ql_device *device, struct ql_tensor **out, enum ql_fit_rule *fit);
/* Replaces a call's float result with codes under `spec`. Does nothing without a spec or when the result is
 * quantized. */
enum ql_status ql_quantize_result(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec);
/* Gives the params of a tensor of `shape` under the spec. Scales are the spec's explicit ones, or fitted to x; if x
 * is NULL they are those of a tensor of zeros. */
enum ql_status ql_quantize_params(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	struct ql_tensor *x, struct ql_qparams **out);
/* The scale (rounded to float32) and zero point of one range [lo, hi]: quant.params. */
enum ql_status ql_quantize_range(
	struct ql_ctx *ctx, const struct ql_spec *spec, double lo, double hi, float *scale, int32_t *zero);

/* Gives scale and zero point (NULL: the scheme has none) of `n` ranges: rank 1, or rank 0 when the spec has no axis. */
enum ql_status ql_quantize_stats(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n,
	const struct ql_stats *stats, struct ql_tensor **scale, struct ql_tensor **zero);

/* Checks a quantized tensor: shapes of scale, zero_point and shift; finite scales > 0 (or >= 0, or of either sign, if
 * scheme and format allow); zero points and codes in range. A plain tensor passes. */
enum ql_status ql_quantize_check(struct ql_ctx *ctx, struct ql_tensor *t);

/* Bytes of a tensor of `shape` under the spec, with row padding, scales and zero points; assumes float16 scales for
 * blocks of at most 8 bits. */
enum ql_status ql_quantize_bytes(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, uint64_t *bytes);

/* The functions that the program registers with the context. */
extern const struct ql_quant ql_quant_default;
extern const struct ql_op *const ql_quant_ops[]; /* NULL-terminated */

#endif
