/* SPDX-License-Identifier: MIT
 * Transposes square tiles in a buffer in L1: whole rows of the source are read and written to columns of the
 * buffer, then whole rows of the buffer are written. Element by element a 4096 x 4096 matrix takes six times as
 * long, since each element is in another cache line and these lines map to the same cache sets.
 */
#include "tensor/transpose.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <string.h>

#include "tensor/parallel.h"

#define TILE 32 /* elements; with fewer along the axis rows are copied */
#define SHORT \
	4 /* the same for the last axis; rows shorter than TILE are written directly, as those of a kernel's taps */

int ql_transpose_axis(const struct ql_walk *w)
{
	int last = w->rank - 1;

	if (last < 1 || w->rows == 0 || w->row < SHORT || w->stride[0][last] != 1 || w->stride[1][last] == 1)
		return -1;
	for (int d = 0; d < last; d++)
		if (w->stride[1][d] == 1 && w->shape[d] >= TILE)
			return d;
	return -1;
}

/* ---- bytes ---- */

#define SQUARE 16

/* A square of bytes. Interleaving the halves of a list of 16 vectors four times exchanges rows and columns. */
static void turn_square(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step)
{
#ifdef __SSE2__
	__m128i a[SQUARE], b[SQUARE];

	for (int i = 0; i < SQUARE; i++)
		a[i] = _mm_loadu_si128((const __m128i *)(const void *)(src + i * src_step));
#pragma GCC unroll 2
	for (int round = 0; round < 2; round++) {
#pragma GCC unroll 8
		for (int i = 0; i < SQUARE / 2; i++) {
			b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + SQUARE / 2]);
			b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + SQUARE / 2]);
		}
#pragma GCC unroll 8
		for (int i = 0; i < SQUARE / 2; i++) {
			a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + SQUARE / 2]);
			a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + SQUARE / 2]);
		}
	}
	for (int i = 0; i < SQUARE; i++)
		_mm_storeu_si128((__m128i *)(void *)(dst + i * dst_step), a[i]);
#else
	for (int i = 0; i < SQUARE; i++)
		for (int j = 0; j < SQUARE; j++)
			dst[i * dst_step + j] = src[j * src_step + i];
#endif
}

void ql_transpose_bytes(int64_t n, int64_t m, const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step)
{
	for (int64_t j = 0; j < m; j += SQUARE) {
		int64_t whole = m - j < SQUARE ? 0 : n / SQUARE * SQUARE, end = ql_min64(m, j + SQUARE);

		for (int64_t i = 0; i < whole; i += SQUARE)
			turn_square(src + j * src_step + i, src_step, dst + i * dst_step + j, dst_step);
		for (int64_t k = j; k < end; k++)
			for (int64_t i = whole; i < n; i++)
				dst[i * dst_step + k] = src[k * src_step + i];
	}
}

/* ---- any elements ---- */

struct job {
	struct ql_walk outer; /* all axes but the two */
	int64_t n, m;         /* elements along `axis`, along the last axis */
	int64_t dst_step;     /* of dst along `axis` */
	int64_t src_step;     /* of src along the last axis */
	int64_t n_tiles, m_tiles;
	size_t size;
	char *dst;
	const char *src;
};

#define TURN(type) \
	static void turn_##type(int64_t n, int64_t m, const char *src, int64_t src_step, type *tile) \
	{ \
		for (int64_t j = 0; j < m; j++) { \
			const type *row = (const type *)(const void *)src + j * src_step; \
\
			for (int64_t i = 0; i < n; i++) \
				tile[i * TILE + j] = row[i]; \
		} \
	}
#define PUT(type) \
	static void put_##type(int64_t n, int64_t m, const char *src, int64_t src_step, char *dst, int64_t dst_step) \
	{ \
		const type *from = (const type *)(const void *)src; \
		type *to = (type *)(void *)dst; \
\
		for (int64_t i = 0; i < n; i++) \
			for (int64_t j = 0; j < m; j++) \
				to[i * dst_step + j] = from[j * src_step + i]; \
	}
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)
PUT(uint8_t)
PUT(uint16_t)
PUT(uint32_t)
PUT(uint64_t)

/* A few elements of each row. */
static void copy_short(const struct job *j, char *dst, const char *src, int64_t n, int64_t m)
{
	if (j->size == 1)
		put_uint8_t(n, m, src, j->src_step, dst, j->dst_step);
	else if (j->size == 2)
		put_uint16_t(n, m, src, j->src_step, dst, j->dst_step);
	else if (j->size == 4)
		put_uint32_t(n, m, src, j->src_step, dst, j->dst_step);
	else
		put_uint64_t(n, m, src, j->src_step, dst, j->dst_step);
}

static void copy_tile(const struct job *j, char *dst, const char *src, int64_t n, int64_t m)
{
	union {
		uint8_t one[TILE * TILE];
		uint16_t two[TILE * TILE];
		uint32_t four[TILE * TILE];
		uint64_t eight[TILE * TILE];
	} tile;

	if (j->size == 1)
		ql_transpose_bytes(n, m, (const uint8_t *)src, j->src_step, tile.one, TILE);
	else if (j->size == 2)
		turn_uint16_t(n, m, src, j->src_step, tile.two);
	else if (j->size == 4)
		turn_uint32_t(n, m, src, j->src_step, tile.four);
	else
		turn_uint64_t(n, m, src, j->src_step, tile.eight);
	for (int64_t i = 0; i < n; i++)
		memcpy(dst + (size_t)(i * j->dst_step) * j->size, (const char *)&tile + (size_t)(i * TILE) * j->size,
			(size_t)m * j->size);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t t = begin; t < end; t++) {
		int64_t column = t % j->m_tiles * TILE, row = t / j->m_tiles % j->n_tiles * TILE, offset[QL_MAX_WALK];

		ql_walk_row(&j->outer, t / j->m_tiles / j->n_tiles, offset);
		(j->m < TILE ? copy_short : copy_tile)(j,
			j->dst + (size_t)(offset[0] + row * j->dst_step + column) * j->size,
			j->src + (size_t)(offset[1] + row + column * j->src_step) * j->size, ql_min64(TILE, j->n - row),
			ql_min64(TILE, j->m - column));
	}
}

/* Replaces the two axes by a last one of size 1, because ql_walk_row ignores the last axis. */
static void remove_axes(struct ql_walk *w, int axis)
{
	int last = w->rank - 1;

	for (int d = axis; d + 1 < last; d++) {
		w->shape[d] = w->shape[d + 1];
		w->stride[0][d] = w->stride[0][d + 1];
		w->stride[1][d] = w->stride[1][d + 1];
	}
	w->rank--;
}

enum ql_status ql_transpose(
	struct ql_ctx *ctx, const struct ql_walk *w, int axis, size_t size, void *dst, const void *src)
{
	struct job j = {.outer = *w,
		.n = w->shape[axis],
		.m = w->row,
		.dst_step = w->stride[0][axis],
		.src_step = w->stride[1][w->rank - 1],
		.size = size,
		.dst = dst,
		.src = src};
	int64_t outer = w->rows / j.n;

	j.n_tiles = ql_ceil_div(j.n, TILE);
	j.m_tiles = ql_ceil_div(j.m, TILE);
	remove_axes(&j.outer, axis);
	return ql_parallel_for(ctx, outer * j.n_tiles * j.m_tiles, 32, w->rows * w->row, body, &j);
}
