/* SPDX-License-Identifier: MIT
 * The tile of a convolution of codes, for vectors of any length: `rows` pixels times `vectors` vectors of outputs. All
 * sums stay in registers, from the first product to the code. A step of 4 bytes of the window loads the weights of all
 * vectors once and, for each pixel, broadcasts the 4 bytes.
 *
 * The addresses of the pixels are four apart from a base each: bases[i / 4] + (i % 4) * step, so that 16 pixels need
 * few general registers.
 *
 * The including file defines VECTOR, LANES (32-bit lanes), MOST_ROWS, MOST_VECTORS, PARTS (vectors of a panel: QL_CONV_PANEL / LANES), STEP (a
 * type for what is prepared of one vector of weights), WEIGHTS(p), DOT(sum, bytes, weights), SPREAD(x), ZERO(), and
 * finish(c, sum, o, columns, other, to): the codes of a pixel from a panel's sums.
 */
#ifndef QUOLL_TENSOR_CONV_I8_TILE_H
#define QUOLL_TENSOR_CONV_I8_TILE_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define BASES 4

QL_INLINE int32_t four_bytes(const uint8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return x;
}

/* rows and panels are constants wherever this is inlined */
QL_INLINE void block(const int rows, const int panels, int columns, const struct ql_conv_i8_sums *s,
	const struct ql_conv_i8_codes *c, const uint8_t *x, const int8_t *panel, const uint8_t *other, uint8_t *to)
{
	const int vectors = panels * PARTS;
	VECTOR sum[MOST_ROWS][MOST_VECTORS];
	int64_t step = s->step;

#pragma GCC unroll 16
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
		for (int j = 0; j < vectors; j++)
			sum[i][j] = ZERO();
	for (int k = 0; k < s->segments; k++) {
		const uint8_t *bases[BASES];

#pragma GCC unroll 4
		for (int i = 0; i < BASES; i++)
			bases[i] = x + s->at[k] + 4 * i * step;
		for (int64_t q = 0; q < s->quads; q++, panel += 4 * QL_CONV_PANEL) {
			STEP w[MOST_VECTORS];

#pragma GCC unroll 8
			for (int j = 0; j < vectors; j++)
				w[j] = WEIGHTS(panel + j / PARTS * s->panel + j % PARTS * 4 * LANES);
#pragma GCC unroll 16
			for (int i = 0; i < rows; i++) {
				VECTOR v = SPREAD(four_bytes(bases[i / 4] + i % 4 * step));

#pragma GCC unroll 8
				for (int j = 0; j < vectors; j++)
					sum[i][j] = DOT(sum[i][j], v, w[j]);
			}
#pragma GCC unroll 4
			for (int i = 0; i < BASES; i++)
				bases[i] += 4;
		}
	}
#pragma GCC unroll 16
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int p = 0; p < panels; p++)
			finish(c, &sum[i][p * PARTS], p * QL_CONV_PANEL, columns, other ? other + i * c->pitch : NULL,
				to + i * c->pitch);
}

#define ROWS_CASE(r, p) \
	case r: \
		block(r, p, columns, s, c, x, panel, other, to); \
		break;

#define PARAMETERS \
	(int rows, int columns, const struct ql_conv_i8_sums *s, const struct ql_conv_i8_codes *c, const uint8_t *x, \
		const int8_t *panel, const uint8_t *other, uint8_t *to)

#endif
