/* SPDX-License-Identifier: MIT
 * The global `tensor`: ops as functions and methods, tensor{…} from tables, facts, metamethods, process state.
 */
#include <stdio.h>
#include <string.h>

#include "interp/index.h"
#include "interp/prelude/prelude.h"
#include "interp/print.h"
#include "quant/quantize.h"
#include "tensor/assign.h"
#include "tensor/ops/ops.h"

/* ---- facts ---- */

static struct ql_tensor *self(lua_State *L)
{
	return ql_check_tensor(L, 1, "tensor");
}

static int push_sizes(lua_State *L, int n, const int64_t *at)
{
	luaL_checkstack(L, n, NULL);
	for (int d = 0; d < n; d++)
		lua_pushinteger(L, at[d]);
	return n;
}

static int one_axis(lua_State *L, const struct ql_tensor *t, const char *what, const int64_t *values)
{
	int axis;
	enum ql_status status;

	if (lua_isnoneornil(L, 2))
		return push_sizes(L, t->rank, values);
	status = ql_axis(ql_ctx_of(L), what, luaL_checkinteger(L, 2), t->rank, &axis);
	if (status)
		return ql_raise(L, status);
	lua_pushinteger(L, values[axis]);
	return 1;
}

static int method_size(lua_State *L)
{
	struct ql_tensor *t = self(L);

	return one_axis(L, t, "size", t->shape);
}

static int method_stride(lua_State *L)
{
	struct ql_tensor *t = self(L);

	return one_axis(L, t, "stride", t->stride);
}

static int method_dim(lua_State *L)
{
	lua_pushinteger(L, self(L)->rank);
	return 1;
}

static int method_nelem(lua_State *L)
{
	lua_pushinteger(L, ql_tensor_nelem(self(L)));
	return 1;
}

static int method_dtype(lua_State *L)
{
	lua_pushstring(L, ql_dtype_name(self(L)->dtype));
	return 1;
}

static int method_device(lua_State *L)
{
	lua_pushstring(L, self(L)->storage->device->doc.name);
	return 1;
}

static int method_nbytes(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)ql_tensor_nbytes(self(L)));
	return 1;
}

static int method_iscontiguous(lua_State *L)
{
	lua_pushboolean(L, ql_tensor_is_contiguous(self(L)));
	return 1;
}

/* ---- values out ---- */

/* Pushes one element as a Lua number: integer for plain integers, boolean for bool. */
static void push_element(lua_State *L, const struct ql_tensor *t, int64_t i)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t index[QL_MAX_RANK] = {0};

	for (int k = t->rank - 1; k >= 0; k--) {
		index[k] = i % t->shape[k];
		i /= t->shape[k];
	}
	if (d->kind == QL_KIND_FLOAT)
		lua_pushnumber(L, ql_tensor_get_f64(t, index));
	else if (d->kind == QL_KIND_BOOL)
		lua_pushboolean(L, ql_tensor_get_i64(t, index) != 0);
	else
		lua_pushinteger(L, ql_tensor_get_i64(t, index));
}

/* The tensor itself, or its decoded values in a box on the stack. */
static struct ql_tensor *real_values(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box;
	enum ql_status status;

	if (!t->q)
		return t;
	box = ql_box_new(L);
	status = ql_decode(ql_ctx_of(L), t, box);
	if (status)
		ql_raise(L, status);
	return *box;
}

static int method_item(lua_State *L)
{
	struct ql_tensor *t = self(L);
	char text[QL_SHAPE_TEXT];

	if (ql_tensor_nelem(t) != 1)
		return ql_error(L, "item: wanted a tensor of one element, got %s", ql_tensor_text(t, text));
	push_element(L, real_values(L, t), 0);
	return 1;
}

static void push_table(lua_State *L, const struct ql_tensor *t, int axis, int64_t *at)
{
	int64_t n;

	if (axis == t->rank) {
		push_element(L, t, (*at)++);
		return;
	}
	n = t->shape[axis];
	luaL_checkstack(L, 2, NULL);
	lua_createtable(L, n > INT32_MAX ? 0 : (int)n, 0);
	for (int64_t i = 1; i <= n; i++) {
		push_table(L, t, axis + 1, at);
		lua_seti(L, -2, i);
	}
}

