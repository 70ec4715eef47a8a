/* SPDX-License-Identifier: MIT
 * Scaled dot-product attention of many heads, on operands of any layout whose last axis is dense:
 * o = softmax(scale q kᵀ + mask) v for each batch and head. Heads of q share those of k and v evenly.
 */
#ifndef QUOLL_NN_ATTENTION_H
#define QUOLL_NN_ATTENTION_H

#include "tensor/base.h"

/* (batches, heads, rows, d or e): strides in elements; float or double. */
struct ql_heads {
	void *data;
	int64_t batch, head, row;
};

struct ql_attention {
	int64_t batches, heads, shared; /* heads of k and v; heads / shared of q use each */
	int64_t queries, keys, d, e;    /* d, keys > 0 */
	double scale;
	bool causal; /* query i attends to keys 0..i + keys - queries; keys >= queries */
	struct ql_heads q, k, v, o;
	struct ql_heads g, dq, dk, dv; /* backward: the gradient of o, and the results */
};

static inline int64_t ql_heads_at(const struct ql_heads *h, int64_t batch, int64_t head, int64_t row)
{
	return batch * h->batch + head * h->head + row * h->row;
}

/* The number of keys that query i attends to. */
static inline int64_t ql_attention_seen(const struct ql_attention *a, int64_t i)
{
	return a->causal ? i + 1 + a->keys - a->queries : a->keys;
}

enum ql_status ql_attention_f32(struct ql_ctx *ctx, const struct ql_attention *a);
enum ql_status ql_attention_f32_backward(struct ql_ctx *ctx, const struct ql_attention *a);
/* Plain loops, for checks. */
enum ql_status ql_attention_f64(struct ql_ctx *ctx, const struct ql_attention *a);
enum ql_status ql_attention_f64_backward(struct ql_ctx *ctx, const struct ql_attention *a);

#endif
