/* SPDX-License-Identifier: MIT
 * Decode rows with vectors of any length: whole vectors directly in memory, the rest through a padded copy. The
 * difference of code and zero point is exact in 32 bits and in float32; only the product rounds.
 *
 * The including file defines LANES, ALIGN (bytes of a vector), FLOATS, INTS (types),
 *   WIDEN_int8_t(p) and so on for the four types of codes -> INTS,
 *   LOADF LOADI SPREADF SPREADI TO_FLOAT SUB_I MUL STOREF STREAMF, SIGNED(bits, a, b): lanes of a where a bit is 1, else of b
 */
#ifndef QUOLL_TENSOR_DEQUANTIZE_SIMD_H
#define QUOLL_TENSOR_DEQUANTIZE_SIMD_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

/* Whose scale: the same for all elements, for each element, for each block. A constant wherever these are inlined. */
enum whose { ONE, EACH, BLOCKS };

QL_INLINE INTS zero_at(const struct ql_affine *p, int64_t i, const enum whose whose)
{
	if (!p->zero)
		return SPREADI(0);
	return whose == EACH ? LOADI(p->zero + i) : SPREADI(p->zero[whose == BLOCKS ? i >> p->log_block : 0]);
}

QL_INLINE FLOATS scale_at(const struct ql_affine *p, int64_t i, const enum whose whose)
{
	return whose == EACH ? LOADF(p->scale + i) : SPREADF(p->scale[whose == BLOCKS ? i >> p->log_block : 0]);
}

/* Scales and zero points of n < LANES elements starting at i, padded. */
QL_INLINE void rest_params(const struct ql_affine *p, int64_t i, int64_t n, float *scale, int32_t *zero)
{
	for (int64_t j = 0; j < LANES; j++) {
		int64_t at = p->each ? i + j : p->log_block ? (i + j) >> p->log_block : 0;

		scale[j] = j < n ? p->scale[at] : 0;
		zero[j] = j < n && p->zero ? p->zero[at] : 0;
	}
}

#define DECODE(name, type) \
	/* whole vectors from element i on; returns the next element */ \
	QL_INLINE int64_t name##_whole(const struct ql_affine *p, const type *q, int64_t i, int64_t n, float *out, \
		const enum whose whose, const bool stream) \
	{ \
		FLOATS scale = whose != ONE ? SPREADF(0) : scale_at(p, 0, ONE); \
		INTS zero = whose != ONE ? SPREADI(0) : zero_at(p, 0, ONE); \
\
		for (; i + LANES <= n; i += LANES) { \
			if (whose != ONE) { \
				scale = scale_at(p, i, whose); \
				zero = zero_at(p, i, whose); \
			} \
			if (stream) \
				STREAMF(out + i, MUL(TO_FLOAT(SUB_I(WIDEN_##type(q + i), zero)), scale)); \
			else \
				STOREF(out + i, MUL(TO_FLOAT(SUB_I(WIDEN_##type(q + i), zero)), scale)); \
		} \
		return i; \
	} \
	/* n < LANES elements starting at i */ \
	static void name##_rest(const struct ql_affine *p, const type *q, int64_t i, int64_t n, float *out) \
	{ \
		type codes[LANES] = {0}; \
		float scale[LANES], x[LANES]; \
		int32_t zero[LANES]; \
\
		memcpy(codes, q + i, (size_t)n * sizeof(type)); \
		rest_params(p, i, n, scale, zero); \
		STOREF(x, MUL(TO_FLOAT(SUB_I(WIDEN_##type(codes), LOADI(zero))), LOADF(scale))); \
		memcpy(out + i, x, (size_t)n * sizeof(*x)); \
	} \
	static void name(const struct ql_affine *p, const type *q, int64_t n, float *out) \
	{ \
		/* a block ends where a vector does only if the result is aligned */ \
		bool stream = p->stream && (!p->log_block || (uintptr_t)out % ALIGN == 0); \
		int64_t i = stream ? ql_min64(n, (int64_t)(-(uintptr_t)out % ALIGN) / 4) : 0; \
\
		if (i) \
			name##_rest(p, q, 0, i, out); \
		if (stream) { \
			i = p->log_block ? name##_whole(p, q, i, n, out, BLOCKS, true) \
			    : p->each    ? name##_whole(p, q, i, n, out, EACH, true) \
					 : name##_whole(p, q, i, n, out, ONE, true); \
			_mm_sfence(); \
		} else { \
			i = p->log_block ? name##_whole(p, q, i, n, out, BLOCKS, false) \
			    : p->each    ? name##_whole(p, q, i, n, out, EACH, false) \
					 : name##_whole(p, q, i, n, out, ONE, false); \
		} \
		if (i < n) \
			name##_rest(p, q, i, n - i, out); \
	}

DECODE(from_i8, int8_t)
DECODE(from_u8, uint8_t)
DECODE(from_i16, int16_t)
DECODE(from_u16, uint16_t)

static void from_signs(float scale, const uint8_t *q, int64_t n, float *out)
{
	FLOATS plus = SPREADF(scale), minus = SPREADF(-scale);
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		uint16_t bits = 0;

		memcpy(&bits, q + i / 8, LANES / 8);
		STOREF(out + i, SIGNED(bits, plus, minus));
	}
	for (; i < n; i++)
		out[i] = q[i / 8] >> i % 8 & 1 ? scale : -scale;
}

#endif