static int method_totable(lua_State *L)
{
	struct ql_tensor *t = real_values(L, self(L));
	int64_t at = 0;

	push_table(L, t, 0, &at);
	return 1;
}

/* ---- writing ---- */

static int method_copy(lua_State *L)
{
	struct ql_tensor *t = self(L), *source = ql_index_value(L, 2, t);
	enum ql_status status = ql_tensor_assign(ql_ctx_of(L), "copy_", t, source);

	if (status)
		return ql_raise(L, status);
	lua_settop(L, 1);
	return 1;
}

static int method_fill(lua_State *L)
{
	if (lua_type(L, 2) != LUA_TNUMBER)
		return ql_error(L, "fill_: wanted a number, got %s", luaL_typename(L, 2));
	return method_copy(L);
}

/* ---- tensor{…} ---- */

static const struct ql_attr make_attrs[] = {
	{"values", QL_ATTR_FLOAT, 0, NULL, "nested lists of numbers"},
	{"dtype", QL_ATTR_DTYPE, 0, NULL, "element type (default float32, bool for booleans)"},
	{"device", QL_ATTR_STRING, 0, "cpu", "where it lives (default cpu)"},
	{"quant", QL_ATTR_SPEC, 0, NULL, "quantize by this spec"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

struct nested {
	int rank;
	int64_t shape[QL_MAX_RANK];
	bool booleans;
};

/* Follows the first items down. */
static void measure(lua_State *L, int index, struct nested *n)
{
	int top = lua_gettop(L);

	lua_pushvalue(L, index);
	while (lua_type(L, -1) == LUA_TTABLE) {
		if (n->rank == QL_MAX_RANK)
			ql_error(L, "tensor: wanted at most %d levels of lists, got more", QL_MAX_RANK);
		n->shape[n->rank++] = luaL_len(L, -1);
		if (n->shape[n->rank - 1] == 0)
			break;
		luaL_checkstack(L, 2, NULL);
		lua_geti(L, -1, 1);
	}
	n->booleans = lua_type(L, -1) == LUA_TBOOLEAN;
	lua_settop(L, top);
}

static void fill_nested(lua_State *L, const struct nested *n, int axis, struct ql_tensor *t, int64_t *at)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];

	if (axis == n->rank) {
		double real = lua_type(L, -1) == LUA_TBOOLEAN ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
		int64_t row = n->rank ? n->shape[n->rank - 1] : 1, per = t->rank > 1 ? t->stride[t->rank - 2] : row;
		int64_t where = *at / row * per + *at % row;

		if (lua_type(L, -1) != LUA_TNUMBER && lua_type(L, -1) != LUA_TBOOLEAN)
			ql_error(L, "tensor: item %lld: wanted a number, got %s", (long long)*at + 1, luaL_typename(L, -1));
		if (lua_isinteger(L, -1) && d->kind != QL_KIND_FLOAT) {
			int64_t i = lua_tointeger(L, -1);

			if (d->kind != QL_KIND_BOOL && (i < d->lo || i > d->hi))
				ql_error(L, "tensor: item %lld: wanted a number that fits %s, got %lld", (long long)*at + 1, d->name,
					(long long)i);
			d->from_i64(t->storage->data, where, 1, 1, &i);
		} else {
			if (d->kind != QL_KIND_FLOAT && d->kind != QL_KIND_BOOL && real != (double)(int64_t)real)
				ql_error(L, "tensor: item %lld: wanted an integer for %s, got %.14g", (long long)*at + 1, d->name, real);
			d->from_f64(t->storage->data, where, 1, 1, &real);
		}
		++*at;
		return;
	}
	if (lua_type(L, -1) != LUA_TTABLE || (int64_t)luaL_len(L, -1) != n->shape[axis])
		ql_error(L, "tensor: level %d: wanted lists of %lld items each, got %s", axis + 1, (long long)n->shape[axis],
			lua_type(L, -1) == LUA_TTABLE ? "one of another length" : luaL_typename(L, -1));
	for (int64_t i = 1; i <= n->shape[axis]; i++) {
		luaL_checkstack(L, 2, NULL);
		lua_geti(L, -1, i);
		fill_nested(L, n, axis + 1, t, at);
		lua_pop(L, 1);
	}
}

