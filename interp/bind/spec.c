/* SPDX-License-Identifier: MIT
 * quant.spec: a spec as an object, and bits given as a list.
 *
 * A struct ql_spec borrows its tensors. An object keeps them itself, and its observer function as its user value. Lists of
 * bits in a table, which is read anew at each call, are kept by a registry table with weak keys as long as that table.
 */
#include "interp/bind/spec.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/host/lifetime.h"
#include "interp/bind/functions.h"
#include "interp/bind/surplus.h"
#include "quant/importance.h"
#include "quant/ranges/observer.h"
#include "tensor/grid.h"

#define LISTS "quoll.spec bits"

/* ---- lists of bits ---- */

void ql_bits_push(lua_State *L, const struct ql_tensor *bits)
{
	int n = (int)ql_tensor_nelem(bits);

	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushinteger(L, (lua_Integer)ql_tensor_at_f64(bits, i));
		lua_seti(L, -2, i + 1);
	}
}

/* Pushes a new box with the list at `value`, a table of whole numbers or a plain tensor of one dimension, as int8. */
static struct ql_tensor *read_list(lua_State *L, const char *what, int value)
{
	struct ql_tensor *given = ql_test_tensor(L, value), **box = ql_box_new(L);
	int64_t n = given ? ql_tensor_nelem(given) : (int64_t)lua_rawlen(L, value);
	enum ql_status status;

	if (!given)
		ql_check_list(L, what, "bits", value);
	if (given && (given->q || given->rank != 1))
		ql_error(L, "%s: bits: wanted a number, a list or a plain tensor of one dimension, got another tensor",
			what);
	status = ql_tensor_new(ql_ctx_of(L), QL_int8, 1, &n, box);
	if (status)
		ql_raise(L, status);
	for (int64_t i = 0; i < n; i++) {
		double one = given ? ql_tensor_at_f64(given, i) : 0;

		if (!given && lua_geti(L, value, i + 1) != LUA_TNUMBER)
			ql_error(L, "%s: bits: wanted whole numbers in the list, got %s", what, luaL_typename(L, -1));
		if (!given) {
			one = lua_tonumber(L, -1);
			lua_pop(L, 1);
		}
		if (!(one >= 2 && one <= 16) || one != (double)(int)one)
			ql_error(L, "%s: bits: wanted 2 to 16 for every channel, got %g for channel %d", what, one,
				(int)i + 1);
		((int8_t *)ql_tensor_data(*box))[i] = (int8_t)one;
	}
	return *box;
}

static bool same_list(const struct ql_tensor *a, const struct ql_tensor *b)
{
	return ql_tensor_same_shape(a, b) && !memcmp(ql_tensor_data(a), ql_tensor_data(b), (size_t)ql_tensor_nelem(a));
}

/* Pushes the registry's list of boxes of the spec table at `spec`. */
static void push_boxes(lua_State *L, int spec)
{
	if (!luaL_getsubtable(L, LUA_REGISTRYINDEX, LISTS)) {
		lua_createtable(L, 0, 1);
		lua_pushliteral(L, "k");
		lua_setfield(L, -2, "__mode");
		lua_setmetatable(L, -2);
	}
	lua_pushvalue(L, spec);
	if (lua_rawget(L, -2) != LUA_TTABLE) {
		lua_pop(L, 1);
		lua_createtable(L, 1, 0);
		lua_pushvalue(L, spec);
		lua_pushvalue(L, -2);
		lua_rawset(L, -4);
	}
	lua_remove(L, -2);
}

struct ql_tensor *ql_bits_read(lua_State *L, const char *what, int spec, int value)
{
	int top = lua_gettop(L);
	struct ql_tensor *bits;

	luaL_checkstack(L, 8, "a list of bits");
	bits = read_list(L, what, value);
	push_boxes(L, spec);
	for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0;
		i--) { /* an older reading of the same numbers serves */
		struct ql_tensor **old;

		lua_rawgeti(L, -1, i);
		old = lua_touserdata(L, -1);
		lua_pop(L, 1);
		if (same_list(*old, bits)) {
			lua_settop(L, top);
			return *old;
		}
	}
	lua_pushvalue(L, top + 1);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_settop(L, top);
	return bits;
}

