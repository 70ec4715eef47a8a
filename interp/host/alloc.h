/* SPDX-License-Identifier: MIT
 * Lua's own memory: counted, with a limit, and able to fail on purpose (tests).
 */
#ifndef QUOLL_INTERP_HOST_ALLOC_H
#define QUOLL_INTERP_HOST_ALLOC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QL_LUA_KINDS 9 /* multiples of 16 bytes, up to 128 */

/* `fail_after` > 0 counts down at each request that grows; the one that reaches 0 fails. Lua then collects
 * and asks once more, so a single failure tests the emergency collection; with `fail_forever` every later
 * growing request fails too, which tests the error itself. */
struct ql_lua_memory {
	size_t now, peak, limit;
	uint64_t count;
	uint64_t fail_after;
	bool fail_forever, failing;
	const volatile sig_atomic_t *interrupted; /* while it is set, growing by QL_LUA_BIG or more fails */
	struct ql_lua_free *free[QL_LUA_KINDS];   /* lists of freed blocks, by size */
	size_t free_bytes;
};

/* Gives freed blocks back to the system: the Lua state is gone. */
void ql_lua_memory_clear(struct ql_lua_memory *m);

/* C functions that read or build without end (io.read "a") ask for ever larger blocks: Ctrl-C stops them
 * there. */
#define QL_LUA_BIG ((size_t)4 << 20)

/* A lua_Alloc; `memory` is a struct ql_lua_memory. */
void *ql_lua_alloc(void *memory, void *block, size_t old_size, size_t size);

#endif
