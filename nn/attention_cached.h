/* SPDX-License-Identifier: MIT
 * Attention of a few queries to a cache of keys and values, for generation: rows of the cache are read where they are, in any format.
 */
#ifndef QUOLL_NN_ATTENTION_CACHED_H
#define QUOLL_NN_ATTENTION_CACHED_H

#include <stdint.h>

#include "tensor/base.h"

struct ql_decoder;

/* Rows (batch, head, position) of a cache; the last axis is dense. */
struct ql_cached_rows {
	const void *data;
	int64_t batch, head, row; /* strides */
	unsigned dtype;
	const struct ql_decoder *decoder; /* of codes, whose rows it numbers in order; else NULL */
	int64_t heads, room;
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
