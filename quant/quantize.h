/* SPDX-License-Identifier: MIT
 * Quantizing by a spec: statistics under each scale, the observer's range, the scheme's fit, one encoding.
 */
#ifndef QUOLL_QUANT_QUANTIZE_H
#define QUOLL_QUANT_QUANTIZE_H

#include "quant/spec.h"
#include "tensor/op.h"

/* gives x quantized: codes with params, same shape; a float dtype in the spec gives a plain cast. Errors: x already
 * quantized, an axis that x lacks, an explicit scale or zero point of the wrong shape or value. */
enum ql_status ql_quantize(struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out);
/* Codes under `spec` in the place of a call's float result; nothing without a spec or when it is codes already. */
enum ql_status ql_quantize_result(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec);
/* gives an empty tensor of `shape` with the spec's params; scales come from the spec's explicit numbers or, when x is
 * given, from x. */
enum ql_status ql_quantize_params(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	struct ql_tensor *x, struct ql_qparams **out);
/* Scale (as float32 rounded) and zero point for one range [lo, hi]: quant.params. */
enum ql_status ql_quantize_range(struct ql_ctx *ctx, const struct ql_spec *spec, double lo, double hi, float *scale,
	int32_t *zero);

/* gives scale and zero point (NULL: the scheme has none) of `n` ranges: rank 1, or rank 0 when the spec has no axis. */
enum ql_status ql_quantize_stats(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n, const struct ql_stats *stats,
	struct ql_tensor **scale, struct ql_tensor **zero);

/* Consistency of a quantized tensor: shapes of scale and zero_point, finite scales > 0 (0 only for an all-zero binary
 * tensor), zero points and codes inside their range. A plain tensor passes. */
enum ql_status ql_quantize_check(struct ql_ctx *ctx, struct ql_tensor *t);

/* Bytes that a tensor of `shape` takes under the spec: packed rows padded, scales and zero points counted; blocks of
 * at most 8 bits are assumed to have float16 scales. */
enum ql_status ql_quantize_bytes(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	uint64_t *bytes);

/* Registered with the context at start. */
extern const struct ql_quant ql_quant_default;
extern const struct ql_op *const ql_quant_ops[]; /* NULL-terminated */

#endif
