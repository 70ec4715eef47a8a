/* SPDX-License-Identifier: MIT
 * Scales, zero points and minimums of a spec from ranges.
 */
#ifndef QUOLL_QUANT_RANGES_SCALES_H
#define QUOLL_QUANT_RANGES_SCALES_H

#include "quant/spec.h"
#include "tensor/grain.h"

/* True if params under this spec have zero points. */
bool ql_scales_have_zeros(const struct ql_spec *spec);
/* True if blocks under this spec have float16 scales when the values allow it. */
bool ql_scales_may_be_half(const struct ql_spec *spec);
/* Makes the tensors scale (uninitialized) and, if the spec has them, zero_point and shift (zeros) of q for a tensor of
 * `shape`; `dtype` is that of scales and shifts. */
enum ql_status ql_scales_new(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	unsigned dtype, struct ql_qparams *q);
/* Stores element i, in row-major order, of a contiguous tensor whose packed rows are padded to whole bytes. */
void ql_scales_store(struct ql_tensor *t, int64_t i, double value);
/* Gives the spec of the format's scales; a plain float dtype if they are not quantized themselves. */
enum ql_status ql_scales_spec(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_spec *of);
/* Makes and fills scale, zero_point and shift of q, for a tensor of `shape`, from n ranges. */
enum ql_status ql_scales_fit_stats(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	int64_t n, const struct ql_stats *stats, struct ql_qparams *q);
/* The same from the contiguous float32 x, with the spec's observer. */
enum ql_status ql_scales_fit(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, struct ql_qparams *q);

/* Double quantization: replaces the float scales of q by 8-bit codes in blocks of `outer` around their mean, after
 * the codes of the tensor were made with the float scales (QLoRA, arXiv 2305.14314, section 3). */
enum ql_status ql_scales_code_outer(struct ql_ctx *ctx, int64_t outer, struct ql_qparams *q);

/* Gives the spec of scales under double quantization. */
enum ql_status ql_scales_outer_spec(struct ql_ctx *ctx, int64_t outer, struct ql_spec *of);

/* Bytes of the scales and minimums of the spec; `shape` is that of the scale tensor. Assumes float16 scales for blocks
 * of at most 8 bits. */
enum ql_status ql_scales_bytes(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, uint64_t *bytes);

/* The functions by which tensor/io reads, writes and checks formats in files. */
extern const struct ql_format_words ql_format_words;

#endif
