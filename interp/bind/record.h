/* SPDX-License-Identifier: MIT
 * Telling a recorder (graph.trace) what Lua does with tensors: each op with its operands, named attributes
 * and results, and what is no op: slices, writing, reading values. Off, it costs a test of one flag. What the
 * library applies inside of an op is not seen.
 */
#ifndef QUOLL_INTERP_BIND_RECORD_H
#define QUOLL_INTERP_BIND_RECORD_H

#include "interp/bind/call.h"

/* The op of that name, or NULL. */
const struct ql_op *ql_op_named(const char *name);
/* There is a listener. */
bool ql_recorded(lua_State *L);

/* One application of an op. Operands lie at first .. first + n_operands - 1 of the stack, or in the list at
 * `first` (n_operands < 0); results are the n_results values on top, or the list there (n_results < 0). */
struct ql_applied {
	const char *op;
	const struct ql_attr *attrs;
	const struct ql_arguments *args;
	int first, n_operands, n_results;
	bool in_place;
};
void ql_record_op(lua_State *L, const struct ql_applied *a);

/* Something else, by name ("index", "assign", "copy_", "read", "alias"): the n values on top are reported as they
 * are and stay. */
void ql_record(lua_State *L, const char *what, int n);

#endif
