/* SPDX-License-Identifier: MIT
 * Arena for the temporaries of one operation: packing buffers, row buffers, decoded operands.
 * Use: mark, take, release to the mark. Chunks are reused by the next operation.
 * Only for the interpreter's thread, outside of parallel regions.
 */
#ifndef QUOLL_TENSOR_SCRATCH_H
#define QUOLL_TENSOR_SCRATCH_H

#include "tensor/base.h"

struct ql_scratch_mark {
	void *chunk;
	size_t used;
};

enum ql_status ql_scratch_init(struct ql_ctx *ctx);
void ql_scratch_free(struct ql_ctx *ctx);
struct ql_scratch_mark ql_scratch_mark(struct ql_ctx *ctx);
/* 64-byte aligned; NULL with a message when out of memory. */
void *ql_scratch_take(struct ql_ctx *ctx, size_t bytes);
/* n elements of `size` bytes; an overflow or a negative n fails as out of memory. */
void *ql_scratch_array(struct ql_ctx *ctx, int64_t n, size_t size);
void ql_scratch_release(struct ql_ctx *ctx, struct ql_scratch_mark mark);

#endif
