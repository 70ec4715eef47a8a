/* SPDX-License-Identifier: MIT
 * Codes that no kernel stores: packed fields, and ranges per element. Kernels clamp to the widest range, then these
 * functions to the range of each element, which gives the same as one clamp to the latter.
 */
#include "tensor/codes.h"

#include <string.h>

#include "tensor/base.h"
#include "tensor/dtype.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

/* Pairs of 4 bits, as words of 16 bits: in the form that compilers turn into vectors. */
QL_SIMD(void, put_pairs, (uint8_t *restrict q, int64_t pairs, const uint8_t *restrict code), {
	for (int64_t i = 0; i < pairs; i++) {
		uint16_t both;

		memcpy(&both, code + 2 * i, 2);
		q[i] = (uint8_t)((both & 15) | (both >> 4 & 0xf0));
	}
})

/* flip: 8 for signed codes, whose sign bit then moves up by the subtraction; else 0 */
QL_SIMD(void, get_pairs, (const uint8_t *restrict q, int64_t pairs, int8_t *restrict code, int flip), {
	for (int64_t i = 0; i < pairs; i++) {
		int low = ((q[i] & 15) ^ flip) - flip;
		int high = ((q[i] >> 4) ^ flip) - flip;
		uint16_t both = (uint16_t)((low & 0xff) | high * 256);

		memcpy(code + 2 * i, &both, 2);
	}
})

/* Runs of `bits`, 2 * bits and 4 * bits low bits in lanes of 16, 32 and 64. */
#define RUNS_1(bits) (0x0001000100010001u * ((1u << (bits)) - 1))
#define RUNS_2(bits) (0x0000000100000001u * ((1u << 2 * (bits)) - 1))
#define RUNS_4(bits) (((uint64_t)1 << 4 * (bits)) - 1)

/* Eight fields of a byte each, the last one highest, to and from the low bits of a word: neighbours are joined or parted
 * three times. */
QL_INLINE uint64_t joined(uint64_t x, int bits)
{
	x = (x & RUNS_1(bits)) | (x >> 8 & RUNS_1(bits)) << bits;
	x = (x & RUNS_2(bits)) | (x >> 16 & RUNS_2(bits)) << 2 * bits;
	return (x & RUNS_4(bits)) | (x >> 32 & RUNS_4(bits)) << 4 * bits;
}

#define WORDS 8
typedef uint64_t words __attribute__((vector_size(8 * WORDS)));

/* Words and vectors of them. `extend` copies the sign bit of each field to the bits above it: 256 - 2^bits times it. */
#define FIELDS(type, part, extend) \
	QL_INLINE void part(type *x, int bits) \
	{ \
		*x = (*x & RUNS_4(bits)) | (*x >> 4 * bits & RUNS_4(bits)) << 32; \
		*x = (*x & RUNS_2(bits)) | (*x >> 2 * bits & RUNS_2(bits)) << 16; \
		*x = (*x & RUNS_1(bits)) | (*x >> bits & RUNS_1(bits)) << 8; \
	} \
	QL_INLINE void extend(type *x, int bits) \
	{ \
		type sign = *x >> (bits - 1) & 0x0101010101010101u; \
\
		*x |= (sign << 8) - (sign << bits); \
	}
FIELDS(uint64_t, part, extend)
FIELDS(words, part_words, extend_words)

/* Groups of eight elements, `bits` bytes each. */
QL_INLINE void put_groups(uint8_t *restrict q, int64_t groups, const uint8_t *restrict code, int bits)
{
	for (int64_t g = 0; g < groups; g++) {
		uint64_t x;

		memcpy(&x, code + 8 * g, 8);
		x = joined(x, bits);
		memcpy(q + bits * g, &x, (size_t)bits);
	}
}

QL_INLINE void get_group(const uint8_t *q, size_t bytes, uint8_t *code, int bits, bool is_signed)
{
	uint64_t x = 0;

	memcpy(&x, q, bytes);
	part(&x, bits);
	if (is_signed)
		extend(&x, bits);
	memcpy(code, &x, 8);
}

QL_INLINE void get_words(const uint8_t *q, uint8_t *code, int bits, bool is_signed)
{
	words x;

#pragma GCC unroll 8
	for (int i = 0; i < WORDS; i++) {
		uint64_t word;

		memcpy(&word, q + bits * i, 8);
		x[i] = word;
	}
	part_words(&x, bits);
	if (is_signed)
		extend_words(&x, bits);
	memcpy(code, &x, sizeof(x));
}

