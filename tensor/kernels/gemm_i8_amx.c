/* SPDX-License-Identifier: MIT
 * Blocks on AMX: 32 rows x 32 columns are four tiles of sums, of which a step of 64 k multiplies two tiles of A by two of the panel:
 * four loads of 8 cycles for four TDPBUSD of 16. What decides is where they are loaded from. 1 KiB takes 8 ns from the second-level
 * cache, longer than its product, so A has its tiles one after the other and DEPTH k of 32 rows, 32 KiB, stay in the first-level cache
 * while all panels pass by loads that leave no trace there; what follows the panels is fetched meanwhile. Of more k than DEPTH the sums
 * are loaded again. Stores of tiles touch every offset of a page, and later loads wait for stores at theirs; so the rows of a tile
 * become float32 one by one between the products of the next tile, where they were fetched for writing before.
 *
 * 16 x 64 tile for the rest: four tiles of sums (16 rows x 16 columns), one of A (16 rows x 64 k), three in turn of the panel. Rows of a
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

/* ---- blocks ---- */

#define SIDE 32    /* rows, and columns, of four tiles of sums */
#define DEPTH 1024 /* k */
#define TILE (MR * AMX_BYTES)
#define NEAR (128 << 10) /* bytes of panels that are fetched ahead for a single pass over them */

/* A tile of sums that becomes float32 while the next one is multiplied. */
struct end {
	const int32_t *sums;
	struct ql_gemm_i8_scaled to; /* at its first row and column */
	int rows, done;
	int some;            /* rows in a step */
	float *fetch;        /* rows of the next tile, which are fetched; */
	int fetch_rows;      /* 0: none */
	const int8_t *ahead; /* of the panels to come */
	const int8_t *end;
	int lines; /* of them in a step */
};

/* columns is a constant in one of two calls */
QL_INLINE void give_row(const struct ql_gemm_i8_scaled *to, int r, const int columns, const int32_t *restrict sum)
{
	const int32_t *restrict column = to->column;
	const float *restrict scale = to->column_scale, *restrict bias = to->bias;
	float *restrict y = to->y + r * to->ld;
	float sa = to->row_scale[r * to->row_step], least = to->least;
	uint32_t row = to->row ? to->row[r] : 0;

	for (int l = 0; l < columns; l++) {
		float v = (float)(int32_t)((uint32_t)sum[l] - (uint32_t)column[l] - row) * (sa * scale[l]) + bias[l];

		y[l] = v < least ? least : v;
	}
}

QL_INLINE void give_rows(struct end *e, int stop)
{
	for (; e->done < stop; e->done++)
		give_row(&e->to, e->done, SIDE, e->sums + e->done * SIDE);
}

/* What a step does besides its products. */
QL_INLINE void between(struct end *e)
{
	for (int i = 0; i < e->some && e->fetch_rows > 0; i++, e->fetch_rows--, e->fetch += e->to.ld) {
		__builtin_prefetch(e->fetch, 1);
		__builtin_prefetch(e->fetch + 16, 1);
	}
	give_rows(e, e->done + e->some < e->rows ? e->done + e->some : e->rows);
	for (int i = 0; i < e->lines && e->ahead < e->end; i++, e->ahead += AMX_BYTES)
		__builtin_prefetch(e->ahead, 0, 2);
}

/* `tiles` times 16 rows of A times 32 columns of the panel */
QL_INLINE void steps(const bool is_signed, const int tiles, int64_t n, const uint8_t *a, const int8_t *b, struct end *e)
{
	for (int64_t s = 0; s < n; s++, a += tiles * TILE, b += STEP * GROUP) {
		amx_stream(6, b, GROUP);
		amx_load(4, a, AMX_BYTES);
		DOT(0, 4, 6);
		if (tiles > 1) {
			amx_load(5, a + TILE, AMX_BYTES);
			DOT(2, 5, 6);
		}
		amx_stream(7, b + AMX_BYTES, GROUP);
		DOT(1, 4, 7);
		between(e);
		if (tiles > 1)
			DOT(3, 5, 7);
	}
}

/* The last k, fewer than a step: A has zeros behind them, the panel may end. */
QL_INLINE void half_step(
	const bool is_signed, const int tiles, int64_t groups, const uint8_t *a, const int8_t *b, struct end *e)
{
	_Alignas(64) int8_t right[STEP * GROUP] = {0};

	for (int64_t g = 0; g < groups; g++)
		memcpy(right + g * GROUP, b + g * GROUP, 2 * AMX_BYTES);
	amx_written(right);
	steps(is_signed, tiles, 1, a, right, e);
}

static void all_tiles(int rows)
{
	struct amx_config shape = {.palette = 1};

	for (int t = 0; t < 8; t++) {
		shape.rows[t] = (uint8_t)rows;
		shape.bytes[t] = AMX_BYTES;
	}
	amx_configure(&shape);
}

QL_INLINE void load_sums(const int tiles, bool none, const int32_t *c)
{
	amx_zero(0);
	amx_zero(1);
	amx_zero(2);
	amx_zero(3);
	if (none)
		return;
	amx_written(c);
	amx_load(0, c, SIDE * 4);
	amx_load(1, c + 16, SIDE * 4);
	if (tiles > 1) {
		amx_load(2, c + 16 * SIDE, SIDE * 4);
		amx_load(3, c + 16 * SIDE + 16, SIDE * 4);
	}
}

QL_INLINE void store_sums(const int tiles, int32_t *c)
{
	amx_store(0, c, SIDE * 4);
	amx_store(1, c + 16, SIDE * 4);
	if (tiles > 1) {
		amx_store(2, c + 16 * SIDE, SIDE * 4);
		amx_store(3, c + 16 * SIDE + 16, SIDE * 4);
	}
	amx_written(c);
}

