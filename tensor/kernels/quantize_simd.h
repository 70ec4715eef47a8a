/* SPDX-License-Identifier: MIT
 * Encode rows with vectors of any length: whole blocks directly in memory, the rest through a padded copy. The
 * quotient is clamped, then rounded half to even by the conversion (the bounds are integers, so the order does not
 * matter); a NaN quotient becomes the zero point. With DIV_BY values that have the scale in common are multiplied by its inverse.
 *
 * The including file defines LANES, BLOCK (elements, 4 vectors), ALIGN (bytes of a vector), FLOATS, INTS (types)
 * and LOADF LOADI SPREADF SPREADI TO_FLOAT SUB_I ADD_I SUB_F OR_F DIV, perhaps DIV_BY(a, b, 1 / b), ZERO_F ANY(f) CONVERT(v, lo, hi) -> INTS, 0
 * for NaN PACK_8(i0, i1, i2, i3), PACK_16(i0, i1) -> INTS, STORE(p, v), STREAM(p, v), for ranges also MIN MAX (the second
 * operand if one is NaN) ADD_F STOREF and JOIN_MIN(v), JOIN_MAX(v): the extremes of each of LANES vectors, and NEGATIVE(v):
 * a bit per element
 */
#ifndef QUOLL_TENSOR_QUANTIZE_SIMD_H
#define QUOLL_TENSOR_QUANTIZE_SIMD_H

#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

struct range {
	FLOATS scale, lo, hi;
	FLOATS inverse; /* of the scale, if `inverts` */
	INTS zero;
	bool inverts;
};

#ifndef DIV_BY
#define DIV_BY(a, b, inverse) DIV(a, b)
#endif
#define MODERATE 0x1p60f /* scales whose inverse and remainders are normal numbers */
#define FAR (1 << 21)    /* bounds below what DIV_BY is exact for */

/* Whose scale: the same for all elements, for each element, for each block. A constant wherever these are inlined. */
enum whose { ONE, EACH, BLOCKS };

QL_INLINE struct range range_at(const struct ql_affine *p, int64_t i, const enum whose whose)
{
	int64_t at = whose == BLOCKS ? i >> p->log_block : 0;
	struct range r;

	r.scale = whose == EACH ? LOADF(p->scale + i) : SPREADF(p->scale[at]);
	if (!p->zero)
		r.zero = SPREADI(0);
	else
		r.zero = whose == EACH ? LOADI(p->zero + i) : SPREADI(p->zero[at]);
	r.lo = TO_FLOAT(SUB_I(SPREADI(p->lo), r.zero));
	r.hi = TO_FLOAT(SUB_I(SPREADI(p->hi), r.zero));
	r.inverts = false;
	if (whose != EACH) {
		float size = fabsf(p->scale[at]);
		int32_t zero = p->zero ? p->zero[at] : 0;

		r.inverse = SPREADF(1 / p->scale[at]);
		r.inverts = size > 1 / MODERATE && size < MODERATE && zero > -FAR && zero < FAR;
	}
	return r;
}

/* One block. x - x is nonzero where x is not finite; *bad collects it. */
QL_INLINE void block(const struct ql_affine *p, struct range r, const float *x, int64_t i, void *out,
	const enum whose whose, const int bytes, const bool stream, FLOATS *bad)
{
	INTS code[4];

#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		FLOATS v = LOADF(x + j * LANES);

		if (p->ahead)
			__builtin_prefetch(x + j * LANES + p->ahead);
		if (whose != ONE)
			r = range_at(p, i + j * LANES, whose);
		*bad = OR_F(*bad, SUB_F(v, v));
		v = whose != EACH && r.inverts ? DIV_BY(v, r.scale, r.inverse) : DIV(v, r.scale);
		code[j] = ADD_I(r.zero, CONVERT(v, r.lo, r.hi));
	}
	if (bytes == 1 && stream)
		STREAM(out, PACK_8(code[0], code[1], code[2], code[3]));
	else if (bytes == 1)
		STORE(out, PACK_8(code[0], code[1], code[2], code[3]));
	else if (stream) {
		STREAM(out, PACK_16(code[0], code[1]));
		STREAM((char *)out + ALIGN, PACK_16(code[2], code[3]));
	} else {
		STORE(out, PACK_16(code[0], code[1]));
		STORE((char *)out + ALIGN, PACK_16(code[2], code[3]));
	}
}

