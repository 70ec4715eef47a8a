/* SPDX-License-Identifier: MIT
 * Where bytes live. The CPU is the only device that is always there; others are loaded at run time.
 */
#ifndef QUOLL_TENSOR_DEVICE_H
#define QUOLL_TENSOR_DEVICE_H

#include "tensor/attr.h"
#include "tensor/base.h"

/* `alloc` and `free` count what they hold into ctx->memory.held, as ql_alloc does. */
struct ql_device {
	struct ql_doc doc;
	void *(*alloc)(struct ql_ctx *ctx, size_t bytes);
	void (*free)(struct ql_ctx *ctx, void *block);
};

extern const struct ql_device ql_device_cpu;

#endif
