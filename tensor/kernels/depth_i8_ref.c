/* SPDX-License-Identifier: MIT
 * Portable tile of a depthwise convolution of codes: channel by channel, in their order (a block is one group of 16).
 */
#include <string.h>

#include "tensor/kernels/conv_i8_code.h"

#define LANES 1

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

static void codes(int rows, int channels, const struct ql_depth_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, const int8_t *w, const uint8_t *other, uint8_t *to)
{
	int32_t sum[16 * LANES];

	for (int i = 0; i < rows; i++) {
		add_up(channels, s, x + i * s->step, w, sum);
		for (int o = 0; o < channels; o++)
			to[i * c->pitch + o] =
				ql_conv_i8_code(c, o, (uint32_t)sum[o], other ? other + i * c->pitch + o : NULL);
	}
}

extern const struct ql_depth_i8 depth_i8_ref;
const struct ql_depth_i8 depth_i8_ref = {
	.name = "depth_i8_ref", .rate = 1, .most = 4, .lanes = LANES, .fixed = true, .codes = codes};
