/* SPDX-License-Identifier: MIT
 * SHA-256: names things by their contents.
 */
#ifndef QUOLL_INTERP_HOST_SHA256_H
#define QUOLL_INTERP_HOST_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define QL_SHA256_BYTES 32

struct ql_sha256 {
	uint32_t state[8];
	uint64_t size; /* bytes so far */
	uint8_t block[64];
};

void ql_sha256_start(struct ql_sha256 *h);
void ql_sha256_add(struct ql_sha256 *h, const void *bytes, size_t n);
void ql_sha256_end(struct ql_sha256 *h, uint8_t digest[QL_SHA256_BYTES]);

#endif
