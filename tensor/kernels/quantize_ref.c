/* SPDX-License-Identifier: MIT
 * Portable encode of affine 8- and 16-bit codes: exact division, half to even, clamp before the conversion.
 */
#include "tensor/kernels/kernels.h"

#include <math.h>

static int32_t code(const struct ql_affine *p, int64_t i, float x)
{
	int64_t at = p->each ? i : 0;
	int32_t zero = p->zero ? p->zero[at] : 0;
	float v = rintf(x / p->scale[at]), lo = (float)(p->lo - zero), hi = (float)(p->hi - zero);

	if (isnan(v))
		return zero;
	return (int32_t)(v < lo ? lo : v > hi ? hi : v) + zero;
}

static bool to_8(const struct ql_affine *p, const float *x, int64_t n, uint8_t *out)
{
	bool bad = false;

	for (int64_t i = 0; i < n; i++) {
		bad |= !isfinite(x[i]);
		out[i] = (uint8_t)code(p, i, x[i]);
	}
	return bad;
}

static bool to_16(const struct ql_affine *p, const float *x, int64_t n, uint16_t *out)
{
	bool bad = false;

	for (int64_t i = 0; i < n; i++) {
		bad |= !isfinite(x[i]);
		out[i] = (uint16_t)code(p, i, x[i]);
	}
	return bad;
}

extern const struct ql_quantize quantize_ref;
const struct ql_quantize quantize_ref = {.name = "quantize_ref", .to_8 = to_8, .to_16 = to_16};
