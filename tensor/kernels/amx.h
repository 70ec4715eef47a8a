/* SPDX-License-Identifier: MIT
 * The tile instructions of a kernel: intrinsics, or with QL_AMX_MODEL plain C that does what the manual says of each
 * (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILELOADDT1, TILESTORED,
 * TDPBUSD, TDPBSSD, TDPBF16PS), so that the kernel's own code is tested on processors without them. Tile numbers are constants.
 */
#ifndef QUOLL_TENSOR_KERNELS_AMX_H
#define QUOLL_TENSOR_KERNELS_AMX_H

#include <stdint.h>
#include <string.h>

#define AMX_ROWS 16 /* largest tile: rows, and bytes of a row */
#define AMX_BYTES 64

/* The operand of LDTILECFG. */
struct amx_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t bytes[16]; /* of a row of each tile */
	uint8_t rows[16];
};

_Static_assert(sizeof(struct amx_config) == 64, "as the processor reads it");

#ifdef QL_AMX_MODEL

#include "tensor/kernels/gemm_bf16_ref.h"

static _Thread_local struct amx_config amx_shape;
static _Thread_local uint8_t amx_tile[8][AMX_ROWS][AMX_BYTES];

static inline void amx_configure(const struct amx_config *c)
{
	amx_shape = *c;
	memset(amx_tile, 0, sizeof(amx_tile));
}

static inline void amx_written(const void *p)
{
	(void)p;
}

static inline void amx_release(void)
{
	amx_configure(&(struct amx_config){.palette = 0});
}

static inline void amx_zero(int t)
{
	memset(amx_tile[t], 0, sizeof(amx_tile[t]));
}

static inline void amx_load(int t, const void *p, int64_t stride)
{
	amx_zero(t);
	for (int r = 0; r < amx_shape.rows[t]; r++)
		memcpy(amx_tile[t][r], (const char *)p + r * stride, amx_shape.bytes[t]);
}

#define amx_stream(t, p, stride) amx_load(t, p, stride)

static inline void amx_store(int t, void *p, int64_t stride)
{
	for (int r = 0; r < amx_shape.rows[t]; r++)
		memcpy((char *)p + r * stride, amx_tile[t][r], amx_shape.bytes[t]);
}

/* c += a * b: rows of a by rows of b (s8), whose element n of row g is four bytes of k 4 g.., mod 2^32; sign is 128 if a is s8, 0 if it
 * is u8 */
static inline void amx_dot(int c, int a, int b, int sign)
{
	for (int m = 0; m < amx_shape.rows[c]; m++)
		for (int g = 0; g < amx_shape.bytes[a] / 4; g++)
			for (int n = 0; n < amx_shape.bytes[c] / 4; n++) {
				uint32_t sum;

				memcpy(&sum, &amx_tile[c][m][4 * n], 4);
				for (int i = 0; i < 4; i++)
					sum += (uint32_t)(((amx_tile[a][m][4 * g + i] ^ sign) - sign) *
							  (int8_t)amx_tile[b][g][4 * n + i]);
				memcpy(&amx_tile[c][m][4 * n], &sum, 4);
			}
}

/* One element of c: pairs of row m of a by column n of b, whose element n of row g is the pair of k 2 g; the even and the odd products
 * are summed apart, from 0, then added, then added to c. */
static inline float amx_dot_pairs(float sum, int a, int b, int m, int n)
{
	float even = 0, odd = 0;

	for (int g = 0; g < amx_shape.bytes[a] / 4; g++) {
		uint32_t x, y;

		memcpy(&x, &amx_tile[a][m][4 * g], 4);
		memcpy(&y, &amx_tile[b][g][4 * n], 4);
		even = bf16_fma(bf16_low(x), bf16_low(y), even);
		odd = bf16_fma(bf16_high(x), bf16_high(y), odd);
	}
	return bf16_normal(bf16_normal(sum) + bf16_normal(even + odd));
}

static inline void amx_dot_bf16(int c, int a, int b)
{
	for (int m = 0; m < amx_shape.rows[c]; m++)
		for (int n = 0; n < amx_shape.bytes[c] / 4; n++) {
			float sum;

			memcpy(&sum, &amx_tile[c][m][4 * n], 4);
			sum = amx_dot_pairs(sum, a, b, m, n);
			memcpy(&amx_tile[c][m][4 * n], &sum, 4);
		}
}

#define amx_dot_u8_s8(c, a, b) amx_dot(c, a, b, 0)
#define amx_dot_s8_s8(c, a, b) amx_dot(c, a, b, 128)

#else

#include <immintrin.h>

/* Before loads of what was just written to p: gcc 12 does not know what the loads of tiles and their shape read. */
static inline void amx_written(const void *p)
{
	__asm__ volatile("" ::"r"(p) : "memory");
}

static inline void amx_configure(const struct amx_config *c)
{
	amx_written(c);
	_tile_loadconfig(c);
}

#define amx_release() _tile_release()
#define amx_zero(t) _tile_zero(t)
#define amx_load(t, p, stride) _tile_loadd(t, p, stride)
#define amx_stream(t, p, stride) _tile_stream_loadd(t, p, stride) /* what passes the first-level cache once */
#define amx_store(t, p, stride) _tile_stored(t, p, stride)
#define amx_dot_u8_s8(c, a, b) _tile_dpbusd(c, a, b)
#define amx_dot_s8_s8(c, a, b) _tile_dpbssd(c, a, b)
#define amx_dot_bf16(c, a, b) _tile_dpbf16ps(c, a, b)

#endif
#endif
