/* SPDX-License-Identifier: MIT
 * Matrix products C (m, n) = A (m, k) * B (k, n) on the calling context's kernels and threads. Sizes may be
 * 0; k = 0 gives zeros. Temporaries come from scratch memory. All poll for an interrupt.
 */
#ifndef QUOLL_TENSOR_GEMM_H
#define QUOLL_TENSOR_GEMM_H

#include "tensor/base.h"
#include "tensor/dtype.h"

struct ql_gemm_f32;
struct ql_gemm_i8;

/* An integer matrix by element strides; codes minus zero points enter the product. */
struct ql_matrix_int {
	const void *data;
	unsigned dtype;      /* QL_int8 or QL_uint8; for ql_gemm_i16 also QL_int16 and QL_uint16 */
	int64_t row, column; /* strides in elements, of any size */
	/* Zero points, one per row of A or column of B (zero_step 1) or one for all (0); NULL: 0. Any value.
	 */
	const int32_t *zero;
	int64_t zero_step;
	/* Of a B of ql_gemm_i8: it was packed before, and `data` is not read. NULL: it is packed for this product. */
	const struct ql_gemm_i8_panels *panels;
	/* Of a B of ql_gemm_i8 that it reads as it lies: the sums of its columns from before. NULL: they are worked out. */
	const int32_t *sums;
};

/* A B (k, n) of 8-bit codes as the tiles of a kernel read it, with the sums of its columns. */
struct ql_gemm_i8_panels {
	const struct ql_gemm_i8 *kernel;
	const uint8_t *data;
	const int32_t *sum; /* (n), mod 2^32 */
	const int64_t *sum_wide;
};

/* Bytes that ql_gemm_i8_pack wants; 0: they do not fit in 64 bits. */
uint64_t ql_gemm_i8_panel_bytes(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k);
/* Packs b into `memory` (64-byte aligned), of which *out tells what is where. */
enum ql_status ql_gemm_i8_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b, void *memory,
	struct ql_gemm_i8_panels *out);

/* The same kept with the storage that b comes from (storage.h). `place` is of its maker, the kernel; NULL: nowhere. *out has
 * no kernel when nothing is kept there: the first time, or without memory for it. A NULL b only looks. */
struct ql_derived;
enum ql_status ql_gemm_i8_keep(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, struct ql_gemm_i8_panels *out);

/* Receives n consecutive sums of row i from column j on. Exactly one of the two is given: sum32 when no
 * element of the product can leave 32 bits, else sum64. Every element is given once. Runs on worker threads:
 * it may neither fail, allocate nor call back into the host. */
typedef void ql_gemm_store_fn(
	void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64);

/* Exact for all codes and zero points (as long as a sum fits in 64 bits). */
enum ql_status ql_gemm_i8(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg);
/* It then reads the lines of B's transpose as they lie, for m rows of A: nothing of B is packed. */
bool ql_gemm_i8_reads_b(int64_t m, int64_t k, const struct ql_matrix_int *b);
/* Of such a B the sums that b->sums wants, kept like panels; *out is NULL when nothing is kept there. */
enum ql_status ql_gemm_i8_keep_sums(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, const int32_t **out);
/* The same for 8- and 16-bit operands in any mixture; always 64-bit sums. */
enum ql_status ql_gemm_i16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg);

/* Rows of packed bits (1: +1, 0: -1), low bits first. What lies behind the k bits of a row is ignored. */
struct ql_matrix_bits {
	const void *data;
	int64_t row; /* bytes from row to row */
};

/* Sums of k products of +-1: A is (m, k), and so is each row of b a column of B: (n, k). Always 32-bit sums.
 */
enum ql_status ql_gemm_b1(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_bits *a,
	const struct ql_matrix_bits *b, ql_gemm_store_fn *store, void *arg);

/* float32, strides in elements; c is row-major with rows ldc elements apart and overlaps nothing. The
 * tolerance is that of struct ql_gemm_f32. */
enum ql_status ql_gemm_f32(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
	int64_t a_col, const float *b, int64_t b_row, int64_t b_col, float *c, int64_t ldc);

/* A B (k, n) of float32 in panels of nr columns, k rows of nr numbers each, packed once for several products. The kernel is
 * ctx->kernels->tiles. */
struct ql_gemm_f32_panels {
	const struct ql_gemm_f32 *kernel;
	int64_t n, k;
	const float *data;
};
/* Numbers that they take. */
int64_t ql_gemm_f32_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k);
/* Packs into `memory` on this thread. Element (l, j) of B is b[l * b_row + j * b_col]; one of the strides is 1. */
struct ql_gemm_f32_panels ql_gemm_f32_panels_of(const struct ql_ctx *ctx, int64_t n, int64_t k, const float *b,
	int64_t b_row, int64_t b_col, float *memory);
/* Packs into scratch memory on all threads. */
enum ql_status ql_gemm_f32_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row,
	int64_t b_col, struct ql_gemm_f32_panels *out);
/* c (m, n) = a (m, k) times them, on this thread; with tiles the bits of ql_gemm_f32. Rows of a are consecutive; a smaller
 * n takes the first columns. Neither allocates nor fails, for loops that are parallel already. */
void ql_gemm_f32_rows(const struct ql_gemm_f32_panels *b, int64_t m, const float *a, int64_t a_row, float *c,
	int64_t ldc);
/* Name of the kernel that ql_gemm_f32 takes. */
const char *ql_gemm_f32_name(struct ql_ctx *ctx);

#endif
