/* SPDX-License-Identifier: MIT
 * SHA-256 (FIPS 180-4, section 6.2), and internal.sha256 for the prelude.
 */
#include "interp/host/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/closed.h"

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7,
	0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c,
	0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void schedule(const uint8_t block[64], uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
}

static void take_block(struct ql_sha256 *h)
{
	uint32_t w[64], s[8];

	schedule(h->block, w);
	memcpy(s, h->state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t e = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
		uint32_t a = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
		uint32_t one = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		uint32_t two = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h->state[i] += s[i];
}

void ql_sha256_start(struct ql_sha256 *h)
{
	static const uint32_t first[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(h->state, first, sizeof(first));
	h->size = 0;
}

void ql_sha256_add(struct ql_sha256 *h, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	while (n > 0) {
		size_t at = h->size % 64, room = 64 - at, take = n < room ? n : room;

		memcpy(h->block + at, from, take);
		h->size += take;
		from += take;
		n -= take;
		if (take == room)
			take_block(h);
	}
}

void ql_sha256_end(struct ql_sha256 *h, uint8_t digest[QL_SHA256_BYTES])
{
	static const uint8_t one = 0x80, zero = 0;
	uint64_t bits = h->size * 8;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	ql_sha256_add(h, &one, 1);
	while (h->size % 64 != 56)
		ql_sha256_add(h, &zero, 1);
	ql_sha256_add(h, length, 8);
	for (int i = 0; i < QL_SHA256_BYTES; i++)
		digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- for the prelude ---- */

static int push_hex(lua_State *L, struct ql_sha256 *h)
{
	uint8_t digest[QL_SHA256_BYTES];
	char hex[2 * QL_SHA256_BYTES + 1];

	ql_sha256_end(h, digest);
	for (int i = 0; i < QL_SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	lua_pushstring(L, hex);
	return 1;
}

/* internal.sha256(text) -> 64 hexadecimal digits; of a tensor, contiguous, plain and of whole bytes, those of its
 * elements */
static int internal_sha256(lua_State *L)
{
	struct ql_tensor *host = ql_host_tensor(L, 1), **box = host ? luaL_testudata(L, 1, QL_TENSOR) : NULL;
	const void *bytes;
	struct ql_sha256 h;
	size_t n;

	if (box && *box && ql_tensor_is_contiguous(*box) && !(*box)->q && ql_dtypes[(*box)->dtype].bits >= 8) {
		enum ql_status status = ql_closed_open(ql_ctx_of(L), (*box)->storage);

		if (status)
			return ql_raise(L, status);
		ql_sha256_start(&h);
		ql_sha256_add(&h, ql_tensor_data(*box), (size_t)ql_tensor_nbytes(*box));
		ql_closed_close(ql_ctx_of(L), (*box)->storage);
		return push_hex(L, &h);
	}
	bytes = luaL_checklstring(L, 1, &n);
	ql_sha256_start(&h);
	ql_sha256_add(&h, bytes, n);
	return push_hex(L, &h);
}

/* internal.sha256_file(path) -> digits, or nil and why */
static int internal_sha256_file(lua_State *L)
{
	struct ql_sha256 h;
	uint8_t buffer[16384];
	FILE *f = fopen(luaL_checkstring(L, 1), "rbe");
	int problem = f ? 0 : errno;

	ql_sha256_start(&h);
	while (f && !ql_ctx_of(L)->interrupted) {
		size_t n = fread(buffer, 1, sizeof(buffer), f);

		ql_sha256_add(&h, buffer, n);
		if (n < sizeof(buffer))
			break;
	}
	if (f && ferror(f))
		problem = errno;
	if (f)
		fclose(f);
	if (ql_ctx_of(L)->interrupted)
		return luaL_error(L, "interrupted");
	if (!problem)
		return push_hex(L, &h);
	lua_pushnil(L);
	lua_pushstring(L, strerror(problem));
	return 2;
}

int ql_open_sha256(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"sha256", internal_sha256}, {"sha256_file", internal_sha256_file}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
