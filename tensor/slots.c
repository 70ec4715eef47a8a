/* SPDX-License-Identifier: MIT
 * Pieces of scratch memory that threads claim.
 */
#include "tensor/slots.h"

#include <stdatomic.h>

#include "tensor/scratch.h"

enum ql_status ql_slots_take(struct ql_ctx *ctx, uint64_t bytes, struct ql_slots *s)
{
	return ql_slots_take_for(ctx, ctx->threads, bytes, s);
}

enum ql_status ql_slots_take_for(struct ql_ctx *ctx, int64_t chunks, uint64_t bytes, struct ql_slots *s)
{
	uint64_t all;

	s->n = (int)ql_max64(1, ql_min64(ctx->threads, chunks));
	if (!ql_size_align(bytes, 64, &bytes) || !ql_size_mul(bytes, (uint64_t)s->n, &all))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "out of memory: the bytes of scratch do not fit in 64 bits");
	s->bytes = bytes;
	s->busy = ql_scratch_array(ctx, s->n, sizeof(*s->busy));
	s->data = ql_scratch_take(ctx, all);
	if (!s->busy || !s->data)
		return QL_ERR_MEMORY;
	for (int i = 0; i < s->n; i++)
		atomic_init(&s->busy[i], 0);
	return QL_OK;
}

void *ql_slots_enter(const struct ql_slots *s, int *slot)
{
	for (int i = 0;; i = (i + 1) % s->n)
		if (!atomic_exchange(&s->busy[i], 1)) {
			*slot = i;
			return s->data + (size_t)i * s->bytes;
		}
}

void ql_slots_leave(const struct ql_slots *s, int slot)
{
	atomic_store(&s->busy[slot], 0);
}
