/* SPDX-License-Identifier: MIT
 * Attention of a few queries to a cache of keys and values, for generation: rows of the cache are read where they are, in any format.
 */
#ifndef QUOLL_NN_ATTENTION_CACHED_H
#define QUOLL_NN_ATTENTION_CACHED_H

#include <stdint.h>

#include "tensor/base.h"

struct ql_decoder;

/* The later positions of a cache (batch, position, channel of all heads) of codes: floats of a ring, where position p has the place
 * p % slots, and of the call itself. The codes of a query that sees n positions end where blocks end that leave `keep` of them. */
struct ql_cached_late {
	const float *ring, *fresh; /* (batches, slots, wide), (batches, queries, wide) */
	int64_t slots, wide, keep, block;
};

/* How many of n positions are codes. */
static inline int64_t ql_cached_coded(const struct ql_cached_late *l, int64_t n)
{
	return n <= l->keep ? 0 : (n - l->keep) / l->block * l->block;
}

/* Rows (batch, head, position) of a cache; the last axis is dense. */
struct ql_cached_rows {
	const void *data;
	int64_t batch, head, row; /* strides */
	unsigned dtype;
	const struct ql_decoder *decoder; /* of codes, whose rows it numbers in order; else NULL */
	int64_t heads, room;
	const struct ql_cached_late
		*late; /* NULL: all positions are in the cache; else a decoder numbers rows (batch, position) */
};

struct ql_cached {
	int64_t batches, heads, shared, queries, d;
	const int64_t
		*seen;  /* for each batch: positions before the first query; query t attends to those up to seen + t */
	int64_t window; /* > 0: only those less than this far away */
	double scale, softcap;
	struct ql_cached_rows k, v;
	const float *q; /* (batches, queries, heads * d) */
	float *y;
};

enum ql_status ql_attention_cached(struct ql_ctx *ctx, const struct ql_cached *a);

#endif
