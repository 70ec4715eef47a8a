/* SPDX-License-Identifier: MIT
 * The recorder is a Lua function in the registry, called as record("op", name, operands, attributes, results,
 * in_place) for ops and record(what, …) for the rest. Attributes come by name and as given, wherever they
 * stood in the call, so that the call can be made again from them.
 */
#include "interp/bind/record.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/spec.h"
#include "nn/nn.h"
#include "quant/integer/exp_int.h"
#include "quant/integer/fixed.h"
#include "quant/integer/softmax_fixed.h"
#include "quant/ranges/quantize.h"
#include "tensor/ledger.h"
#include "tensor/meta.h"
#include "tensor/remote.h"

static const char recorder[] = "quoll.recorder"; /* registry: the function; nil: none */

bool ql_recorded(lua_State *L)
{
	return ql_ctx_of(L)->recorded;
}

/* ---- attributes as Lua values ---- */

static void push_kept(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box = ql_box_new(L);

	*box = ql_tensor_keep(t);
}

static void push_ints(lua_State *L, const struct ql_attr *a, const struct ql_ints *ints)
{
	if (ints->n == 0 && a->choices) { /* a word was given: the list of choices has one (arguments.c) */
		lua_pushstring(L, a->choices);
		return;
	}
	lua_createtable(L, ints->n, 0);
	for (int i = 0; i < ints->n; i++) {
		lua_pushinteger(L, ints->at[i]);
		lua_seti(L, -2, i + 1);
	}
}

static void push_value(lua_State *L, const struct ql_attr *a, const struct ql_value *v)
{
	switch (a->type) {
	case QL_ATTR_INT:
	case QL_ATTR_AXIS: lua_pushinteger(L, v->i); break;
	case QL_ATTR_FLOAT:
		if (v->integer)
			lua_pushinteger(L, (lua_Integer)v->f);
		else
			lua_pushnumber(L, v->f);
		break;
	case QL_ATTR_BOOL: lua_pushboolean(L, v->b); break;
	case QL_ATTR_STRING: lua_pushstring(L, v->s); break;
	case QL_ATTR_INTS: push_ints(L, a, &v->ints); break;
	case QL_ATTR_DTYPE: lua_pushstring(L, ql_dtype_name((unsigned)v->i)); break;
	case QL_ATTR_SPEC: ql_spec_push(L, v->spec); break;
	case QL_ATTR_TENSOR: push_kept(L, v->tensor); break;
	case QL_ATTR_NUMBERS:
	case QL_ATTR_END: lua_pushnil(L); break;
	}
}

static void push_attrs(lua_State *L, const struct ql_attr *attrs, const struct ql_arguments *args)
{
	lua_newtable(L);
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++)
		if (args->value[i].set) {
			push_value(L, &attrs[i], &args->value[i]);
			lua_setfield(L, -2, attrs[i].name);
		}
}

/* ---- telling ---- */

static void push_list(lua_State *L, int first, int n)
{
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushvalue(L, first + i);
		lua_seti(L, -2, i + 1);
	}
}

void ql_record_op(lua_State *L, const struct ql_applied *a)
{
	int top = lua_gettop(L);

	luaL_checkstack(L, 12, NULL);
	lua_getfield(L, LUA_REGISTRYINDEX, recorder);
	lua_pushliteral(L, "op");
	lua_pushstring(L, a->op);
	if (a->n_operands < 0)
		lua_pushvalue(L, a->first);
	else
		push_list(L, a->first, a->n_operands);
	push_attrs(L, a->attrs, a->args);
	if (a->n_results < 0)
		lua_pushvalue(L, top);
	else
		push_list(L, top - a->n_results + 1, a->n_results);
	lua_pushboolean(L, a->in_place);
	lua_call(L, 6, 0);
}

void ql_record(lua_State *L, const char *what, int n)
{
	int first = lua_gettop(L) - n + 1;

	luaL_checkstack(L, n + 4, NULL);
	lua_getfield(L, LUA_REGISTRYINDEX, recorder);
	lua_pushstring(L, what);
	for (int i = 0; i < n; i++)
		lua_pushvalue(L, first + i);
	lua_call(L, n + 1, 0);
}

/* ---- what the prelude sees ---- */

/* record(function or nil) -> the recorder before */
static int set_recorder(lua_State *L)
{
	lua_settop(L, 1);
	lua_getfield(L, LUA_REGISTRYINDEX, recorder);
	lua_pushvalue(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, recorder);
	ql_ctx_of(L)->recorded = !lua_isnil(L, 1);
	return 1;
}