/* n < BLOCK elements starting at i */
QL_INLINE void rest(const struct ql_affine *p, struct range r, const float *x, int64_t i, int64_t n, char *out,
	const enum whose whose, const int bytes, FLOATS *bad)
{
	float in[BLOCK] = {0}, scale[BLOCK];
	int32_t zero[BLOCK] = {0};
	char codes[2 * BLOCK];
	struct ql_affine padded = *p;

	padded.ahead = 0;
	memcpy(in, x, (size_t)n * sizeof(*in));
	for (int64_t j = 0; j < BLOCK && whose != ONE; j++) {
		int64_t at = whose == EACH ? i + j : (i + j) >> p->log_block;

		scale[j] = j < n ? p->scale[at] : 1;
		zero[j] = j < n && p->zero ? p->zero[at] : 0;
	}
	if (whose != ONE) {
		padded.scale = scale;
		padded.zero = zero;
	}
	block(&padded, r, in, 0, codes, whose == ONE ? ONE : EACH, bytes, false, bad);
	memcpy(out, codes, (size_t)(n * bytes));
}

QL_INLINE bool run(
	const struct ql_affine *p, const float *x, int64_t n, void *to, const enum whose whose, const int bytes)
{
	struct range r = whose != ONE ? (struct range){0} : range_at(p, 0, ONE);
	FLOATS bad = ZERO_F();
	int64_t i = 0, head;
	char *out = to;

	if (p->stream && (uintptr_t)out % (uintptr_t)bytes == 0 && (whose != BLOCKS || (uintptr_t)out % ALIGN == 0)) {
		head = ql_min64(n, (int64_t)(-(uintptr_t)out % ALIGN) / bytes);
		if (head)
			rest(p, r, x, 0, head, out, whose, bytes, &bad);
		for (i = head; i + BLOCK <= n; i += BLOCK)
			block(p, r, x + i, i, out + i * bytes, whose, bytes, true, &bad);
		_mm_sfence();
	}
	for (; i + BLOCK <= n; i += BLOCK)
		block(p, r, x + i, i, out + i * bytes, whose, bytes, false, &bad);
	if (i < n)
		rest(p, r, x + i, i, n - i, out + i * bytes, whose, bytes, &bad);
	return ANY(bad);
}

static bool to_8(const struct ql_affine *p, const float *x, int64_t n, uint8_t *out)
{
	if (p->log_block)
		return run(p, x, n, out, BLOCKS, 1);
	return p->each ? run(p, x, n, out, EACH, 1) : run(p, x, n, out, ONE, 1);
}

static bool to_16(const struct ql_affine *p, const float *x, int64_t n, uint16_t *out)
{
	if (p->log_block)
		return run(p, x, n, out, BLOCKS, 2);
	return p->each ? run(p, x, n, out, EACH, 2) : run(p, x, n, out, ONE, 2);
}

/* ---- ranges ---- */

/* Extremes in lanes; NaN is left out, infinities are not. */
QL_INLINE void lanes_of(const float *x, int64_t n, FLOATS *lo, FLOATS *hi)
{
	FLOATS low = SPREADF(INFINITY), high = SPREADF(-INFINITY), v;
	float padded[LANES];
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		v = LOADF(x + i);
		low = MIN(v, low);
		high = MAX(v, high);
	}
	if (i < n) {
		for (int64_t j = 0; j < LANES; j++)
			padded[j] = i + j < n ? x[i + j] : NAN;
		v = LOADF(padded);
		low = MIN(v, low);
		high = MAX(v, high);
	}
	*lo = low;
	*hi = high;
}

