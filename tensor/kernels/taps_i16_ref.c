/* SPDX-License-Identifier: MIT
 * Portable sums of taps.
 */
#include <string.h>

#include "tensor/kernels/kernels.h"

/* Adds one pair. The two steps have separate loops, so that the compiler sees consecutive accesses. */
static void add_pair(
	int64_t n, int step, const int16_t *restrict x, int32_t first, int32_t second, uint32_t *restrict to)
{
	if (step == 2)
		for (int64_t i = 0; i < n; i++)
			to[i] += (uint32_t)(x[2 * i] * first) + (uint32_t)(x[2 * i + 1] * second);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] += (uint32_t)(x[i] * first) + (uint32_t)(x[i + 1] * second);
}

static void sums(int64_t n, int step, int outputs, int64_t pairs, const int16_t *x, const int64_t *at, const int16_t *w,
	int32_t *to, int64_t pitch)
{
	for (int o = 0; o < outputs; o++, to += pitch) {
		memset(to, 0, (size_t)n * sizeof(*to));
		for (int64_t l = 0; l < pairs; l++, w += 2)
			add_pair(n, step, x + at[l], w[0], w[1], (uint32_t *)to);
	}
}

extern const struct ql_taps_i16 taps_i16_ref;
const struct ql_taps_i16 taps_i16_ref = {.name = "taps_i16_ref", .rate = 2, .sums = sums};
