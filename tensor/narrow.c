/* SPDX-License-Identifier: MIT
 * Which types have rows of vectors. Those of 16-bit floats are in half.c, because products use them, too.
 */
#include "tensor/narrow.h"

#include "tensor/dtype.h"
#include "tensor/float8.h"
#include "tensor/half.h"

#define TO_INT8(x) ((int8_t)ql_narrow_16(x, INT8_MIN, INT8_MAX))
#define TO_UINT8(x) ((uint8_t)ql_narrow_16(x, 0, UINT8_MAX))
#define TO_INT16(x) ((int16_t)ql_narrow_16(x, INT16_MIN, INT16_MAX))
#define TO_UINT16(x) ((uint16_t)ql_narrow_16(x, 0, UINT16_MAX))
#define TO_FLOAT(x) ((float)(x))

/* X(dtype, C type, from float32, to float32) */
#define NARROW(X) \
	X(int8, int8_t, TO_INT8, TO_FLOAT) \
	X(uint8, uint8_t, TO_UINT8, TO_FLOAT) \
	X(int16, int16_t, TO_INT16, TO_FLOAT) \
	X(uint16, uint16_t, TO_UINT16, TO_FLOAT) \
	X(int32, int32_t, ql_narrow_32, TO_FLOAT) \
	X(float8_e4m3, uint8_t, e4m3_of_f32, f32_of_e4m3) \
	X(float8_e5m2, uint8_t, e5m2_of_f32, f32_of_e5m2) \
	X(float8_e8m0, uint8_t, e8m0_of_f32, f32_of_e8m0)

#define ROWS(dtype, type, from, to) \
	QL_SIMD(void, from_##dtype, (int64_t n, const void *in, float *restrict out), { \
		const type *restrict x = in; \
\
		for (int64_t i = 0; i < n; i++) \
			out[i] = to(x[i]); \
	}) \
	QL_SIMD(void, to_##dtype, (int64_t n, const float *restrict in, void *out), { \
		type *restrict y = out; \
\
		for (int64_t i = 0; i < n; i++) \
			y[i] = from(in[i]); \
	})
NARROW(ROWS)

bool ql_narrow_from_f32(int variant, unsigned dtype, int64_t n, const float *in, void *out)
{
	if (ql_dtype_is_half(dtype)) {
		ql_half_from_f32(variant, dtype, n, in, out);
		return true;
	}
	switch (dtype) {
#define X(dtype, type, from, to) \
	case QL_##dtype: to_##dtype[variant](n, in, out); return true;
		NARROW(X)
#undef X
	default: return false;
	}
}

bool ql_narrow_to_f32(int variant, unsigned dtype, int64_t n, const void *in, float *out)
{
	if (ql_dtype_is_half(dtype)) {
		ql_half_to_f32(variant, dtype, n, in, out);
		return true;
	}
	switch (dtype) {
#define X(dtype, type, from, to) \
	case QL_##dtype: from_##dtype[variant](n, in, out); return true;
		NARROW(X)
#undef X
	default: return false;
	}
}
