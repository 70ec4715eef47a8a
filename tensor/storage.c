/* SPDX-License-Identifier: MIT
 * Storage: creating, sharing, releasing, and its cache of derived data.
 */
#include "tensor/storage.h"

#include <string.h>

#include "tensor/closed.h"
#include "tensor/mapping.h"

#define MOST 4 /* slots per storage; the oldest is dropped */

/* Up to this many bytes of CPU memory follow the storage in the same block: one allocation less for small tensors,
 * and less memory accessed. */
#define INLINE_BYTES 1024
#define INLINE_OFFSET 64 /* preserves the alignment of ql_alloc */

_Static_assert(sizeof(struct ql_storage) <= INLINE_OFFSET, "the bytes begin behind the storage");

struct ql_storage_of_mapping {
	struct ql_storage base;
	struct ql_mapping *mapping;
};

static void *inline_data(struct ql_storage *s)
{
	return (char *)s + INLINE_OFFSET;
}

static bool alloc_remote(struct ql_ctx *ctx, struct ql_storage *s)
{
	s->remote = ql_alloc_zeroed(ctx, sizeof(*s->remote));
	if (!s->remote)
		return false;
	s->remote->born = ctx->recording ? ctx->recordings_made : 0;
	s->remote->at = s->device->alloc(ctx, s->device, s->bytes);
	if (s->remote->at)
		return true;
	ql_free(ctx, s->remote);
	return false;
}

/* Frees the bytes and what was derived from them. */
static void free_bytes(struct ql_ctx *ctx, struct ql_storage *s)
{
	if (s->remote) {
		ql_storage_release(ctx, s->remote->mirror);
		s->device->free(ctx, s->device, s->remote->at, s->bytes);
		ql_free(ctx, s->remote);
	} else if (s->mapped) {
		ql_mapping_release(ctx, ((struct ql_storage_of_mapping *)s)->mapping);
		s->mapped = 0;
	} else if (s->data != inline_data(s)) {
		s->device->free(ctx, s->device, s->data, s->bytes);
	}
}

/* The version of a new storage in the host's memory. */
static uint64_t next_version(void)
{
	static uint64_t made; /* by the interpreter's thread */

	return ++made << 20;
}

struct ql_storage *ql_storage_mapped(struct ql_ctx *ctx, struct ql_mapping *m, void *data, size_t bytes)
{
	struct ql_storage_of_mapping *s = ql_alloc(ctx, sizeof(*s));

	if (!s)
		return NULL;
	s->base = (struct ql_storage){.refs = 1,
		.mapped = 1,
		.bytes = bytes,
		.version = next_version(),
		.data = data,
		.device = &ql_device_cpu};
	s->mapping = ql_mapping_keep(m);
	return &s->base;
}

struct ql_storage *ql_storage_new(struct ql_ctx *ctx, const struct ql_device *device, size_t bytes)
{
	bool inside = !device->remote && bytes <= INLINE_BYTES;
	struct ql_storage *s = ql_alloc(ctx, inside ? INLINE_OFFSET + bytes : sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct ql_storage){.refs = 1, .bytes = bytes, .device = device};
	if (!device->remote)
		s->version = next_version();
	if (!device->remote)
		s->data = inside ? inline_data(s) : device->alloc(ctx, device, bytes);
	if (device->remote ? !alloc_remote(ctx, s) : !s->data) {
		ql_free(ctx, s);
		return NULL;
	}
	return s;
}

struct ql_storage *ql_storage_closed(struct ql_ctx *ctx, struct ql_closed *c)
{
	struct ql_storage *s = ql_alloc(ctx, sizeof(*s));

	if (s)
		*s = (struct ql_storage){.refs = 1, .bytes = c->bytes, .device = &ql_device_cpu, .closed = c};
	return s;
}

struct ql_storage *ql_storage_keep(struct ql_storage *s)
{
	s->refs++;
	return s;
}

static void drop_first(struct ql_ctx *ctx, struct ql_derived **at)
{
	struct ql_derived *d = *at;

	*at = d->next;
	ql_free(ctx, d->data);
	ql_free(ctx, d);
}

void ql_storage_release(struct ql_ctx *ctx, struct ql_storage *s)
{
	if (!s || --s->refs > 0)
		return;
	while (s->derived)
		drop_first(ctx, &s->derived);
	free_bytes(ctx, s);
	if (s->closed)
		s->closed->kind->free(ctx, s->closed);
	ql_free(ctx, s);
}

void ql_storage_close(struct ql_ctx *ctx, struct ql_storage *s, struct ql_closed *c)
{
	free_bytes(ctx, s);
	s->data = NULL;
	s->bytes = c->bytes;
	s->closed = c;
}

bool ql_storage_inside(const struct ql_storage *s, const void *bytes)
{
	return bytes == (const char *)s + INLINE_OFFSET;
}

static bool same_key(const struct ql_derived_key *a, const struct ql_derived_key *b)
{
	return a->maker == b->maker && a->offset == b->offset && a->stride[0] == b->stride[0] &&
	       a->stride[1] == b->stride[1] && a->size[0] == b->size[0] && a->size[1] == b->size[1] &&
	       a->dtype == b->dtype;
}

/* New slots are added in front. */
struct ql_derived *ql_storage_derived(struct ql_ctx *ctx, struct ql_storage *s, const struct ql_derived_key *key)
{
	struct ql_derived *d;
	int n = 0;

	for (struct ql_derived **at = &s->derived; *at;) {
		d = *at;
		if (d->version == s->version && same_key(&d->key, key)) {
			d->asked++;
			return d;
		}
		if (d->version != s->version || ++n >= MOST)
			drop_first(ctx, at);
		else
			at = &d->next;
	}
	d = ql_alloc(ctx, sizeof(*d));
	if (!d)
		return NULL;
	*d = (struct ql_derived){.next = s->derived, .key = *key, .version = s->version};
	s->derived = d;
	return d;
}
