/* SPDX-License-Identifier: MIT
 * What the ops of attention with caches share: options, where rows begin, rotary positions of what is new, codes that are put behind
 * others.
 */
#ifndef QUOLL_NN_ATTENTION_TURN_H
#define QUOLL_NN_ATTENTION_TURN_H

#include "tensor/op.h"

/* Options that they share. */
#define QL_CACHE_ATTRS \
	{"rope", QL_ATTR_STRING, 0, "pairs half", \
		"rotary positions of q and k, in the style of nn.rope (default: none)"}, \
		{"base", QL_ATTR_FLOAT, 0, NULL, "of the rotary positions (default 10000)"}, \
		{"dims", QL_ATTR_INT, 0, NULL, "only the first numbers of a head are turned (default: all)"}, \
		{"scale", QL_ATTR_FLOAT, 0, NULL, "factor of the scores (default 1 / sqrt(d))"}, \
		{"window", QL_ATTR_INT, 0, NULL, \
			"a query sees only positions less than this far away (default: all)"}, \
		{"softcap", QL_ATTR_FLOAT, 0, NULL, "scores become softcap * tanh(score / softcap)"}, \
		{"cos", QL_ATTR_TENSOR, QL_OPERAND, "float", \
			"cosines (positions, dims / 2) of all positions, instead of base"}, \
	{ \
		"sin", QL_ATTR_TENSOR, QL_OPERAND, "float", "sines, of the same shape" \
	}

struct ql_attention_sizes {
	int64_t batches, queries, heads, shared, d, room;
	int tables; /* the operand of cosines, if there is one; that of sines follows, that of the starts is before it */
};

struct ql_turn {
	bool on, halves;
	int64_t n;
	float *cosine, *sine; /* (batches, queries, n / 2) */
};

enum ql_status ql_turn_check_options(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s);
enum ql_status ql_turn_check_tables(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s);
/* How many positions each row has, as int64; they are checked to leave room for the new ones. */
enum ql_status ql_turn_starts(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s, struct ql_tensor **starts);
/* The caller releases *table after the last use of the turn. */
enum ql_status ql_turn_make(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, struct ql_turn *turn, struct ql_tensor **table);
/* Gives x (b, t, heads * d), turned or not, as (b, t, heads, d), or by_head as (b, heads, t, d). */
enum ql_status ql_turn_heads(struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_turn *turn,
	const struct ql_attention_sizes *s, int64_t heads, bool by_head, struct ql_tensor **out);

bool ql_starts_agree(const int64_t *start, int64_t n);
/* Copies codes with their scales to the positions first.., along the axis (0-based), of a cache of the same format, of row b of both or of all
 * for b < 0. */
enum ql_status ql_cache_put(
	struct ql_ctx *ctx, struct ql_tensor *cache, const struct ql_tensor *codes, int64_t b, int axis, int64_t first);

#endif
