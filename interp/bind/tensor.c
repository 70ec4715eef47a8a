/* SPDX-License-Identifier: MIT
 * The global `tensor`: ops as functions and methods, tensor{…} from tables, facts, metamethods, process state.
 */
#include <stdio.h>
#include <string.h>

#include "interp/bind/tensor_methods.h"
#include "interp/bind/index.h"
#include "interp/bind/iterate.h"
#include "interp/host/lifetime.h"
#include "interp/bind/make.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/print.h"
#include "interp/bind/surplus.h"
#include "quant/ranges/quantize.h"
#include "tensor/ops/ops.h"
#include "tensor/team.h"

static struct ql_tensor *self(lua_State *L)
{
	return ql_check_tensor(L, 1, "tensor");
}

/* ---- process state ---- */

static const struct ql_attr threads_attrs[] = {
	{"n", QL_ATTR_INT, QL_POSITIONAL, NULL, "1 to 1024 (default: as it is)"},
	{"pin", QL_ATTR_BOOL, 0, NULL,
		"true: each thread stays on a processor of its own, distinct cores first; false: not any more"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int tensor_threads(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_arguments args;
	const struct ql_value *n = &args.value[0], *pin = &args.value[1];

	ql_read_arguments(L, "threads", threads_attrs, 1, &args);
	if (n->set && (n->i < 1 || n->i > 1024))
		return ql_error(L, "threads: n: wanted 1 to 1024, got %lld", (long long)n->i);
	if (pin->set && !ql_team_pin(pin->b))
		return ql_error(L, "threads: pin: the system refuses to pin threads");
	if (n->set)
		ctx->threads = (int)n->i;
	lua_pushinteger(L, ctx->threads);
	return 1;
}

static int tensor_memory(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	bool reset = !lua_isnoneornil(L, 1);

	if (reset && strcmp(ql_check_string(L, 1, "memory"), "reset"))
		return ql_error(L, "memory: wanted 'reset' or nothing, got '%.40s'", lua_tostring(L, 1));
	ql_discarded_release(L);
	lua_createtable(L, 0, 3);
	lua_pushinteger(L, (lua_Integer)ctx->memory.now);
	lua_setfield(L, -2, "now");
	lua_pushinteger(L, (lua_Integer)ctx->memory.peak);
	lua_setfield(L, -2, "peak");
	lua_pushinteger(L, (lua_Integer)ctx->memory.count);
	lua_setfield(L, -2, "allocations");
	if (reset)
		ctx->memory.peak = ctx->memory.now;
	return 1;
}

static int tensor_seed(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);

	ctx->seed = (uint64_t)ql_check_integer(L, 1, "seed");
	ctx->rng_position = 0;
	return 0;
}

/* tensor.ops(): every op with what it takes */
static int tensor_ops(lua_State *L)
{
	lua_newtable(L);
	ql_list_ops(L, ql_ops);
	ql_list_ops(L, ql_quant_ops);
	return 1;
}

/* ---- metamethods ---- */

static int meta_gc(lua_State *L)
{
	struct ql_tensor **box = ql_test_box(L, 1), *t = box ? *box : NULL;

	if (box)
		*box = NULL;
	ql_tensor_finalize(L, t);
	return 0;
}

static int meta_close(lua_State *L)
{
	struct ql_tensor **box = luaL_checkudata(L, 1, QL_TENSOR);

	ql_tensor_discard(L, *box);
	*box = NULL;
	ql_discarded_release(L);
	return 0;
}

/* Pushes the names in the methods table at `table`, separated by spaces. (They go through a list, because the
 * buffer wants to be on top of the stack.) */
static const char *push_names(lua_State *L, int table)
{
	luaL_Buffer b;
	lua_Integer n = 0;
	int list;

	lua_newtable(L);
	list = lua_gettop(L);
	lua_pushnil(L);
	while (lua_next(L, table)) {
		lua_pop(L, 1);
		lua_pushvalue(L, -1);
		lua_seti(L, list, ++n);
	}
	luaL_buffinit(L, &b);
	for (lua_Integer i = 1; i <= n; i++) {
		lua_geti(L, list, i);
		luaL_addvalue(&b);
		luaL_addchar(&b, ' ');
	}
	luaL_pushresult(&b);
	return lua_tostring(L, -1);
}

static int meta_index(lua_State *L)
{
	struct ql_tensor *t = self(L);
	const char *key;
	char near[96];

	if (lua_type(L, 2) != LUA_TSTRING)
		return ql_iterate_ends(L, t, 2) ? 0 : ql_index_get(L, t, 2);
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
		return 1;
	key = lua_tostring(L, 2);
	if (ql_index_is_text(key))
		return ql_index_get(L, t, 2);
	if (ql_prelude_methods(L)) /* some are written in Lua */
		return meta_index(L);
	ql_prelude_require(L, "interp/prelude/habits"); /* is it a name of PyTorch? */
	lua_getfield(L, -1, "answer");
	lua_pushliteral(L, "tensor");
	lua_pushvalue(L, 2);
	lua_call(L, 2, 1);
	if (lua_isstring(L, -1))
		return ql_error(L, "tensor: no method '%.40s'%s", key, lua_tostring(L, -1));
	return ql_error(
		L, "tensor: no method '%.40s'%s", key, ql_nearest(key, push_names(L, lua_upvalueindex(1)), near));
}

static int meta_newindex(lua_State *L)
{
	return ql_index_set(L, self(L), 2, 3);
}

static int meta_len(lua_State *L)
{
	struct ql_tensor *t = self(L);

	if (t->rank == 0)
		return ql_error(L, "#: wanted a tensor with at least one axis, got a number");
	lua_pushinteger(L, t->shape[0]);
	return 1;
}

static int meta_eq(lua_State *L)
{
	struct ql_tensor *a = ql_test_tensor(L, 1), *b = ql_test_tensor(L, 2);

	lua_pushboolean(L, a && b && a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype &&
				   ql_tensor_same_shape(a, b) &&
				   !memcmp(a->stride, b->stride, sizeof(a->stride[0]) * a->rank));
	return 1;
}

static int meta_compare(lua_State *L)
{
	return ql_error(L, "tensor: < and <= give one boolean in Lua; use a:lt(b), a:le(b), a:gt(b), a:ge(b)");
}

static int meta_concat(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	luaL_tolstring(L, 2, NULL);
	lua_concat(L, 2);
	return 1;
}

static const luaL_Reg functions[] = {{"threads", tensor_threads}, {"memory", tensor_memory}, {"seed", tensor_seed},
	{"ops", tensor_ops}, {NULL, NULL}};

static const luaL_Reg metamethods[] = {{"__gc", meta_gc}, {"__close", meta_close}, {"__newindex", meta_newindex},
	{"__len", meta_len}, {"__eq", meta_eq}, {"__lt", meta_compare}, {"__le", meta_compare},
	{"__concat", meta_concat}, {"__tostring", ql_print_tostring}, {NULL, NULL}};

/* metamethod -> op */
static const char *const operators[][2] = {{"__add", "add"}, {"__sub", "sub"}, {"__mul", "mul"}, {"__div", "div"},
	{"__mod", "mod"}, {"__pow", "pow"}, {"__unm", "neg"}, {"__idiv", "idiv"}, {"__band", "band"}, {"__bor", "bor"},
	{"__bxor", "bxor"}, {"__shl", "shl"}, {"__shr", "shr"}, {"__bnot", "bnot"}};

/* Sets the op in the module table at `module` and, unless it is a function only, in the methods at `table`. */
static void add_op(lua_State *L, const struct ql_op *op, int module, int table)
{
	char name[64];

	if (!(op->flags & QL_METHOD)) {
		ql_push_op(L, op, false);
		lua_setfield(L, module, op->doc.name);
	}
	if (op->flags & QL_FUNCTION)
		return;
	ql_push_op(L, op, false);
	lua_setfield(L, table, op->doc.name);
	if (!(op->flags & QL_INPLACE))
		return;
	snprintf(name, sizeof(name), "%s_", op->doc.name);
	ql_push_op(L, op, true);
	lua_setfield(L, table, name);
}

/* Lua gives the operand of a unary operator twice. */
static int meta_unary(lua_State *L)
{
	lua_settop(L, 1);
	return ql_call_op(L, lua_touserdata(L, lua_upvalueindex(1)), false);
}

static void add_operators(lua_State *L, int table, int meta)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (!strcmp(operators[i][0], "__unm") || !strcmp(operators[i][0], "__bnot")) {
			lua_pushlightuserdata(L, (void *)(uintptr_t)ql_op_by_name(ql_ops, operators[i][1]));
			lua_pushcclosure(L, meta_unary, 1);
		} else {
			lua_getfield(L, table, operators[i][1]);
		}
		lua_setfield(L, meta, operators[i][0]);
	}
}

