/* SPDX-License-Identifier: MIT
 * HMAC after RFC 2104.
 */
#include "interp/jupyter/hmac.h"

#include <string.h>

#define QL_HMAC_BLOCK 64

void ql_hmac_start(struct ql_hmac *h, const void *key, size_t size)
{
	uint8_t block[QL_HMAC_BLOCK] = {0};

	ql_sha256_start(&h->inner);
	ql_sha256_start(&h->outer);
	if (size > sizeof(block)) {
		struct ql_sha256 s;

		ql_sha256_start(&s);
		ql_sha256_add(&s, key, size);
		ql_sha256_end(&s, block);
	} else if (size) {
		memcpy(block, key, size);
	}
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	ql_sha256_add(&h->inner, block, sizeof(block));
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	ql_sha256_add(&h->outer, block, sizeof(block));
}

void ql_hmac_add(struct ql_hmac *h, const void *data, size_t size)
{
	ql_sha256_add(&h->inner, data, size);
}

void ql_hmac_end(struct ql_hmac *h, uint8_t digest[QL_SHA256_BYTES])
{
	ql_sha256_end(&h->inner, digest);
	ql_sha256_add(&h->outer, digest, QL_SHA256_BYTES);
	ql_sha256_end(&h->outer, digest);
}

void ql_hmac_hex(const uint8_t digest[QL_SHA256_BYTES], char out[QL_HMAC_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < QL_SHA256_BYTES; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
}

bool ql_hmac_equal(const void *a, const void *b, size_t size)
{
	const volatile uint8_t *p = a, *q = b;
	uint8_t different = 0;

	for (size_t i = 0; i < size; i++)
		different |= p[i] ^ q[i];
	return different == 0;
}
