/* SPDX-License-Identifier: MIT
 * Between Lua and the library: boxes for tensors, the one place that raises, argument checks from attribute lists,
 * and the one function that calls any op.
 *
 * Rule for every binding: create the box first, then call the library with its address, then raise or return.
 */
#ifndef QUOLL_INTERP_BIND_H
#define QUOLL_INTERP_BIND_H

#include <lauxlib.h>
#include <lua.h>

#include "quant/spec.h"
#include "tensor/attr.h"
#include "tensor/nearest.h"
#include "tensor/op.h"

#define QL_TENSOR "quoll.tensor"
#define QL_SPEC "quoll.spec"

/* The context of this state (kept in lua_getextraspace). */
struct ql_ctx *ql_ctx_of(lua_State *L);
void ql_ctx_attach(lua_State *L, struct ql_ctx *ctx);

/* Raises ctx->err at the position of the calling Lua line. Never returns. */
int ql_raise(lua_State *L, enum ql_status status);
/* Raises a formatted message the same way. */
int ql_error(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Collects when tensors hold much more than after the last collection (collect.c). Everything must be boxed. */
void ql_pay_gc(lua_State *L);

/* luaL_newmetatable for objects of C, which wants them closed to Lua: getmetatable gives the name, so no script calls __gc,
 * or another metamethod, with a value of its own. */
bool ql_metatable_new(lua_State *L, const char *name);

/* Pushes a box that holds NULL; __gc and __close release what it holds later. */
struct ql_tensor **ql_box_new(lua_State *L);
/* The tensor at `index`, or NULL. A box that was closed raises. */
struct ql_tensor *ql_test_tensor(lua_State *L, int index);
struct ql_tensor *ql_check_tensor(lua_State *L, int index, const char *what);

/* Memory that one call of an op needs besides the Lua stack. */
#define QL_CALL_ATTRS 24
#define QL_CALL_INTS 64
#define QL_CALL_SPECS 3
struct ql_arguments {
	struct ql_value value[QL_CALL_ATTRS];
	int64_t ints[QL_CALL_INTS];
	int n_ints;
	struct ql_spec spec[QL_CALL_SPECS];
	int n_specs;
	int next; /* next positional attribute */
};

/* Reads arguments first..top into `args` by the list `attrs`: values by position for QL_POSITIONAL ones, then one
 * table of options. What `args` borrows from the table is pushed: leave it on the stack. Unknown names raise with "did you mean"; `name` is the function's name for messages. */
void ql_read_arguments(lua_State *L, const char *name, const struct ql_attr *attrs, int first, struct ql_arguments *args);
/* Raises the error of an unknown name: of those among the keys of the table at `index` the first in the alphabet. `what`:
 * "option" or "field"; attrs NULL: it takes none. */
_Noreturn void ql_unknown_name(lua_State *L, const char *name, const char *what, const struct ql_attr *attrs, int index);
/* The spec at `index`: a string, a table of fields or a quant.spec. False: it is the value false ("leave float"). Pushes one
 * value, which keeps what the spec borrows. */
bool ql_read_spec(lua_State *L, int index, const char *what, struct ql_spec *spec);

/* Appends to the list on top of the stack a table for each op of the registry: its name and what it takes. */
void ql_list_ops(lua_State *L, const struct ql_op *const *ops);
/* Pushes the function that calls `op` (its in-place form when `in_place`). */
void ql_push_op(lua_State *L, const struct ql_op *op, bool in_place);

/* Openers, called once per state; each fills its global table. */
int ql_open_tensor(lua_State *L);
int ql_open_quant(lua_State *L);

/* Set fields of the table at the top of the stack. */
void ql_set_functions(lua_State *L, const luaL_Reg *functions);

/* Documentation of things that are not ops: registers a NULL-name-terminated array under a prefix ("tensor",
 * "quant"); help and completion walk all of them. */
struct ql_doc_list {
	const char *module; /* "tensor", "quant", …; "x" for tensor methods */
	const struct ql_doc *docs;
	struct ql_doc_list *next;
};
void ql_doc_register(struct ql_doc_list *list);
const struct ql_doc_list *ql_doc_lists(void);

/* Short description of any tensor for lists and tracebacks: "int8(4, 5) symmetric/1". */
char *ql_describe(const struct ql_tensor *t, char text[256]);

#endif
