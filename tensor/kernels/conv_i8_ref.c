/* SPDX-License-Identifier: MIT
 * Portable tile of a convolution of codes: the sums of one pixel, then their codes.
 */
#include "tensor/kernels/conv_i8_code.h"

#define MOST 4

/* x: the first byte of the pixel's window */
static void add_up(int columns, const struct ql_conv_i8_sums *s, const uint8_t *x, const int8_t *w, uint32_t *sum)
{
	for (int o = 0; o < columns; o++)
		sum[o] = 0;
	for (int k = 0; k < s->segments; k++)
		for (int64_t q = 0; q < s->quads; q++, w += 4 * QL_CONV_PANEL)
			for (int o = 0; o < columns; o++)
				for (int l = 0; l < 4; l++)
					sum[o] += (uint32_t)(x[s->at[k] + 4 * q + l] * w[4 * o + l]);
}

static void codes(int rows, int columns, const struct ql_conv_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, const int8_t *panel, const uint8_t *other, uint8_t *to)
{
	uint32_t sum[QL_CONV_PANEL];

	for (int i = 0; i < rows; i++) {
		add_up(columns, s, x + i * s->step, panel, sum);
		for (int o = 0; o < columns; o++)
			to[i * c->pitch + o] = ql_conv_i8_code(c, o, sum[o], other ? other + i * c->pitch + o : NULL);
	}
}

extern const struct ql_conv_i8 conv_i8_ref;
const struct ql_conv_i8 conv_i8_ref = {.name = "conv_i8_ref", .rate = 1, .most = {0, MOST}, .codes = codes};
