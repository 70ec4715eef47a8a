/* SPDX-License-Identifier: MIT
 * Template, included once per type: the six row converters of a whole-byte dtype.
 * The includer defines T (name), C (storage type), LOAD(v) -> float or double value as D, and the four stores
 * STORE_F32, STORE_F64, STORE_I64 taking the value. LOAD_I64 gives int64.
 */
#define QL_CAT2(a, b) a##_##b
#define QL_CAT(a, b) QL_CAT2(a, b)

static void QL_CAT(T, to_f32)(const void *base, int64_t offset, int64_t stride, int64_t n, float *out)
{
	const C *p = (const C *)base + offset;

	if (stride == 1) {
		for (int64_t i = 0; i < n; i++)
			out[i] = (float)LOAD(p[i]);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)LOAD(p[i * stride]);
}

static void QL_CAT(T, to_f64)(const void *base, int64_t offset, int64_t stride, int64_t n, double *out)
{
	const C *p = (const C *)base + offset;

	for (int64_t i = 0; i < n; i++)
		out[i] = (double)LOAD(p[i * stride]);
}

static void QL_CAT(T, to_i64)(const void *base, int64_t offset, int64_t stride, int64_t n, int64_t *out)
{
	const C *p = (const C *)base + offset;

	for (int64_t i = 0; i < n; i++)
		out[i] = LOAD_I64(p[i * stride]);
}

static void QL_CAT(T, from_f32)(void *base, int64_t offset, int64_t stride, int64_t n, const float *in)
{
	C *p = (C *)base + offset;

	if (stride == 1) {
		for (int64_t i = 0; i < n; i++)
			p[i] = STORE_F32(in[i]);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		p[i * stride] = STORE_F32(in[i]);
}

static void QL_CAT(T, from_f64)(void *base, int64_t offset, int64_t stride, int64_t n, const double *in)
{
	C *p = (C *)base + offset;

	for (int64_t i = 0; i < n; i++)
		p[i * stride] = STORE_F64(in[i]);
}

static void QL_CAT(T, from_i64)(void *base, int64_t offset, int64_t stride, int64_t n, const int64_t *in)
{
	C *p = (C *)base + offset;

	for (int64_t i = 0; i < n; i++)
		p[i * stride] = STORE_I64(in[i]);
}

#undef QL_CAT
#undef QL_CAT2
#undef T
#undef C
#undef LOAD
#undef LOAD_I64
#undef STORE_F32
#undef STORE_F64
#undef STORE_I64
