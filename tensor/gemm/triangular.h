/* SPDX-License-Identifier: MIT
 * Triangular matrices of float64: factors, inverses and solutions, in blocks, whose products are those of ql_gemm_f64. Every element
 * is what a plain loop computes that subtracts one product after another and divides at the end: the same bits on every kernel level, for
 * any number of threads, and whether a matrix is computed alone or, up to QL_TRIANGULAR_SMALL, within a parallel loop.
 */
#ifndef QUOLL_TENSOR_GEMM_TRIANGULAR_H
#define QUOLL_TENSOR_GEMM_TRIANGULAR_H

#include "tensor/gemm/gemm.h"

#define QL_TRIANGULAR_SMALL 64 /* largest n of the functions ending in _small, which neither allocate nor fail */

/* In all of them u is (n, n) with contiguous rows; of factors and operands the upper triangle is read and written, and what is below
 * it is left undefined. */

/* u becomes the upper U with U'U = u. Returns or gives in *pivot n, or the first pivot (from 0) that is not above 0: then the
 * diagonal has it, and the rest is undefined. */
enum ql_status ql_triangular_factor(struct ql_ctx *ctx, int64_t n, double *u, int64_t *pivot);
int64_t ql_triangular_factor_small(const struct ql_ctx *ctx, int64_t n, double *u);

/* u becomes its inverse, upper, too; row by row from the last one, products in descending order of k. */
enum ql_status ql_triangular_invert(struct ql_ctx *ctx, int64_t n, double *u);
void ql_triangular_invert_small(const struct ql_ctx *ctx, int64_t n, double *u);

/* u becomes the upper triangle of U U'; products in ascending order of k. */
enum ql_status ql_triangular_square(struct ql_ctx *ctx, int64_t n, double *u);
void ql_triangular_square_small(int64_t n, double *u);

/* x (n, m), rows ldx apart (of any sign), becomes the solution of l X = x for the lower triangle of l (n, n); with `unit` its diagonal is
 * not read and counts as 1. Products in ascending order of k. */
enum ql_status ql_triangular_solve(
	struct ql_ctx *ctx, int64_t n, int64_t m, const struct ql_matrix_f64 *l, bool unit, double *x, int64_t ldx);
void ql_triangular_solve_small(const struct ql_ctx *ctx, int64_t n, int64_t m, const struct ql_matrix_f64 *l, bool unit,
	double *x, int64_t ldx);

#endif
