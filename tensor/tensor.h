/* SPDX-License-Identifier: MIT
 * A tensor: shape, strides and offset over a shared storage; quantization parameters follow the view.
 *
 * Axes are 0-based in C (1-based in Lua). Strides and offset count elements. Packed types (below 8 bits): at
 * most one axis, the packed one, has stride 1; every other stride and the offset are multiples of ql_dtype_group, the
 * fewest elements that fill whole bytes; rows are padded to such groups with zero bits.
 */
#ifndef QUOLL_TENSOR_TENSOR_H
#define QUOLL_TENSOR_TENSOR_H

#include "tensor/base.h"
#include "tensor/dtype.h"
#include "tensor/storage.h"

struct ql_mapping;
struct ql_node;
struct ql_qparams;

/* Releasing a tensor touches only the first 64 bytes: one cache line. */
struct ql_tensor {
	int refs;
	uint8_t dtype, rank;
	bool discarded;  /* the host has put it on the list of tensors to release later (interp/host/lifetime.h) */
	int node_output; /* index among the results of node */
	uint32_t origin; /* ledger row of the op that produced it; 0: given by the user */
	struct ql_storage *storage;
	struct ql_qparams *q; /* NULL: not quantized */
	struct ql_node *node; /* tape node when a gradient is required (tape.h); else NULL */
	struct ql_tensor *next_discarded;
	int64_t offset;
	int64_t shape[QL_MAX_RANK], stride[QL_MAX_RANK];
};

/* Gives a contiguous tensor with uninitialized elements (padding bits of packed rows are zero). Errors: rank above
 * QL_MAX_RANK, negative size, byte count overflow, no memory. */
enum ql_status ql_tensor_new(
	struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_tensor **out);
enum ql_status ql_tensor_zeros(
	struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_tensor **out);
/* The same on a device; ql_tensor_new and ql_tensor_zeros use the CPU. */
enum ql_status ql_tensor_new_on(struct ql_ctx *ctx, const struct ql_device *device, unsigned dtype, int rank,
	const int64_t *shape, struct ql_tensor **out);
enum ql_status ql_tensor_zeros_on(struct ql_ctx *ctx, const struct ql_device *device, unsigned dtype, int rank,
	const int64_t *shape, struct ql_tensor **out);
/* Gives a contiguous tensor whose elements are the bytes of a mapped file (mapping.h) from `offset` on, which are there and aligned. The
 * dtype is not packed. */
enum ql_status ql_tensor_mapped(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape,
	struct ql_mapping *m, uint64_t offset, struct ql_tensor **out);
/* Gives a rank-0 float32 tensor. */
enum ql_status ql_tensor_of_f32(struct ql_ctx *ctx, float value, struct ql_tensor **out);
/* Gives a second header of the same storage and quant params, without the tape node. */
enum ql_status ql_tensor_alias(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
struct ql_tensor *ql_tensor_keep(struct ql_tensor *t);
void ql_tensor_release(struct ql_ctx *ctx, struct ql_tensor *t);

/* Gives a contiguous copy with the same dtype; the quant params are shared. */
enum ql_status ql_tensor_clone(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Gives t itself (kept) when it is contiguous, else a clone. */
enum ql_status ql_tensor_contiguous(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out);
/* Gives the codes of t, integers of up to 8 bits, with one byte each: t itself (kept) if they are, else unpacked ones in any order of
 * axes, without params. */
enum ql_status ql_tensor_bytes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out);
/* Gives a plain contiguous tensor of `dtype` with the stored numbers of t: quant params are ignored, so a quantized
 * t gives its codes. Floats to integers round half to even and saturate; so do integers. */
enum ql_status ql_tensor_cast(struct ql_ctx *ctx, const struct ql_tensor *t, unsigned dtype, struct ql_tensor **out);
/* Copies the stored numbers of src into dst (same shape), converting the dtype; overlap is allowed. */
enum ql_status ql_tensor_copy(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src);

int64_t ql_tensor_nelem(const struct ql_tensor *t);
/* Checks that the product of all nonzero sizes is below 2^63. That holds for every tensor, so products of any of
 * its sizes cannot overflow. Errors name `op`. Negative sizes are not checked. */
enum ql_status ql_shape_check(struct ql_ctx *ctx, const char *op, int rank, const int64_t *shape);
bool ql_tensor_is_contiguous(const struct ql_tensor *t);
/* True if two indices share an element: an in-place write would be ill-defined. */
bool ql_tensor_overlaps_itself(const struct ql_tensor *t);
bool ql_tensor_same_shape(const struct ql_tensor *a, const struct ql_tensor *b);
/* Bytes of the elements (packed rows padded), scales and zero points; INT64_MAX when an expanded view has more. */
uint64_t ql_tensor_nbytes(const struct ql_tensor *t);
/* Bytes of `rows` rows of `row` elements, packed ones padded to whole groups; INT64_MAX on overflow. */
uint64_t ql_rows_bytes(int64_t rows, int64_t row, unsigned dtype);
/* Address of the first element; whole-byte dtypes in the host's memory only. */
void *ql_tensor_data(const struct ql_tensor *t);

/* One element as double / int64 by 0-based index. */
double ql_tensor_get_f64(const struct ql_tensor *t, const int64_t *index);
int64_t ql_tensor_get_i64(const struct ql_tensor *t, const int64_t *index);
/* Element i in row-major order; t may be any view. */
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