/* identity(t) -> what is the same for all boxes of one tensor; storage(t) -> for all its views */
static int identity(lua_State *L)
{
	lua_pushlightuserdata(L, ql_check_tensor(L, 1, "identity"));
	return 1;
}

static int storage(lua_State *L)
{
	lua_pushlightuserdata(L, ql_check_tensor(L, 1, "storage")->storage);
	return 1;
}

const struct ql_op *ql_op_named(const char *name)
{
	const struct ql_op *const *const tables[] = {ql_ops, ql_quant_ops, ql_nn_ops};
	const struct ql_op *op = NULL;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !op; i++)
		op = ql_op_by_name(tables[i], name);
	return op;
}

/* op(name) -> the function that applies it, and the names of its attributes; nil: there is none */
static int op_function(lua_State *L)
{
	const struct ql_op *op = ql_op_named(luaL_checkstring(L, 1));

	if (!op) {
		lua_pushnil(L);
		return 1;
	}
	ql_push_op(L, op, false);
	lua_newtable(L);
	for (const struct ql_attr *a = op->doc.attrs; a && a->type != QL_ATTR_END; a++) {
		lua_pushboolean(L, true);
		lua_setfield(L, -2, a->name);
	}
	return 2;
}

static void push_param(lua_State *L, bool has, const struct ql_tensor *t, double number, bool integer)
{
	if (!has || (t && ql_tensor_nelem(t) != 1))
		lua_pushnil(L);
	else if (integer)
		lua_pushinteger(L, t ? (lua_Integer)ql_tensor_at_f64(t, 0) : (lua_Integer)number);
	else
		lua_pushnumber(L, t ? ql_tensor_at_f64(t, 0) : (double)(float)number);
}

/* spec_params(spec) -> its explicit scale and zero point as numbers; nil where it has none, or one per
 * channel */
static int spec_params(lua_State *L)
{
	const struct ql_spec *s = luaL_checkudata(L, 1, QL_SPEC);
	enum ql_status status;

	push_param(L, s->has_scale, s->scale_tensor, s->scale, false);
	push_param(L, s->has_zero, s->zero_tensor, (double)s->zero, true);
	status = ql_check_read(ql_ctx_of(L));
	return status ? ql_raise(L, status) : 2;
}

/* non_negative(x) -> whether x are codes under one scale of which none decodes to a negative value, so that relu
 * does not change them */
static int non_negative(lua_State *L)
{
	const struct ql_tensor *t = ql_test_tensor(L, 1);
	const struct ql_qparams *q = t ? t->q : NULL;

	lua_pushboolean(L, q && q->zero_point && q->axis < 0 && !q->block &&
				   ql_tensor_at_f64(q->zero_point, 0) == (double)q->codes.lo);
	return 1;
}

/* fixed(m) -> multiplier and shift of a factor in fixed point (quant/integer/fixed.h) */
static int fixed(lua_State *L)
{
	struct ql_fixed m = ql_fixed_of(luaL_checknumber(L, 1));

	lua_pushinteger(L, m.multiplier);
	lua_pushinteger(L, m.shift);
	return 2;
}

/* exp_int(unit) -> factor, shift and limit of the exponentials of softmax, and the list of their table
 * (quant/integer/exp_int.h) */
static int exp_int(lua_State *L)
{
	struct ql_exp_int c = ql_exp_int_of(luaL_checknumber(L, 1));

	lua_pushinteger(L, (lua_Integer)c.factor);
	lua_pushinteger(L, c.shift);
	lua_pushinteger(L, c.limit);
	lua_createtable(L, 257, 0);
	for (int i = 0; i < 257; i++) {
		lua_pushinteger(L, ql_exp_int_table[i]);
		lua_seti(L, -2, i + 1);
	}
	return 4;
}

/* softmax_fixed(scale) -> the list of exponentials of softmax in fixed point (quant/integer/softmax_fixed.h) */
static int softmax_fixed(lua_State *L)
{
	int32_t e[QL_SOFTMAX_FIXED];

	ql_softmax_fixed_table(luaL_checknumber(L, 1), e);
	lua_createtable(L, QL_SOFTMAX_FIXED, 0);
	for (int i = 0; i < QL_SOFTMAX_FIXED; i++) {
		lua_pushinteger(L, e[i]);
		lua_seti(L, -2, i + 1);
	}
	return 1;
}

