/* SPDX-License-Identifier: MIT
 * Signed dynamic 8-bit numbers (arXiv 1511.04561; 8-bit Optimizers, arXiv 2110.02861): a decimal exponent in unary,
 * and a fraction between 0.1 and 1 in the remaining bits, which covers 7 decades. Intermediate results are rounded as
 * in bitsandbytes.
 */
#include <math.h>

#include "tensor/grid.h"

#define DECADES 7

static float boundary(int k, int n, float step)
{
	return k < (n + 1) / 2 ? (float)(0.1f + (double)step * k) : (float)(1 - (double)step * (n - k));
}

/* The positive values below 1 in ascending order; returns their number, 127. */
static int positive(float *value)
{
	int count = 0;

	for (int i = 0; i < DECADES; i++) {
		int n = 1 << i;
		float step = (1 - 0.1f) / (float)n, unit = (float)pow(10, i - (DECADES - 1));

		for (int k = 0; k < n; k++)
			value[count++] = unit * ((boundary(k, n, step) + boundary(k + 1, n, step)) / 2);
	}
	return count;
}

static void fill(float *value)
{
	float half[128];
	int n = positive(half);

	for (int i = 0; i < n; i++) {
		value[i] = -half[n - 1 - i];
		value[n + 1 + i] = half[i];
	}
	value[n] = 0;
	value[2 * n + 1] = 1;
}

extern const struct ql_grid ql_grid_dynamic8;
const struct ql_grid ql_grid_dynamic8 = {.name = "dynamic8", .n = 256, .fill = fill, .reciprocal = true};
