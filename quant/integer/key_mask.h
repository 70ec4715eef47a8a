/* SPDX-License-Identifier: MIT
 * What hides keys from the queries of attention of codes, or adds to its integer scores: a mask of bool (true: seen) or floats, lengths,
 * a window. A float m becomes rint(m / unit) in double, halves to even, at most 2^50, where unit is the value of one step of a score;
 * -inf and nan hide.
 */
#ifndef QUOLL_QUANT_INTEGER_KEY_MASK_H
#define QUOLL_QUANT_INTEGER_KEY_MASK_H

#include "tensor/op.h"

#define QL_KEY_HIDDEN INT64_MIN

struct ql_key_mask {
	struct ql_tensor *mask, *lengths; /* uint8 or float32, int64; contiguous; NULL: none */
	int64_t batch, head, row, key;    /* strides of the mask; 0 where it is broadcast */
	int64_t window, behind;           /* 0: none; keys before that of query 0 */
	bool causal;
	int64_t keys;
	double inverse; /* 1 / unit */
};

/* Keys first to below last of a query are near enough. */
struct ql_key_range {
	int64_t first, last;
};

/* From the operands after the third and the options of a call that infer has checked. Fails for lengths outside of 0 to keys. */
enum ql_status ql_key_mask_start(struct ql_ctx *ctx, const struct ql_call *call, int64_t queries, int64_t keys,
	double unit, struct ql_key_mask *m);
void ql_key_mask_release(struct ql_ctx *ctx, struct ql_key_mask *m);
struct ql_key_range ql_key_mask_range(const struct ql_key_mask *m, int64_t batch, int64_t query);
/* Adds the mask to the scores of keys range.first to range.last, or makes them QL_KEY_HIDDEN. */
void ql_key_mask_add(const struct ql_key_mask *m, int64_t batch, int64_t head, int64_t query, struct ql_key_range range,
	int64_t *score);

#endif
