/* SPDX-License-Identifier: MIT
 * Devices that own memory. Only the CPU is always available; others are loaded at run time.
 */
#ifndef QUOLL_TENSOR_DEVICE_H
#define QUOLL_TENSOR_DEVICE_H

#include "tensor/attr.h"
#include "tensor/base.h"

/* `alloc` and `free` add and subtract their bytes in ctx->memory.held, as ql_alloc does. */
struct ql_device {
	struct ql_doc doc;
	void *(*alloc)(struct ql_ctx *ctx, size_t bytes);
	void (*free)(struct ql_ctx *ctx, void *block);
};

extern const struct ql_device ql_device_cpu;

#endif