/* ---- the object ---- */

struct ql_spec *ql_spec_push(lua_State *L, const struct ql_spec *spec)
{
	struct ql_spec *box = lua_newuserdatauv(L, sizeof(*box), 1);

	*box = *spec;
	luaL_setmetatable(L, QL_SPEC);
	if (box->each_bits)
		ql_tensor_keep(box->each_bits);
	if (box->scale_tensor)
		ql_tensor_keep(box->scale_tensor);
	if (box->zero_tensor)
		ql_tensor_keep(box->zero_tensor);
	if (box->minimum_tensor)
		ql_tensor_keep(box->minimum_tensor);
	if (box->importance)
		ql_tensor_keep(box->importance);
	if (box->choose) {
		ql_function_push(L, spec->choose_key);
		lua_setiuservalue(L, -2, 1);
	}
	return box;
}

/* Pushes a box with the list of a field as a tensor. */
static struct ql_tensor *list_of(lua_State *L, const char *what, const char *field, const char *text, unsigned dtype)
{
	struct ql_tensor **box = ql_box_new(L);

	if (text && ql_spec_list(ql_ctx_of(L), field, text, dtype, box))
		ql_spec_failed(L, what);
	return *box;
}

/* "quantize: spec: dtype: …", whichever of the two says "spec: " */
_Noreturn void ql_spec_failed(lua_State *L, const char *what)
{
	const char *message = ql_ctx_of(L)->err;
	size_t n = strlen(what);
	bool twice = n >= 4 && !strcmp(what + n - 4, "spec") && !strncmp(message, "spec: ", 6);

	ql_error(L, "%s: %s", what, message + (twice ? 6 : 0));
	__builtin_unreachable();
}

void ql_spec_read_text(lua_State *L, int index, const char *what, struct ql_spec *spec)
{
	const char *text = lua_tostring(L, index);
	struct ql_spec_fields f;
	char *copy;

	luaL_checkstack(L, LUA_MINSTACK, "a spec");
	copy = lua_newuserdatauv(L, strlen(text) + 1, 0);
	if (ql_spec_split(ql_ctx_of(L), text, copy, &f))
		ql_spec_failed(L, what);
	if (f.bits_list || f.scale_list || f.zero_list || f.minimum_list) {
		f.each_bits = list_of(L, what, "bits", f.bits_list, QL_int8);
		f.scale_tensor = list_of(L, what, "scale", f.scale_list, QL_float32);
		f.zero_tensor = list_of(L, what, "zero_point", f.zero_list, QL_int32);
		f.minimum_tensor = list_of(L, what, "minimum", f.minimum_list, QL_float32);
		f.bits_list = f.scale_list = f.zero_list = f.minimum_list = NULL;
	}
	if (ql_spec_make(ql_ctx_of(L), &f, spec))
		ql_spec_failed(L, what);
	if (f.each_bits || f.scale_tensor || f.zero_tensor || f.minimum_tensor)
		ql_spec_push(L, spec);
}

static int spec_gc(lua_State *L)
{
	struct ql_spec *box = luaL_checkudata(L, 1, QL_SPEC);

	ql_tensor_discard(L, box->each_bits);
	ql_tensor_discard(L, box->scale_tensor);
	ql_tensor_discard(L, box->zero_tensor);
	ql_tensor_discard(L, box->minimum_tensor);
	ql_tensor_discard(L, box->importance);
	box->each_bits = box->scale_tensor = box->zero_tensor = box->minimum_tensor = box->importance = NULL;
	return 0;
}

static void add_text(void *arg, const char *text)
{
	luaL_addstring(arg, text);
}

static void push_text(lua_State *L, const struct ql_spec *spec, bool numbers)
{
	luaL_Buffer text;

	luaL_buffinit(L, &text);
	ql_spec_print(spec, numbers, add_text, &text);
	luaL_pushresult(&text);
}

static int spec_tostring(lua_State *L)
{
	push_text(L, luaL_checkudata(L, 1, QL_SPEC), true);
	return 1;
}

