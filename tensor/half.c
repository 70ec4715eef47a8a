/* SPDX-License-Identifier: MIT
 * Rows of 16-bit floats.
 */
#include "tensor/half.h"

#include "tensor/dtype.h"

#define ROW(name, from, to, convert) \
	QL_SIMD(void, name, (int64_t n, const from *restrict in, to *restrict out), { \
		for (int64_t i = 0; i < n; i++) \
			out[i] = convert(in[i]); \
	})
ROW(narrow_f16, float, uint16_t, f16_of_f32)
ROW(narrow_bf16, float, uint16_t, bf16_of_f32)
ROW(widen_f16, uint16_t, float, f32_of_f16)
ROW(widen_bf16, uint16_t, float, f32_of_bf16)

bool ql_dtype_is_half(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_FLOAT && ql_dtypes[dtype].bits == 16;
}

/* Of the two the one with more digits: float16. */
static bool is_finer(unsigned dtype)
{
	return ql_dtypes[dtype].digits > 8;
}

void ql_half_from_f32(int variant, unsigned dtype, int64_t n, const float *in, uint16_t *out)
{
	(is_finer(dtype) ? narrow_f16 : narrow_bf16)[variant](n, in, out);
}

void ql_half_to_f32(int variant, unsigned dtype, int64_t n, const uint16_t *in, float *out)
{
	(is_finer(dtype) ? widen_f16 : widen_bf16)[variant](n, in, out);
}
