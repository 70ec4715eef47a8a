/* SPDX-License-Identifier: MIT
 * The one op binding.
 */
#include "interp/bind/call.h"

#include <stdio.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "interp/host/lifetime.h"
#include "interp/bind/describe.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/record.h"
#include "interp/host/state.h"
#include "interp/bind/surplus.h"
#include "tensor/loops/map.h"
#include "tensor/ops.h"

/* ---- calling an op ---- */

static struct ql_tensor *literal_of(struct ql_literal *l, unsigned dtype)
{
	l->storage = (struct ql_storage){.refs = 1, .bytes = 8, .data = &l->value, .device = &ql_device_cpu};
	l->tensor = (struct ql_tensor){.refs = 1, .dtype = (uint8_t)dtype, .storage = &l->storage};
	return &l->tensor;
}

struct ql_tensor *ql_literal_int(struct ql_literal *l, int64_t value)
{
	l->value.i = value;
	return literal_of(l, QL_int64);
}

struct ql_tensor *ql_literal_float(struct ql_literal *l, double value)
{
	l->value.f = value;
	return literal_of(l, QL_float64);
}

#define MAX_DIRECT 8 /* operands given as arguments */

struct op_frame {
	struct ql_call call;
	struct ql_literal literal[MAX_DIRECT];
	struct ql_tensor *in[MAX_DIRECT];
	struct ql_arguments args;
};

/* Operands first..: returns the index of the first argument after them. */
static int read_operands(lua_State *L, struct op_frame *f, int first)
{
	const struct ql_op *op = f->call.op;
	int top = lua_gettop(L), i = first;

	f->call.in = f->in;
	for (; i <= top && f->call.n_in < op->arity_max && f->call.n_in < MAX_DIRECT; i++) {
		struct ql_tensor *t = ql_test_operand(L, i);
		bool number = !t && (op->flags & QL_NUMBERS) && lua_type(L, i) == LUA_TNUMBER;

		if (number) {
			struct ql_literal *l = &f->literal[f->call.n_in];

			t = lua_isinteger(L, i) ? ql_literal_int(l, lua_tointeger(L, i))
						: ql_literal_float(l, lua_tonumber(L, i));
			f->call.weak |= 1u << f->call.n_in;
		}
		if (!t)
			break;
		f->in[f->call.n_in++] = t;
	}
	if (f->call.n_in < op->arity_min)
		ql_error(L, "%s: operand %d: wanted a tensor%s, got %s; usage: %s", op->doc.name, f->call.n_in + 1,
			op->flags & QL_NUMBERS ? " or a number" : "", i <= top ? luaL_typename(L, i) : "nothing",
			op->doc.usage);
	return i;
}

/* The first argument is a list of tensors: their array lives in a userdata, pushed onto the stack. A list with
 * metamethods, which may give other tensors when it is read again, is replaced by one of our own. */
static int read_operand_list(lua_State *L, struct op_frame *f, int first)
{
	const char *name = f->call.op->doc.name;
	lua_Integer n;
	bool copied;

	if (lua_type(L, first) != LUA_TTABLE)
		ql_error(L, "%s: wanted a list of tensors, got %s", name, luaL_typename(L, first));
	ql_check_list(L, name, "tensors, then options in a table", first);
	n = luaL_len(L, first);
	if (n < 1 || n > 1 << 20)
		ql_error(L, "%s: wanted a list of 1 or more tensors, got %lld", name, (long long)n);
	f->call.in = lua_newuserdatauv(L, ql_size_array(n, sizeof(struct ql_tensor *)), 0);
	lua_insert(L, first);
	copied = lua_getmetatable(L, first + 1);
	if (copied)
		lua_createtable(L, (int)n, 0);
	for (lua_Integer i = 1; i <= n; i++) {
		lua_geti(L, first + 1, i);
		f->call.in[i - 1] = ql_test_tensor(L, -1);
		if (!f->call.in[i - 1])
			ql_error(L, "%s: item %lld: wanted a tensor, got %s", name, (long long)i, luaL_typename(L, -1));
		if (copied)
			lua_rawseti(L, -2, i);
		else
			lua_pop(L, 1);
	}
	if (copied) {
		lua_replace(L, first + 1);
		lua_pop(L, 1);
	}
	f->call.n_in = (int)n;
	return first + 2;
}

/* einsum and the like: strings may precede the operands. They are moved after them. */
static void move_leading_string(lua_State *L, const struct ql_op *op, int first)
{
	if (op->arity_max && lua_type(L, first) == LUA_TSTRING && lua_gettop(L) > first) {
		lua_pushvalue(L, first);
		lua_remove(L, first);
	}
}

