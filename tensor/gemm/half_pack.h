/* SPDX-License-Identifier: MIT
 * Elements of matrices of floats, of up to 32 bits, in the layouts of gemm_bf16 and gemm_f32.
 */
#ifndef QUOLL_TENSOR_GEMM_HALF_PACK_H
#define QUOLL_TENSOR_GEMM_HALF_PACK_H

#include "tensor/gemm/gemm.h"

/* `variant`: of the loops of tensor/vmath/simd.h. */

/* Whether its numbers are bfloat16's. */
bool ql_is_bf16(const struct ql_matrix_float *x);
/* n elements from element `at` of x->data on, `step` apart: rounded half to even to bfloat16, or as float32. */
void ql_bf16_line(int variant, const struct ql_matrix_float *x, int64_t at, int64_t step, int64_t n, uint16_t *to);
void ql_f32_line(int variant, const struct ql_matrix_float *x, int64_t at, int64_t step, int64_t n, float *to);
/* Rows l..l+depth-1 of columns j..j+columns-1 of B: nr pairs for each two rows, the even one in the low half; an odd last row is
 * paired with zeros. depth <= QL_BF16_DEPTH, columns <= nr <= 64. Pairs after the columns are not written. */
void ql_bf16_panel(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, uint32_t *panel);
/* The same as float32: nr numbers for each row; depth <= QL_GEMM_DEPTH. */
void ql_f32_panel(int variant, const struct ql_matrix_float *b, int64_t l, int64_t depth, int64_t j, int columns,
	int nr, float *panel);

#endif
