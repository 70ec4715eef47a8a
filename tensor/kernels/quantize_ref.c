/* SPDX-License-Identifier: MIT
 * Portable encode of affine 8- and 16-bit codes: exact division, half to even, clamp before the conversion.
 */
#include "tensor/kernels/kernels.h"

#include <math.h>

static int32_t code(float x, float scale, int32_t zero, float lo, float hi)
{
	float v;

	if (isnan(x))
		return zero;
	v = rintf(x / scale);
	v = v < lo ? lo : v > hi ? hi : v;
	return (int32_t)v + zero;
}

static bool to_8(const float *x, int64_t n, float scale, int32_t zero, int32_t lo, int32_t hi, uint8_t *out)
{
	bool bad = false;

	for (int64_t i = 0; i < n; i++) {
		bad |= x[i] - x[i] != 0;
		out[i] = (uint8_t)code(x[i], scale, zero, (float)(lo - zero), (float)(hi - zero));
	}
	return bad;
}

static bool to_16(const float *x, int64_t n, float scale, int32_t zero, int32_t lo, int32_t hi, uint16_t *out)
{
	bool bad = false;

	for (int64_t i = 0; i < n; i++) {
		bad |= x[i] - x[i] != 0;
		out[i] = (uint16_t)code(x[i], scale, zero, (float)(lo - zero), (float)(hi - zero));
	}
	return bad;
}

extern const struct ql_quantize quantize_ref;
const struct ql_quantize quantize_ref = {.name = "quantize_ref", .to_8 = to_8, .to_16 = to_16};
