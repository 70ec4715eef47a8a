/* SPDX-License-Identifier: MIT
 * 32 x 32 tile on AMX: four tiles of sums (16 x 16), two of A (16 rows x 32 k), two of the panel (16 pairs of k x 16 columns). A step
 * of 32 k is four TDPBF16PS of 16 cycles against four loads of 8. The shapes of the tiles are those of the operands, so nothing is
 * padded but the last k, fewer than 32, which are multiplied from copies filled with zeros. See gemm_bf16_tiles_ref.c for its sums.
 *
 * `few` turns the product around: 16 lines of B at a time are the rows of the left operand, read in place, and the few rows of A,
 * packed as pairs, are the right one. Weights of linear are so read once and never packed. Two tiles of sums, since a sum waits
 * 52 cycles for the one before it; lines are fetched ahead, for hardware does not follow 32 of them.
 */
#include "tensor/kernels/amx.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define MR (2 * AMX_ROWS)
#define NR 32
#define STEP QL_BF16_GROUP /* pairs of a tile */
#define PAIRS (4 * NR)     /* bytes of a row of a panel */
#define AHEAD 1024         /* bytes of a line of B */

/* Tiles 0 to 3: sums (row, column); 4 and 5: rows; 6 and 7: columns. */
static void configure(int rows, int columns)
{
	struct amx_config shape = {.palette = 1};
	int tall[2] = {rows < 16 ? rows : 16, rows > 16 ? rows - 16 : 16};
	int wide[2] = {columns < 16 ? columns : 16, columns > 16 ? columns - 16 : 16};

	for (int i = 0; i < 2; i++) {
		shape.rows[4 + i] = (uint8_t)tall[i];
		shape.bytes[4 + i] = AMX_BYTES;
		shape.rows[6 + i] = STEP;
		shape.bytes[6 + i] = (uint16_t)(4 * wide[i]);
		for (int j = 0; j < 2; j++) {
			shape.rows[2 * i + j] = (uint8_t)tall[i];
			shape.bytes[2 * i + j] = (uint16_t)(4 * wide[j]);
		}
	}
	amx_configure(&shape);
}

/* 32 k. lda and ldb are bytes. */
QL_INLINE void step(const bool tall, const bool wide, const void *a, int64_t lda, const void *b, int64_t ldb)
{
	amx_load(6, b, ldb);
	amx_load(4, a, lda);
	amx_dot_bf16(0, 4, 6);
	if (wide) {
		amx_load(7, (const char *)b + AMX_BYTES, ldb);
		amx_dot_bf16(1, 4, 7);
	}
	if (tall) {
		amx_load(5, (const char *)a + 16 * lda, lda);
		amx_dot_bf16(2, 5, 6);
	}
	if (tall && wide)
		amx_dot_bf16(3, 5, 7);
}

/* The last k numbers of `rows` lines, filled up with zeros. */
static void last_lines(int rows, int64_t k, const uint16_t *a, int64_t lda, char left[MR * AMX_BYTES])
{
	memset(left, 0, MR * AMX_BYTES);
	for (int i = 0; i < rows; i++)
		memcpy(left + i * AMX_BYTES, a + i * lda, (size_t)k * sizeof(*a));
	amx_written(left);
}

QL_INLINE void steps(
	const bool tall, const bool wide, int rows, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *b)
{
	_Alignas(64) char left[MR * AMX_BYTES], right[STEP * PAIRS];
	int64_t l = 0;

	for (; l + STEP <= pairs; l += STEP)
		step(tall, wide, a + 2 * l, 2 * lda, b + l * NR, PAIRS);
	if (l == pairs)
		return;
	memset(right, 0, sizeof(right));
	memcpy(right, b + l * NR, (size_t)(pairs - l) * PAIRS);
	amx_written(right);
	last_lines(rows, 2 * (pairs - l), a + 2 * l, lda, left);
	step(tall, wide, left, AMX_BYTES, right, PAIRS);
}

static void load_sums(bool tall, bool wide, const float *c, int64_t bytes)
{
	amx_written(c);
	amx_load(0, c, bytes);
	if (wide)
		amx_load(1, c + 16, bytes);
	if (tall)
		amx_load(2, (const char *)c + 16 * bytes, bytes);
	if (tall && wide)
		amx_load(3, (const char *)(c + 16) + 16 * bytes, bytes);
}

static void store_sums(bool tall, bool wide, float *c, int64_t bytes)
{
	amx_store(0, c, bytes);
	if (wide)
		amx_store(1, c + 16, bytes);
	if (tall)
		amx_store(2, (char *)c + 16 * bytes, bytes);
	if (tall && wide)
		amx_store(3, (char *)(c + 16) + 16 * bytes, bytes);
}

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	bool tall = rows > 16, wide = columns > 16;
	int64_t pitch = ldc * (int64_t)sizeof(*c);

	configure(rows, columns);
	if (add)
		load_sums(tall, wide, c, pitch);
	if (tall && wide)
		steps(true, true, rows, pairs, a, lda, panel);
	else if (tall)
		steps(true, false, rows, pairs, a, lda, panel);
	else if (wide)
		steps(false, true, rows, pairs, a, lda, panel);
	else
		steps(false, false, rows, pairs, a, lda, panel);
	store_sums(tall, wide, c, pitch);
	amx_release();
}

static void fetch(int columns, const uint16_t *b, int64_t ldb)
{
	for (int i = 0; i < columns; i++)
		__builtin_prefetch((const char *)(b + i * ldb) + AHEAD, 0, 2);
}

static void few(int rows, int columns, int64_t k, const uint32_t *a, const uint16_t *b, int64_t ldb, float *c)
{
	_Alignas(64) char left[MR * AMX_BYTES], right[STEP * AMX_BYTES];
	int64_t l = 0, pairs = (k + 1) / 2, pitch = 4 * rows;
	bool tall = columns > 16;

	configure(columns, rows);
	amx_written(a);
	for (; 2 * (l + STEP) <= k; l += STEP) {
		fetch(columns, b + 2 * l, ldb);
		if (tall)
			step(true, false, b + 2 * l, 2 * ldb, a + l * rows, pitch);
		else
			step(false, false, b + 2 * l, 2 * ldb, a + l * rows, pitch);
	}
	if (2 * l < k) {
		memset(right, 0, sizeof(right));
		memcpy(right, a + l * rows, (size_t)((pairs - l) * pitch));
		amx_written(right);
		last_lines(columns, k - 2 * l, b + 2 * l, ldb, left);
		if (tall)
			step(true, false, left, AMX_BYTES, right, pitch);
		else
			step(false, false, left, AMX_BYTES, right, pitch);
	}
	store_sums(tall, false, c, pitch);
	amx_release();
}

extern const struct ql_gemm_bf16 gemm_bf16_tiles_amx;
const struct ql_gemm_bf16 gemm_bf16_tiles_amx = {
	.name = "gemm_bf16_tiles_amx", .mr = MR, .nr = NR, .rate = 800, .tiles = true, .tile = tile, .few = few};
