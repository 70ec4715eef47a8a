/* SPDX-License-Identifier: MIT
 * HMAC-SHA256, which signs the messages between a front end and the kernel.
 */
#ifndef QUOLL_INTERP_JUPYTER_HMAC_H
#define QUOLL_INTERP_JUPYTER_HMAC_H

#include <stdbool.h>

#include "interp/host/sha256.h"

#define QL_HMAC_HEX (2 * QL_SHA256_BYTES)

struct ql_hmac {
	struct ql_sha256 inner, outer;
};

/* A key of any length. */
void ql_hmac_start(struct ql_hmac *h, const void *key, size_t size);
void ql_hmac_add(struct ql_hmac *h, const void *data, size_t size);
void ql_hmac_end(struct ql_hmac *h, uint8_t digest[QL_SHA256_BYTES]);

/* Lower-case digits; no 0 at the end. */
void ql_hmac_hex(const uint8_t digest[QL_SHA256_BYTES], char out[QL_HMAC_HEX]);
/* Takes the same time wherever the bytes differ. */
bool ql_hmac_equal(const void *a, const void *b, size_t size);

#endif
