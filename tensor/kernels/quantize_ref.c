/* SPDX-License-Identifier: MIT
 * Portable encode of affine 8- and 16-bit codes: exact division, half to even, clamp before the conversion.
 */
#include "tensor/kernels/kernels.h"

#include <math.h>

static int32_t code(const struct ql_affine *p, int64_t i, float x)
{
	int64_t at = p->each ? i : p->log_block ? i >> p->log_block : 0;
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

static void ranges(const float *x, int64_t n, int64_t blocks, float *lo, float *hi)
{
	for (int64_t b = 0; b < blocks; b++, x += n) {
		float low = INFINITY, high = -INFINITY;

		for (int64_t i = 0; i < n; i++)
			if (isfinite(x[i])) {
				low = x[i] < low ? x[i] : low;
				high = x[i] > high ? x[i] : high;
			}
		lo[b] = low + 0.0f;
		hi[b] = high + 0.0f;
	}
}

static void to_signs(const float *x, int64_t n, uint8_t *out)
{
	for (int64_t i = 0; i < n; i += 8) {
		unsigned bits = 0;

		for (int64_t j = 0; j < 8 && i + j < n; j++)
			bits |= (unsigned)!(x[i + j] < 0) << j;
		out[i / 8] = (uint8_t)bits;
	}
}

extern const struct ql_quantize quantize_ref;
const struct ql_quantize quantize_ref = {
	.name = "quantize_ref", .to_8 = to_8, .to_16 = to_16, .ranges = ranges, .to_signs = to_signs};
