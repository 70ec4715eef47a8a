/* SPDX-License-Identifier: MIT
 * Storage of codes in another layout than elements of their dtype one after another: rows of fields of different widths (ragged.h),
 * panels and strips of kernels; or of results that are not computed yet (deferred.h).
 *
 * Tensors over such a storage have the dtype, strides and offset that they would have over dense codes of that dtype, so
 * views work unchanged. `data` of the storage is NULL: code that reads or writes dense codes calls ql_closed_open before
 * and ql_closed_close afterwards. ql_op_apply does this for the operands of every op without the flag QL_CLOSED. Of
 * other storages both count who holds the codes by their address.
 */
#ifndef QUOLL_TENSOR_CLOSED_H
#define QUOLL_TENSOR_CLOSED_H

#include "tensor/tensor.h"

struct ql_closed_kind {
	/* Writes all dense codes; `dense` is zeroed where the dtype is packed. Not interrupted, unless the kind waits. */
	enum ql_status (*unpack)(struct ql_ctx *ctx, const struct ql_closed *c, void *dense);
	/* Stores the dense codes again, after they were written to. NULL: the storage keeps the dense codes instead. */
	void (*pack)(struct ql_ctx *ctx, struct ql_closed *c, void *dense);
	bool waits; /* the codes are to be computed (deferred.h); never read one by one */
	bool once;  /* the storage keeps the dense codes when it is opened */
	int64_t (*get)(const struct ql_closed *c, int64_t at); /* element `at` of the dense codes */
	/* Writes it; a value out of range saturates. NULL: elements are not written one by one. */
	void (*put)(struct ql_closed *c, int64_t at, int64_t value);
	void (*free)(struct ql_ctx *ctx, struct ql_closed *c); /* all of it */
};

/* The first member of what a kind stores. */
struct ql_closed {
	const struct ql_closed_kind *kind;
	uint8_t dtype;    /* of the dense codes */
	int opened;       /* number of ql_closed_open not yet matched by a ql_closed_close */
	uint64_t version; /* of the storage when it was opened */
	int64_t codes;    /* number of elements */
	size_t dense;     /* bytes of the dense codes */
	size_t bytes;     /* as stored */
};

/* True if t has such a storage that is not open. */
static inline bool ql_is_closed(const struct ql_tensor *t)
{
	return t->storage->closed && !t->storage->data;
}

/* True if the codes of s may be stored in another layout: dense ones in the host's memory that nobody holds by their address. */
static inline bool ql_storage_can_close(const struct ql_storage *s)
{
	return !s->closed && !s->pins && s->device == &ql_device_cpu;
}

/* Whether an op may move the codes of its operands: the outermost one, and one that it runs while it lends them. */
static inline bool ql_closed_may_move(const struct ql_ctx *ctx)
{
	return ctx->depth == 1 || (ctx->depth == 2 && ctx->lends);
}

/* True if t covers such a storage, with the last axis contiguous. */
bool ql_can_close(const struct ql_tensor *t);
/* Replaces the codes of such a storage by c, which it then owns. */
void ql_storage_close(struct ql_ctx *ctx, struct ql_storage *s, struct ql_closed *c);

/* A new tensor over a storage that c describes, which it then owns; the shape has been checked. */
enum ql_status ql_tensor_closed(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_closed *c,
	struct ql_tensor **out);

/* Sets s->data to the dense codes until ql_closed_close, which packs them again if they were written to (s->version has
 * changed). Calls may be nested. Until then no storage that is dense is closed either: addresses of its codes stay valid. */
enum ql_status ql_closed_open(struct ql_ctx *ctx, struct ql_storage *s);
void ql_closed_close(struct ql_ctx *ctx, struct ql_storage *s);

/* True if t is all codes of a closed storage, and `to` has the place for them, as dense ones. */
bool ql_closed_fills(const struct ql_tensor *t, const struct ql_tensor *to);
/* Writes them there; the storage of t stays as it is. */
enum ql_status ql_closed_unpack(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor *to);

/* True if t has so few elements that the next two functions are faster than opening its storage. */
bool ql_closed_few(const struct ql_tensor *t);
/* Gives the codes of t, read one by one, as a plain contiguous tensor of whole bytes. */
enum ql_status ql_closed_gather(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* Writes the integers `from` into t, of the same shape, one by one; a value out of range saturates. The kind has `put`. */
void ql_closed_scatter(struct ql_tensor *t, const struct ql_tensor *from);

#endif
