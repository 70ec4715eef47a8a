/* SPDX-License-Identifier: MIT
 * The tile of the VNNI kernels, for vectors of any length. vpdpbusd adds four u8 x s8 products to a 32-bit
 * sum without an intermediate 16-bit result, so nothing saturates; the sums wrap mod 2^32.
 *
 * The sums of a tile stay in registers: `rows` times `vectors` of them. A step of 4 k loads `vectors` vectors
 * of the panel and, for each row, broadcasts the 4 bytes of A. The including file defines VECTOR, LANES
 * (32-bit lanes), MR, NV (vectors of a panel row), LOAD(p), SPREAD(x), DOT(sum, u8, s8), ZERO(), STORE(p, v).
 */
#ifndef QUOLL_TENSOR_GEMM_I8_VNNI_H
#define QUOLL_TENSOR_GEMM_I8_VNNI_H

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/simd.h"

#define NR (NV * LANES)

QL_INLINE int32_t four_bytes(const uint8_t *a)
{
	int32_t x;

	memcpy(&x, a, 4);
	return x;
}

/* rows and vectors are constants wherever this is inlined, so that sum becomes registers */
QL_INLINE void block(const int rows, const int vectors, int64_t k4, const uint8_t *a, int64_t lda,
	const int8_t *b, int32_t *c)
{
	VECTOR sum[MR][NV];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			sum[i][j] = ZERO();
	for (int64_t k = 0; k < k4; k++, b += 4 * NR) {
		VECTOR v[NV];

#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			v[j] = LOAD(b + 4 * LANES * j);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VECTOR x = SPREAD(four_bytes(a + i * lda + 4 * k));

#pragma GCC unroll 4
			for (int j = 0; j < vectors; j++)
				sum[i][j] = DOT(sum[i][j], x, v[j]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vectors; j++)
			STORE(c + i * NR + j * LANES, sum[i][j]);
}

#define ROWS_CASE(r, v) \
	case r: \
		block(r, v, k4, a, lda, b, c); \
		break;

#endif