/* x:gather(axis, index): the axis is moved after the operands. */
static void move_second_number(lua_State *L, const struct ql_op *op, int first)
{
	if (!(op->flags & QL_AXIS_SECOND) || lua_type(L, first + 1) != LUA_TNUMBER || lua_gettop(L) == first + 1)
		return;
	lua_pushvalue(L, first + 1);
	lua_remove(L, first + 1);
}

/* A tensor whose dtype is of one of the kinds "bool float int". */
static bool is_operand_of(const struct ql_tensor *t, const char *kinds)
{
	static const char *const name[] = {[QL_KIND_FLOAT] = "float",
		[QL_KIND_INT] = "int",
		[QL_KIND_UINT] = "int",
		[QL_KIND_BOOL] = "bool",
		[QL_KIND_BINARY] = "binary"};

	return !t->q && strstr(kinds, name[ql_dtypes[t->dtype].kind]);
}

/* The options that are operands become arguments after the others: nn.attention(q, k, v, {mask=m}). */
static void move_named_operands(lua_State *L, const struct ql_op *op)
{
	const struct ql_attr *a = op->doc.attrs;
	int at = 1, table = lua_gettop(L);
	char got[QL_DESCRIPTION];

	if (table == 0 || lua_type(L, table) != LUA_TTABLE)
		return;
	while (at < table && ql_test_operand(L, at))
		at++;
	for (; a && a->type != QL_ATTR_END; a++) {
		struct ql_tensor *t;

		if (!(a->flags & QL_OPERAND))
			continue;
		luaL_checkstack(L, 2, "too many arguments");
		lua_pushstring(L, a->name);
		if (lua_rawget(L, table) == LUA_TNIL) {
			lua_pop(L, 1);
			continue;
		}
		t = ql_test_tensor(L, -1);
		if (!t || !is_operand_of(t, a->choices)) {
			ql_value_got(L, -1, got);
			ql_error(L, "%s: %s: wanted a tensor of %s, got %s", op->doc.name, a->name, a->choices, got);
		}
		lua_insert(L, at++);
		table++;
	}
}

static void hold_one(struct ql_ctx *ctx, struct ql_tensor *t, bool hold)
{
	if (t && hold)
		ql_tensor_keep(t);
	else
		ql_tensor_release(ctx, t);
}

/* Adds a reference to all tensors that the call uses, or takes it away. */
static void hold_tensors(struct ql_ctx *ctx, struct op_frame *f, bool hold)
{
	const struct ql_attr *attrs = f->call.op->doc.attrs;

	for (int i = 0; i < f->call.n_in; i++)
		hold_one(ctx, f->call.in[i], hold);
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++)
		if (attrs[i].type == QL_ATTR_TENSOR && f->args.value[i].set)
			hold_one(ctx, f->args.value[i].tensor, hold);
	for (int i = 0; i < f->args.n_specs; i++) {
		hold_one(ctx, f->args.spec[i].each_bits, hold);
		hold_one(ctx, f->args.spec[i].scale_tensor, hold);
		hold_one(ctx, f->args.spec[i].zero_tensor, hold);
		hold_one(ctx, f->args.spec[i].minimum_tensor, hold);
		hold_one(ctx, f->args.spec[i].importance, hold);
	}
}

static enum ql_status apply_with_retry(lua_State *L, struct op_frame *f)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	enum ql_status status = ql_op_apply(ctx, &f->call);

	if (status != QL_ERR_MEMORY)
		return status;
	hold_tensors(ctx, f, true);
	ql_collect(L);
	status = ql_op_apply(ctx, &f->call);
	hold_tensors(ctx, f, false);
	return status;
}

struct list_box {
	struct ql_ctx *ctx;
	struct ql_tensor **list;
	int n;
};

static int list_box_gc(lua_State *L)
{
	struct list_box *b = lua_touserdata(L, 1);

	for (int i = 0; b->list && i < b->n; i++)
		ql_tensor_discard(L, b->list[i]);
	ql_free(b->ctx, b->list);
	b->list = NULL;
	return 0;
}

static struct list_box *list_box_new(lua_State *L)
{
	struct list_box *b = lua_newuserdatauv(L, sizeof(*b), 0);

