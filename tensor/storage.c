/* SPDX-License-Identifier: MIT
 * Storage: create, share, release.
 */
#include "tensor/storage.h"

#include <string.h>

struct ql_storage *ql_storage_new(struct ql_ctx *ctx, const struct ql_device *device, size_t bytes)
{
	struct ql_storage *s = ql_alloc(ctx, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct ql_storage){.refs = 1, .bytes = bytes, .device = device};
	s->data = device->alloc(ctx, bytes);
	if (!s->data) {
		ql_free(ctx, s);
		return NULL;
	}
	return s;
}

struct ql_storage *ql_storage_keep(struct ql_storage *s)
{
	s->refs++;
	return s;
}

void ql_storage_release(struct ql_ctx *ctx, struct ql_storage *s)
{
	if (!s || --s->refs > 0)
		return;
	s->device->free(ctx, s->data);
	ql_free(ctx, s);
}
