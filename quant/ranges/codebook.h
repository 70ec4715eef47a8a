/* SPDX-License-Identifier: MIT
 * Codebooks: the values of codes, learned from one tensor.
 */
#ifndef QUOLL_QUANT_CODEBOOK_H
#define QUOLL_QUANT_CODEBOOK_H

#include "quant/spec.h"

/* If the format learns, gives q, whose scales are set, the codebook of least squared error of x, contiguous float32, times
 * spec->importance of the column where given. Values beyond a scale count as its end, NaN and infinity not at all; without
 * x, and for zeros, it has the values of the format. The same bits for every number of threads. Errors: importance that
 * does not fit. */
enum ql_status ql_codebook_learn(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_qparams *q);
/* Bytes of the codebook; 0 without one. */
uint64_t ql_codebook_bytes(const struct ql_spec *spec);

#endif
