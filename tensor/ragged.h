/* SPDX-License-Identifier: MIT
 * Storage of codes whose channels differ in bits: each channel is a row of fields of its own width, low bits first,
 * padded with zero bits to whole bytes; the rows follow each other.
 *
 * Tensors over such a storage keep the dtype, strides and offset that they would have over dense codes of that dtype,
 * so views need to know nothing of it. `data` of the storage is NULL: whoever reads or writes dense codes calls
 * ql_ragged_open before and ql_ragged_close after it, which ql_op_apply does for the operands of every op that has
 * not set QL_RAGGED. Both do nothing for another storage.
 */
#ifndef QUOLL_TENSOR_RAGGED_H
#define QUOLL_TENSOR_RAGGED_H

#include "tensor/qparams.h"

struct ql_ragged {
	uint8_t dtype;       /* of the dense codes */
	bool columns;        /* the channels are the last axis */
	int opened;          /* calls of ql_ragged_open without their ql_ragged_close */
	uint64_t version;    /* of the storage when it was opened */
	int64_t rows, row;   /* channels; elements of each */
	int64_t lines, line; /* lines of a channel in one index of the axes before it; elements of a line */
	int64_t pitch;       /* distance of lines in the dense codes; with `columns` of rows of channels */
	size_t dense;        /* bytes of the dense codes */
	size_t bytes;        /* of all rows */
	int64_t *begin;      /* first byte of each row */
	uint8_t *bits;       /* of each row */
	uint8_t *data;
};

/* True if t's codes are not dense at the moment. */
static inline bool ql_ragged_closed(const struct ql_tensor *t)
{
	return t->storage->ragged && !t->storage->data;
}

/* True if t's channels differ in bits, so that files store them, and ql_ragged_pack stores them, in rows of their own. */
static inline bool ql_ragged_wanted(const struct ql_tensor *t)
{
	return t->q && t->q->bits && ql_tensor_nelem(t) > 0;
}

/* Bytes of the codes of n elements of `bits` in one row. */
uint64_t ql_ragged_row_bytes(int64_t n, int bits);
/* Bytes of the codes alone of t, over such a storage, in rows of their own; INT64_MAX when an expanded view has more. */
uint64_t ql_ragged_bytes(const struct ql_tensor *t);

/* Stores t's codes at their channels' own widths, if its channels differ in bits and it covers a storage of dense
 * codes; codes beyond a channel's bits saturate. Other tensors stay as they are. */
enum ql_status ql_ragged_pack(struct ql_ctx *ctx, struct ql_tensor *t);
/* The same with rows as a file has them, `bytes` of them, in place of the codes of t. The caller has checked the sum
 * of bytes; padding that is not 0 is refused. */
enum ql_status ql_ragged_take(struct ql_ctx *ctx, struct ql_tensor *t, const uint8_t *rows, size_t bytes);

/* Makes storage->data the dense codes until ql_ragged_close, which stores them again if they were written to
 * (storage->version). Calls may be nested. */
enum ql_status ql_ragged_open(struct ql_ctx *ctx, struct ql_storage *s);
void ql_ragged_close(struct ql_ctx *ctx, struct ql_storage *s);
void ql_ragged_free(struct ql_ctx *ctx, struct ql_ragged *r);

/* Gives elements at..at+n-1 of the dense codes, in bytes, or in 16 bits where the dtype has them. */
void ql_ragged_get(const struct ql_ragged *r, int64_t at, int64_t n, void *code);
int64_t ql_ragged_get_one(const struct ql_ragged *r, int64_t at);

/* True if t has so few elements that they are read or written one by one, by the next two functions. */
bool ql_ragged_few(const struct ql_tensor *t);
/* Gives the codes of t as a plain contiguous tensor of whole bytes. */
enum ql_status ql_ragged_gather(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Writes integers into t, of the same shape; a value beyond its channel's bits saturates. */
void ql_ragged_scatter(struct ql_tensor *t, const struct ql_tensor *from);

#endif
