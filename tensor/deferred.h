/* SPDX-License-Identifier: MIT
 * Results whose evaluation waits, so that a chain of ops runs in one pass over memory (tensor.fuse).
 *
 * While ctx->deferring is above 0, an op with `defer` (op.h) may give a tensor that has no elements yet: its storage is closed
 * (closed.h), and its kind computes it from operands that are kept here. Whoever needs the elements settles the storage, which then is
 * an ordinary one. Errors of shapes and options come where the op is called, as always. Operands that are written to before that
 * are read first: what depends on them is settled (ql_deferred_before_write). Codes may wait, too (encode_later.h).
 */
#ifndef QUOLL_TENSOR_DEFERRED_H
#define QUOLL_TENSOR_DEFERRED_H

#include "tensor/closed.h"
#include "tensor/op.h"

#define QL_DEFERRED_MAX 3 /* operands */

/* The first member of what a kind with `waits` stores. */
struct ql_deferred {
	struct ql_closed base;
	int n_in;
	struct ql_tensor *in[QL_DEFERRED_MAX]; /* NULL: a number */
	uint64_t version[QL_DEFERRED_MAX];     /* of their storages, when the op was called */
	struct ql_storage *storage;            /* of the result */
	struct ql_deferred *next, **at;        /* in ctx->deferred */
};

/* Adds d to the list of ctx, takes it out; the latter also releases the operands. */
void ql_deferred_link(struct ql_ctx *ctx, struct ql_deferred *d);
void ql_deferred_unlink(struct ql_ctx *ctx, struct ql_deferred *d);

/* Computes the elements of s if they wait to be computed. */
enum ql_status ql_deferred_settle(struct ql_ctx *ctx, struct ql_storage *s);
/* Settles the operands of a call that needs their elements, and what depends on a tensor that it writes to. */
enum ql_status ql_deferred_settle_call(struct ql_ctx *ctx, const struct ql_call *call);
/* Settles all that has s as an operand: s is about to be written to. */
enum ql_status ql_deferred_before_write(struct ql_ctx *ctx, const struct ql_storage *s);

#endif
