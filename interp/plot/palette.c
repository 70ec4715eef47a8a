/* SPDX-License-Identifier: MIT
 * Viridis (Smith and van der Walt, matplotlib 1.5, CC0) by nine of its colours; a diverging one after
 * Moreland's "Diverging Color Maps for Scientific Visualization" (2009), white in the middle; gray.
 */
#include "interp/plot/palette.h"

#include <math.h>

static const uint32_t viridis[] = {
	0x440154, 0x472D7B, 0x3B528B, 0x2C728E, 0x21918C, 0x28AE80, 0x5EC962, 0xADDC30, 0xFDE725};
static const uint32_t diverging[] = {0x2B5CB0, 0x6A9BD8, 0xB5D0EE, 0xF7F7F7, 0xF6C1AF, 0xDE7B63, 0xB2182B};
static const uint32_t gray[] = {0xFFFFFF, 0x202020};

static uint32_t blend(uint32_t a, uint32_t b, double t)
{
	uint32_t out = 0;

	for (int shift = 0; shift < 24; shift += 8) {
		double from = (double)(a >> shift & 0xFF), to = (double)(b >> shift & 0xFF);

		out |= (uint32_t)lrint(from + (to - from) * t) << shift;
	}
	return out;
}

uint32_t ql_gradient_at(enum ql_gradient gradient, double t)
{
	const uint32_t *anchor = gradient == QL_GRADIENT_VIRIDIS ? viridis
				 : gradient == QL_GRADIENT_GRAY  ? gray
								 : diverging;
	int n = gradient == QL_GRADIENT_VIRIDIS ? 9 : gradient == QL_GRADIENT_GRAY ? 2 : 7, i;

	if (isnan(t))
		return QL_MISSING;
	if (gradient == QL_GRADIENT_RGB)
		return (uint32_t)t;
	t = fmin(fmax(t, 0), 1) * (n - 1);
	i = (int)t < n - 1 ? (int)t : n - 2;
	return blend(anchor[i], anchor[i + 1], t - i);
}