/* place(block, offset, t) -> t's values in the bytes of the uint8 tensor `block` from the offset on */
static int place(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_tensor *block = ql_check_tensor(L, 1, "place"), *t = ql_check_tensor(L, 3, "place"), **box, **dense;
	lua_Integer offset = luaL_checkinteger(L, 2), bits = ql_dtypes[t->dtype].bits;
	enum ql_status status;

	dense = ql_box_new(L);
	status = ql_tensor_cast(ctx, t, t->dtype, dense);
	if (status)
		return ql_raise(L, status);
	box = ql_box_new(L);
	status = ql_tensor_alias(ctx, *dense, box);
	if (status)
		return ql_raise(L, status);
	(*box)->q = t->q ? ql_qparams_keep(t->q) : NULL;
	if (offset < 0 || block->dtype != QL_uint8 || (size_t)offset > block->storage->bytes ||
		(*dense)->storage->bytes > block->storage->bytes - (size_t)offset)
		return ql_error(L, "place: wanted %zu bytes from %lld on in a block of uint8, got %zu",
			(*dense)->storage->bytes, (long long)offset, block->storage->bytes);
	if (offset * 8 / bits * bits != offset * 8 || offset * 8 / bits % ql_dtype_group(t->dtype))
		return ql_error(L, "place: wanted an offset of whole groups of %s, got %lld bytes",
			ql_dtype_name(t->dtype), (long long)offset);
	if ((*dense)->storage->device != block->storage->device)
		return ql_error(L, "place: wanted a block on %s, got %s", (*dense)->storage->device->doc.name,
			block->storage->device->doc.name);
	if (ql_is_remote(block))
		status = ql_remote_put(ctx, block, (size_t)offset, *dense);
	else
		memcpy((char *)block->storage->data + offset, (*dense)->storage->data, (*dense)->storage->bytes);
	if (status)
		return ql_raise(L, status);
	ql_storage_release(ctx, (*box)->storage);
	(*box)->storage = ql_storage_keep(block->storage);
	(*box)->offset = offset * 8 / bits;
	return 1;
}

/* internal.recorded(): whether a recorder is told of every op */
static int recorded(lua_State *L)
{
	lua_pushboolean(L, ql_recorded(L));
	return 1;
}

/* internal.ledger_counts() -> the counts of all rows; internal.ledger_counts(counts): counts are those again. */
static int ledger_counts(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	bool back = lua_istable(L, 1);

	if (!back)
		lua_newtable(L);
	for (uint32_t i = 1; i <= ql_ledger_rows(ctx); i++) {
		int64_t count = (int64_t)ql_ledger_row(ctx, i)->count;

		if (back) {
			lua_geti(L, 1, i);
			ql_ledger_add(ctx, i, lua_tointeger(L, -1) - count);
			lua_pop(L, 1);
		} else {
			lua_pushinteger(L, count);
			lua_seti(L, -2, i);
		}
	}
	return back ? 0 : 1;
}

/* internal.take_origin(to, from): what is said about the origin of `from` holds for `to` */
static int take_origin(lua_State *L)
{
	ql_check_tensor(L, 1, "take_origin")->origin = ql_check_tensor(L, 2, "take_origin")->origin;
	return 0;
}

/* internal.meta(dtype, sizes) -> a tensor without values (tensor/meta.h) */
static int meta(lua_State *L)
{
	int dtype = ql_dtype_by_name(luaL_checkstring(L, 1));
	int64_t shape[QL_MAX_RANK];
	int rank = (int)luaL_len(L, 2);
	enum ql_status status;

	if (dtype < 0 || rank > QL_MAX_RANK)
		return ql_error(L, "meta: wanted a dtype and at most %d sizes, got others", QL_MAX_RANK);
	for (int d = 0; d < rank; d++) {
		lua_geti(L, 2, d + 1);
		shape[d] = luaL_checkinteger(L, -1);
		lua_pop(L, 1);
	}
	status = ql_shape_check(ql_ctx_of(L), "meta", rank, shape);
	if (!status)
		status = ql_tensor_new_on(ql_ctx_of(L), &ql_device_meta, (unsigned)dtype, rank, shape, ql_box_new(L));
	return status ? ql_raise(L, status) : 1;
}

/* internal.is_meta(t): whether t has no values */
static int is_meta(lua_State *L)
{
	lua_pushboolean(L, ql_is_meta(ql_check_tensor(L, 1, "is_meta")));
	return 1;
}

int ql_open_record(lua_State *L)
{
	static const luaL_Reg functions[] = {{"record", set_recorder}, {"identity", identity}, {"storage", storage},
		{"recorded", recorded}, {"ledger_counts", ledger_counts}, {"take_origin", take_origin},
		{"op", op_function}, {"spec_params", spec_params}, {"fixed", fixed}, {"exp_int", exp_int},
		{"softmax_fixed", softmax_fixed}, {"place", place}, {"non_negative", non_negative}, {"meta", meta},
		{"is_meta", is_meta}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
