/* SPDX-License-Identifier: MIT
 * Template, included once per type: the six row converters of a packed dtype of BITS bits, a bit stream with element
 * i at bit i * BITS, low bits first; a field may straddle two bytes. The includer defines T, BITS and SIGNED (0 or 1);
 * a type whose numbers are not its codes defines, in place of SIGNED, DECODE(code) -> int from the raw field,
 * ENCODE(int) -> raw field of a number of the type, FROM_FLOAT(v) and FROM_I64(v) -> the number for v.
 */
#define QL_CAT2(a, b) a##_##b
#define QL_CAT(a, b) QL_CAT2(a, b)
#define QL_FIELD ((1u << BITS) - 1u)

#ifdef SIGNED
#define QL_HALF (SIGNED << (BITS - 1))
#define DECODE(code) ((int)((code) ^ (unsigned)QL_HALF) - QL_HALF)
#define ENCODE(value) ((unsigned)(value))
#define FROM_FLOAT(v) saturate_32(v, -QL_HALF, (int)QL_FIELD - QL_HALF)
#define FROM_I64(v) ((int)((v) & (int64_t)QL_FIELD))
#endif

static inline int QL_CAT(T, get)(const uint8_t *p, int64_t i)
{
	int64_t bit = i * BITS;
	unsigned shift = (unsigned)(bit & 7), code = p[bit >> 3];

	if (8 % BITS != 0) /* the second byte may be the first again */
		code |= (unsigned)p[(bit + BITS - 1) >> 3] << 8;
	return DECODE(code >> shift & QL_FIELD);
}

static inline void QL_CAT(T, set)(uint8_t *p, int64_t i, int value)
{
	int64_t bit = i * BITS;
	unsigned shift = (unsigned)(bit & 7), mask = QL_FIELD << shift;
	unsigned code = (ENCODE(value) & QL_FIELD) << shift;

	p += bit >> 3;
	p[0] = (uint8_t)((p[0] & ~mask) | code);
	if (8 % BITS != 0 && shift + BITS > 8)
		p[1] = (uint8_t)((p[1] & ~(mask >> 8)) | code >> 8);
}

static void QL_CAT(T, to_f32)(const void *base, int64_t offset, int64_t stride, int64_t n, float *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)QL_CAT(T, get)(base, offset + i * stride);
}

static void QL_CAT(T, to_f64)(const void *base, int64_t offset, int64_t stride, int64_t n, double *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = (double)QL_CAT(T, get)(base, offset + i * stride);
}

static void QL_CAT(T, to_i64)(const void *base, int64_t offset, int64_t stride, int64_t n, int64_t *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = QL_CAT(T, get)(base, offset + i * stride);
}

static void QL_CAT(T, from_f32)(void *base, int64_t offset, int64_t stride, int64_t n, const float *in)
{
	for (int64_t i = 0; i < n; i++)
		QL_CAT(T, set)(base, offset + i * stride, FROM_FLOAT((double)in[i]));
}

static void QL_CAT(T, from_f64)(void *base, int64_t offset, int64_t stride, int64_t n, const double *in)
{
	for (int64_t i = 0; i < n; i++)
		QL_CAT(T, set)(base, offset + i * stride, FROM_FLOAT(in[i]));
}

static void QL_CAT(T, from_i64)(void *base, int64_t offset, int64_t stride, int64_t n, const int64_t *in)
{
	for (int64_t i = 0; i < n; i++)
		QL_CAT(T, set)(base, offset + i * stride, FROM_I64(in[i]));
}

#undef QL_CAT
#undef QL_CAT2
#undef QL_FIELD
#undef QL_HALF
#undef T
#undef BITS
#undef SIGNED
#undef DECODE
#undef ENCODE
#undef FROM_FLOAT
#undef FROM_I64