static const struct ql_attr memory_attrs[] = {
	{"reset", QL_ATTR_STRING, QL_POSITIONAL, "reset", "afterwards the peak starts at what is in use"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_doc docs[] = {
	{"threads", "tensor.threads()  tensor.threads(n)  tensor.threads(n, {pin=true})",
		"The number of threads for large operations; with n or pin sets that first. One per "
		"processor that the process may use by default; --threads and --pin set it, too. Where the system cannot start as many, a "
		"note says so once and those that there are go on. Pinned threads give steadier times on a machine of your own; programs "
		"that os.execute and io.popen start then inherit the first processor.",
		"print(tensor.threads() >= 1)  --> true", threads_attrs},
	{"memory", "tensor.memory()  tensor.memory 'reset'",
		"A table with the bytes that all tensors hold (now), their highest sum (peak) and the number of allocations so far.",
		"x = tensor.zeros(1000)\nprint(tensor.memory().now >= 4000)  --> true", memory_attrs},
	{"seed", "tensor.seed(n)", "Starts the random numbers anew: the same n gives the same numbers. See random.",
		"tensor.seed(1)", NULL},
	{"ops", "tensor.ops()",
		"A list of all ops: name, operands (arity_min, arity_max), and flags: view, native (takes quantized operands as they "
		"are), numbers, inplace, method, list_in, list_out, elementwise, by_rows (row i of the result follows from row i of "
		"the first operand), gradient (it has one, which may be "
		"0 almost everywhere), table (with out=, codes of one operand are looked up). The ops of nn are in nn.ops.",
		"print(#tensor.ops() > 50)  --> true", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static void register_docs(void)
{
	static struct ql_doc_list list = {.module = "tensor", .docs = docs};

	ql_doc_register(&list);
}

int ql_open_tensor(lua_State *L)
{
	int module, table, meta;

	register_docs();
	lua_newtable(L);
	module = lua_gettop(L);
	lua_newtable(L);
	table = lua_gettop(L);
	ql_box_open(L);
	meta = lua_gettop(L);
	ql_set_functions(L, metamethods);
	ql_iterate_open(L);
	for (int i = 0; ql_ops[i]; i++)
		add_op(L, ql_ops[i], module, table);
	for (int i = 0; ql_quant_ops[i]; i++)
		add_op(L, ql_quant_ops[i], module, table);
	lua_pushvalue(L, table);
	ql_fact_open(L);
	lua_setfield(L, meta, "methods"); /* openers of other modules add theirs here */
	add_operators(L, table, meta);
	ql_lifetime_harmless(L, meta_concat);
	lua_pushvalue(L, table);
	lua_pushcclosure(L, meta_index, 1);
	lua_setfield(L, meta, "__index");
	lua_pushvalue(L, module);
	ql_set_documented(L, functions, docs);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, ql_make_tensor);
	lua_setfield(L, -2, "__call");
	lua_setmetatable(L, -2);
	lua_setglobal(L, "tensor");
	lua_settop(L, module - 1);
	return 0;
}