/* Numbers of rows from i and columns from j. */
static struct ql_gemm_i8_scaled part_of(const struct ql_gemm_i8_scaled *to, int64_t i, int64_t j)
{
	struct ql_gemm_i8_scaled p = *to;

	p.column += j;
	p.row += p.row ? i : 0;
	p.row_scale += i * p.row_step;
	p.column_scale += j;
	p.bias += j;
	p.y += i * p.ld + j;
	return p;
}

/* k..k+depth-1 of rows i.., of which a is the form, times 32 columns from j on. */
QL_INLINE void square(const bool is_signed, const int tiles, const struct ql_gemm_i8_block *b,
	const struct ql_gemm_i8_scaled *to, int64_t i, int64_t j, int64_t k, const uint8_t *a, int32_t *sums,
	struct end *e)
{
	int64_t k4 = b->k4 - k / 4 < DEPTH / 4 ? b->k4 - k / 4 : DEPTH / 4, whole = k4 / STEP;
	const int8_t *panel = b->panels + (j / NR * b->k4 + k / 4) * GROUP + j % NR * 4;
	bool last = k / 4 + k4 == b->k4;
	int columns = b->columns - j < SIDE ? (int)(b->columns - j) : SIDE;
	int rows = b->rows - i < SIDE ? (int)(b->rows - i) : SIDE;
	int32_t *c = last ? sums : (int32_t *)b->memory + j * SIDE;

	e->some = whole ? (int)((SIDE + whole - 1) / whole) : 0;
	e->fetch = to->y + i * to->ld + j;
	e->fetch_rows = last ? rows : 0;
	load_sums(tiles, k == 0, (int32_t *)b->memory + j * SIDE);
	steps(is_signed, tiles, whole, a, panel, e);
	if (whole * STEP < k4)
		half_step(
			is_signed, tiles, k4 - whole * STEP, a + whole * tiles * TILE, panel + whole * STEP * GROUP, e);
	give_rows(e, e->rows); /* their sums may be where the new ones go */
	store_sums(tiles, c);
	if (!last)
		return;
	e->sums = c;
	e->to = part_of(to, i, j);
	e->rows = columns == SIDE ? rows : 0;
	e->done = 0;
	for (int r = 0; r < rows && columns < SIDE; r++)
		give_row(&e->to, r, columns, c + r * SIDE);
}

/* 32 rows, or 16 and fewer */
QL_INLINE void group(const bool is_signed, const int tiles, const struct ql_gemm_i8_block *b,
	const struct ql_gemm_i8_scaled *to, int64_t i, const uint8_t *a, int32_t *sums, struct end *e)
{
	for (int64_t k = 0; k < 4 * b->k4 || k == 0; k += DEPTH)
		for (int64_t j = 0; j < b->columns; j += SIDE)
			square(is_signed, tiles, b, to, i, j, k, a + k * tiles * MR, sums, e);
}

QL_INLINE void groups(const bool is_signed, const struct ql_gemm_i8_block *b, const struct ql_gemm_i8_scaled *to)
{
	_Alignas(64) int32_t sums[SIDE * SIDE];
	int64_t length = (b->columns + NR - 1) / NR * b->k4 * GROUP, pitch = (b->k4 + STEP - 1) / STEP * AMX_BYTES;
	struct end e = {.to = *to,
		.end = b->panels + length + b->ahead,
		.lines = b->rows < SIDE * SIDE ? SIDE * SIDE / (int)b->rows : 1};

	e.lines = e.lines > SIDE ? SIDE : e.lines;
	e.ahead = b->panels + (b->rows <= SIDE && length > NEAR ? NEAR : length);
	all_tiles(MR);
	for (int64_t i = 0; i < b->rows; i += SIDE)
		if (b->rows - i > MR)
			group(is_signed, 2, b, to, i, b->a + i * pitch, sums, &e);
		else
			group(is_signed, 1, b, to, i, b->a + i * pitch, sums, &e);
	give_rows(&e, e.rows);
	amx_release();
}

static void scaled_block(const struct ql_gemm_i8_block *b, const struct ql_gemm_i8_scaled *to)
{
	if (b->is_signed)
		groups(true, b, to);
	else
		groups(false, b, to);
}

/* Of 32 rows, or of the last 16 and fewer, the tiles of each step of 64 k, one after the other. */
static void form(int64_t rows, int64_t k, const uint8_t *a, int64_t lda, uint8_t *to)
{
	int64_t whole = k / AMX_BYTES, pitch = (k + AMX_BYTES - 1) / AMX_BYTES * AMX_BYTES;

	for (int64_t r = 0; r < rows; r++) {
		int64_t left = rows - r / SIDE * SIDE, step = left > MR ? 2 * TILE : TILE;
		uint8_t *line = to + r / SIDE * SIDE * pitch + r % SIDE * AMX_BYTES;
		const uint8_t *from = a + r * lda;

		for (int64_t s = 0; s < whole; s++)
			memcpy(line + s * step, from + s * AMX_BYTES, AMX_BYTES);
		if (k % AMX_BYTES) {
			memset(line + whole * step, 0, AMX_BYTES);
			memcpy(line + whole * step, from + whole * AMX_BYTES, (size_t)(k % AMX_BYTES));
		}
	}
	amx_written(to);
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
	.scaled_block = scaled_block,
	.form = form,
	.form_rows = MR,
	.form_k = AMX_BYTES,
	.block_rows = SIDE,
	.dot_rows = DOT_ROWS,
	.dots = dots};
