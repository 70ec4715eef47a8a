/* SPDX-License-Identifier: MIT
 * The allocator behind lua_newstate. Shrinking and freeing never fail, as Lua requires.
 *
 * Freed blocks of up to 128 bytes, nearly all of what a loop over tensors allocates (boxes, closures, strings), wait in lists:
 * a collection frees thousands of them, more than malloc keeps at hand.
 */
#include "interp/host/alloc.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEPT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEPT 0
#endif
#endif
#ifndef KEPT
#define KEPT ((size_t)1 << 20) /* bytes in the lists at most; none where AddressSanitizer is to see every block */
#endif

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

struct ql_lua_free {
	struct ql_lua_free *next;
};

/* Index of the list of blocks of this size; QL_LUA_KINDS or more: none. */
static size_t kind_of(size_t size)
{
	return (size + 15) / 16;
}

static void *take(struct ql_lua_memory *m, size_t size)
{
	size_t kind = kind_of(size);
	struct ql_lua_free *b;

	if (!KEPT || kind >= QL_LUA_KINDS)
		return malloc(size);
	b = m->free[kind];
	if (!b)
		return malloc((size + 15) & ~(size_t)15);
	m->free[kind] = b->next;
	m->free_bytes -= kind * 16;
	return b;
}

static void give(struct ql_lua_memory *m, void *block, size_t size)
{
	size_t kind = kind_of(size);
	struct ql_lua_free *b = block;

	if (kind == 0 || kind >= QL_LUA_KINDS || m->free_bytes + kind * 16 > KEPT) {
		free(block);
		return;
	}
	b->next = m->free[kind];
	m->free[kind] = b;
	m->free_bytes += kind * 16;
}

void ql_lua_memory_clear(struct ql_lua_memory *m)
{
	for (int kind = 0; kind < QL_LUA_KINDS; kind++)
		while (m->free[kind]) {
			struct ql_lua_free *b = m->free[kind];

			m->free[kind] = b->next;
			free(b);
		}
	m->free_bytes = 0;
}

/* A block has at least the room of its kind, so that any block of a list serves for it. */
static void *resize(struct ql_lua_memory *m, void *block, size_t had, size_t size)
{
	void *p;

	if (!block)
		return take(m, size);
	if (kind_of(had) == kind_of(size) && KEPT && kind_of(size) < QL_LUA_KINDS)
		return block;
	if (!KEPT || (kind_of(had) >= QL_LUA_KINDS && kind_of(size) >= QL_LUA_KINDS))
		return realloc(block, size);
	p = take(m, size);
	if (!p)
		return NULL;
	memcpy(p, block, had < size ? had : size);
	give(m, block, had);
	return p;
}

void *ql_lua_alloc(void *memory, void *block, size_t old_size, size_t size)
{
	struct ql_lua_memory *m = memory;
	size_t had = block ? old_size : 0; /* without a block, old_size is the kind of the new object */
	void *p;

	if (size == 0) {
		give(m, block, had);
		m->now -= had;
		return NULL;
	}
	if (size > had && refused(m, size - had))
		return NULL;
	p = resize(m, block, had, size);
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
