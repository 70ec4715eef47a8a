/* SPDX-License-Identifier: MIT
 * One interpreter: the library's context and a Lua state with Quoll's libraries, guards and search path.
 */
#ifndef QUOLL_INTERP_HOST_STATE_H
#define QUOLL_INTERP_HOST_STATE_H

#include <lua.h>

#include "interp/host/alloc.h"
#include "interp/host/box.h"
#include "interp/host/lifetime.h"
#include "interp/host/options.h"

#define QL_STATE_ERROR 512

struct ql_state {
	struct ql_ctx *ctx; /* ctx->host points back here */
	lua_State *L;       /* the main thread */
	struct ql_options options;
	struct ql_lua_memory memory;
	lua_State *volatile running; /* innermost running coroutine (interrupt.h) */
	struct ql_resumed *resumed;  /* the threads that wait for it, innermost first; NULL: the main thread runs */
	bool guards_kept;            /* a coroutine was suspended with open guards (coroutine.c) */
	bool fields_kept;            /* a coroutine has set fields for a while (fields.c) */
	struct ql_lifetime lifetime;
	const void *boxes; /* the metatable of tensors, for box.c */
	int boxes_ref;     /* and its index in the registry */
	int close_depth;   /* nested coroutine.close (coroutine.c) */
	int outer_frames;  /* of L, below the input that runs: who runs it is not in its tracebacks */
	int exit_code;     /* of a script that ended well: 1 when trials of its sweeps failed */
	bool warnings;     /* warn("@off") clears it */
	bool warning_open; /* a warning is being written in pieces */
};

/* gives a state ready for scripts; NULL, with the reason in `error`, when there is no memory or a library does not open.
 * `fail_after` > 0 makes that allocation of Lua and all later ones fail (tests), see alloc.h. */
struct ql_state *ql_state_new(const struct ql_options *options, uint64_t fail_after, char error[QL_STATE_ERROR]);
void ql_state_free(struct ql_state *s);

/* The script's folder, then ./, come first in package.path and package.cpath; `script` NULL: ./ only. May
 * raise. */
void ql_state_search(lua_State *L, const char *script);

static inline struct ql_state *ql_state_of(lua_State *L)
{
	return ql_ctx_of(L)->host;
}

/* Mode string for lua_load: text only, unless --bytecode was given. */
static inline const char *ql_chunk_mode(lua_State *L)
{
	return ql_state_of(L)->options.at[QL_OPTION_bytecode].i ? "bt" : "t";
}

#endif
