/* SPDX-License-Identifier: MIT
 * Portable tile of a depthwise convolution of codes: channel by channel, in their order (a block is one group of 16).
 */
#include <string.h>

#include "tensor/kernels/kernels.h"

#define LANES 1

static int32_t rounded(float v, float lo, float hi)
{
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f);
}

/* x: the first channel of the pixel's window */
static void add_up(int channels, const struct ql_depth_i8_sums *s, const uint8_t *x, const int8_t *w, int32_t *sum)
{
	memset(sum, 0, 16 * LANES * sizeof(*sum));
	for (int64_t q = 0; q < s->quads; q++, w += 4 * 16 * LANES) {
		const uint8_t *a = x + s->at[4 * q], *b = x + s->at[4 * q + 1], *c = x + s->at[4 * q + 2],
			      *d = x + s->at[4 * q + 3];

		for (int o = 0; o < channels; o++)
			sum[o] += a[o] * w[4 * o] + b[o] * w[4 * o + 1] + c[o] * w[4 * o + 2] + d[o] * w[4 * o + 3];
	}
}

static uint8_t code_of(
	const struct ql_conv_i8_codes *c, int o, uint32_t sum, const uint8_t *other /* NULL, or of this pixel */)
{
	int32_t least = (int32_t)(sum + (uint32_t)c->bias[o]), v;
	float a, b;

	least = least < c->least ? c->least : least;
	v = rounded((float)least * c->factor[o], c->lo, c->hi);
	if (!other)
		return (uint8_t)(v + c->zero);
	a = (float)v * c->by[0];
	b = (float)((other[o] ^ c->flip) - c->other_zero) * c->by[1];
	return (uint8_t)(rounded(a + b, c->sum_lo, c->sum_hi) + c->sum_zero);
}

static void codes(int rows, int channels, const struct ql_depth_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, const int8_t *w, const uint8_t *other, uint8_t *to)
{
	int32_t sum[16 * LANES];

	for (int i = 0; i < rows; i++) {
		add_up(channels, s, x + i * s->step, w, sum);
		for (int o = 0; o < channels; o++)
			to[i * c->pitch + o] = code_of(c, o, (uint32_t)sum[o], other ? other + i * c->pitch : NULL);
	}
}

extern const struct ql_depth_i8 depth_i8_ref;
const struct ql_depth_i8 depth_i8_ref = {.name = "depth_i8_ref", .rate = 1, .most = 4, .lanes = LANES, .codes = codes};
