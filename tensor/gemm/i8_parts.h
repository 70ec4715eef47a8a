/* SPDX-License-Identifier: MIT
 * Shared by the two 8-bit integer products: i8.c, which packs B, and i8_dots.c, which reads it in place. See i8.c
 * for the formula.
 */
#ifndef QUOLL_TENSOR_GEMM_I8_PARTS_H
#define QUOLL_TENSOR_GEMM_I8_PARTS_H

#include "tensor/gemm/gemm.h"

/* a' or b': codes with the signedness that the tiles need. */
struct ql_gemm_operand {
	const struct ql_matrix_int *from;
	uint8_t flip;    /* 128 when the signedness differs */
	int32_t *zero;   /* shifted zero points, one per row of A or column of B; NULL: all 0 */
	int64_t largest; /* bound of |code - zero point| */
};

static inline int32_t ql_gemm_zero_of(const struct ql_gemm_operand *o, int64_t i)
{
	return o->zero ? o->zero[i] : 0;
}

/* n rows of A, or columns of B. */
enum ql_status ql_gemm_operand_init(struct ql_ctx *ctx, struct ql_gemm_operand *o, const struct ql_matrix_int *from,
	int64_t n, bool wants_unsigned);
/* k * |a' - za'| * |b' - zb'| < 2^31 */
bool ql_gemm_is_narrow(const struct ql_gemm_operand *a, const struct ql_gemm_operand *b, int64_t k);
/* sum a' - k za' of one row, mod 2^64; sign: 128 if a' is signed, else 0 */
int64_t ql_gemm_row_rest(const uint8_t *a, int64_t k, int32_t zero, uint8_t sign);
/* c -= za * column_sum + rest * zb, mod 2^32; zb may be NULL, column_sum where za is 0. */
void ql_gemm_correct(
	int variant, int32_t *c, int64_t n, int32_t za, const int32_t *column_sum, const int32_t *zb, int64_t rest);

/* The product for a B with ql_gemm_i8_reads_b, when it is narrow. */
enum ql_status ql_gemm_i8_dots(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out);
/* The same for a B whose rows are consecutive bytes. */
bool ql_gemm_i8_strips_fit(int64_t m, int64_t n, const struct ql_matrix_int *b);
enum ql_status ql_gemm_i8_strips(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out);
/* The same for ql_gemm_i8_row_fits. */
enum ql_status ql_gemm_i8_row(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out);

#endif
