/* SPDX-License-Identifier: MIT
 * A tensor: shape, strides and offset over a shared storage; quantization parameters follow the view.
 *
 * Axes are 0-based in C (1-based in Lua). Strides and offset count elements. Packed types (4 and 1 bit): at
 * most one axis has stride 1, the packed one; every other stride and the offset are multiples of 8 / bits,
 * rows are padded to whole bytes with zero bits.
 */
#ifndef QUOLL_TENSOR_TENSOR_H
#define QUOLL_TENSOR_TENSOR_H

#include "tensor/base.h"
#include "tensor/dtype.h"
#include "tensor/storage.h"

struct ql_node;
struct ql_qparams;

struct ql_tensor {
	int refs;
	uint8_t dtype, rank;
	bool discarded; /* by the host: in a list of tensors that are released later (interp/lifetime.h) */
	int64_t shape[QL_MAX_RANK], stride[QL_MAX_RANK], offset;
	struct ql_storage *storage;
	struct ql_qparams *q; /* NULL: plain numbers */
	struct ql_node *node; /* what made it, when a gradient is wanted (tape.h); NULL: none is */
	int node_output;      /* which result of node it is */
	uint32_t origin;      /* row of the ledger that tells how this value was made; 0: given by the user */
	struct ql_tensor *next_discarded;
};

/* gives a contiguous tensor, elements not set (padding bits of packed rows are zero). Errors: rank above
 * QL_MAX_RANK, negative size, byte count overflow, no memory. */
enum ql_status ql_tensor_new(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape,
	struct ql_tensor **out);
enum ql_status ql_tensor_zeros(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape,
	struct ql_tensor **out);
/* gives a rank-0 float32 or int64 tensor holding the value */
enum ql_status ql_tensor_of_f32(struct ql_ctx *ctx, float value, struct ql_tensor **out);
enum ql_status ql_tensor_of_i64(struct ql_ctx *ctx, int64_t value, struct ql_tensor **out);
/* gives another header on the same storage and quant params, without the node */
enum ql_status ql_tensor_alias(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
struct ql_tensor *ql_tensor_keep(struct ql_tensor *t);
void ql_tensor_release(struct ql_ctx *ctx, struct ql_tensor *t);

/* gives a contiguous copy with the same dtype and the same quant params (shared) */
enum ql_status ql_tensor_clone(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* gives t itself (kept) when it is contiguous, else a clone */
enum ql_status ql_tensor_contiguous(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out);
/* gives a plain contiguous tensor of `dtype` holding the raw numbers of t: quant params are ignored, so for
 * a quantized t these are the codes. Floats to integers round half to even and saturate; so do integers. */
enum ql_status ql_tensor_cast(struct ql_ctx *ctx, const struct ql_tensor *t, unsigned dtype,
	struct ql_tensor **out);
/* Copies raw numbers of src into dst (same shape), converting the dtype; overlap is allowed. */
enum ql_status ql_tensor_copy(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src);

int64_t ql_tensor_nelem(const struct ql_tensor *t);
/* The product of all sizes, those of 0 left out, is below 2^63: what holds for every tensor, so that products of some of
 * its sizes cannot overflow. Fails with a message that names `op`. Negative sizes are not looked at. */
enum ql_status ql_shape_check(struct ql_ctx *ctx, const char *op, int rank, const int64_t *shape);
bool ql_tensor_is_contiguous(const struct ql_tensor *t);
/* some element has two indices: an in-place write would be ill-defined */
bool ql_tensor_overlaps_itself(const struct ql_tensor *t);
bool ql_tensor_same_shape(const struct ql_tensor *a, const struct ql_tensor *b);
/* bytes of the elements (packed rows padded) plus those of scales and zero points; INT64_MAX when an expanded view has more */
uint64_t ql_tensor_nbytes(const struct ql_tensor *t);
/* bytes of `rows` rows of `row` elements, each filled up to whole bytes; INT64_MAX on overflow */
uint64_t ql_rows_bytes(int64_t rows, int64_t row, unsigned bits);
/* address of the first element; whole-byte dtypes only */
void *ql_tensor_data(const struct ql_tensor *t);

/* One element as double / int64 by 0-based index. */
double ql_tensor_get_f64(const struct ql_tensor *t, const int64_t *index);
int64_t ql_tensor_get_i64(const struct ql_tensor *t, const int64_t *index);
/* The i-th element in row-major order, of any view. */
double ql_tensor_at_f64(const struct ql_tensor *t, int64_t i);

/* "(3, 4)" or "()" into `text`; returns text. "float32(3, 4)" for describe, with the spec when quantized. */
#define QL_SHAPE_TEXT 192
char *ql_shape_text(int rank, const int64_t *shape, char text[QL_SHAPE_TEXT]);
char *ql_tensor_text(const struct ql_tensor *t, char text[QL_SHAPE_TEXT]);

/* 1-based axis of the user (negative from the end) to 0-based; `what` names function and argument. */
enum ql_status ql_axis(struct ql_ctx *ctx, const char *what, int64_t given, int rank, int *out);
/* 1-based index of the user (negative from the end) to 0-based. */
enum ql_status ql_index(struct ql_ctx *ctx, const char *what, int64_t given, int64_t size, int64_t *out);

#endif
