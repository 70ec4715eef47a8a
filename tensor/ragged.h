/* SPDX-License-Identifier: MIT
 * Storage of codes whose channels differ in bits: each channel is a row of bit fields of its own width, low bits first,
 * padded with zero bits to whole bytes. Rows are consecutive. One of the layouts of closed.h.
 */
#ifndef QUOLL_TENSOR_RAGGED_H
#define QUOLL_TENSOR_RAGGED_H

#include "tensor/closed.h"
#include "tensor/qparams.h"

struct ql_ragged {
	struct ql_closed base;
	bool columns;        /* the channels are the last axis */
	int64_t rows, row;   /* channels; elements of each */
	int64_t lines, line; /* lines of a channel per index of the axes before it; elements of a line */
	int64_t pitch;       /* elements from line to line of the dense codes; with `columns`, from row to row */
	int64_t *begin;      /* index of the first byte of each row */
	uint8_t *bits;       /* of each row */
	uint8_t *data;
};

/* The rows of s; NULL: s is dense or in another layout. */
const struct ql_ragged *ql_ragged_of(const struct ql_storage *s);

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

/* Copies elements at..at+n-1 of the dense codes to `code`, as bytes, or as 16-bit numbers if the dtype has more than 8
 * bits. */
void ql_ragged_get(const struct ql_ragged *r, int64_t at, int64_t n, void *code);

#endif