/* Options stand in the hash part of the outermost list. */
static void read_make_options(lua_State *L, int index, struct ql_arguments *args)
{
	lua_newtable(L);
	lua_pushnil(L);
	while (lua_next(L, index)) {
		if (lua_type(L, -2) == LUA_TSTRING) {
			lua_pushvalue(L, -2);
			lua_insert(L, -2);
			lua_settable(L, -4);
		} else {
			lua_pop(L, 1);
		}
	}
	ql_read_arguments(L, "tensor", make_attrs, lua_gettop(L), args);
}

static int call_tensor(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct nested n = {0};
	struct ql_arguments args;
	struct ql_tensor **box, **quantized;
	unsigned dtype;
	int64_t at = 0;
	enum ql_status status;

	lua_settop(L, 2); /* the module, the list */
	if (lua_type(L, 2) != LUA_TTABLE && lua_type(L, 2) != LUA_TNUMBER)
		return ql_error(L, "tensor: wanted a list of numbers, got %s", luaL_typename(L, 2));
	for (size_t i = 0; i < sizeof(make_attrs) / sizeof(make_attrs[0]); i++)
		args.value[i].set = false;
	measure(L, 2, &n);
	if (lua_type(L, 2) == LUA_TTABLE)
		read_make_options(L, 2, &args);
	dtype = args.value[1].set ? (unsigned)args.value[1].i : n.booleans ? QL_bool : QL_float32;
	lua_settop(L, 3);
	box = ql_box_new(L);
	status = ql_tensor_new(ctx, dtype, n.rank, n.shape, box);
	if (status)
		return ql_raise(L, status);
	lua_pushvalue(L, 2);
	if (ql_tensor_nelem(*box) > 0)
		fill_nested(L, &n, 0, *box, &at);
	lua_pop(L, 1);
	if (!args.value[3].set)
		return 1;
	quantized = ql_box_new(L);
	status = ql_quantize(ctx, *box, args.value[3].spec, quantized);
	return status ? ql_raise(L, status) : 1;
}

/* ---- process state ---- */

static int tensor_threads(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	lua_Integer n;

	if (!lua_isnoneornil(L, 1)) {
		n = luaL_checkinteger(L, 1);
		if (n < 1 || n > 1024)
			return ql_error(L, "threads: wanted 1 to 1024, got %lld", (long long)n);
		ctx->threads = (int)n;
	}
	lua_pushinteger(L, ctx->threads);
	return 1;
}

static int tensor_memory(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);

	lua_createtable(L, 0, 3);
	lua_pushinteger(L, (lua_Integer)ctx->memory.now);
	lua_setfield(L, -2, "now");
	lua_pushinteger(L, (lua_Integer)ctx->memory.peak);
	lua_setfield(L, -2, "peak");
	lua_pushinteger(L, (lua_Integer)ctx->memory.count);
	lua_setfield(L, -2, "allocations");
	if (lua_type(L, 1) == LUA_TSTRING && !strcmp(lua_tostring(L, 1), "reset"))
		ctx->memory.peak = ctx->memory.now;
	return 1;
}

static int tensor_seed(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);

	ctx->seed = (uint64_t)luaL_checkinteger(L, 1);
	ctx->rng_position = 0;
	return 0;
}

/* ---- metamethods ---- */

static int meta_gc(lua_State *L)
{
	struct ql_tensor **box = luaL_checkudata(L, 1, QL_TENSOR);

	ql_tensor_release(ql_ctx_of(L), *box);
	*box = NULL;
	return 0;
}

