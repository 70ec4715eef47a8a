/* SPDX-License-Identifier: MIT
 * 16 x 64 tile on AMX: four tiles of sums (16 rows x 16 columns), one of A (16 rows x 64 k), three in turn of the panel. Rows of a
 * panel are 64 columns x 4 k, so 16 columns of 16 of them, 256 bytes apart, are what TDPBUSD reads: the layout is that of the
 * AVX-512 kernel. A step of 64 k is four TDPBUSD of 16 cycles against five loads of 8, so the multiplications are the limit. For signed
 * codes of A it is TDPBSSD: they are read as they are, and zero points of 0 need no corrections.
 *
 * The last k, fewer than 64, are multiplied from copies filled with zeros. The configuration is loaded for each call and released
 * after it: registers in use would make every change of threads slower.
 */
#include "tensor/kernels/amx.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MR AMX_ROWS
#define NR 64
#define GROUP (4 * NR) /* bytes of 4 k of a panel */
#define STEP 16        /* groups of a tile */
#define A 4            /* tiles of sums are 0 to 3, of the panel 5 to 7 in turn, so that a load need not wait */

#define DOT(c, a, b) \
	do { \
		if (is_signed) \
			amx_dot_s8_s8(c, a, b); \
		else \
			amx_dot_u8_s8(c, a, b); \
	} while (0)

/* 64 k of A, whose rows are lda bytes apart, times `tiles` times 16 columns of the panel */
QL_INLINE void step(const bool is_signed, int tiles, const uint8_t *a, int64_t lda, const int8_t *b)
{
	amx_load(A, a, lda);
	amx_load(5, b, GROUP);
	DOT(0, A, 5);
	if (tiles > 1) {
		amx_load(6, b + AMX_BYTES, GROUP);
		DOT(1, A, 6);
	}
	if (tiles > 2) {
		amx_load(7, b + 2 * AMX_BYTES, GROUP);
		DOT(2, A, 7);
	}
	if (tiles > 3) {
		amx_load(5, b + 3 * AMX_BYTES, GROUP);
		DOT(3, A, 5);
	}
}

QL_INLINE void last_step(
	const bool is_signed, int tiles, int rows, int64_t groups, const uint8_t *a, int64_t lda, const int8_t *b)
{
	_Alignas(64) uint8_t left[MR * AMX_BYTES] = {0};
	_Alignas(64) int8_t right[STEP * GROUP] = {0};

	for (int r = 0; r < rows; r++)
		memcpy(left + r * AMX_BYTES, a + r * lda, (size_t)groups * 4);
	memcpy(right, b, (size_t)groups * GROUP);
	amx_written(left);
	amx_written(right);
	step(is_signed, tiles, left, AMX_BYTES, right);
}

QL_INLINE void product(const bool is_signed, int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda,
	const int8_t *b, int32_t *c)
{
	struct amx_config shape = {.palette = 1};
	int tiles = (columns + 15) / 16;
	int64_t k = 0;

	for (int t = 0; t < 8; t++) {
		shape.rows[t] = (uint8_t)(t > A ? STEP : rows);
		shape.bytes[t] = AMX_BYTES;
	}
	amx_configure(&shape);
	amx_zero(0);
	amx_zero(1);
	amx_zero(2);
	amx_zero(3);
	for (; k + STEP <= k4; k += STEP)
		step(is_signed, tiles, a + 4 * k, lda, b + k * GROUP);
	if (k < k4)
		last_step(is_signed, tiles, rows, k4 - k, a + 4 * k, lda, b + k * GROUP);
	amx_store(0, c, sizeof(*c) * NR);
	amx_store(1, c + 16, sizeof(*c) * NR);
	amx_store(2, c + 32, sizeof(*c) * NR);
	amx_store(3, c + 48, sizeof(*c) * NR);
	amx_release();
}

static void tile(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	product(false, rows, columns, k4, a, lda, b, c);
}

static void tile_s8(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b, int32_t *c)
{
	product(true, rows, columns, k4, a, lda, b, c);
}

/* Lines of B read in place are too few rows for tiles. */
#ifdef QL_AMX_MODEL
#define OTHER gemm_i8_ref
#define DOT_ROWS 1
#else
#define OTHER gemm_i8_avx512vnni
#define DOT_ROWS 4
#endif
extern const struct ql_gemm_i8 OTHER;

static void dots(
	int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c, int64_t ldc)
{
	OTHER.dots(rows, steps, a, lda, b, ldb, c, ldc);
}

extern const struct ql_gemm_i8 gemm_i8_amx;
const struct ql_gemm_i8 gemm_i8_amx = {.name = "gemm_i8_amx",
	.mr = MR,
	.nr = NR,
	.rate = 1500,
	.tile = tile,
	.tile_s8 = tile_s8,
	.dot_rows = DOT_ROWS,
	.dots = dots};
