/* SPDX-License-Identifier: MIT
 * The most that AMX does: tdpbusd on four tiles of sums with two of each operand, so that no tile waits for the one before it. The other
 * loops are those of AVX-512.
 */
#include "tensor/kernels/limit_avx512.h"

#include "tensor/kernels/limit_loops.h"

struct config {
	uint8_t palette, start, reserved[14];
	uint16_t columns[16]; /* bytes */
	uint8_t rows[16];
};

/* A step: four products of 16 x 16 tiles over 64 k. */
static double integers(int64_t rounds)
{
	_Alignas(64) struct config c = {.palette = 1};

	for (int i = 0; i < 8; i++) {
		c.columns[i] = 64;
		c.rows[i] = 16;
	}
	_tile_loadconfig(&c);
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (int64_t r = 0; r < rounds; r++) {
		_tile_dpbusd(0, 4, 6);
		_tile_dpbusd(1, 4, 7);
		_tile_dpbusd(2, 5, 6);
		_tile_dpbusd(3, 5, 7);
	}
	_tile_release();
	return 4.0 * 2 * 16 * 16 * 64 * (double)rounds;
}

extern const struct ql_limit limit_amx;
const struct ql_limit limit_amx = {.name = "limit_amx", .dot = "tdpbusd", LOOPS};