static int meta_index(lua_State *L)
{
	struct ql_tensor *t = self(L);
	const char *key;
	char near[96];

	if (lua_type(L, 2) != LUA_TSTRING)
		return ql_index_get(L, t, 2);
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
		return 1;
	if (ql_prelude_methods(L)) /* some are written in Lua */
		return meta_index(L);
	key = lua_tostring(L, 2);
	if (ql_index_is_text(key))
		return ql_index_get(L, t, 2);
	return ql_error(L, "tensor: no method '%.40s'%s", key, ql_nearest(key, ql_method_names(), near));
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
			ql_tensor_same_shape(a, b) && !memcmp(a->stride, b->stride, sizeof(a->stride[0]) * a->rank));
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

static const luaL_Reg methods[] = {
	{"size", method_size}, {"stride", method_stride}, {"dim", method_dim}, {"nelem", method_nelem},
	{"dtype", method_dtype}, {"device", method_device}, {"nbytes", method_nbytes},
	{"iscontiguous", method_iscontiguous}, {"item", method_item}, {"totable", method_totable}, {"copy_", method_copy},
	{"fill_", method_fill}, {NULL, NULL}};

static const luaL_Reg functions[] = {
	{"threads", tensor_threads}, {"memory", tensor_memory}, {"seed", tensor_seed}, {NULL, NULL}};

static const luaL_Reg metamethods[] = {
	{"__gc", meta_gc}, {"__close", meta_gc}, {"__newindex", meta_newindex}, {"__len", meta_len}, {"__eq", meta_eq},
	{"__lt", meta_compare}, {"__le", meta_compare}, {"__concat", meta_concat}, {"__tostring", ql_print_tostring},
	{NULL, NULL}};

/* metamethod -> op */
static const char *const operators[][2] = {{"__add", "add"}, {"__sub", "sub"}, {"__mul", "mul"}, {"__div", "div"},
	{"__mod", "mod"}, {"__pow", "pow"}, {"__unm", "neg"}, {"__idiv", "idiv"}, {"__band", "band"}, {"__bor", "bor"},
	{"__bxor", "bxor"}, {"__shl", "shl"}, {"__shr", "shr"}, {"__bnot", "bnot"}};

static char method_names[4096];

const char *ql_method_names(void)
{
	return method_names;
}

static void add_name(const char *name)
{
	size_t n = strlen(method_names);

	if (n + strlen(name) + 2 < sizeof(method_names))
		snprintf(method_names + n, sizeof(method_names) - n, "%s ", name);
}

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
	add_name(op->doc.name);
	if (!(op->flags & QL_INPLACE))
		return;
	snprintf(name, sizeof(name), "%s_", op->doc.name);
	ql_push_op(L, op, true);
	lua_setfield(L, table, name);
}

static void add_operators(lua_State *L, int table, int meta)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (lua_getfield(L, table, operators[i][1]) == LUA_TNIL)
			lua_pop(L, 1);
		else
			lua_setfield(L, meta, operators[i][0]);
}

int ql_open_tensor(lua_State *L)
{
	int module, table, meta;

	lua_newtable(L);
	module = lua_gettop(L);
	lua_newtable(L);
	table = lua_gettop(L);
	luaL_newmetatable(L, QL_TENSOR);
	meta = lua_gettop(L);
	ql_set_functions(L, metamethods);
	method_names[0] = '\0';
	for (int i = 0; ql_ops[i]; i++)
		add_op(L, ql_ops[i], module, table);
	for (int i = 0; ql_quant_ops[i]; i++)
		add_op(L, ql_quant_ops[i], module, table);
	lua_pushvalue(L, table);
	ql_set_functions(L, methods);
	for (int i = 0; methods[i].name; i++)
		add_name(methods[i].name);
	lua_setfield(L, meta, "methods"); /* openers of other modules add theirs here */
	add_operators(L, table, meta);
	lua_pushvalue(L, table);
	lua_pushcclosure(L, meta_index, 1);
	lua_setfield(L, meta, "__index");
	lua_pushvalue(L, module);
	ql_set_functions(L, functions);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, call_tensor);
	lua_setfield(L, -2, "__call");
	lua_setmetatable(L, -2);
	lua_setglobal(L, "tensor");
	lua_settop(L, module - 1);
	return 0;
}