/* One run with infinite values, or without finite ones. */
static void finite_range(const float *x, int64_t n, float *lo, float *hi)
{
	float low = INFINITY, high = -INFINITY;

	for (int64_t i = 0; i < n; i++)
		if (x[i] - x[i] == 0) {
			low = x[i] < low ? x[i] : low;
			high = x[i] > high ? x[i] : high;
		}
	*lo = low + 0.0f;
	*hi = high + 0.0f;
}

/* LANES runs of a constant length: their vectors of extremes are transposed and joined at once. */
QL_INLINE void ranges_of(const float *x, const int64_t n, float *lo, float *hi)
{
	FLOATS low[LANES], high[LANES], least, most;

#pragma GCC unroll 16
	for (int j = 0; j < LANES; j++)
		lanes_of(x + j * n, n, &low[j], &high[j]);
	least = ADD_F(JOIN_MIN(low), ZERO_F());
	most = ADD_F(JOIN_MAX(high), ZERO_F());
	STOREF(lo, least);
	STOREF(hi, most);
	if (ANY(OR_F(SUB_F(least, least), SUB_F(most, most))))
		for (int j = 0; j < LANES; j++)
			finite_range(x + j * n, n, &lo[j], &hi[j]);
}

/* The same, four vectors at a time: one after the other they wait for each other. */
QL_INLINE void lanes_of_long(const float *x, int64_t n, FLOATS *lo, FLOATS *hi)
{
	FLOATS low[4], high[4];
	int64_t i = 0;

	for (int j = 0; j < 4; j++) {
		low[j] = SPREADF(INFINITY);
		high[j] = SPREADF(-INFINITY);
	}
	for (; i + BLOCK <= n; i += BLOCK)
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++) {
			FLOATS v = LOADF(x + i + j * LANES);

			low[j] = MIN(v, low[j]);
			high[j] = MAX(v, high[j]);
		}
	lanes_of(x + i, n - i, lo, hi);
	for (int j = 0; j < 4; j++) {
		*lo = MIN(low[j], *lo);
		*hi = MAX(high[j], *hi);
	}
}

static void range_of_one(const float *x, int64_t n, float *lo, float *hi)
{
	float least[LANES], most[LANES];
	FLOATS low, high;

	lanes_of_long(x, n, &low, &high);
	STOREF(least, low);
	STOREF(most, high);
	*lo = INFINITY;
	*hi = -INFINITY;
	for (int l = 0; l < LANES; l++) {
		*lo = least[l] < *lo ? least[l] : *lo;
		*hi = most[l] > *hi ? most[l] : *hi;
	}
	*lo += 0.0f;
	*hi += 0.0f;
	if (*lo - *lo != 0 || *hi - *hi != 0)
		finite_range(x, n, lo, hi);
}

static void ranges(const float *x, int64_t n, int64_t blocks, float *lo, float *hi)
{
	int64_t b = 0;

	for (; b + LANES <= blocks && (n == 32 || n == 64 || n == 128); b += LANES)
		if (n == 32)
			ranges_of(x + b * n, 32, lo + b, hi + b);
		else if (n == 64)
			ranges_of(x + b * n, 64, lo + b, hi + b);
		else
			ranges_of(x + b * n, 128, lo + b, hi + b);
	for (; b < blocks; b++)
		range_of_one(x + b * n, n, &lo[b], &hi[b]);
}

static void to_signs(const float *x, int64_t n, uint8_t *out)
{
	float padded[LANES] = {0};
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		uint32_t bits = ~(uint32_t)NEGATIVE(LOADF(x + i));

		memcpy(out + i / 8, &bits, LANES / 8);
	}
	if (i < n) {
		uint32_t bits;

		memcpy(padded, x + i, (size_t)(n - i) * sizeof(*x));
		bits = ~(uint32_t)NEGATIVE(LOADF(padded)) & ((1u << (n - i)) - 1);
		memcpy(out + i / 8, &bits, (size_t)(n - i + 7) / 8);
	}
}

#endif
