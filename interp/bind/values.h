/* SPDX-License-Identifier: MIT
 * Values from Lua, checked against attributes.
 */
#ifndef QUOLL_INTERP_BIND_VALUES_H
#define QUOLL_INTERP_BIND_VALUES_H

#include <lauxlib.h>
#include <lua.h>

#include "interp/host/box.h"
#include "quant/spec.h"
#include "tensor/attr.h"

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

/* Index of the attribute of that name, or -1. */
int ql_attr_find(const struct ql_attr *attrs, const char *name);
/* Reads the value at `index` as `a` says, for anything but specs; lists of integers go to args->ints. What the value borrows is
 * pushed: leave it on the stack. Raises "name: attribute: wanted …, got …". */
void ql_value_read(lua_State *L, const char *name, const struct ql_attr *a, int index, struct ql_arguments *args,
	struct ql_value *v);
/* Appends the integer at `index` to args->ints. */
void ql_value_add_int(lua_State *L, const char *name, const struct ql_attr *a, struct ql_arguments *args, int index);
/* Raises the error of an unknown name: of those among the keys of the table at `index` the first in the alphabet. `what`:
 * "option" or "field"; attrs NULL: it takes none. */
_Noreturn void ql_unknown_name(
	lua_State *L, const char *name, const char *what, const struct ql_attr *attrs, int index);

/* Fields of the table on top: a number, a list of n numbers. */
void ql_set_number(lua_State *L, const char *key, double value);
void ql_set_numbers(lua_State *L, const char *key, const double *x, int n);

#endif
