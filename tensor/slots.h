/* SPDX-License-Identifier: MIT
 * Buffers for running chunks of a parallel loop: one piece for each thread, as no more bodies run at a time.
 */
#ifndef QUOLL_TENSOR_SLOTS_H
#define QUOLL_TENSOR_SLOTS_H

#include "tensor/base.h"

struct ql_slots {
	char *data;
	size_t bytes; /* of a piece, a multiple of 64 */
	int n;
	_Atomic int *busy;
};

/* Takes pieces of `bytes` from scratch memory. */
enum ql_status ql_slots_take(struct ql_ctx *ctx, uint64_t bytes, struct ql_slots *s);
/* The same for a loop of so many chunks, which may be fewer than threads. */
enum ql_status ql_slots_take_for(struct ql_ctx *ctx, int64_t chunks, uint64_t bytes, struct ql_slots *s);
/* Takes a piece that no other thread uses; pass *slot to ql_slots_leave. */
void *ql_slots_enter(const struct ql_slots *s, int *slot);
void ql_slots_leave(const struct ql_slots *s, int slot);

#endif
