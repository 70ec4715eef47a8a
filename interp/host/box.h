/* SPDX-License-Identifier: MIT
 * Tensors as Lua values (boxes), and raising of errors.
 *
 * Rule for every binding: create the box first, then call the library with its address, then raise or return.
 */
#ifndef QUOLL_INTERP_HOST_BOX_H
#define QUOLL_INTERP_HOST_BOX_H

#include <lauxlib.h>
#include <lua.h>

#include "interp/prelude/context.h"
#include "tensor/attr.h"
#include "tensor/tensor.h"

#define QL_TENSOR "quoll.tensor"

/* Raises ctx->err at the position of the calling Lua line. Never returns. */
int ql_raise(lua_State *L, enum ql_status status);
/* Raises a formatted message the same way. */
int ql_error(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Collects when tensors hold much more than after the last collection (collect.c). Everything must be boxed. It comes last
 * in whatever boxes a tensor, or calls what does; functions with documentation have it from ql_set_documented. */
void ql_pay_gc(lua_State *L);

/* luaL_newmetatable for objects of C, which wants them closed to Lua: getmetatable gives the name, so no script calls __gc,
 * or another metamethod, with a value of its own. */
bool ql_metatable_new(lua_State *L, const char *name);

/* Pushes the new metatable of boxes. */
void ql_box_open(lua_State *L);
/* Pushes a box that holds NULL; __gc and __close release what it holds later. */
struct ql_tensor **ql_box_new(lua_State *L);
/* luaL_testudata(L, index, QL_TENSOR), faster */
struct ql_tensor **ql_test_box(lua_State *L, int index);
/* The tensor at `index`, or NULL. A box that was closed raises. */
struct ql_tensor *ql_test_tensor(lua_State *L, int index);
/* The same, but the tensor may wait to be computed (tensor/deferred.h): for operands of ops. */
struct ql_tensor *ql_test_operand(lua_State *L, int index);
/* Moves the tensor in a box to the device; NULL: to that of --device. An empty box stays empty. */
enum ql_status ql_place_box(lua_State *L, struct ql_tensor **box, const struct ql_device *device);
/* The tensor at `index`, or NULL; one on a device is replaced there by a copy in the host's memory. */
struct ql_tensor *ql_host_tensor(lua_State *L, int index);
struct ql_tensor *ql_check_tensor(lua_State *L, int index, const char *what);

/* A number as a tensor of rank 0 that lives on the C stack, int64 or float64. */
struct ql_literal {
	struct ql_tensor tensor;
	struct ql_storage storage;
	union {
		int64_t i;
		double f;
	} value;
};

struct ql_tensor *ql_literal_int(struct ql_literal *l, int64_t value);
struct ql_tensor *ql_literal_float(struct ql_literal *l, double value);

/* Set fields of the table at the top of the stack; a NULL text is nil. */
void ql_set_functions(lua_State *L, const luaL_Reg *functions);
void ql_set_text(lua_State *L, const char *key, const char *value);
void ql_set_integer(lua_State *L, const char *key, lua_Integer value);

/* Documentation of things that are not ops: registers a NULL-name-terminated array under a prefix ("tensor",
 * "quant"); help and completion walk all of them. */
struct ql_doc_list {
	const char *module; /* "tensor", "quant", …; "x" for tensor methods */
	const struct ql_doc *docs;
	struct ql_doc_list *next;
};
void ql_doc_register(struct ql_doc_list *list);
const struct ql_doc_list *ql_doc_lists(void);

#endif
