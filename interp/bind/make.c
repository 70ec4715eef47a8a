/* SPDX-License-Identifier: MIT
 * tensor{{1,2},{3,4}, dtype=}: a tensor from nested lists of numbers.
 */
#include "interp/bind/make.h"

#include "interp/bind/describe.h"
#include "interp/bind/surplus.h"
#include "quant/ranges/quantize.h"
#include "tensor/remote.h"
#include "tensor/tape.h"

static const struct ql_attr make_attrs[] = {
	{"values", QL_ATTR_FLOAT, 0, NULL, "nested lists of numbers"},
	{"dtype", QL_ATTR_DTYPE, 0, NULL, "element type (default float32, bool for booleans)"},
	{"device", QL_ATTR_STRING, 0, NULL, "where it is (default cpu, see --device)"},
	{"quant", QL_ATTR_SPEC, 0, NULL, "quantize by this spec"},
	{"grad", QL_ATTR_BOOL, 0, NULL, "collect a gradient, see backward (default false)"},
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
			ql_error(L, "tensor: item %lld: wanted a number, got %s", (long long)*at + 1,
				luaL_typename(L, -1));
		if (lua_isinteger(L, -1) && d->kind != QL_KIND_FLOAT) {
			int64_t i = lua_tointeger(L, -1);

			if (d->kind != QL_KIND_BOOL && (i < d->lo || i > d->hi))
				ql_error(L, "tensor: item %lld: wanted a number that fits %s, got %lld",
					(long long)*at + 1, d->name, (long long)i);
			d->from_i64(t->storage->data, where, 1, 1, &i);
		} else {
			if (d->kind != QL_KIND_FLOAT && d->kind != QL_KIND_BOOL && real != (double)(int64_t)real)
				ql_error(L, "tensor: item %lld: wanted an integer for %s, got %.14g",
					(long long)*at + 1, d->name, real);
			d->from_f64(t->storage->data, where, 1, 1, &real);
		}
		++*at;
		return;
	}
	if (lua_type(L, -1) != LUA_TTABLE || (int64_t)luaL_len(L, -1) != n->shape[axis])
		ql_error(L, "tensor: level %d: wanted lists of %lld items each, got %s", axis + 1,
			(long long)n->shape[axis],
			lua_type(L, -1) == LUA_TTABLE ? "one of another length" : luaL_typename(L, -1));
	luaL_checkstack(L, 4, NULL);
	if (axis == 0)
		ql_check_gaps(L, "tensor", "numbers", -1);
	else
		ql_check_list(L, "tensor", "numbers", -1);
	for (int64_t i = 1; i <= n->shape[axis]; i++) {
		lua_geti(L, -1, i);
		fill_nested(L, n, axis + 1, t, at);
		lua_pop(L, 1);
	}
}

/* Options are in the hash part of the outermost list. */
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

/* After the list, where PyTorch has dtype=. */
static void refuse_more(lua_State *L)
{
	char got[QL_DESCRIPTION];

	for (int i = 3; i <= lua_gettop(L); i++)
		if (!lua_isnil(L, i)) {
			ql_value_got(L, i, got);
			ql_error(L,
				"tensor: wanted no argument %d, got %s; options go into the list, as in tensor{1, 2, dtype='int8'}",
				i - 1, got);
		}
}

/* Moves the tensor in `box` to the device of that name, or to the default one. */
static enum ql_status place(struct ql_ctx *ctx, struct ql_tensor **box, const struct ql_value *name)
{
	const struct ql_device *device = ctx->device ? ctx->device : &ql_device_cpu;
	enum ql_status status = name->set ? ql_device_by_name(ctx, "tensor: device", name->s, &device) : QL_OK;
	struct ql_tensor *made = *box;

	if (status || !device->remote)
		return status;
	status = ql_tensor_to(ctx, made, device, box);
	ql_tensor_release(ctx, made);
	return status;
}

int ql_make_tensor(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct nested n = {0};
	struct ql_arguments args;
	struct ql_tensor **box, **quantized;
	unsigned dtype;
	int64_t at = 0;
	enum ql_status status;

	refuse_more(L);
	lua_settop(L, 2); /* the module, the list */
	if (lua_type(L, 2) != LUA_TTABLE && lua_type(L, 2) != LUA_TNUMBER)
		return ql_error(L, "tensor: wanted a list of numbers, got %s", luaL_typename(L, 2));
	for (size_t i = 0; i < sizeof(make_attrs) / sizeof(make_attrs[0]); i++)
		args.value[i].set = false;
	measure(L, 2, &n);
	if (lua_type(L, 2) == LUA_TTABLE)
		read_make_options(L, 2, &args);
	if (args.value[0].set)
		return ql_error(L, "tensor: values: wanted them as items, as in tensor{1, 2}, got an option");
	dtype = args.value[1].set ? (unsigned)args.value[1].i : n.booleans ? QL_bool : QL_float32;
	box = ql_box_new(L);
	status = ql_tensor_new(ctx, dtype, n.rank, n.shape, box);
	if (status)
		return ql_raise(L, status);
	lua_pushvalue(L, 2);
	fill_nested(L, &n, 0, *box, &at);
	lua_pop(L, 1);
	if (args.value[4].set && args.value[4].b && args.value[3].set)
		return ql_error(L, "tensor: wanted quant= or grad=, got both");
	if (args.value[3].set) {
		quantized = ql_box_new(L);
		status = ql_quantize(ctx, *box, args.value[3].spec, quantized);
		box = quantized;
	}
	if (!status)
		status = place(ctx, box, &args.value[2]);
	if (!status && args.value[4].set && args.value[4].b)
		status = ql_tape_leaf(ctx, *box);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	return 1;
}
