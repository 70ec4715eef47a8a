/* SPDX-License-Identifier: MIT
 * Codes of checkpoints that are packed into 32-bit words, and back: GPTQ, AWQ, compressed-tensors.
 */
#ifndef QUOLL_NN_UNPACK_H
#define QUOLL_NN_UNPACK_H

#include "tensor/tensor.h"

enum ql_unpack_order {
	QL_UNPACK_WORDS,  /* whole fields in each word, the first in its low bits */
	QL_UNPACK_STREAM, /* fields one after the other, also across words */
	QL_UNPACK_AWQ     /* eight fields of 4 bits, in the order 0 2 4 6 1 3 5 7 */
};

struct ql_unpack {
	enum ql_unpack_order order;
	int bits;      /* 1 to 8 */
	int axis;      /* 0 or 1: along which words hold several codes */
	int64_t count; /* codes along that axis */
	int offset;    /* is subtracted: 0, or half of the range, which gives signed codes */
	bool turn;     /* the result is transposed */
};

/* Gives uint8 codes, int8 with an offset, of words (rows, columns) in int32. Errors: other words, a count that does not fit
 * them, bits that the order does not have. */
enum ql_status ql_unpack(
	struct ql_ctx *ctx, struct ql_tensor *words, const struct ql_unpack *how, struct ql_tensor **out);
/* The words of which ql_unpack gives these codes; bits without a field are 0. how->count is that of the codes. Errors: other codes, bits that the
 * order does not have. */
enum ql_status ql_pack(
	struct ql_ctx *ctx, struct ql_tensor *codes, const struct ql_unpack *how, struct ql_tensor **out);

#endif