static int spec_eq(lua_State *L)
{
	const struct ql_spec *a = luaL_testudata(L, 1, QL_SPEC), *b = luaL_testudata(L, 2, QL_SPEC);

	lua_pushboolean(L, a && b && ql_spec_equal(a, b));
	return 1;
}

static void push_tensor(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box = ql_box_new(L);

	*box = ql_tensor_keep(t);
}

/* The range of the codes: all of them under a given scale, as in ONNX QuantizeLinear. */
static struct ql_codes range_of(const struct ql_spec *s)
{
	return ql_spec_codes(s, s->has_scale || s->scale_tensor, 0);
}

/* Values of codes under a scale of 1, by a scheme with a table. */
static void scheme_values(const struct ql_spec *s, struct ql_codes codes, int n, float *table, float *value)
{
	int sign = ql_dtypes[s->dtype].kind == QL_KIND_INT ? n / 2 : 0;

	s->scheme->table_fill(&codes, table);
	codes.table = table;
	for (int i = 0; i < n; i++) {
		int32_t code = (i ^ sign) - sign;

		s->scheme->decode(&code, 1, 1, 0, &codes, value + i);
	}
}

/* The values under a scale of 1 of the bit fields of codes from 0 on, where they are a table; nil where they follow
 * from integers, or are learned from each tensor. */
