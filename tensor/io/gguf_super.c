/* SPDX-License-Identifier: MIT
 * Superblocks of 256 elements in GGUF files (Q2_K to Q6_K): codes of elements, codes of scales and minimums, float16 scales of
 * these. Layouts: block_* in ggml-common.h. Minimums are subtracted there and added here, hence the sign.
 */
#include <string.h>

#include "tensor/io/gguf.h"

#define N QL_GGUF_ELEMENTS
#define SIGN 0x8000u

static void put16(uint8_t *to, unsigned value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

static uint16_t negative(const uint8_t *at)
{
	return (uint16_t)(ql_le16(at) ^ SIGN);
}

/* ---- codes of elements: fields of 1, 2 and 4 bits ----
 * Element i has field (i / run) % fields of the byte i % run of its group of run * fields elements. */

static void get_fields(const uint8_t *in, int run, int bits, int shift, uint8_t *code)
{
	int fields = 8 / bits, mask = (1 << bits) - 1;

	for (int i = 0; i < N; i += run)
		for (int k = 0; k < run; k++) {
			int byte = in[i / (run * fields) * run + k];

			code[i + k] |= (uint8_t)((byte >> bits * (i / run % fields) & mask) << shift);
		}
}

static void put_fields(const uint8_t *code, int run, int bits, int shift, uint8_t *out)
{
	int fields = 8 / bits, mask = (1 << bits) - 1;

	memset(out, 0, (size_t)(N / fields));
	for (int i = 0; i < N; i += run)
		for (int k = 0; k < run; k++)
			out[i / (run * fields) * run + k] |=
				(uint8_t)((code[i + k] >> shift & mask) << bits * (i / run % fields));
}

static void add_to(uint8_t *code, int n, int value)
{
	for (int i = 0; i < n; i++)
		code[i] = (uint8_t)(code[i] + value);
}

/* ---- Q2_K: scales and minimums (16), codes (64), scale, minimum ---- */

void ql_gguf_unpack_q2_k(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	for (int i = 0; i < 16; i++) {
		s->scale_code[i] = block[i] & 15;
		s->shift_code[i] = block[i] >> 4;
	}
	memset(code, 0, N);
	get_fields(block + 16, 32, 2, 0, code);
	s->scale = ql_le16(block + 80);
	s->shift = negative(block + 82);
}

void ql_gguf_pack_q2_k(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	for (int i = 0; i < 16; i++)
		block[i] = (uint8_t)((s->scale_code[i] & 15) | s->shift_code[i] << 4);
	put_fields(code, 32, 2, 0, block + 16);
	put16(block + 80, s->scale);
	put16(block + 82, s->shift ^ SIGN);
}

/* ---- Q3_K: high bits (32), low bits (64), scales (12), scale ---- */

void ql_gguf_unpack_q3_k(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	const uint8_t *six = block + 96;

	memset(code, 0, N);
	get_fields(block, 32, 1, 2, code);
	get_fields(block + 32, 32, 2, 0, code);
	add_to(code, N, -4);
	for (int i = 0; i < 16; i++) {
		int low = six[i % 8] >> 4 * (i / 8) & 15, high = six[8 + i % 4] >> 2 * (i / 4) & 3;

		s->scale_code[i] = (uint8_t)((low | high << 4) - 32);
	}
	s->scale = ql_le16(block + 108);
}

void ql_gguf_pack_q3_k(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	uint8_t raised[N], *six = block + 96;

	memcpy(raised, code, N);
	add_to(raised, N, 4);
	put_fields(raised, 32, 1, 2, block);
	put_fields(raised, 32, 2, 0, block + 32);
	memset(six, 0, 12);
	for (int i = 0; i < 16; i++) {
		int value = (s->scale_code[i] + 32) & 63;

		six[i % 8] |= (uint8_t)((value & 15) << 4 * (i / 8));
		six[8 + i % 4] |= (uint8_t)(value >> 4 << 2 * (i / 4));
	}
	put16(block + 108, s->scale);
}

/* ---- Q4_K: scale, minimum, scales and minimums (12), codes (128); Q5_K: high bits (32) before the codes ---- */

static void get_sixths(const uint8_t *in, struct ql_gguf_scales *s)
{
	for (int i = 0; i < 4; i++) {
		s->scale_code[i] = in[i] & 63;
		s->shift_code[i] = in[i + 4] & 63;
		s->scale_code[i + 4] = (uint8_t)((in[i + 8] & 15) | in[i] >> 6 << 4);
		s->shift_code[i + 4] = (uint8_t)(in[i + 8] >> 4 | in[i + 4] >> 6 << 4);
	}
}

static void put_sixths(const struct ql_gguf_scales *s, uint8_t *out)
{
	for (int i = 0; i < 4; i++) {
		int scale = s->scale_code[i + 4] & 63, shift = s->shift_code[i + 4] & 63;

		out[i] = (uint8_t)((s->scale_code[i] & 63) | scale >> 4 << 6);
		out[i + 4] = (uint8_t)((s->shift_code[i] & 63) | shift >> 4 << 6);
		out[i + 8] = (uint8_t)((scale & 15) | (shift & 15) << 4);
	}
}

static void get_scales(const uint8_t *block, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	s->shift = negative(block + 2);
	get_sixths(block + 4, s);
}

static void put_scales(const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	put16(block + 2, s->shift ^ SIGN);
	put_sixths(s, block + 4);
}

void ql_gguf_unpack_q4_k(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	get_scales(block, s);
	memset(code, 0, N);
	get_fields(block + 16, 32, 4, 0, code);
}

void ql_gguf_pack_q4_k(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put_scales(s, block);
	put_fields(code, 32, 4, 0, block + 16);
}

void ql_gguf_unpack_q5_k(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	get_scales(block, s);
	memset(code, 0, N);
	get_fields(block + 16, 32, 1, 4, code);
	get_fields(block + 48, 32, 4, 0, code);
}

void ql_gguf_pack_q5_k(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put_scales(s, block);
	put_fields(code, 32, 1, 4, block + 16);
	put_fields(code, 32, 4, 0, block + 48);
}

/* ---- Q6_K: low bits (128), high bits (64), scales (16), scale ---- */

void ql_gguf_unpack_q6_k(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	memset(code, 0, N);
	get_fields(block, 64, 4, 0, code);
	get_fields(block + 128, 32, 2, 4, code);
	add_to(code, N, -32);
	memcpy(s->scale_code, block + 192, 16);
	s->scale = ql_le16(block + 208);
}

void ql_gguf_pack_q6_k(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	uint8_t raised[N];

	memcpy(raised, code, N);
	add_to(raised, N, 32);
	put_fields(raised, 64, 4, 0, block);
	put_fields(raised, 32, 2, 4, block + 128);
	memcpy(block + 192, s->scale_code, 16);
	put16(block + 208, s->scale);
}
