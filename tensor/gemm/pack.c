/* SPDX-License-Identifier: MIT
 * Packing. The two common layouts of an 8-bit B are transposed in registers: rows of consecutive columns, four rows
 * interleaved byte by byte (pack_i8 of tensor/kernels), and columns of consecutive k, by 4 x 4 blocks of four bytes.
 * Other layouts are packed element by element.
 */
#include "tensor/gemm/pack.h"

#include <string.h>

#include "tensor/gemm/turn.h"
#include "tensor/kernels/kernels.h"

#define LANE 16 /* bytes of a vector */
#define STRIP \
	1024 /* k at a time: the part of a panel for 16 columns stays in the first-level cache \
	      */

/* Elements k0..k-1 of columns c0..columns-1, one by one. */
static void pack_each(const uint8_t *b, int64_t row, int64_t column, int64_t k0, int64_t k, int64_t c0, int64_t columns,
	int nr, uint8_t flip, uint8_t *panels, int64_t pitch)
{
	for (int64_t l = k0; l < k; l++)
		for (int64_t c = c0; c < columns; c++)
			panels[c / nr * pitch + (l / 4 * nr + c % nr) * 4 + l % 4] = b[l * row + c * column] ^ flip;
}

/* Columns of consecutive k, 16 k at a time; returns the k that are done. */
static int64_t pack_across(const uint8_t *b, int64_t column, int64_t k, int64_t columns, int nr, uint8_t flip,
	uint8_t *panels, int64_t pitch)
{
	const __m128i flips = _mm_set1_epi8((char)flip);
	int64_t whole = k / LANE * LANE;

	for (int64_t l = 0, stop; l < whole; l = stop) {
		stop = ql_min64(l + STRIP, whole);
		for (int64_t c = 0; c < columns; c += 4)
			for (int64_t at = l; at < stop; at += LANE)
				ql_turn_4(b + at + c * column, column, flips,
					panels + c / nr * pitch + at * nr + c % nr * 4, 4 * nr);
	}
	return whole;
}

void ql_gemm_panels_8(const struct ql_pack_i8 *with, const struct ql_matrix_int *b, int64_t k, int64_t j,
	int64_t columns, int nr, uint8_t flip, uint8_t *panels)
{
	const uint8_t *from = (const uint8_t *)b->data + j * b->column;
	int64_t whole = 0, wide = columns / 16 * 16, pitch = ql_ceil_div(k, 4) * 4 * nr;
	int64_t cleared = k % 4 ? 0 : columns / nr; /* panels that are written as a whole are not */

	if (k == 0)
		return;
	memset(panels + cleared * pitch, 0, (size_t)((ql_ceil_div(columns, nr) - cleared) * pitch));
	if (b->column == 1) {
		whole = k / 4 * 4;
		with->rows(whole / 4, wide, nr, from, b->row, flip, panels, pitch);
	} else if (b->row == 1) {
		whole = pack_across(from, b->column, k, wide, nr, flip, panels, pitch);
	}
	pack_each(from, b->row, b->column, 0, whole, wide, columns, nr, flip, panels, pitch);
	pack_each(from, b->row, b->column, whole, k, 0, columns, nr, flip, panels, pitch);
}

/* Rows that are interleaved (adjacent rows, not k, are consecutive): packs them like columns of B by four k, then
 * copies these. */
static void rows_across(const struct ql_pack_i8 *with, const uint8_t *a, int64_t column, int64_t k, int rows,
	uint8_t flip, uint8_t *out, int64_t lda)
{
	struct ql_matrix_int strip = {.data = a, .row = column, .column = 1};
	uint8_t panel[16 * STRIP];

	for (int64_t l = 0; l < k; l += STRIP) {
		int64_t some = ql_min64(STRIP, k - l);

		strip.data = a + l * column;
		ql_gemm_panels_8(with, &strip, some, 0, rows, 16, flip, panel);
		for (int64_t g = 0; g < ql_ceil_div(some, 4); g++)
			for (int i = 0; i < rows; i++)
				memcpy(out + i * lda + l + 4 * g, panel + (16 * g + i) * 4, 4);
	}
}

