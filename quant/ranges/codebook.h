/* SPDX-License-Identifier: MIT
 * Codebooks: values of codes that are learned from one tensor.
 */
#ifndef QUOLL_QUANT_CODEBOOK_H
#define QUOLL_QUANT_CODEBOOK_H

#include "quant/spec.h"

/* If the format learns its values, sets the codebook of q, whose scales are set, to the values of least squared error
 * for the contiguous float32 x, weighted by spec->importance of the columns if given. x / scale is clamped to -1..1;
 * NaN and infinity are ignored. If x is NULL or all zeros, the codebook has the format's values. Bit-identical for
 * every number of threads. Errors: those of ql_importance. */
enum ql_status ql_codebook_learn(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_qparams *q);
/* Bytes of the codebook; 0 without one. */
uint64_t ql_codebook_bytes(const struct ql_spec *spec);

#endif
