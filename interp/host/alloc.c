/* SPDX-License-Identifier: MIT
 * The allocator behind lua_newstate. Shrinking and freeing never fail, as Lua requires.
 */
#include "interp/host/alloc.h"

#include <stdlib.h>

/* Room above the limit for small blocks: with none left at all, Lua could not even call finalizers. */
#define QL_SMALL 1024
#define QL_RESERVE ((size_t)64 << 10)

static bool above_limit(const struct ql_lua_memory *m, size_t growth)
{
	size_t limit = m->limit + (growth <= QL_SMALL ? QL_RESERVE : 0);

	return m->limit && (m->now > limit || growth > limit - m->now);
}

static bool refused(struct ql_lua_memory *m, size_t growth)
{
	m->count++;
	if (m->fail_after && --m->fail_after == 0) {
		m->failing = m->fail_forever;
		return true;
	}
	if (growth >= QL_LUA_BIG && m->interrupted && *m->interrupted)
		return true;
	return m->failing || above_limit(m, growth);
}

void *ql_lua_alloc(void *memory, void *block, size_t old_size, size_t size)
{
	struct ql_lua_memory *m = memory;
	size_t had = block ? old_size : 0; /* without a block, old_size is the kind of the new object */
	void *p;

	if (size == 0) {
		free(block);
		m->now -= had;
		return NULL;
	}
	if (size > had && refused(m, size - had))
		return NULL;
	p = realloc(block, size);
	if (!p)
		return size <= had ? block : NULL;
	m->now = m->now - had + size;
	if (m->now > m->peak)
		m->peak = m->now;
	return p;
}

#if defined(__SANITIZE_ADDRESS__)
/* A request too large is an error of the script in every build, not the end of the process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
#endif
