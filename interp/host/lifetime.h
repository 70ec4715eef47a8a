/* SPDX-License-Identifier: MIT
 * When memory of the library that an object of Lua owns is freed: not while a C function may still use it.
 *
 * A C function may call Lua (a list with __index, an observer function), and Lua may close (local x <close>) what that
 * function is working on. So __close and __gc free at once only when no such C function is active; otherwise the memory
 * stays until there is none. Nothing is counted and no binding has to do anything for it.
 */
#ifndef QUOLL_INTERP_HOST_LIFETIME_H
#define QUOLL_INTERP_HOST_LIFETIME_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

struct ql_state;
struct ql_tensor;

#define QL_LIFETIME_HARMLESS 320

/* A part of struct ql_state. */
struct ql_lifetime {
	lua_CFunction harmless[QL_LIFETIME_HARMLESS]; /* sorted: C functions that use no memory of the library */
	int n_harmless;
	struct ql_tensor *discarded;   /* a list: tensors whose boxes are gone */
	size_t count, bytes;           /* of them */
	size_t next_count, next_bytes; /* at which they are released */
	size_t calls;                  /* seen by the last walk */
	bool collecting;               /* ql_collect_garbage runs, and it was quiet when it began */
	bool closing;                  /* the state closes: boxes are kept for its end (ql_lifetime_late) */
	size_t finalized;              /* tensors released by it: their boxes go with the next collection */
};

/* `from` has resumed the thread that runs; a list on the C stack (coroutine.c). */
struct ql_resumed {
	lua_State *from;
	struct ql_resumed *below;
};

/* For __close and __gc of an object at index 1 that owns memory of the library: true when it may be freed. Otherwise the
 * object stays as it is, and the collector comes back to it. */
bool ql_lifetime_may_free(lua_State *L);

/* For __close and __gc of boxes: gives t (or NULL), which is released when nothing can use it any more. */
void ql_tensor_discard(lua_State *L, struct ql_tensor *t);
/* The same for __gc alone: released at once where ql_collect_garbage has found that it is quiet. */
void ql_tensor_finalize(lua_State *L, struct ql_tensor *t);
/* Releases the discarded tensors if it is quiet; the calling C function uses none of them. */
void ql_discarded_release(lua_State *L);
/* The same when there are enough of them to be worth it. */
void ql_discarded_pay(lua_State *L);
/* A full collection that releases what it finds, if it is quiet; the calling C function uses no tensor. False: it was not
 * possible, in a finalizer. */
bool ql_collect_garbage(lua_State *L);
/* All of them: the Lua state is gone. */
void ql_discarded_clear(struct ql_state *s);
/* A full collection, and what it found is released: for a second try after QL_ERR_MEMORY. The calling C function holds
 * references to the tensors that it goes on to use. */
void ql_collect(lua_State *L);

/* Makes the first object of the state; raises when there is no memory. */
void ql_lifetime_begin(lua_State *L);
/* Keeps the box on top of the stack for the end of the state, which closes. */
void ql_lifetime_late(lua_State *L);

/* `function` calls Lua, but uses no memory of the library afterwards: those that run scripts and inputs. */
void ql_lifetime_harmless(lua_State *L, lua_CFunction function);

#endif