QL_INLINE void get_groups(const uint8_t *restrict q, int64_t groups, uint8_t *restrict code, int bits, bool is_signed)
{
	int64_t g = 0;

	/* whole words: the groups after these have the bytes */
	for (; g + WORDS + 3 <= groups; g += WORDS)
		get_words(q + bits * g, code + 8 * g, bits, is_signed);
	for (; g + 4 <= groups; g++)
		get_group(q + bits * g, 8, code + 8 * g, bits, is_signed);
	for (; g < groups; g++)
		get_group(q + bits * g, (size_t)bits, code + 8 * g, bits, is_signed);
}

static void put_some(unsigned dtype, void *q, int64_t at, int64_t n, const uint8_t *code)
{
	int64_t wide[8];

	for (int64_t i = 0; i < n; i++)
		wide[i] = code[i];
	ql_dtypes[dtype].from_i64(q, at, 1, n, wide);
}

static void get_some(unsigned dtype, const void *q, int64_t at, int64_t n, int8_t *code)
{
	int64_t wide[8];

	ql_dtypes[dtype].to_i64(q, at, 1, n, wide);
	for (int64_t i = 0; i < n; i++)
		code[i] = (int8_t)wide[i];
}

/* Elements before the first whole group. */
static int64_t head(int64_t at, int64_t n)
{
	return ql_min64(n, (8 - at % 8) % 8);
}

void ql_codes_put(unsigned dtype, void *restrict q, int64_t at, int64_t n, const uint8_t *restrict code)
{
	int64_t first = head(at, n), groups = (n - first) / 8, done = first + 8 * groups;
	uint8_t *to = (uint8_t *)q + (at + first) / 8 * ql_dtypes[dtype].bits;

	put_some(dtype, q, at, first, code);
	switch (ql_dtypes[dtype].bits) {
	case 2: put_groups(to, groups, code + first, 2); break;
	case 3: put_groups(to, groups, code + first, 3); break;
	case 4: put_pairs[ql_kernels_cpu()->simd->variant](to, 4 * groups, code + first); break;
	case 5: put_groups(to, groups, code + first, 5); break;
	case 6: put_groups(to, groups, code + first, 6); break;
	default: put_groups(to, groups, code + first, 7); break;
	}
	put_some(dtype, q, at + done, n - done, code + done);
}

#define CASE(b) \
	case b: \
		if (is_signed) \
			get_groups(q, groups, code, b, true); \
		else \
			get_groups(q, groups, code, b, false); \
		break;
QL_SIMD(void, get_all, (int bits, bool is_signed, const uint8_t *restrict q, int64_t groups, uint8_t *restrict code), {
	switch (bits) {
		CASE(2)
		CASE(3) CASE(5) CASE(6) CASE(7) default : break;
	}
})
#undef CASE

void ql_codes_get(unsigned dtype, const void *restrict q, int64_t at, int64_t n, int8_t *restrict code)
{
	const bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;
	const int variant = ql_kernels_cpu()->simd->variant;
	int64_t first = head(at, n), groups = (n - first) / 8, done = first + 8 * groups;
	const uint8_t *from = (const uint8_t *)q + (at + first) / 8 * ql_dtypes[dtype].bits;
	uint8_t *to = (uint8_t *)code + first;

	get_some(dtype, q, at, first, code);
	if (ql_dtypes[dtype].bits == 4)
		get_pairs[variant](from, 4 * groups, code + first, is_signed ? 8 : 0);
	else
		get_all[variant](ql_dtypes[dtype].bits, is_signed, from, groups, to);
	get_some(dtype, q, at + done, n - done, code + done);
}

#define NARROW(name, type) \
	static void narrow_##name(type *restrict q, int64_t n, const int32_t *restrict lo, const int32_t *restrict hi) \
	{ \
		for (int64_t i = 0; i < n; i++) \
			q[i] = (type)(q[i] < lo[i] ? lo[i] : q[i] > hi[i] ? hi[i] : q[i]); \
	}
NARROW(i8, int8_t)
NARROW(u8, uint8_t)
NARROW(i16, int16_t)
NARROW(u16, uint16_t)

void ql_codes_narrow(unsigned dtype, void *q, int64_t n, const int32_t *lo, const int32_t *hi)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	if (ql_dtypes[dtype].bits == 16 && is_signed)
		narrow_i16(q, n, lo, hi);
	else if (ql_dtypes[dtype].bits == 16)
		narrow_u16(q, n, lo, hi);
	else if (is_signed)
		narrow_i8(q, n, lo, hi);
	else
		narrow_u8(q, n, lo, hi);
}
