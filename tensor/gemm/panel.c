/* SPDX-License-Identifier: MIT
 * Panels of a float32 product: rows of nr columns of B, so that a tile reads sequentially. Columns with consecutive
 * k are transposed in registers, 16 x 16 numbers at a time: neighbours of two rows are interleaved, then pairs of
 * neighbours, then parts of four.
 */
#include <string.h>
#include <xmmintrin.h>

#include "tensor/gemm/pack.h"
#include "tensor/vmath/simd.h"

#define SIDE 16

struct matrix {
	const float *data;
	int64_t row, column;
};

typedef float lanes __attribute__((vector_size(4 * SIDE)));

#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
/* In each four numbers: interleave the first two of a and b, or the last two; join the first pairs, or the last
 * pairs. */
#define LOW(a, b) MIX(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH(a, b) MIX(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_PAIR(a, b) MIX(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_PAIR(a, b) MIX(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
/* Of the parts of four: join the first halves of a and b, or the last halves; the even parts, or the odd ones. */
#define FIRST(a, b) MIX(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define LAST(a, b) MIX(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define EVEN(a, b) MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD(a, b) MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

/* SIDE columns of k numbers, k a multiple of SIDE, to k rows of a panel */
QL_SIMD(void, transpose_16, (const float *b, int64_t column, int64_t k, float *out, int64_t nr), {
	lanes r[SIDE];
	lanes s[SIDE];

	for (int64_t l = 0; l < k; l += SIDE) {
		for (int i = 0; i < SIDE; i++)
			memcpy(&r[i], b + i * column + l, sizeof(r[i]));
		for (int i = 0; i < SIDE; i += 2) {
			s[i] = LOW(r[i], r[i + 1]);
			s[i + 1] = HIGH(r[i], r[i + 1]);
		}
		for (int i = 0; i < SIDE; i += 4) {
			r[i] = LOW_PAIR(s[i], s[i + 2]);
			r[i + 1] = HIGH_PAIR(s[i], s[i + 2]);
			r[i + 2] = LOW_PAIR(s[i + 1], s[i + 3]);
			r[i + 3] = HIGH_PAIR(s[i + 1], s[i + 3]);
		}
		for (int i = 0; i < 4; i++) {
			s[i] = FIRST(r[i], r[4 + i]);
			s[4 + i] = FIRST(r[8 + i], r[12 + i]);
			s[8 + i] = LAST(r[i], r[4 + i]);
			s[12 + i] = LAST(r[8 + i], r[12 + i]);
		}
		for (int i = 0; i < 4; i++) {
			r[i] = EVEN(s[i], s[4 + i]);
			r[4 + i] = ODD(s[i], s[4 + i]);
			r[8 + i] = EVEN(s[8 + i], s[12 + i]);
			r[12 + i] = ODD(s[8 + i], s[12 + i]);
		}
		for (int i = 0; i < SIDE; i++)
			memcpy(out + (l + i) * nr, &r[i], sizeof(r[i]));
	}
})

/* 4 columns of 4 k, each column's k consecutive, to 4 rows of a panel */
static void transpose_4(const float *b, int64_t column, float *out, int64_t nr)
{
	__m128 c0 = _mm_loadu_ps(b), c1 = _mm_loadu_ps(b + column);
	__m128 c2 = _mm_loadu_ps(b + 2 * column), c3 = _mm_loadu_ps(b + 3 * column);

	_MM_TRANSPOSE4_PS(c0, c1, c2, c3);
	_mm_storeu_ps(out, c0);
	_mm_storeu_ps(out + nr, c1);
	_mm_storeu_ps(out + 2 * nr, c2);
	_mm_storeu_ps(out + 3 * nr, c3);
}

/* k rows of `columns` numbers, a multiple of SIDE, in whole vectors. */
QL_SIMD(void, copy_wide, (const float *b, int64_t row, int64_t k, int columns, float *out, int64_t nr), {
	lanes v;

	for (int64_t l = 0; l < k; l++)
		for (int c = 0; c < columns; c += SIDE) {
			memcpy(&v, b + l * row + c, sizeof(v));
			memcpy(out + l * nr + c, &v, sizeof(v));
		}
})

/* Rows with consecutive columns. A memcpy call for each would take as long as the copy itself. */
static void pack_rows(int variant, const struct matrix *b, int64_t k, int columns, int64_t nr, float *out)
{
	int wide = columns / SIDE * SIDE;

	if (wide)
		copy_wide[variant](b->data, b->row, k, wide, out, nr);
	for (int64_t l = 0; wide < columns && l < k; l++) {
		const float *from = b->data + l * b->row;
		int c = wide;

		for (; c + 4 <= columns; c += 4)
			_mm_storeu_ps(out + l * nr + c, _mm_loadu_ps(from + c));
		for (; c < columns; c++)
			out[l * nr + c] = from[c];
	}
}

static void pack_each(const struct matrix *b, int64_t l0, int64_t k, int c0, int columns, int64_t nr, float *out)
{
	for (int64_t l = l0; l < k; l++)
		for (int c = c0; c < columns; c++)
			out[l * nr + c] = b->data[l * b->row + c * b->column];
}

void ql_gemm_panel_f32(
	int variant, const float *data, int64_t row, int64_t column, int64_t k, int columns, int64_t nr, float *out)
{
	const struct matrix b = {data, row, column};
	int64_t l = row == 1 ? k / 4 * 4 : 0, whole_k = row == 1 ? k / SIDE * SIDE : 0;
	int whole = columns / 4 * 4, wide = whole_k ? columns / SIDE * SIDE : 0;

	if (column == 1) {
		pack_rows(variant, &b, k, columns, nr, out);
		return;
	}
	for (int c = 0; c < wide; c += SIDE)
		transpose_16[variant](data + c * column, column, whole_k, out + c, nr);
	for (int c = 0; l > 0 && c < whole; c += 4)
		for (int64_t i = c < wide ? whole_k : 0; i < l; i += 4)
			transpose_4(data + i + c * column, column, out + i * nr + c, nr);
	pack_each(&b, 0, l, whole, columns, nr, out);
	pack_each(&b, l, k, 0, columns, nr, out);
}
