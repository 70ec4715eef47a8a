/* SPDX-License-Identifier: MIT
 * Values for `local … <close>` that switch something off until they are closed: recording, unordered products, evaluation of
 * elementwise ops one by one.
 *
 * What a coroutine has switched off is its own: it counts while the coroutine runs, on top of what its resumer
 * has switched off, and not while it is suspended (coroutine.c).
 */
#ifndef QUOLL_INTERP_HOST_UNDO_H
#define QUOLL_INTERP_HOST_UNDO_H

#include <lua.h>

struct ql_ctx;

enum ql_guard { QL_GUARD_NOGRAD, QL_GUARD_ORDERED, QL_GUARD_DEFERRING };

/* How many guards of each kind are open: ctx->nograd, ctx->ordered, ctx->deferring. */
struct ql_guards {
	int nograd, ordered, deferring;
};

/* Pushes an open guard. */
void ql_guard_push(lua_State *L, enum ql_guard kind);

struct ql_guards ql_guards_get(const struct ql_ctx *ctx);
void ql_guards_set(struct ql_ctx *ctx, struct ql_guards g);

#endif
