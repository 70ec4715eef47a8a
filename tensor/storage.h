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
	struct ql_derived *derived; /* what is kept with the bytes; NULL: nothing */
};

/* What was made from the bytes for a use that comes again: packed weights. It lives with the storage until the bytes are
 * written to. Only its maker knows what it is. */
struct ql_derived_key {
	const void *maker; /* told apart by its address: a kernel */
	int64_t offset, stride[2], size[2];
	unsigned dtype;
};

struct ql_derived {
	struct ql_derived *next;
	struct ql_derived_key key;
	uint64_t version; /* of the bytes that it was made from */
	int asked;        /* how often before */
	void *data;       /* from ql_alloc, the storage frees it; NULL: not made yet */
};

/* gives a storage of `bytes` bytes, not cleared; NULL with a message when there is no memory */
struct ql_storage *ql_storage_new(struct ql_ctx *ctx, const struct ql_device *device, size_t bytes);
struct ql_storage *ql_storage_keep(struct ql_storage *s);
void ql_storage_release(struct ql_ctx *ctx, struct ql_storage *s);
/* The place for what the key stands for: found, or made empty. What is asked for once may not be worth its memory: `asked`
 * tells. It is valid until the next call for this storage. NULL, without an error, when there is no memory. */
struct ql_derived *ql_storage_derived(struct ql_ctx *ctx, struct ql_storage *s, const struct ql_derived_key *key);

#endif
