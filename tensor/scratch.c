/* SPDX-License-Identifier: MIT
 * Scratch arena: a list of chunks, each twice as large as the previous one up to a limit. When everything is
 * released, only the newest (largest) chunk is kept, so that the steady state is one chunk.
 */
#include "tensor/scratch.h"

#include <stdlib.h>

#define QL_SCRATCH_FIRST ((size_t)64 << 10)
#define QL_SCRATCH_KEEP ((size_t)64 << 20) /* a larger chunk is not worth keeping between operations */

struct chunk {
	struct chunk *below;
	size_t room, used;
	_Alignas(64) char data[];
};

struct ql_scratch {
	struct chunk *top;
};

enum ql_status ql_scratch_init(struct ql_ctx *ctx)
{
	ctx->scratch = calloc(1, sizeof(*ctx->scratch));
	return ctx->scratch ? QL_OK : QL_ERR_MEMORY;
}

void ql_scratch_free(struct ql_ctx *ctx)
{
	struct chunk *c, *below;

	if (!ctx->scratch)
		return;
	for (c = ctx->scratch->top; c; c = below) {
		below = c->below;
		ql_free(ctx, c);
	}
	free(ctx->scratch);
	ctx->scratch = NULL;
}

struct ql_scratch_mark ql_scratch_mark(struct ql_ctx *ctx)
{
	struct chunk *c = ctx->scratch->top;

	return (struct ql_scratch_mark){c, c ? c->used : 0};
}

void *ql_scratch_take(struct ql_ctx *ctx, size_t bytes)
{
	struct chunk *c = ctx->scratch->top;
	size_t room = QL_SCRATCH_FIRST;
	void *p;

	if (bytes > (size_t)1 << 56) {
		ql_fail(ctx, QL_ERR_MEMORY, "out of memory: wanted %zu bytes of scratch", bytes);
		return NULL;
	}
	bytes = (bytes + 63) & ~(size_t)63;
	if (!c || c->room - c->used < bytes) {
		if (c && room < 2 * c->room)
			room = 2 * c->room < QL_SCRATCH_KEEP ? 2 * c->room : QL_SCRATCH_KEEP;
		if (room < bytes)
			room = bytes;
		c = ql_alloc(ctx, sizeof(*c) + room);
		if (!c)
			return NULL;
		c->below = ctx->scratch->top;
		c->room = room;
		c->used = 0;
		ctx->scratch->top = c;
	}
	p = c->data + c->used;
	c->used += bytes;
	return p;
}

void *ql_scratch_array(struct ql_ctx *ctx, int64_t n, size_t size)
{
	return ql_scratch_take(ctx, ql_size_array(n, size));
}

/* Releases to an empty mark; the largest (top) chunk is kept for the next operation. */
static void release_all(struct ql_ctx *ctx)
{
	struct chunk *top = ctx->scratch->top, *c, *below;

	if (!top)
		return;
	for (c = top->below; c; c = below) {
		below = c->below;
		ql_free(ctx, c);
	}
	top->below = NULL;
	top->used = 0;
	if (top->room > QL_SCRATCH_KEEP) {
		ql_free(ctx, top);
		ctx->scratch->top = NULL;
	}
}

void ql_scratch_release(struct ql_ctx *ctx, struct ql_scratch_mark mark)
{
	struct chunk *c;

	if (!mark.chunk) {
		release_all(ctx);
		return;
	}
	while ((c = ctx->scratch->top) != mark.chunk) {
		ctx->scratch->top = c->below;
		ql_free(ctx, c);
	}
	c->used = mark.used;
}