static void push_values(lua_State *L, const struct ql_spec *s)
{
	bool formula = s->scheme && s->scheme->table_length;
	int n = s->grid ? (s->grid->learned ? 0 : s->grid->n) : formula ? 1 << ql_dtypes[s->dtype].bits : 0;
	struct ql_codes codes = formula ? ql_spec_codes(s, false, 0) : (struct ql_codes){0};
	size_t extra = formula ? s->scheme->table_length(&codes) : 0;
	const float *value;
	float *room;

	if (!n) {
		lua_pushnil(L);
		return;
	}
	room = lua_newuserdatauv(L, (size_t)ql_size_array(n + (int64_t)extra, sizeof(*room)), 0);
	value = s->grid ? s->grid->value : room;
	if (!s->grid)
		scheme_values(s, codes, n, room + n, room);
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_pushnumber(L, (double)value[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_remove(L, -2);
}

static void push_flag(lua_State *L, bool has, const bool *flag)
{
	lua_pushboolean(L, has && *flag);
}

static void push_integer(lua_State *L, bool has, lua_Integer value)
{
	has ? lua_pushinteger(L, value) : lua_pushnil(L);
}

static void push_number(lua_State *L, bool has, double value)
{
	has ? lua_pushnumber(L, value) : lua_pushnil(L);
}

static void push_word(lua_State *L, bool has, const char *word)
{
	lua_pushstring(L, has ? word : NULL);
}

static bool observer_is(const struct ql_spec *s, const char *name)
{
	return s->observer && !strcmp(s->observer->doc.name, name);
}

static void push_bits(lua_State *L, const struct ql_spec *s)
{
	s->each_bits ? ql_bits_push(L, s->each_bits) : lua_pushinteger(L, s->bits);
}

static void push_observer(lua_State *L, const struct ql_spec *s)
{
	s->choose ? ql_function_push(L, s->choose_key)
		  : push_word(L, s->observer, s->observer ? s->observer->doc.name : NULL);
}

static void push_scale(lua_State *L, const struct ql_spec *s)
{
	s->scale_tensor ? push_tensor(L, s->scale_tensor) : push_number(L, s->has_scale, s->scale);
}

static void push_zero(lua_State *L, const struct ql_spec *s)
{
	s->zero_tensor ? push_tensor(L, s->zero_tensor) : push_integer(L, s->has_zero, s->zero);
}

static void push_minimum(lua_State *L, const struct ql_spec *s)
{
	s->minimum_tensor ? push_tensor(L, s->minimum_tensor) : push_number(L, s->has_minimum, s->minimum);
}

/* Fields of a spec object, in the order of help: F(key, what pushes its value). */
#define FIELDS \
	F(dtype, lua_pushstring(L, ql_dtype_name(s->dtype))) \
	F(format, push_word(L, s->format, s->format ? s->format->doc.name : NULL)) \
	F(bits, push_bits(L, s)) \
	F(scheme, push_word(L, s->scheme, s->scheme ? s->scheme->doc.name : NULL)) \
	F(values, push_values(L, s)) \
	F(functions, lua_pushboolean(L, s->scheme && s->scheme->host)) \
	F(affine, lua_pushboolean(L, s->scheme && s->scheme->affine && !s->scheme->shift)) \
	F(shift, push_flag(L, s->scheme, s->scheme ? &s->scheme->shift : NULL)) \
	F(monotone, push_flag(L, s->scheme, s->scheme ? &s->scheme->monotone : NULL)) \
	F(zero_code, push_flag(L, s->scheme, s->scheme ? &s->scheme->zero_code : NULL)) \
	F(offset, push_flag(L, s->scheme, s->scheme ? &s->scheme->offset : NULL)) \
	F(joint, lua_pushboolean(L, s->format && s->format->blocks)) \
	F(weighted, lua_pushboolean(L, ql_importance_fits(s))) \
	F(mean, push_flag(L, s->scheme, s->scheme ? &s->scheme->mean : NULL)) \
	F(any_scale, push_flag(L, s->scheme, s->scheme ? &s->scheme->any_scale : NULL)) \
	F(min, push_integer(L, s->scheme, s->scheme ? range_of(s).lo : 0)) \
	F(max, push_integer(L, s->scheme, s->scheme ? range_of(s).hi : 0)) \
	F(scaling, push_word(L, s->scheme, ql_scaling_name(s->scaling))) \
	F(saturate, lua_pushboolean(L, !s->overflow)) \
	F(quant_min, push_integer(L, s->has_min, s->quant_min)) \
	F(quant_max, push_integer(L, s->has_max, s->quant_max)) \
	F(axis, push_integer(L, s->axis, s->axis)) \
	F(block, push_integer(L, s->block, s->block)) \
	F(outer, push_integer(L, s->outer, s->outer)) \
	F(observer, push_observer(L, s)) \
	F(p, push_number(L, observer_is(s, "percentile"), s->p)) \
	F(momentum, push_number(L, observer_is(s, "average"), s->momentum)) \
	F(bins, push_integer(L, s->observer, s->bins)) \
	F(octaves, push_number(L, s->scheme && s->scheme->table_length, s->octaves)) \
	F(scale, push_scale(L, s)) \
	F(zero_point, push_zero(L, s)) \
	F(minimum, push_minimum(L, s)) \
	F(importance, s->importance ? push_tensor(L, s->importance) : lua_pushnil(L)) \
	F(rounding, \
		push_word(L, s->requant || s->stochastic, s->stochastic ? "stochastic" : ql_requant_name(s->requant))) \
	F(name, push_text(L, s, false))

#define F(key, push) \
	static void field_##key(lua_State *L, const struct ql_spec *s) \
	{ \
		(void)s; \
		push; \
	}
FIELDS
#undef F

/* A new line of spec.def needs a field here; priority has become other fields. */
#define field_priority NULL
static void (*const of_table[])(lua_State *, const struct ql_spec *) __attribute__((unused)) = {
#define X(key, kind, place, words, text) field_##key,
#include "quant/spec.def"
#undef X
};

static const struct {
	const char *key;
	void (*push)(lua_State *L, const struct ql_spec *s);
} fields[] = {
#define F(key, push) {#key, field_##key},
	FIELDS
#undef F
};

static int spec_index(lua_State *L)
{
	static const char names[] =
#define F(key, push) #key " "
		FIELDS
#undef F
		;
	const struct ql_spec *s = luaL_checkudata(L, 1, QL_SPEC);
	const char *key = luaL_checkstring(L, 2);
	char near[96];

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!strcmp(fields[i].key, key)) {
			fields[i].push(L, s);
			return 1;
		}
	return ql_error(L, "spec: no field '%.40s'%s", key, ql_nearest(key, names, near));
}

static const luaL_Reg spec_meta[] = {
	{"__tostring", spec_tostring}, {"__eq", spec_eq}, {"__index", spec_index}, {"__gc", spec_gc}, {NULL, NULL}};

void ql_spec_open(lua_State *L)
{
	ql_metatable_new(L, QL_SPEC);
	ql_set_functions(L, spec_meta);
	lua_pop(L, 1);
}
