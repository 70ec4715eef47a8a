/* SPDX-License-Identifier: MIT
 * Mapped files.
 */
#include "tensor/mapping.h"

#include <sys/mman.h>

struct ql_mapping *ql_mapping_new(struct ql_ctx *ctx, int fd, uint64_t bytes)
{
	struct ql_mapping *m;
	void *base;

	if (bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return NULL;
	m = ql_alloc(ctx, sizeof(*m));
	if (m)
		*m = (struct ql_mapping){.refs = 1, .base = base, .bytes = (size_t)bytes};
	else
		munmap(base, (size_t)bytes);
	return m;
}

struct ql_mapping *ql_mapping_keep(struct ql_mapping *m)
{
	m->refs++;
	return m;
}

void ql_mapping_release(struct ql_ctx *ctx, struct ql_mapping *m)
{
	if (!m || --m->refs > 0)
		return;
	munmap(m->base, m->bytes);
	ql_free(ctx, m);
}
