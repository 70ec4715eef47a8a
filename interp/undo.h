/* SPDX-License-Identifier: MIT
 * Values for `local … <close>` that undo what the C function which made them did.
 */
#ifndef QUOLL_INTERP_UNDO_H
#define QUOLL_INTERP_UNDO_H

#include <lua.h>

struct ql_ctx;

typedef void ql_undo_fn(struct ql_ctx *ctx);

/* Pushes one. `undo` is called once: when it is closed, or by the collector. It must not raise. */
void ql_undo_push(lua_State *L, ql_undo_fn *undo);

#endif
