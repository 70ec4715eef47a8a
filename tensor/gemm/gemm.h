/* SPDX-License-Identifier: MIT
 * Matrix products C (m, n) = A (m, k) * B (k, n) on the calling context's kernels and threads. Sizes may be
 * 0; k = 0 gives zeros. Temporaries are in scratch memory. All functions poll for an interrupt.
 */
#ifndef QUOLL_TENSOR_GEMM_GEMM_H
#define QUOLL_TENSOR_GEMM_GEMM_H

#include "tensor/base.h"
#include "tensor/dtype.h"

struct ql_gemm_f32;
struct ql_gemm_i8;
struct ql_epilogue;
struct ql_strips;

struct ql_quantize;

/* Floats under one scale that stand for the codes of A: they are encoded while rows are packed. */
struct ql_gemm_floats {
	const struct ql_quantize *kernel;
	const float *data; /* rows as those of the matrix, whose columns are consecutive */
	float scale;
	int32_t zero, lo, hi; /* lo, hi: range of the codes */
};

/* An integer matrix with element strides. The product is of codes minus zero points. */
struct ql_matrix_int {
	const void *data;
	unsigned dtype;      /* QL_int8 or QL_uint8; for ql_gemm_i16 also QL_int16 and QL_uint16 */
	int64_t row, column; /* strides in elements, of any size */
	/* Zero points, one per row of A or column of B (zero_step 1) or one for all (0); NULL: 0. Any value. */
	const int32_t *zero;
	int64_t zero_step;
	/* For A of ql_gemm_i8, instead of `data`, with more than QL_GEMM_I8_FEW rows. NULL: none. */
	const struct ql_gemm_floats *floats;
	/* For B of ql_gemm_i8: panels packed earlier; `data` is then not read. NULL: B is packed for this product. */
	const struct ql_gemm_i8_panels *panels;
	/* For B of ql_gemm_i8: strips of which it makes panels (strips.h); `data` is then not read. NULL: none. */
	const struct ql_strips *strips;
	/* For a B that ql_gemm_i8 reads in place or from strips: sums of its columns computed earlier, of signed bytes. NULL: they are
	 * computed. */
	const int32_t *sums;
};

#define QL_GEMM_I8_FEW 64 /* rows of products that may read codes of A more than once */

/* B (k, n) of 8-bit codes packed for the tiles of a kernel, with the sums of its columns. */
struct ql_gemm_i8_panels {
	const struct ql_gemm_i8 *kernel;
	const uint8_t *data;
	const int32_t *sum;      /* (n), mod 2^32 */
	const int64_t *sum_wide; /* NULL: they are summed for the products that need them */
};

/* Bytes that ql_gemm_i8_pack needs; 0 if they overflow 64 bits. */
uint64_t ql_gemm_i8_panel_bytes(const struct ql_gemm_i8 *kernel, int64_t n, int64_t k);
/* Packs b into `memory` (64-byte aligned); *out points into it. */
enum ql_status ql_gemm_i8_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b, void *memory,
	struct ql_gemm_i8_panels *out);
/* The same, the parts where they are given (panels: 64-byte aligned); sum_wide may be NULL. */
enum ql_status ql_gemm_i8_pack_to(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	uint8_t *panels, int32_t *sum, int64_t *sum_wide);

/* Panels that a storage holds in the place of the codes of B (k, n), or of its transpose (tensor/closed.h). */
struct ql_tensor;
/* True if they can take the place of all codes of b's storage and need about as many bytes. */
bool ql_gemm_i8_can_store(const struct ql_ctx *ctx, const struct ql_tensor *b);
/* The same of codes that would be packed at each call: panels may need some more bytes. */
bool ql_gemm_i8_can_store_more(const struct ql_ctx *ctx, const struct ql_tensor *b);
/* Puts them there. Without memory for them nothing changes. */
enum ql_status ql_gemm_i8_store(struct ql_ctx *ctx, const struct ql_tensor *b);
/* Whether b's storage holds panels. Those of the columns of b, which may be some of them; out->kernel is NULL if b is another
 * part, or the kernel has other tiles. */
bool ql_gemm_i8_stored(const struct ql_ctx *ctx, const struct ql_tensor *b, struct ql_gemm_i8_panels *out);

/* Receives n consecutive sums of row i starting at column j. Exactly one of the two is given: sum32 if no element
 * of the product can exceed 32 bits, else sum64. Every element is given once. Runs on worker threads: it must not
 * fail, allocate or call the host. */
typedef void ql_gemm_store_fn(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64);

