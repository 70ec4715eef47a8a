/* SPDX-License-Identifier: MIT
 * Error text, counting allocator.
 *
 * Every block has a 64-byte header with its size and class, so the payload stays 64-byte aligned. Freed blocks are
 * cached in a list per size class (powers of two and three steps between them) up to QL_CACHE_LIMIT bytes: a new
 * mmap for each large result costs a page fault per 4 KiB, more than an addition. Large blocks request huge pages,
 * which most systems give only on request. Smaller ones, as the weights of a layer, share such pages with their neighbours: malloc
 * takes them from one growing area. Weights of a model in 4 KiB pages are read at three quarters of the rate.
 */
#include "tensor/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define QL_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define QL_SANITIZED 1
#endif
#ifdef QL_SANITIZED
#define QL_CACHE_LIMIT 0 /* let AddressSanitizer see every free and the exact ends of blocks */
#else
#define QL_SANITIZED 0
#define QL_CACHE_LIMIT ((size_t)512 << 20)
#endif
#define QL_HUGE ((size_t)2 << 20)
#define QL_SHARING ((size_t)128 << 10) /* least room of a block that shares huge pages */
#define QL_GROWTH (16 * QL_HUGE)       /* of malloc's area */
#define QL_HEADER 64
#define QL_CLASSES 256

struct block {
	size_t bytes;   /* requested */
	size_t room;    /* of the whole block with header */
	uint32_t class; /* index of its list */
	struct block *next;
};

struct ql_cache {
	struct block *list[QL_CLASSES];
	size_t bytes;
};

/* Returns the cached blocks to the system. */
static void cache_drop(struct ql_ctx *ctx)
{
	struct block *b, *next;

	if (!ctx->cache)
		return;
	for (int i = 0; i < QL_CLASSES; i++) {
		for (b = ctx->cache->list[i]; b; b = next) {
			next = b->next;
			free(b);
		}
		ctx->cache->list[i] = NULL;
	}
	ctx->cache->bytes = 0;
}

/* By default malloc maps each block of 128 KiB and more apart. */
static void set_malloc(void)
{
#if defined(__GLIBC__) && !QL_SANITIZED
	mallopt(M_MMAP_THRESHOLD, (int)QL_HUGE);
	mallopt(M_TOP_PAD, (int)QL_GROWTH);
#endif
}

enum ql_status ql_cache_init(struct ql_ctx *ctx)
{
	set_malloc();
	ctx->cache = calloc(1, sizeof(*ctx->cache));
	return ctx->cache ? QL_OK : QL_ERR_MEMORY;
}

void ql_cache_free(struct ql_ctx *ctx)
{
	cache_drop(ctx);
	free(ctx->cache);
}

/* printf writes a NaN with its sign, which says nothing. */
static void drop_sign_of_nan(char *text)
{
	for (char *at = text; (at = strstr(at, "-nan")); at++)
		memmove(at, at + 1, strlen(at));
}

enum ql_status ql_fail(struct ql_ctx *ctx, enum ql_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ctx->err, sizeof(ctx->err), format, args);
	va_end(args);
	drop_sign_of_nan(ctx->err);
	return status;
}

enum ql_status ql_failed_in(struct ql_ctx *ctx, const char *function, enum ql_status status)
{
	static const char words[] = "out of memory";
	char text[sizeof(ctx->err)];

	if (status != QL_ERR_MEMORY || strncmp(ctx->err, words, sizeof(words) - 1) != 0)
		return status;
	memcpy(text, ctx->err, sizeof(text));
	return ql_fail(ctx, status, "%s: %s", function, text);
}

void ql_warn(struct ql_ctx *ctx, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!ctx->warn)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	drop_sign_of_nan(text);
	ctx->warn(ctx, text);
}

