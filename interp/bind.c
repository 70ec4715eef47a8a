/* SPDX-License-Identifier: MIT
 * Boxes, raising, and the one op binding.
 */
#include "interp/bind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interp/interrupt.h"
#include "interp/lifetime.h"
#include "interp/describe.h"
#include "interp/prelude/prelude.h"
#include "interp/record.h"
#include "tensor/map.h"

struct ql_ctx *ql_ctx_of(lua_State *L)
{
	return *(struct ql_ctx **)lua_getextraspace(L);
}

void ql_ctx_attach(lua_State *L, struct ql_ctx *ctx)
{
	*(struct ql_ctx **)lua_getextraspace(L) = ctx;
}

static bool is_prelude(const lua_Debug *ar)
{
	return !strncmp(ar->source, QL_PRELUDE_CHUNK, strlen(QL_PRELUDE_CHUNK));
}

/* Pushes the place of the caller, or, when that is the prelude, of the innermost line outside of it, as base.fail does:
 * what an op of a module is given comes from the one who calls the module. "" when there is none. */
static void push_place(lua_State *L)
{
	lua_Debug ar;

	if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "S", &ar) || !is_prelude(&ar)) {
		luaL_where(L, 1);
		return;
	}
	for (int level = 2; lua_getstack(L, level, &ar) && lua_getinfo(L, "Sl", &ar); level++)
		if (ar.currentline > 0 && !is_prelude(&ar)) {
			lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
			return;
		}
	lua_pushliteral(L, "");
}

static int raise_text(lua_State *L, const char *text)
{
	char line[2048];

	push_place(L);
	ql_text_escape(text, strlen(text), SIZE_MAX, line, sizeof(line));
	lua_pushstring(L, line);
	lua_concat(L, 2);
	return lua_error(L);
}

int ql_error(lua_State *L, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return raise_text(L, text);
}

int ql_raise(lua_State *L, enum ql_status status)
{
	if (status == QL_ERR_INTERRUPTED)
		ql_interrupt_raised(L);
	return raise_text(L, ql_ctx_of(L)->err);
}

bool ql_metatable_new(lua_State *L, const char *name)
{
	if (!luaL_newmetatable(L, name))
		return false;
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	return true;
}

struct ql_tensor **ql_box_new(lua_State *L)
{
	struct ql_tensor **box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = NULL;
	luaL_setmetatable(L, QL_TENSOR);
	return box;
}

struct ql_tensor *ql_test_tensor(lua_State *L, int index)
{
	struct ql_tensor **box = luaL_testudata(L, index, QL_TENSOR);

	if (box && !*box)
		ql_error(L, "tensor: wanted a live tensor, got one that was already closed");
	return box ? *box : NULL;
}

struct ql_tensor *ql_check_tensor(lua_State *L, int index, const char *what)
{
	struct ql_tensor *t = ql_test_tensor(L, index);

	if (!t)
		ql_error(L, "%s: wanted a tensor, got %s", what, luaL_typename(L, index));
	return t;
}

void ql_set_functions(lua_State *L, const luaL_Reg *functions)
{
	luaL_setfuncs(L, functions, 0);
}

static struct ql_doc_list *docs;

void ql_doc_register(struct ql_doc_list *list)
{
	for (const struct ql_doc_list *l = docs; l; l = l->next)
		if (l == list)
			return;
	list->next = docs;
	docs = list;
}

const struct ql_doc_list *ql_doc_lists(void)
{
	return docs;
}

/* ---- calling an op ---- */

/* A number as an operand lives on the C stack: rank 0, int64 or float64. */
struct literal {
	struct ql_tensor tensor;
	struct ql_storage storage;
	union {
		int64_t i;
		double f;
	} value;
};

#define MAX_DIRECT 8 /* operands given as arguments */

struct op_frame {
	struct ql_call call;
	struct literal literal[MAX_DIRECT];
	struct ql_tensor *in[MAX_DIRECT];
	struct ql_arguments args;
};

static struct ql_tensor *literal_of(lua_State *L, int index, struct literal *l)
{
	bool integer = lua_isinteger(L, index);

