/* SPDX-License-Identifier: MIT
 * Storage of codes whose channels differ in bits: each channel is a row of bit fields of its own width, low bits first,
 * padded with zero bits to whole bytes. Rows are consecutive.
 *
 * Tensors over such a storage have the dtype, strides and offset that they would have over dense codes of that dtype, so
 * views work unchanged. `data` of the storage is NULL: code that reads or writes dense codes calls ql_ragged_open before
 * and ql_ragged_close afterwards. ql_op_apply does this for the operands of every op without the flag QL_RAGGED. Both do
 * nothing for other storages.
 *
 * Images whose channels lie together (images.h) are a second kind of such storages: once opened, they stay open.
 */
#ifndef QUOLL_TENSOR_RAGGED_H
#define QUOLL_TENSOR_RAGGED_H

#include "tensor/qparams.h"

struct ql_ragged {
	uint8_t dtype;       /* of the dense codes */
	bool columns;        /* the channels are the last axis */
	int opened;          /* number of ql_ragged_open not yet matched by a ql_ragged_close */
	uint64_t version;    /* of the storage when it was opened */
	int64_t rows, row;   /* channels; elements of each */
	int64_t lines, line; /* lines of a channel per index of the axes before it; elements of a line */
	int64_t pitch;       /* elements from line to line of the dense codes; with `columns`, from row to row */
	size_t dense;        /* bytes of the dense codes */
	size_t bytes;        /* of all rows */
	int64_t *begin;      /* index of the first byte of each row */
	uint8_t *bits;       /* of each row */
	uint8_t *data;
	int64_t channels,
		pixels; /* of an image, with the channels last; 0: rows of channels, which the rest describes */
};

/* True if t has such a storage that is not open. */
static inline bool ql_ragged_closed(const struct ql_tensor *t)
{
	return t->storage->ragged && !t->storage->data;
}

/* True if t's channels differ in bits, so that files and ql_ragged_pack store them in rows. */
static inline bool ql_ragged_wanted(const struct ql_tensor *t)
{
	return t->q && t->q->bits && ql_tensor_nelem(t) > 0;
}

/* Bytes of a row of n codes of `bits` bits. */
uint64_t ql_ragged_row_bytes(int64_t n, int bits);
/* Bytes of the codes of t in rows, without scales; INT64_MAX if an expanded view would have more. */
uint64_t ql_ragged_bytes(const struct ql_tensor *t);

/* Stores t's codes at the width of each channel if channels differ in bits and t covers a whole storage of dense codes;
 * codes outside a channel's range saturate. Does nothing for other tensors. */
enum ql_status ql_ragged_pack(struct ql_ctx *ctx, struct ql_tensor *t);
/* The same, with the rows of a file (`bytes` bytes) instead of the codes of t. Errors (QL_ERR_FORMAT): a tensor that
 * ql_ragged_pack leaves unchanged, another number of bytes, padding bits that are not 0. */
enum ql_status ql_ragged_take(struct ql_ctx *ctx, struct ql_tensor *t, const uint8_t *rows, size_t bytes);

/* Sets s->data to the dense codes until ql_ragged_close, which packs them again if they were written to (s->version has
 * changed). Calls may be nested. */
enum ql_status ql_ragged_open(struct ql_ctx *ctx, struct ql_storage *s);
void ql_ragged_close(struct ql_ctx *ctx, struct ql_storage *s);
void ql_ragged_free(struct ql_ctx *ctx, struct ql_ragged *r);

/* Copies elements at..at+n-1 of the dense codes to `code`, as bytes, or as 16-bit numbers if the dtype has more than 8
 * bits. */
void ql_ragged_get(const struct ql_ragged *r, int64_t at, int64_t n, void *code);
int64_t ql_ragged_get_one(const struct ql_ragged *r, int64_t at);

/* True if t has so few elements that the next two functions are faster than opening its storage. */
bool ql_ragged_few(const struct ql_tensor *t);
/* Gives the codes of t, read one by one, as a plain contiguous tensor of whole bytes. */
enum ql_status ql_ragged_gather(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Writes the integers `from` into t, of the same shape, one by one; a value outside its channel's range saturates. */
void ql_ragged_scatter(struct ql_tensor *t, const struct ql_tensor *from);

#endif
