/* SPDX-License-Identifier: MIT
 * Template, included once per type: the six row converters of a packed dtype of BITS bits, low bits first. The
 * includer defines T, BITS, DECODE(code) -> int from the raw field and ENCODE(int) -> raw field of a value that is
 * already clamped to LO..HI.
 */
#define QL_CAT2(a, b) a##_##b
#define QL_CAT(a, b) QL_CAT2(a, b)
#define QL_PER_BYTE (8 / BITS)
#define QL_FIELD ((1u << BITS) - 1u)

static inline int QL_CAT(T, get)(const uint8_t *p, int64_t i)
{
	return DECODE(((unsigned)p[i / QL_PER_BYTE] >> (i % QL_PER_BYTE * BITS)) & QL_FIELD);
}

static inline void QL_CAT(T, set)(uint8_t *p, int64_t i, int value)
{
	unsigned shift = (unsigned)(i % QL_PER_BYTE) * BITS;
	unsigned old = p[i / QL_PER_BYTE] & ~(QL_FIELD << shift);

	p[i / QL_PER_BYTE] = (uint8_t)(old | ((ENCODE(value) & QL_FIELD) << shift));
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
#undef QL_PER_BYTE
#undef QL_FIELD
#undef T
#undef BITS
#undef DECODE
#undef ENCODE
#undef FROM_FLOAT
#undef FROM_I64
