/* SPDX-License-Identifier: MIT
 * Encode rows with vectors of any length: whole blocks directly in memory, the rest through a padded copy. The
 * quotient is clamped, then rounded half to even by the conversion (the bounds are integers, so the order does not
 * matter); a NaN quotient becomes the zero point.
 *
 * The including file defines LANES, BLOCK (elements, 4 vectors), ALIGN (bytes of a vector), FLOATS, INTS (types)
 * and LOADF LOADI SPREADF SPREADI TO_FLOAT SUB_I ADD_I SUB_F OR_F DIV ZERO_F ANY(f) CONVERT(v, lo, hi) -> INTS, 0
 * for NaN PACK_8(i0, i1, i2, i3), PACK_16(i0, i1) -> INTS, STORE(p, v), STREAM(p, v)
 */
#ifndef QUOLL_TENSOR_QUANTIZE_SIMD_H
#define QUOLL_TENSOR_QUANTIZE_SIMD_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

struct range {
	FLOATS scale, lo, hi;
	INTS zero;
};

/* `each` is a constant wherever these are inlined */
QL_INLINE struct range range_at(const struct ql_affine *p, int64_t i, const bool each)
{
	struct range r;

	r.scale = each ? LOADF(p->scale + i) : SPREADF(*p->scale);
	if (!p->zero)
		r.zero = SPREADI(0);
	else
		r.zero = each ? LOADI(p->zero + i) : SPREADI(*p->zero);
	r.lo = TO_FLOAT(SUB_I(SPREADI(p->lo), r.zero));
	r.hi = TO_FLOAT(SUB_I(SPREADI(p->hi), r.zero));
	return r;
}

/* One block. x - x is nonzero where x is not finite; *bad collects it. */
QL_INLINE void block(const struct ql_affine *p, struct range r, const float *x, int64_t i, void *out, const bool each,
	const int bytes, const bool stream, FLOATS *bad)
{
	INTS code[4];

#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		FLOATS v = LOADF(x + j * LANES);

		if (each)
			r = range_at(p, i + j * LANES, true);
		*bad = OR_F(*bad, SUB_F(v, v));
		code[j] = ADD_I(r.zero, CONVERT(DIV(v, r.scale), r.lo, r.hi));
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
	const bool each, const int bytes, FLOATS *bad)
{
	float in[BLOCK] = {0}, scale[BLOCK];
	int32_t zero[BLOCK] = {0};
	char codes[2 * BLOCK];
	struct ql_affine padded = *p;

	memcpy(in, x, (size_t)n * sizeof(*in));
	if (each) {
		for (int64_t j = 0; j < BLOCK; j++)
			scale[j] = j < n ? p->scale[i + j] : 1;
		if (p->zero)
			memcpy(zero, p->zero + i, (size_t)n * sizeof(*zero));
		padded.scale = scale;
		padded.zero = zero;
	}
	block(&padded, r, in, 0, codes, each, bytes, false, bad);
	memcpy(out, codes, (size_t)(n * bytes));
}

QL_INLINE bool run(const struct ql_affine *p, const float *x, int64_t n, void *to, const bool each, const int bytes)
{
	struct range r = each ? (struct range){0} : range_at(p, 0, false);
	FLOATS bad = ZERO_F();
	int64_t i = 0, head;
	char *out = to;

	if (p->stream && (uintptr_t)out % (uintptr_t)bytes == 0) {
		head = ql_min64(n, (int64_t)(-(uintptr_t)out % ALIGN) / bytes);
		if (head)
			rest(p, r, x, 0, head, out, each, bytes, &bad);
		for (i = head; i + BLOCK <= n; i += BLOCK)
			block(p, r, x + i, i, out + i * bytes, each, bytes, true, &bad);
		_mm_sfence();
	}
	for (; i + BLOCK <= n; i += BLOCK)
		block(p, r, x + i, i, out + i * bytes, each, bytes, false, &bad);
	if (i < n)
		rest(p, r, x + i, i, n - i, out + i * bytes, each, bytes, &bad);
	return ANY(bad);
}

static bool to_8(const struct ql_affine *p, const float *x, int64_t n, uint8_t *out)
{
	return p->each ? run(p, x, n, out, true, 1) : run(p, x, n, out, false, 1);
}

static bool to_16(const struct ql_affine *p, const float *x, int64_t n, uint16_t *out)
{
	return p->each ? run(p, x, n, out, true, 2) : run(p, x, n, out, false, 2);
}

#endif
