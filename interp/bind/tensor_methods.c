/* SPDX-License-Identifier: MIT
 * Methods of a tensor that are no ops: its shape, place and size, values out as Lua numbers, values in.
 */
#include "interp/bind/tensor_methods.h"

#include "interp/bind/index.h"
#include "interp/bind/record.h"
#include "interp/bind/surplus.h"
#include "tensor/assign.h"
#include "tensor/codec.h"
#include "tensor/remote.h"

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
	status = ql_axis(ql_ctx_of(L), what, ql_check_integer(L, 2, what), t->rank, &axis);
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

static int method_quantized(lua_State *L)
{
	lua_pushboolean(L, self(L)->q != NULL);
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

/* The tensor itself, or a copy in the host's memory in a box on the stack. */
static struct ql_tensor *on_host(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box;
	enum ql_status status;

	if (!ql_is_remote(t))
		return t;
	box = ql_box_new(L);
	status = ql_tensor_host(ql_ctx_of(L), t, box);
	if (status)
		ql_raise(L, status);
	return *box;
}

/* The tensor itself, or its decoded values in a box on the stack; in the host's memory. */
static struct ql_tensor *real_values(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box;
	enum ql_status status;

	if (!t->q)
		return on_host(L, t);
	box = ql_box_new(L);
	status = ql_decode(ql_ctx_of(L), t, box);
	if (status)
		ql_raise(L, status);
	return on_host(L, *box);
}

/* A value of this tensor goes into the program. */
static void tell_reading(lua_State *L, const char *method)
{
	if (!ql_recorded(L))
		return;
	lua_pushvalue(L, 1);
	lua_pushstring(L, method);
	ql_record(L, "read", 2);
	lua_pop(L, 2);
}

static int method_item(lua_State *L)
{
	struct ql_tensor *t = self(L);
	char text[QL_SHAPE_TEXT];

	if (ql_tensor_nelem(t) != 1)
		return ql_error(L, "item: wanted a tensor of one element, got %s", ql_tensor_text(t, text));
	tell_reading(L, "item");
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

	tell_reading(L, "totable");
	push_table(L, t, 0, &at);
	return 1;
}

/* ---- writing ---- */

static int method_copy(lua_State *L)
{
	struct ql_literal number;
	struct ql_tensor *t = self(L), *source = ql_index_value(L, 2, t, &number);
	enum ql_status status = ql_tensor_assign(ql_ctx_of(L), "copy_", t, source);

	if (status)
		return ql_raise(L, status);
	if (ql_recorded(L)) {
		lua_settop(L, 2);
		ql_record(L, "copy_", 2);
	}
	lua_settop(L, 1);
	return 1;
}

static int method_fill(lua_State *L)
{
	if (lua_type(L, 2) != LUA_TNUMBER)
		return ql_error(L, "fill_: wanted a number, got %s", luaL_typename(L, 2));
	return method_copy(L);
}

static const luaL_Reg methods[] = {{"size", method_size}, {"stride", method_stride}, {"dim", method_dim},
	{"nelem", method_nelem}, {"dtype", method_dtype}, {"device", method_device}, {"nbytes", method_nbytes},
	{"quantized", method_quantized}, {"iscontiguous", method_iscontiguous}, {"item", method_item},
	{"totable", method_totable}, {"copy_", method_copy}, {"fill_", method_fill}, {NULL, NULL}};

static const struct ql_doc docs[] = {
	{"size", "x:size()  x:size(axis)",
		"The sizes of all axes as several integers, or of one axis (negative: from the end). #x is "
		"the size of axis 1.",
		"x = tensor.zeros(2, 3)\nprint(x:size())  --> 2 3\nprint(x:size(-1), #x)  --> 3 2", NULL},
	{"stride", "x:stride()  x:stride(axis)",
		"How many elements lie between neighbours along each axis; a view may have any strides.",
		"print(tensor.zeros(2, 3):stride())  --> 3 1", NULL},
	{"dim", "x:dim()", "The number of axes.", "print(tensor.zeros(2, 3):dim())  --> 2", NULL},
	{"nelem", "x:nelem()", "The number of elements.", "print(tensor.zeros(2, 3):nelem())  --> 6", NULL},
	{"dtype", "x:dtype()", "The name of the element type; of a quantized tensor that of its codes.",
		"print(tensor{1}:dtype(), tensor{1}:quantize('int4'):dtype())  --> float32 int4", NULL},
	{"device", "x:device()", "Where the elements are.", "print(tensor{1}:device())  --> cpu", NULL},
	{"nbytes", "x:nbytes()",
		"Bytes of the elements that this view shows; of a quantized tensor with its scales and zero "
		"points.",
		"x = tensor.zeros(1000)\nprint(x:nbytes(), x:quantize('int8'):nbytes())  --> 4000 1004", NULL},
	{"quantized", "x:quantized()", "Whether the elements are codes with a scale (x:qparams() has the parameters).",
		"print(tensor{1}:quantized(), tensor{1}:quantize('int8'):quantized())  --> false true", NULL},
	{"iscontiguous", "x:iscontiguous()",
		"Whether the elements lie in memory without gaps in the order of the axes, the last one "
		"fastest.",
		"print(tensor.zeros(2, 3):iscontiguous())  --> true", NULL},
	{"item", "x:item()",
		"The only element as a Lua number (integer dtypes give integers, bool a boolean); a "
		"quantized one is decoded.",
		"print(tensor{{2.5}}:item())  --> 2.5", NULL},
	{"totable", "x:totable()", "All elements as nested lists of Lua numbers; quantized ones are decoded.",
		"t = tensor{{1,2},{3,4}}:totable()\nprint(t[2][1])  --> 3.0", NULL},
	{"copy_", "x:copy_(y)",
		"Writes the elements of y (broadcast to the shape of x; a number is possible) into x, cast "
		"to its dtype, and returns "
		"x. A quantized x takes the values under its own scales.",
		"x = tensor.zeros(2)\nx:copy_(tensor{3,4})\nprint(x:totable()[2])  --> 4.0", NULL},
	{"fill_", "x:fill_(number)", "Sets all elements and returns x.",
		"print(tensor.zeros(2):fill_(7):totable()[1])  --> 7.0", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

void ql_fact_open(lua_State *L)
{
	static struct ql_doc_list list = {.module = "x", .docs = docs};

	ql_doc_register(&list);
	ql_set_documented(L, methods, docs);
}
