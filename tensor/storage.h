/* SPDX-License-Identifier: MIT
 * Reference-counted bytes on a device. Views share one storage; `version` counts writes, so that data derived from
 * the bytes can be recognised as stale. In the host's memory it begins with a number of its own for each storage, so that a storage and
 * its version are not met again at the same address.
 */
#ifndef QUOLL_TENSOR_STORAGE_H
#define QUOLL_TENSOR_STORAGE_H

#include "tensor/device.h"

struct ql_closed;
struct ql_mapping;
struct ql_storage;

/* Bytes that the host cannot read (tensor/remote.h). */
struct ql_remote {
	void *at;                  /* address on the device */
	struct ql_storage *mirror; /* a copy in the host's memory; NULL: none */
	uint64_t mirrored;         /* version of the bytes that the mirror has */
	uint64_t born;             /* number of the recording that the memory was given in (recording.h); 0: of none */
};

struct ql_storage {
	int refs;
	int pins : 31;       /* holders of `data`: dense codes stay where they are (closed.h) */
	unsigned mapped : 1; /* `data` is in a mapped file, and this a struct ql_storage_of_mapping (storage.c) */
	size_t bytes;
	uint64_t version;
	void *data;               /* NULL if the storage is remote or closed */
	struct ql_remote *remote; /* NULL: the bytes are in the host's memory */
	const struct ql_device *device;
	struct ql_derived *derived; /* list of data derived from the bytes; NULL: none */
	struct ql_closed *closed;   /* codes in another layout (closed.h); NULL: elements of one dtype */
};

/* Identifies data derived from the bytes for repeated use, such as packed weights. It is freed with the storage or
 * when the bytes are written. Only its maker knows its layout. */
struct ql_derived_key {
	const void *maker; /* identified by its address: a kernel */
	int64_t offset, stride[2], size[2];
	unsigned dtype;
};

struct ql_derived {
	struct ql_derived *next;
	struct ql_derived_key key;
	uint64_t version; /* of the bytes that it was derived from */
	int asked;        /* number of earlier requests */
	void *data;       /* from ql_alloc, freed by the storage; NULL: not made yet */
};

/* Gives a storage of `bytes` uninitialized bytes; NULL with a message when out of memory. */
struct ql_storage *ql_storage_new(struct ql_ctx *ctx, const struct ql_device *device, size_t bytes);
/* Gives a storage of bytes within the mapping, which it keeps. */
struct ql_storage *ql_storage_mapped(struct ql_ctx *ctx, struct ql_mapping *m, void *data, size_t bytes);
/* A storage in another layout (closed.h), which owns c. */
struct ql_storage *ql_storage_closed(struct ql_ctx *ctx, struct ql_closed *c);
struct ql_storage *ql_storage_keep(struct ql_storage *s);
void ql_storage_release(struct ql_ctx *ctx, struct ql_storage *s);
/* True if these bytes are in the block of the storage itself, so that they are freed with it. */
bool ql_storage_inside(const struct ql_storage *s, const void *bytes);
/* Returns the cache slot of `key`, a new empty one if there is none. `asked` lets the caller skip data that is
 * requested only once. The slot is valid until the next call for this storage. NULL, without an error, when out of
 * memory. */
struct ql_derived *ql_storage_derived(struct ql_ctx *ctx, struct ql_storage *s, const struct ql_derived_key *key);

#endif
