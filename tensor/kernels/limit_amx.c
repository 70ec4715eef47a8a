/* SPDX-License-Identifier: MIT
 * The most that AMX does: tdpbusd on four tiles of sums with two of each operand, so that no tile waits for the one before it. The other
 * loops are those of AVX-512.
 */
#include "tensor/kernels/amx.h"
#include "tensor/kernels/limit_avx512.h"

#include "tensor/kernels/limit_loops.h"

/* A step: four products of 16 x 16 tiles over 64 k. */
static double integers(int64_t rounds)
{
	struct amx_config shape = {.palette = 1};

	for (int i = 0; i < 8; i++) {
		shape.bytes[i] = AMX_BYTES;
		shape.rows[i] = AMX_ROWS;
	}
	amx_configure(&shape);
	amx_zero(0);
	amx_zero(1);
	amx_zero(2);
	amx_zero(3);
	amx_zero(4);
	amx_zero(5);
	amx_zero(6);
	amx_zero(7);
	for (int64_t r = 0; r < rounds; r++) {
		amx_dot_u8_s8(0, 4, 6);
		amx_dot_u8_s8(1, 4, 7);
		amx_dot_u8_s8(2, 5, 6);
		amx_dot_u8_s8(3, 5, 7);
	}
	amx_release();
	return 4.0 * 2 * 16 * 16 * 64 * (double)rounds;
}

extern const struct ql_limit limit_amx;
const struct ql_limit limit_amx = {.name = "limit_amx", .dot = "tdpbusd", LOOPS};
