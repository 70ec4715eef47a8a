/* SPDX-License-Identifier: MIT
 * Strips in the place of all codes of a storage (tensor/closed.h).
 */
#ifndef QUOLL_TENSOR_GEMM_STRIP_STORE_H
#define QUOLL_TENSOR_GEMM_STRIP_STORE_H

#include "tensor/base.h"

struct ql_tensor;

/* Bytes of the strips of t (n, k). */
int64_t ql_strips_bytes(const struct ql_tensor *t);
/* Makes the strips of the contiguous t in `to`, aligned to 64 bytes, on all threads. */
enum ql_status ql_strips_pack(struct ql_ctx *ctx, const struct ql_tensor *t, uint8_t *to);

/* The strips that t's storage holds, if they are those of t; else NULL. While it is open its codes may be written. */
const uint8_t *ql_strips_stored(const struct ql_tensor *t);
/* Whether strips of t can take the place of its storage's codes. */
bool ql_strips_can_store(const struct ql_ctx *ctx, const struct ql_tensor *t);
/* Puts them there; *strips stays NULL without memory for them. */
enum ql_status ql_strips_store(struct ql_ctx *ctx, struct ql_tensor *t, const uint8_t **strips);

#endif