bool ql_size_add(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

bool ql_size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

bool ql_size_align(uint64_t a, uint64_t alignment, uint64_t *out)
{
	uint64_t sum;

	if (alignment == 0 || !ql_size_add(a, alignment - 1, &sum))
		return false;
	*out = sum - sum % alignment;
	return true;
}

size_t ql_size_array(int64_t n, size_t size)
{
	uint64_t bytes;

	return n >= 0 && ql_size_mul((uint64_t)n, size, &bytes) ? (size_t)bytes : SIZE_MAX;
}

/* Rounds `room` up to a size class and returns its index: four per power of two, multiples of 64. */
static uint32_t size_class(size_t *room)
{
	size_t n = *room < 128 ? 128 : *room;
	int top = 63 - __builtin_clzll(n);
	size_t step = n < 256 ? 64 : (size_t)1 << (top - 2);

	n = (n + step - 1) & ~(step - 1);
	top = 63 - __builtin_clzll(n);
	*room = n;
	return (uint32_t)(top * 4) + (uint32_t)((n >> (top - 2)) & 3);
}

/* The pages around a block, in which neighbours may be, and those that malloc goes on with: it writes behind a block before this is
 * asked for, and one small page keeps its neighbours small. What is not mapped there is left out. */
static void share_huge(const void *p, size_t room)
{
	uintptr_t first = (uintptr_t)p / QL_HUGE * QL_HUGE;

	madvise((void *)first, (uintptr_t)p + room + QL_GROWTH - first, MADV_HUGEPAGE);
}

static void *block_new(size_t room)
{
	void *p = NULL;

	if (room >= QL_HUGE) {
		if (posix_memalign(&p, QL_HUGE, room))
			return NULL;
		madvise(p, room, MADV_HUGEPAGE);
		return p;
	}
	if (posix_memalign(&p, QL_HEADER, room))
		return NULL;
	if (room >= QL_SHARING && !QL_SANITIZED)
		share_huge(p, room);
	return p;
}

static void *no_memory(struct ql_ctx *ctx, size_t bytes, const char *why)
{
	ql_fail(ctx, QL_ERR_MEMORY, "out of memory: wanted %zu bytes, %zu in use (%s)", bytes, ctx->memory.now, why);
	return NULL;
}

void *ql_alloc(struct ql_ctx *ctx, size_t bytes)
{
	struct ql_memory *m = &ctx->memory;
	struct block *b;
	size_t room;
	uint32_t class;

	m->count++;
	if (m->fail_after && --m->fail_after == 0)
		return no_memory(ctx, bytes, "failure injected");
	if (bytes > (size_t)1 << 56)
		return no_memory(ctx, bytes, "larger than any memory");
	if (m->limit && (m->now + bytes > m->limit || m->now + bytes < bytes))
		return no_memory(ctx, bytes, "limit reached");
	room = bytes + QL_HEADER;
	class = QL_SANITIZED ? 0 : size_class(&room);
	b = ctx->cache->list[class];
	if (b) {
		ctx->cache->list[class] = b->next;
		ctx->cache->bytes -= b->room;
	} else {
		b = block_new(room);
		if (!b && ctx->cache->bytes) {
			cache_drop(ctx);
			b = block_new(room);
		}
		if (!b)
			return no_memory(ctx, bytes, "the system has none");
	}
	b->bytes = bytes;
	b->room = room;
	b->class = class;
	m->now += bytes;
	if (m->now > m->peak)
		m->peak = m->now;
	m->held += b->room;
	return (char *)b + QL_HEADER;
}

void *ql_alloc_zeroed(struct ql_ctx *ctx, size_t bytes)
{
	void *p = ql_alloc(ctx, bytes);

	if (p)
		memset(p, 0, bytes);
	return p;
}

static struct block *block_of(void *p)
{
	return (struct block *)(void *)((char *)p - QL_HEADER);
}

void *ql_realloc(struct ql_ctx *ctx, void *p, size_t bytes)
{
	void *q = ql_alloc(ctx, bytes);
	size_t old;

	if (!q)
		return NULL;
	if (p) {
		old = block_of(p)->bytes;
		memcpy(q, p, old < bytes ? old : bytes);
		ql_free(ctx, p);
	}
	return q;
}

void *ql_alloc_array(struct ql_ctx *ctx, int64_t n, size_t size)
{
	return ql_alloc(ctx, ql_size_array(n, size));
}

void *ql_alloc_array_zeroed(struct ql_ctx *ctx, int64_t n, size_t size)
{
	return ql_alloc_zeroed(ctx, ql_size_array(n, size));
}

void *ql_realloc_array(struct ql_ctx *ctx, void *p, int64_t n, size_t size)
{
	return ql_realloc(ctx, p, ql_size_array(n, size));
}

/* Frees cached blocks of other sizes, the largest first, to make room for one of a size that is in use. */
static bool make_room(struct ql_cache *cache, const struct block *b)
{
	for (int i = QL_CLASSES - 1; i >= 0 && cache->bytes + b->room > QL_CACHE_LIMIT; i--)
		while ((uint32_t)i != b->class && cache->list[i] && cache->bytes + b->room > QL_CACHE_LIMIT) {
			struct block *old = cache->list[i];

			cache->list[i] = old->next;
			cache->bytes -= old->room;
			free(old);
		}
	return cache->bytes + b->room <= QL_CACHE_LIMIT;
}

void ql_free(struct ql_ctx *ctx, void *p)
{
	struct block *b;

	if (!p)
		return;
	b = block_of(p);
	ctx->memory.now -= b->bytes;
	ctx->memory.held -= b->room;
	if (!make_room(ctx->cache, b)) {
		free(b);
		return;
	}
	b->next = ctx->cache->list[b->class];
	ctx->cache->list[b->class] = b;
	ctx->cache->bytes += b->room;
}

char *ql_strdup(struct ql_ctx *ctx, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = ql_alloc(ctx, n);

	if (copy)
		memcpy(copy, text, n);
	return copy;
}
