/* SPDX-License-Identifier: MIT
 * Reference-counted bytes on a device. Views share one storage; `version` counts writes, so that a value
 * which was kept can be recognised as stale.
 */
#ifndef QUOLL_TENSOR_STORAGE_H
#define QUOLL_TENSOR_STORAGE_H

#include "tensor/device.h"

struct ql_storage {
	int refs;
	size_t bytes;
	uint64_t version;
	void *data;
	const struct ql_device *device;
};

/* gives a storage of `bytes` bytes, not cleared; NULL with a message when there is no memory */
struct ql_storage *ql_storage_new(struct ql_ctx *ctx, const struct ql_device *device, size_t bytes);
struct ql_storage *ql_storage_keep(struct ql_storage *s);
void ql_storage_release(struct ql_ctx *ctx, struct ql_storage *s);

#endif
