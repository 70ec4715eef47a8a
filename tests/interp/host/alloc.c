/* SPDX-License-Identifier: MIT
 * Lua's allocator: contents survive every change of size, what is in use is counted, freed blocks are used again up to a
 * limit, requests fail where they shall and shrinking never does.
 */
#include "interp/host/alloc.h"

#include <string.h>

#include "tests/check.h"

#define BLOCKS 2000
#define STEPS 200000
#define LARGEST 600

static struct {
	unsigned char *at;
	size_t size;
	unsigned char fill;
} block[BLOCKS];

static uint32_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static bool filled(const unsigned char *p, size_t n, unsigned char with)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != with)
			return false;
	return true;
}

/* Gives the block another size, most often a small one or 0. */
static bool change(struct ql_lua_memory *m, int i)
{
	size_t size = draw(4) ? draw(180) : draw(LARGEST), kept = size < block[i].size ? size : block[i].size;
	unsigned char *p = ql_lua_alloc(m, block[i].at, block[i].at ? block[i].size : draw(9), size);

	if (!size != !p || (kept && !filled(p, kept, block[i].fill)) || (uintptr_t)p % 16)
		return false;
	block[i].at = p;
	block[i].size = size;
	block[i].fill = (unsigned char)draw(256);
	if (p)
		memset(p, block[i].fill, size);
	return true;
}

static void test_sizes(struct ql_lua_memory *m)
{
	size_t sum = 0;

	CASE("contents and sum of sizes");
	for (int step = 0; step < STEPS; step++)
		CHECK(change(m, (int)draw(BLOCKS)), "step %d", step);
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(filled(block[i].at, block[i].size, block[i].fill), "block %d", i);
		sum += block[i].size;
	}
	CHECK(m->now == sum && m->peak >= sum, "%zu, counted %zu", sum, m->now);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(!ql_lua_alloc(m, block[i].at, block[i].size, 0), "freed to a block");
	CHECK(m->now == 0, "%zu left", m->now);
}

static void test_kept(struct ql_lua_memory *m)
{
	static void *at[40000];
	int n = sizeof(at) / sizeof(at[0]);

	CASE("freed blocks that are kept");
	for (int i = 0; i < n; i++)
		at[i] = ql_lua_alloc(m, NULL, 0, 100);
	for (int i = 0; i < n; i++)
		ql_lua_alloc(m, at[i], 100, 0);
	CHECK(m->free_bytes <= (size_t)1 << 20, "%zu bytes", m->free_bytes);
	ql_lua_memory_clear(m);
	CHECK(m->free_bytes == 0 && m->now == 0, "%zu and %zu bytes", m->free_bytes, m->now);
}

static void test_failures(struct ql_lua_memory *m)
{
	void *p = ql_lua_alloc(m, NULL, 0, 100), *q;

	CASE("requests that fail");
	m->fail_after = 2;
	m->fail_forever = true;
	q = ql_lua_alloc(m, NULL, 0, 40);
	CHECK(q && !ql_lua_alloc(m, NULL, 0, 40) && !ql_lua_alloc(m, p, 100, 101), "did not fail");
	p = ql_lua_alloc(m, p, 100, 20);
	CHECK(p && m->now == 60, "could not shrink, %zu in use", m->now);
	m->failing = false;
	m->limit = 100;
	CHECK(!ql_lua_alloc(m, NULL, 0, 1 << 20) && m->now == 60, "above the limit, %zu in use", m->now);
	ql_lua_alloc(m, p, 20, 0);
	ql_lua_alloc(m, q, 40, 0);
	CHECK(m->now == 0, "%zu left", m->now);
}

int main(void)
{
	struct ql_lua_memory m = {.now = 0};

	test_sizes(&m);
	test_kept(&m);
	test_failures(&m);
	ql_lua_memory_clear(&m);
	return check_end();
}
