/* SPDX-License-Identifier: MIT
 * Blocks of 32 elements in GGUF files, and those of ternary codes: unpacking into codes and scales, and packing, which
 * restores every bit that another program wrote. Layouts: block_* in ggml-common.h.
 */
#include <string.h>

#include "tensor/io/gguf.h"

#define HALF 16 /* codes i and i + HALF share a byte */

static void put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

/* Codes of 4 bits less `less`. */
static void unpack_nibbles(const uint8_t *in, int less, uint8_t *code)
{
	for (int i = 0; i < HALF; i++) {
		code[i] = (uint8_t)((in[i] & 15) - less);
		code[i + HALF] = (uint8_t)((in[i] >> 4) - less);
	}
}

static void pack_nibbles(const uint8_t *code, int more, uint8_t *out)
{
	for (int i = 0; i < HALF; i++)
		out[i] = (uint8_t)(((code[i] + more) & 15) | ((code[i + HALF] + more) & 15) << 4);
}

/* Codes of 5 bits; the highest bit of each is in a word. */
static void unpack_fifths(const uint8_t *word, const uint8_t *in, int less, uint8_t *code)
{
	uint32_t high = ql_le32(word);

	for (int i = 0; i < HALF; i++) {
		code[i] = (uint8_t)(((in[i] & 15) | (high >> i & 1) << 4) - (uint32_t)less);
		code[i + HALF] = (uint8_t)(((in[i] >> 4) | (high >> (i + HALF) & 1) << 4) - (uint32_t)less);
	}
}

static void pack_fifths(const uint8_t *code, int more, uint8_t *word, uint8_t *out)
{
	uint32_t high = 0;

	for (int i = 0; i < 2 * HALF; i++)
		high |= (uint32_t)((code[i] + more) >> 4 & 1) << i;
	put16(word, (uint16_t)high);
	put16(word + 2, (uint16_t)(high >> 16));
	pack_nibbles(code, more, out);
}

void ql_gguf_unpack_q4_0(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	unpack_nibbles(block + 2, 8, code);
}

void ql_gguf_pack_q4_0(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	pack_nibbles(code, 8, block + 2);
}

void ql_gguf_unpack_q4_1(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	s->shift = ql_le16(block + 2);
	unpack_nibbles(block + 4, 0, code);
}

void ql_gguf_pack_q4_1(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	put16(block + 2, s->shift);
	pack_nibbles(code, 0, block + 4);
}

void ql_gguf_unpack_q5_0(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	unpack_fifths(block + 2, block + 6, 16, code);
}

void ql_gguf_pack_q5_0(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	pack_fifths(code, 16, block + 2, block + 6);
}

void ql_gguf_unpack_q5_1(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	s->shift = ql_le16(block + 2);
	unpack_fifths(block + 4, block + 8, 0, code);
}

void ql_gguf_pack_q5_1(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	put16(block + 2, s->shift);
	pack_fifths(code, 0, block + 4, block + 8);
}

void ql_gguf_unpack_q8_0(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	memcpy(code, block + 2, 32);
}

void ql_gguf_pack_q8_0(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	memcpy(block + 2, code, 32);
}

void ql_gguf_unpack_iq4_nl(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block);
	unpack_nibbles(block + 2, 0, code);
}

void ql_gguf_pack_iq4_nl(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block, s->scale);
	pack_nibbles(code, 0, block + 2);
}

void ql_gguf_unpack_mxfp4(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = block[0];
	unpack_nibbles(block + 1, 0, code);
}

void ql_gguf_pack_mxfp4(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	block[0] = (uint8_t)s->scale;
	pack_nibbles(code, 0, block + 1);
}

/* ---- ternary codes ---- */

/* Digit `k` of a byte, a fraction of 256 in the base 3, less 1. */
static uint8_t digit(uint8_t byte, int k)
{
	static const uint8_t power[5] = {1, 3, 9, 27, 81};
	uint8_t rest = (uint8_t)(byte * power[k]);

	return (uint8_t)((rest * 3 >> 8) - 1);
}

/* The byte of n digits, `step` codes apart, and 5 - n zeros. */
static uint8_t digits(const uint8_t *code, int step, int n)
{
	int value = 0;

	for (int k = 0; k < 5; k++)
		value = value * 3 + (k < n ? (uint8_t)(code[k * step] + 1) : 0);
	return (uint8_t)((value * 256 + 242) / 243);
}

/* Runs of bytes: bytes and digits of each. */
static const struct run {
	uint8_t bytes, digits;
} runs[] = {{32, 5}, {16, 5}, {4, 4}};

void ql_gguf_unpack_tq1_0(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block + 52);
	for (int r = 0; r < 3; r++) {
		for (int k = 0; k < runs[r].digits; k++)
			for (int i = 0; i < runs[r].bytes; i++)
				code[k * runs[r].bytes + i] = digit(block[i], k);
		code += runs[r].digits * runs[r].bytes;
		block += runs[r].bytes;
	}
}

void ql_gguf_pack_tq1_0(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	put16(block + 52, s->scale);
	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < runs[r].bytes; i++)
			block[i] = digits(code + i, runs[r].bytes, runs[r].digits);
		code += runs[r].digits * runs[r].bytes;
		block += runs[r].bytes;
	}
}

/* A code of 3 becomes -2, which ql_note_check_codes refuses. */
void ql_gguf_unpack_tq2_0(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s)
{
	s->scale = ql_le16(block + 64);
	for (int i = 0; i < QL_GGUF_ELEMENTS; i++)
		code[i] = (uint8_t)((block[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3) - 1);
}

void ql_gguf_pack_tq2_0(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block)
{
	memset(block, 0, 64);
	put16(block + 64, s->scale);
	for (int i = 0; i < QL_GGUF_ELEMENTS; i++)
		block[i / 128 * 32 + i % 32] |= (uint8_t)(((code[i] + 1) & 3) << 2 * (i / 32 % 4));
}