/* What becomes of the sums of an 8-bit product. */
struct ql_gemm_i8_out {
	ql_gemm_store_fn *store; /* receives them where none of the three following is given, and sums of 64 bits */
	void *arg;
	int32_t *s32;   /* the sums themselves, rows ld apart; */
	float *f32;     /* or (float)sum * (row_scale * column_scale), then `end`; */
	uint16_t *half; /* or the same, rounded to half_dtype: float16 or bfloat16 */
	unsigned half_dtype;
	int64_t ld;
	const float *row_scale, *column_scale;
	int64_t row_step, column_step; /* 1, or 0: one scale for all */
	const struct ql_epilogue *end; /* NULL: none */
};
/* Exact for all codes and zero points whose sums fit in 64 bits. */
enum ql_status ql_gemm_i8_to(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, const struct ql_gemm_i8_out *out);
enum ql_status ql_gemm_i8(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg);
/* True if, for m rows of A, ql_gemm_i8 reads the lines of B's transpose in place instead of packing B. */
bool ql_gemm_i8_reads_b(int64_t m, int64_t k, const struct ql_matrix_int *b);
/* True if it multiplies one row by strips with the kernel of strips, given zero points within the codes. */
bool ql_gemm_i8_row_fits(int64_t m, const struct ql_matrix_int *b);
/* The column sums of such a B for b->sums, cached with the storage of b (tensor/storage.h) in the slot `place`; NULL: not cached. *out is
 * NULL when nothing is cached: at the first request, or when out of memory. */
struct ql_derived;
enum ql_status ql_gemm_i8_keep_sums(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, const int32_t **out);
/* The same of a B in strips. */
enum ql_status ql_gemm_i8_keep_strip_sums(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, const int32_t **out);
/* The same for any mix of 8- and 16-bit operands; always 64-bit sums. */
enum ql_status ql_gemm_i16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_int *a,
	const struct ql_matrix_int *b, ql_gemm_store_fn *store, void *arg);

/* Rows of packed bits (1: +1, 0: -1), low bits first. Bits after the first k of a row are ignored. */
struct ql_matrix_bits {
	const void *data;
	int64_t row; /* distance of rows in bytes */
};

/* Sums of k products of +-1: A is (m, k); b is (n, k), its rows are the columns of B. Always 32-bit sums.
 */
enum ql_status ql_gemm_b1(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_bits *a,
	const struct ql_matrix_bits *b, ql_gemm_store_fn *store, void *arg);

/* float32, strides in elements; c is row-major with rows ldc elements apart and does not overlap a or b. The
 * tolerance is that of struct ql_gemm_f32. */
enum ql_status ql_gemm_f32(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
	int64_t a_col, const float *b, int64_t b_row, int64_t b_col, float *c, int64_t ldc);

/* A matrix of float64, strides in elements, of any sign. */
struct ql_matrix_f64 {
	const double *data;
	int64_t row, column;
};

#define QL_F64_ADD 1u    /* to what is in c */
#define QL_F64_NEGATE 2u /* the products: c - A * B */
#define QL_F64_UPPER 4u  /* elements of c below the diagonal are not wanted; some are written */

/* c = (or +=) A * B or -A * B; consecutive columns of c are adjacent, its rows ldc elements apart (of any sign), and it overlaps neither
 * operand. Each product is rounded and added in order of k: the bits of a plain loop. `how`: of the words above. */
enum ql_status ql_gemm_f64(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_f64 *a,
	const struct ql_matrix_f64 *b, double *c, int64_t ldc, unsigned how);

/* A matrix of float32, float16 or bfloat16, strides in elements. */
struct ql_matrix_float {
	const void *data;
	unsigned dtype;
	int64_t row, column;
};

/* c = A * B of operands rounded to bfloat16, by the tiles of gemm_bf16; c as above. An element is a sum of sums over QL_BF16_DEPTH
 * products, in order of k: the same bits on every kernel and number of threads. */
enum ql_status ql_gemm_bf16(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc);
#define QL_BF16_DEPTH 512
/* c = A * B of the operands' values, in float32: the bits of ql_gemm_f32, with tiles, of float32 copies, of which B has none. */
enum ql_status ql_gemm_half(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc);

/* B (k, n) of float32 in panels of nr columns, k rows of nr numbers each, packed once for several products. The
 * kernel is ctx->kernels->tiles. */
struct ql_gemm_f32_panels {
	const struct ql_gemm_f32 *kernel;
	int64_t n, k;
	const float *data;
};
/* Length of the panels in floats. */
int64_t ql_gemm_f32_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k);
/* Packs into `memory` on this thread. Element (l, j) of B is b[l * b_row + j * b_col]; one of the strides is 1. */
struct ql_gemm_f32_panels ql_gemm_f32_panels_of(
	const struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col, float *memory);
/* Packs into scratch memory on all threads. */
enum ql_status ql_gemm_f32_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col,
	struct ql_gemm_f32_panels *out);
/* The same of the quantized w (n, k): B is its transpose. */
enum ql_status ql_gemm_f32_pack_codes(struct ql_ctx *ctx, struct ql_tensor *w, struct ql_gemm_f32_panels *out);
/* c (m, n) = a (m, k) times the panels, on this thread; with tiles the bits of ql_gemm_f32. Rows of a are
 * contiguous; a smaller n uses the first columns. Does not allocate or fail, for use in parallel loops. */
void ql_gemm_f32_rows(
	const struct ql_gemm_f32_panels *b, int64_t m, const float *a, int64_t a_row, float *c, int64_t ldc);
/* The same for panels first..stop-1 alone. */
void ql_gemm_f32_columns(const struct ql_gemm_f32_panels *b, int64_t first, int64_t stop, int64_t m, const float *a,
	int64_t a_row, float *c, int64_t ldc);
/* Name of the kernel that ql_gemm_f32 uses. */
const char *ql_gemm_f32_name(struct ql_ctx *ctx);

#endif
