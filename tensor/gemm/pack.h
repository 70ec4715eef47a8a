/* SPDX-License-Identifier: MIT
 * Packs operands of a product into the layout of the tiles (tensor/kernels/kernels.h).
 */
#ifndef QUOLL_TENSOR_GEMM_PACK_H
#define QUOLL_TENSOR_GEMM_PACK_H

#include "tensor/gemm/gemm.h"

#define QL_GEMM_DEPTH 256 /* a float32 sum is a sum of sums over this many products */

struct ql_pack_i8;

/* Packs columns j..j+columns-1 of B into panels: nr x 4 values for each 4 k; missing columns and k are 0. 8 bits, any
 * number of consecutive panels: each code is xored with `flip`. 16 bits, one panel: `shift` is subtracted. */
void ql_gemm_panels_8(const struct ql_pack_i8 *with, const struct ql_matrix_int *b, int64_t k, int64_t j,
	int64_t columns, int nr, uint8_t flip, uint8_t *panels);
void ql_gemm_panel_16(
	const struct ql_matrix_int *b, int64_t k, int64_t j, int columns, int nr, int32_t shift, int16_t *panel);
/* Packs rows i..i+rows-1 of A with k consecutive; the lda - k elements after each row are 0. */
void ql_gemm_rows_8(const struct ql_pack_i8 *with, const struct ql_matrix_int *a, int64_t k, int64_t i, int64_t rows,
	uint8_t flip, uint8_t *out, int64_t lda);
void ql_gemm_rows_16(
	const struct ql_matrix_int *a, int64_t k, int64_t i, int64_t rows, int32_t shift, int16_t *out, int64_t lda);

/* float32: k rows of `columns` numbers, nr apart; strides in elements. Elements after the columns of a row are not
 * written. `variant` of the loops of tensor/vmath/simd.h. */
void ql_gemm_panel_f32(
	int variant, const float *b, int64_t row, int64_t column, int64_t k, int columns, int64_t nr, float *out);

/* Nanoseconds to pack `lines` rows or columns of k bytes, for ql_parallel_for: 2 to 3 bytes per ns when another
 * core last read the destination. */
static inline int64_t ql_gemm_pack_ns(int64_t lines, int64_t k)
{
	double ns = 0.4 * (double)lines * (double)k;

	return ns < 1e15 ? (int64_t)ns : (int64_t)1e15;
}

#endif
