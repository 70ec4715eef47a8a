/* SPDX-License-Identifier: MIT
 * The most that AMX does: tdpbusd on four tiles of sums with two of each operand, so that no tile waits for the one before it. The other
 * loops are those of AVX-512. The operands are not zeros: some processors multiply those a sixth faster than any other numbers.
 */
#include "tensor/kernels/amx.h"
#include "tensor/kernels/limit_avx512.h"

#include "tensor/kernels/limit_loops.h"

/* A step: four products of 16 x 16 tiles over 64 k. */
static double integers(int64_t rounds)
{
	struct amx_config shape = {.palette = 1};
	uint8_t codes[AMX_ROWS * AMX_BYTES];

	for (int i = 0; i < 8; i++) {
		shape.bytes[i] = AMX_BYTES;
		shape.rows[i] = AMX_ROWS;
	}
	for (int i = 0; i < AMX_ROWS * AMX_BYTES; i++)
		codes[i] = (uint8_t)(37 * i + 11);
	amx_written(codes);
	amx_configure(&shape);
	amx_zero(0);
	amx_zero(1);
	amx_zero(2);
	amx_zero(3);
	amx_load(4, codes, AMX_BYTES);
	amx_load(5, codes, AMX_BYTES);
	amx_load(6, codes, AMX_BYTES);
	amx_load(7, codes, AMX_BYTES);
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