	memset(l, 0, sizeof(*l));
	if (integer)
		l->value.i = lua_tointeger(L, index);
	else
		l->value.f = lua_tonumber(L, index);
	l->storage = (struct ql_storage){.refs = 1, .bytes = 8, .data = &l->value, .device = &ql_device_cpu};
	l->tensor = (struct ql_tensor){.refs = 1, .dtype = integer ? QL_int64 : QL_float64, .storage = &l->storage};
	return &l->tensor;
}

/* Operands first..: returns the index of the first argument behind them. */
static int read_operands(lua_State *L, struct op_frame *f, int first)
{
	const struct ql_op *op = f->call.op;
	int top = lua_gettop(L), i = first;

	f->call.in = f->in;
	for (; i <= top && f->call.n_in < op->arity_max && f->call.n_in < MAX_DIRECT; i++) {
		struct ql_tensor *t = ql_test_tensor(L, i);
		bool number = !t && (op->flags & QL_NUMBERS) && lua_type(L, i) == LUA_TNUMBER;

		if (number) {
			t = literal_of(L, i, &f->literal[f->call.n_in]);
			f->call.weak |= 1u << f->call.n_in;
		}
		if (!t)
			break;
		f->in[f->call.n_in++] = t;
	}
	if (f->call.n_in < op->arity_min)
		ql_error(L, "%s: operand %d: wanted a tensor%s, got %s; usage: %s", op->doc.name, f->call.n_in + 1,
			op->flags & QL_NUMBERS ? " or a number" : "", i <= top ? luaL_typename(L, i) : "nothing", op->doc.usage);
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

/* einsum and the like: strings may stand before the operands. They are moved behind them. */
static void move_leading_string(lua_State *L, const struct ql_op *op, int first)
{
	if (op->arity_max && lua_type(L, first) == LUA_TSTRING && lua_gettop(L) > first) {
		lua_pushvalue(L, first);
		lua_remove(L, first);
	}
}

/* x:gather(axis, index): the axis is moved behind the operands. */
static void move_second_number(lua_State *L, const struct ql_op *op, int first)
{
	if (!(op->flags & QL_AXIS_SECOND) || lua_type(L, first + 1) != LUA_TNUMBER || lua_gettop(L) == first + 1)
		return;
	lua_pushvalue(L, first + 1);
	lua_remove(L, first + 1);
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

static int op_outputs(const struct ql_op *op)
{
	return op->outputs ? op->outputs : 1;
}

static int op_finish(lua_State *L, struct op_frame *f)
{
	struct ql_tensor **box[QL_MAX_OUT];
	struct list_box *list = NULL;
	int n = op_outputs(f->call.op);
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

/* Operands are the first arguments, or the list behind its array (read_operand_list); results lie on top. */
static void tell_recorder(lua_State *L, const struct op_frame *f, bool in_place, int n_results)
{
	bool list = f->call.op->flags & QL_LIST_IN, lists = f->call.op->flags & QL_LIST_OUT;
	struct ql_applied a = {.op = f->call.op->doc.name, .attrs = f->call.op->doc.attrs, .args = &f->args, .first = list ? 2 : 1,
		.n_operands = list ? -1 : f->call.n_in, .n_results = lists ? -1 : n_results, .in_place = in_place};

	ql_record_op(L, &a);
}

static int op_call(lua_State *L)
{
	const struct ql_op *op = lua_touserdata(L, lua_upvalueindex(1));
	bool in_place = lua_toboolean(L, lua_upvalueindex(2));
	struct op_frame f;
	int next, n;

	memset(&f.call, 0, sizeof(f.call));
	f.call.op = op;
	move_leading_string(L, op, 1);
	move_second_number(L, op, 1);
	next = op->flags & QL_LIST_IN ? read_operand_list(L, &f, 1) : read_operands(L, &f, 1);
	ql_read_arguments(L, op->doc.name, op->doc.attrs, next, &f.args);
	f.call.attr = f.args.value;
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

		lua_createtable(L, 0, 15);
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
		set_flag(L, "gradient", op->backward);
		set_flag(L, "table", op->flags & QL_ELEMENTWISE);
		lua_seti(L, -2, ++n);
	}
}