	*b = (struct list_box){.ctx = ql_ctx_of(L)};
	if (ql_metatable_new(L, "quoll.list")) {
		lua_pushcfunction(L, list_box_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	return b;
}

/* The results of a list op: the holder owns them until each is in a box of its own. */
static int return_list(lua_State *L, struct list_box *b)
{
	lua_createtable(L, b->n, 0);
	for (int i = 0; i < b->n; i++) {
		struct ql_tensor **box = ql_box_new(L);

		*box = b->list[i];
		b->list[i] = NULL;
		lua_seti(L, -2, i + 1);
	}
	ql_free(b->ctx, b->list); /* not left to a finalizer, which needs memory itself */
	b->list = NULL;
	return 1;
}

static int op_finish(lua_State *L, struct op_frame *f)
{
	struct ql_tensor **box[QL_MAX_OUT];
	struct list_box *list = NULL;
	int n = ql_call_outputs(&f->call);
	enum ql_status status;

	luaL_checkstack(L, 8, "too many arguments");
	if (f->call.op->flags & QL_LIST_OUT) {
		list = list_box_new(L);
	} else {
		for (int i = 0; i < n; i++)
			box[i] = ql_box_new(L);
	}
	status = apply_with_retry(L, f);
	if (status)
		return ql_raise(L, status);
	if (list) {
		list->list = f->call.list;
		list->n = f->call.n_out;
		return return_list(L, list);
	}
	for (int i = 0; i < n; i++)
		*box[i] = f->call.out[i];
	return n;
}

/* Operands are the first arguments, or the list after its array (read_operand_list); results lie on top. */
static void tell_recorder(lua_State *L, const struct op_frame *f, bool in_place, int n_results)
{
	bool list = f->call.op->flags & QL_LIST_IN, lists = f->call.op->flags & QL_LIST_OUT;
	struct ql_applied a = {.op = f->call.op->doc.name,
		.attrs = f->call.op->doc.attrs,
		.args = &f->args,
		.first = list ? 2 : 1,
		.n_operands = list ? -1 : f->call.n_in,
		.n_results = lists ? -1 : n_results,
		.in_place = in_place};

	ql_record_op(L, &a);
}

int ql_call_op(lua_State *L, const struct ql_op *op, bool in_place)
{
	struct op_frame f;
	int next, n;

	memset(&f.call, 0, sizeof(f.call));
	f.call.op = op;
	move_leading_string(L, op, 1);
	move_second_number(L, op, 1);
	move_named_operands(L, op);
	next = op->flags & QL_LIST_IN ? read_operand_list(L, &f, 1) : read_operands(L, &f, 1);
	f.call.attr = next <= lua_gettop(L) ? f.args.value : NULL; /* none is given: none is looked for */
	ql_read_arguments(L, op->doc.name, op->doc.attrs, next, &f.args);
	if (in_place) {
		if (f.call.weak & 1)
			return ql_error(L, "%s_: wanted a tensor to write into, got a number", op->doc.name);
		f.call.into = f.call.in[0];
		if (op_finish(L, &f)) /* the box on top holds another reference to the same tensor */
			lua_pushvalue(L, 1);
		n = 1;
	} else {
		n = op_finish(L, &f);
	}
	if (ql_recorded(L))
		tell_recorder(L, &f, in_place, n);
	ql_pay_gc(L);
	return n;
}

static int op_call(lua_State *L)
{
	return ql_call_op(L, lua_touserdata(L, lua_upvalueindex(1)), lua_toboolean(L, lua_upvalueindex(2)));
}

void ql_push_op(lua_State *L, const struct ql_op *op, bool in_place)
{
	lua_pushlightuserdata(L, (void *)(uintptr_t)op);
	lua_pushboolean(L, in_place);
	lua_pushcclosure(L, op_call, 2);
}

/* ---- listing ops ---- */

static void set_flag(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

void ql_list_ops(lua_State *L, const struct ql_op *const *ops)
{
	for (lua_Integer n = luaL_len(L, -1); *ops; ops++) {
		const struct ql_op *op = *ops;

		lua_createtable(L, 0, 14);
		lua_pushstring(L, op->doc.name);
		lua_setfield(L, -2, "name");
		lua_pushinteger(L, op->arity_min);
		lua_setfield(L, -2, "arity_min");
		lua_pushinteger(L, op->flags & QL_LIST_IN ? 255 : op->arity_max);
		lua_setfield(L, -2, "arity_max");
		set_flag(L, "view", op->flags & QL_VIEW);
		set_flag(L, "native", op->flags & QL_NATIVE);
		set_flag(L, "numbers", op->flags & QL_NUMBERS);
		set_flag(L, "inplace", op->flags & QL_INPLACE);
		set_flag(L, "method", !(op->flags & QL_FUNCTION));
		set_flag(L, "list_in", op->flags & QL_LIST_IN);
		set_flag(L, "list_out", op->flags & QL_LIST_OUT);
		set_flag(L, "elementwise", op->infer == ql_map_infer || op->flags & QL_ELEMENTWISE);
		set_flag(L, "by_rows", op->flags & QL_BY_ROWS);
		set_flag(L, "gradient", op->backward);
		set_flag(L, "table", op->flags & QL_ELEMENTWISE);
		lua_seti(L, -2, ++n);
	}
}