/* Encodes rows i..i+rows-1; a code that is flipped is 128 more, or less. */
static void rows_of_floats(
	const struct ql_matrix_int *a, int64_t k, int64_t i, int64_t rows, uint8_t flip, uint8_t *out, int64_t lda)
{
	const struct ql_gemm_floats *f = a->floats;
	const int32_t up = flip ? a->dtype == QL_int8 ? 128 : -128 : 0, zero = f->zero + up;
	const struct ql_affine affine = {.scale = &f->scale, .zero = &zero, .lo = f->lo + up, .hi = f->hi + up};

	for (int64_t r = 0; r < rows; r++)
		f->kernel->to_8(&affine, f->data + (i + r) * a->row, k, out + r * lda);
}

void ql_gemm_rows_8(const struct ql_pack_i8 *with, const struct ql_matrix_int *a, int64_t k, int64_t i, int64_t rows,
	uint8_t flip, uint8_t *out, int64_t lda)
{
	const uint8_t *from = a->floats ? NULL : (const uint8_t *)a->data + i * a->row;

	if (lda == 0) /* k is 0: there may be no memory */
		return;
	for (int64_t r = 0; r < rows; r++)
		memset(out + r * lda + k, 0, (size_t)(lda - k));
	if (a->floats) {
		rows_of_floats(a, k, i, rows, flip, out, lda);
		return;
	}
	if (a->column == 1) {
		for (int64_t r = 0; r < rows; r++)
			with->copy(k, from + r * a->row, flip, out + r * lda);
		return;
	}
	if (a->row == 1) {
		for (int64_t r = 0; r < rows; r += 16)
			rows_across(
				with, from + r, a->column, k, (int)ql_min64(16, rows - r), flip, out + r * lda, lda);
		return;
	}
	for (int64_t r = 0; r < rows; r++)
		for (int64_t l = 0; l < k; l++)
			out[r * lda + l] = from[r * a->row + l * a->column] ^ flip;
}

/* out[i * step] = in[i * stride] - shift, for the four dtypes; uint16 minus 32768 fits in 16 bits */
static void convert(const void *data, unsigned dtype, int64_t offset, int64_t stride, int64_t n, int32_t shift,
	int16_t *out, int64_t step)
{
	switch (dtype) {
#define CASE(type, ctype) \
	case type: { \
		const ctype *in = (const ctype *)data + offset; \
\
		for (int64_t i = 0; i < n; i++) \
			out[i * step] = (int16_t)(in[i * stride] - shift); \
		break; \
	}
		CASE(QL_int8, int8_t)
		CASE(QL_uint8, uint8_t)
		CASE(QL_int16, int16_t)
		CASE(QL_uint16, uint16_t)
#undef CASE
	default: break;
	}
}

void ql_gemm_panel_16(
	const struct ql_matrix_int *b, int64_t k, int64_t j, int columns, int nr, int32_t shift, int16_t *panel)
{
	memset(panel, 0, (size_t)(ql_ceil_div(k, 4) * 4 * nr) * sizeof(*panel));
	for (int64_t l = 0; l < k; l++)
		convert(b->data, b->dtype, l * b->row + j * b->column, b->column, columns, shift,
			panel + l / 4 * 4 * nr + l % 4, 4);
}

void ql_gemm_rows_16(
	const struct ql_matrix_int *a, int64_t k, int64_t i, int64_t rows, int32_t shift, int16_t *out, int64_t lda)
{
	for (int64_t r = 0; r < rows; r++) {
		convert(a->data, a->dtype, (i + r) * a->row, a->column, k, shift, out + r * lda, 1);
		memset(out + r * lda + k, 0, (size_t)(lda - k) * sizeof(*out));
	}
}
