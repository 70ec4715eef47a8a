/* SPDX-License-Identifier: MIT
 * Scaled dot-product attention of many heads, on operands of any layout whose last axis is dense:
 * o = softmax(softcap(scale q kᵀ) + mask) v for each batch and head. Heads of q share those of k and v evenly.
 * A query that sees no key has a result of zeros.
 */
#ifndef QUOLL_NN_ATTENTION_H
#define QUOLL_NN_ATTENTION_H

#include "tensor/base.h"

/* (batches, heads, rows, d or e): strides in elements; float or double. */
struct ql_heads {
	void *data;
	int64_t batch, head, row;
};

enum ql_mask_kind {
	QL_MASK_NONE,
	QL_MASK_ADDED, /* numbers of the dtype of q, added to the scores; -inf hides a key */
	QL_MASK_SEEN,  /* bool: true for keys that are seen */
};

/* (batches, heads, queries, keys), broadcast: strides in elements, any of them 0. */
struct ql_attention_mask {
	enum ql_mask_kind kind;
	const void *data;
	int64_t batch, head, row, key;
};

struct ql_attention {
	int64_t batches, heads, shared; /* heads of k and v; heads / shared of q use each */
	int64_t queries, keys, d, e;    /* d, keys > 0 */
	double scale;
	bool causal;            /* query i attends to keys 0..i + keys - queries; keys >= queries */
	int64_t window;         /* > 0: query i attends to keys less than `window` from i + keys - queries */
	double softcap;         /* > 0: scores s become softcap tanh(s / softcap) */
	const int64_t *lengths; /* for each batch: keys from that one on are hidden; NULL: none */
	struct ql_attention_mask mask;
	struct ql_heads q, k, v, o;
	struct ql_heads g, dq, dk, dv; /* backward: the gradient of o, and the results */
	void *dmask;                   /* (batches, heads, queries, keys), dense: of an added mask; NULL: not wanted */
};

static inline int64_t ql_heads_at(const struct ql_heads *h, int64_t batch, int64_t head, int64_t row)
{
	return batch * h->batch + head * h->head + row * h->row;
}

/* The first mask element of a query. */
static inline int64_t ql_attention_mask_at(const struct ql_attention *a, int64_t batch, int64_t head, int64_t i)
{
	return batch * a->mask.batch + head * a->mask.head + i * a->mask.row;
}

/* Query i attends to keys ql_attention_from .. ql_attention_seen - 1, of which the mask may hide some. */
static inline int64_t ql_attention_seen(const struct ql_attention *a, int64_t batch, int64_t i)
{
	int64_t own = i + a->keys - a->queries, n = a->causal ? own + 1 : a->keys;

	if (a->window && own + a->window < n)
		n = own + a->window;
	if (a->lengths && a->lengths[batch] < n)
		n = a->lengths[batch];
	return n < 0 ? 0 : n;
}

static inline int64_t ql_attention_from(const struct ql_attention *a, int64_t batch, int64_t i)
{
	int64_t first = a->window ? i + a->keys - a->queries - a->window + 1 : 0;
	int64_t seen = ql_attention_seen(a, batch, i);

	return first < 0 ? 0 : first < seen ? first : seen;
}

enum ql_status ql_attention_f32(struct ql_ctx *ctx, const struct ql_attention *a);
enum ql_status ql_attention_f32_backward(struct ql_ctx *ctx, const struct ql_attention *a);
/* Plain loops, for checks. */
enum ql_status ql_attention_f64(struct ql_ctx *ctx, const struct ql_attention *a);
enum ql_status ql_attention_f64_backward(struct ql_ctx *ctx, const struct ql_attention *a);

#endif
