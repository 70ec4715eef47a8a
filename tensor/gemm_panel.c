/* SPDX-License-Identifier: MIT
 * Panels of a float32 product: rows of nr columns of B, so that a tile reads straight on.
 */
#include <xmmintrin.h>

#include "tensor/gemm_pack.h"

struct matrix {
	const float *data;
	int64_t row, column;
};

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

/* Rows with consecutive columns. Calling memcpy for each would take as long as the copy. */
static void pack_rows(const struct matrix *b, int64_t k, int columns, int64_t nr, float *out)
{
	for (int64_t l = 0; l < k; l++) {
		const float *from = b->data + l * b->row;
		int c = 0;

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

void ql_gemm_panel_f32(const float *data, int64_t row, int64_t column, int64_t k, int columns, int64_t nr, float *out)
{
	const struct matrix b = {data, row, column};
	int64_t l = row == 1 ? k / 4 * 4 : 0;
	int whole = columns / 4 * 4;

	if (column == 1) {
		pack_rows(&b, k, columns, nr, out);
		return;
	}
	for (int c = 0; l > 0 && c < whole; c += 4)
		for (int64_t i = 0; i < l; i += 4)
			transpose_4(data + i + c * column, column, out + i * nr + c, nr);
	pack_each(&b, 0, l, whole, columns, nr, out);
	pack_each(&b, l, k, 0, columns, nr, out);
}
