/* SPDX-License-Identifier: MIT
 * What happens to the sums of an 8-bit product while they are in the first-level cache: they are corrected for the
 * zero points (i8.c has the formula) and become elements of the result.
 */
#ifndef QUOLL_TENSOR_GEMM_I8_FINISH_H
#define QUOLL_TENSOR_GEMM_I8_FINISH_H

#include "tensor/gemm/i8_parts.h"
#include "tensor/kernels/kernels.h"

struct ql_gemm_i8_finish {
	const struct ql_gemm_i8 *kernel; /* for ql_gemm_i8_finish_product, as is the tile for the signs of A's codes */
	ql_gemm_i8_tile_fn *tile;
	const struct ql_gemm_operand *a, *b;
	const struct ql_gemm_i8_out *out;
	int variant;
	const int32_t *column_sum; /* (n): sum b' mod 2^32; not read where za' is 0 */
	const int64_t *rest;       /* (m): sum a' - k za'; NULL where all zb' are 0 */
	/* Set by the functions below. Even: za' is the same for all rows and zb' for all columns, so that one number
	 * for each row and one for each column are subtracted. */
	bool even;
	uint32_t row_zero;                /* times rest: the number of a row */
	int32_t *column;                  /* (n): the numbers of columns */
	const float *column_scale, *bias; /* (n), for a float32 result; */
	float least;
	const struct ql_map *act; /* what comes after them; NULL: nothing */
};

/* Takes scratch memory for a product (m, n) that is narrow. */
enum ql_status ql_gemm_i8_finish_init(struct ql_ctx *ctx, struct ql_gemm_i8_finish *f, int64_t m, int64_t n);
/* Gives the numbers of columns first..first+n-1, whose sums are known now. */
void ql_gemm_i8_finish_columns(const struct ql_gemm_i8_finish *f, int64_t first, int64_t n);
/* Gives sums of at most QL_GEMM_TILE_ROWS rows i.. and 64 columns first.., whose rows are ld apart, to the result; changes them. */
void ql_gemm_i8_finish_tile(
	const struct ql_gemm_i8_finish *f, int64_t i, int rows, int64_t first, int64_t n, int32_t *sum, int64_t ld);
/* Whether blocks of rows i.. and panels can be given to the kernel at once; known before ql_gemm_i8_finish_init. */
bool ql_gemm_i8_finish_takes_blocks(const struct ql_gemm_i8_finish *f, int64_t m, int64_t n);
/* Gives the product of such a block, of A's rows i.. and columns first..; `numbers` has room for one of each row. */
void ql_gemm_i8_finish_block(const struct ql_gemm_i8_finish *f, const struct ql_gemm_i8_block *b, int64_t i,
	int64_t first, uint32_t *numbers);
/* Multiplies A's rows i.. by a panel, the columns first.., and gives the sums to the result. */
void ql_gemm_i8_finish_product(const struct ql_gemm_i8_finish *f, int64_t i, int64_t rows, int64_t first, int columns,
	int64_t k4, const uint8_t *a, int64_t lda, const int8_t *panel);

#endif
