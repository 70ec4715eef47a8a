/* SPDX-License-Identifier: MIT
 * Portable decode of affine codes.
 */
#include "tensor/kernels/kernels.h"

#define DECODE(name, type) \
	static void name(const struct ql_affine *p, const type *q, int64_t n, float *out) \
	{ \
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = p->each ? i : p->log_block ? i >> p->log_block : 0; \
\
			out[i] = (float)(q[i] - (p->zero ? p->zero[at] : 0)) * p->scale[at]; \
		} \
	}

DECODE(from_i8, int8_t)
DECODE(from_u8, uint8_t)
DECODE(from_i16, int16_t)
DECODE(from_u16, uint16_t)

static void from_signs(float scale, const uint8_t *q, int64_t n, float *out)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = q[i / 8] >> i % 8 & 1 ? scale : -scale;
}

extern const struct ql_dequantize dequantize_ref;
const struct ql_dequantize dequantize_ref = {
	.name = "dequantize_ref",
	.from_i8 = from_i8,
	.from_u8 = from_u8,
	.from_i16 = from_i16,
	.from_u16 = from_u16,
	.from_signs = from_signs,
};
