/* SPDX-License-Identifier: MIT
 * quant.observer and its methods. What only arranges (stats as a report, plots) is Lua: quant/ranges/observer_methods.lua.
 */
#include <math.h>
#include <string.h>

#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/spec.h"
#include "interp/host/state.h"
#include "interp/bind/surplus.h"
#include "interp/bind/values.h"
#include "quant/ranges/observer.h"
#include "tensor/scratch.h"

#define OBSERVER "quoll.observer"

static struct ql_observer *check(lua_State *L, int index, const char *what)
{
	struct ql_observer **box = luaL_testudata(L, index, OBSERVER);

	if (!box || !*box)
		ql_error(L, "%s: wanted an observer, got %s", what, luaL_typename(L, index));
	return *box;
}

/* Its own function, which it asks for the range, may not change it or ask again. */
static struct ql_observer *check_idle(lua_State *L, int index, const char *what)
{
	struct ql_observer *o = check(L, index, what);

	if (o->busy)
		ql_error(L, "%s: wanted an observer that is not in use, got one whose own function runs", what);
	return o;
}

static int observer_new(lua_State *L)
{
	struct ql_observer **box;
	const struct ql_spec *spec;
	enum ql_status status;

	lua_settop(L, 1);
	ql_prelude_global(L, "quant");
	lua_getfield(L, -1, "spec");
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	spec = luaL_checkudata(L, -1, QL_SPEC);
	box = lua_newuserdatauv(L, sizeof(struct ql_observer *), 1);
	*box = NULL;
	luaL_setmetatable(L, OBSERVER);
	lua_pushvalue(L, -2);
	lua_setiuservalue(L, -2, 1); /* the spec, with its function */
	status = ql_observer_new(ql_ctx_of(L), spec, box);
	return status ? ql_raise(L, status) : 1;
}

static int observer_gc(lua_State *L)
{
	struct ql_observer **box = luaL_checkudata(L, 1, OBSERVER);

	if (!ql_lifetime_may_free(L))
		return 0;
	ql_observer_free(ql_ctx_of(L), *box);
	*box = NULL;
	return 0;
}

/* o:update(x) -> o */
static int method_update(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "update");
	struct ql_tensor *x = ql_check_tensor(L, 2, "update");
	enum ql_status status;

	o->busy = true;
	status = ql_observer_update(ql_ctx_of(L), o, x);
	o->busy = false;
	if (status)
		return ql_raise(L, status);
	lua_settop(L, 1);
	return 1;
}

/* o:label(text) -> o */
static int method_label(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "label");

	if (lua_type(L, 2) != LUA_TSTRING)
		return ql_error(L, "label: wanted a string, got %s", luaL_typename(L, 2));
	snprintf(o->label, sizeof(o->label), "%s", lua_tostring(L, 2));
	lua_settop(L, 1);
	return 1;
}

/* What o:params takes: another way to find the range in what was seen. */
static const struct ql_observer_kind *read_kind(lua_State *L, const struct ql_observer *o, double *p)
{
	static const struct ql_attr attrs[] = {
		{"observer", QL_ATTR_STRING, 0, ql_observer_names,
			"instead of the spec's: minmax percentile entropy mse"},
		{"p", QL_ATTR_FLOAT, 0, NULL, "percent that percentile keeps"},
		{NULL, QL_ATTR_END, 0, NULL, NULL},
	};
	const struct ql_observer_kind *kind = o->spec.observer;
	struct ql_arguments args;

	ql_read_arguments(L, "params", attrs, 2, &args);
	if (args.value[0].set)
		kind = ql_observer_by_name(args.value[0].s);
	*p = o->spec.p;
	if (!args.value[1].set)
		return kind;
	*p = args.value[1].f;
	if (strcmp(kind->doc.name, "percentile"))
		ql_error(L, "params: p: wanted together with the observer percentile, got it with %s", kind->doc.name);
	if (!(*p > 50 && *p <= 100))
		ql_error(L, "params: p: wanted a percentage above 50, at most 100, got %f", *p);
	return kind;
}

static int method_params(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "params");
	struct ql_tensor **scale, **zero;
	enum ql_status status;
	double p;
	const struct ql_observer_kind *kind = read_kind(L, o, &p);

	lua_createtable(L, 0, 2);
	scale = ql_box_new(L);
	zero = ql_box_new(L);
	o->busy = true;
	status = ql_observer_params(ql_ctx_of(L), o, kind, p, scale, zero);
	o->busy = false;
	if (status)
		return ql_raise(L, status);
	if (*zero)
		lua_setfield(L, -3, "zero_point");
	else
		lua_pop(L, 1);
	lua_setfield(L, -2, "scale");
	ql_pay_gc(L);
	return 1;
}

/* One number each, or with an axis a tensor each. */
static int method_range(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "range");
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor **box[2];
	double *end[2];
	enum ql_status status;

	for (int i = 0; i < 2; i++)
		box[i] = ql_box_new(L);
	o->busy = true;
	status = ql_observer_ranges(ctx, o, &end[0], &end[1]);
	o->busy = false;
	for (int i = 0; i < 2 && !status && o->spec.axis; i++) {
		status = ql_tensor_new(ctx, QL_float32, 1, &o->scales, box[i]);
		for (int64_t s = 0; s < o->scales && !status; s++)
			((float *)ql_tensor_data(*box[i]))[s] = (float)end[i][s];
	}
	for (int i = 0; i < 2 && !status && !o->spec.axis; i++)
		lua_pushnumber(L, *end[i]);
	ql_scratch_release(ctx, mark);
	return status ? ql_raise(L, status) : 2;
}

static int method_merge(lua_State *L)
{
	enum ql_status status = ql_observer_merge(ql_ctx_of(L), check_idle(L, 1, "merge"), check_idle(L, 2, "merge"));

	if (status)
		return ql_raise(L, status);
	lua_settop(L, 1);
	return 1;
}

static int method_reset(lua_State *L)
{
	ql_observer_reset(ql_ctx_of(L), check_idle(L, 1, "reset"));
	lua_settop(L, 1);
	return 1;
}

static enum ql_status measure(lua_State *L, struct ql_observer *o, struct ql_observer_stats *st)
{
	enum ql_status status;

	o->busy = true;
	status = ql_observer_measure(ql_ctx_of(L), o, st);
	o->busy = false;
	return status;
}

/* o:measure(): plain table, for quant/ranges/observer_methods.lua's stats */
static int method_measure(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "stats");
	struct ql_observer_stats st;
	enum ql_status status = measure(L, o, &st);
	const struct {
		const char *name;
		int64_t value;
	} counts[] = {{"count", st.count}, {"nonfinite", st.nonfinite}, {"batches", st.batches}, {"drifts", st.drifts}};
	const struct {
		const char *name;
		double value;
	} numbers[] = {{"min", st.min}, {"max", st.max}, {"mean", st.mean}, {"std", st.std}, {"outliers", st.outliers},
		{"clipped", st.clipped}};

	if (status)
		return ql_raise(L, status);
	lua_createtable(L, 0, 11);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		lua_pushinteger(L, counts[i].value);
		lua_setfield(L, -2, counts[i].name);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		ql_set_number(L, numbers[i].name, numbers[i].value);
	lua_pushstring(L, st.suggested);
	lua_setfield(L, -2, "suggested");
	return 1;
}

/* o:histogram(bins) or (bins, scale): counts and edges over even bins */
static int method_histogram(lua_State *L)
{
	struct ql_observer *o = check_idle(L, 1, "histogram");
	lua_Integer bins = lua_isnoneornil(L, 2) ? 256 : ql_check_integer(L, 2, "histogram: bins");
	lua_Integer s = lua_isnoneornil(L, 3) ? 1 : ql_check_integer(L, 3, "histogram: scale");
	double *even, min, max;
	enum ql_status status;

	if (bins < 1 || bins > 1 << 20)
		return ql_error(L, "histogram: wanted 1 to %d bins, got %lld", 1 << 20, (long long)bins);
	if (s < 1 || (o->scales && s > o->scales))
		return ql_error(L, "histogram: wanted scale 1 to %lld, got %lld", (long long)o->scales, (long long)s);
	even = lua_newuserdatauv(L, ql_size_array(bins, sizeof(*even)), 0);
	status = ql_observer_even(ql_ctx_of(L), o, s - 1, (int)bins, even, &min, &max);
	if (status)
		return ql_raise(L, status);
	lua_createtable(L, 0, 2);
	ql_set_numbers(L, "counts", even, (int)bins);
	for (lua_Integer i = 0; i < bins; i++)
		even[i] = min + (max - min) * (double)i / (double)bins;
	ql_set_numbers(L, "edges", even, (int)bins);
	lua_getfield(L, -1, "edges");
	lua_pushnumber(L, max);
	lua_seti(L, -2, bins + 1);
	lua_pop(L, 1);
	return 1;
}

static int64_t values_seen(lua_State *L, const struct ql_observer *o)
{
	enum ql_status status = ql_observer_sync(ql_ctx_of(L), o);
	int64_t count = 0;

	if (status)
		return ql_raise(L, status);
	for (int64_t s = 0; s < o->scales; s++)
		count += o->seen[s].histogram.moments.count;
	return count;
}

static int observer_tostring(lua_State *L)
{
	struct ql_observer *o = check(L, 1, "observer");
	char text[QL_SPEC_TEXT];

	lua_pushfstring(L, "observer %s%s%s: %I values in %I batches", ql_spec_text(&o->spec, text),
		*o->label ? " of " : "", o->label, (LUAI_UACINT)values_seen(L, o), (LUAI_UACINT)o->batches);
	return 1;
}

/* Methods, and the fields spec and count (of finite values: what o:stats() reports, at once). The methods of the
 * prelude come with the first name that is not here. */
static int observer_index(lua_State *L)
{
	const char *key = luaL_checkstring(L, 2);
	char near[96];

	if (!strcmp(key, "spec")) {
		lua_getiuservalue(L, 1, 1);
		return 1;
	}
	if (!strcmp(key, "count")) {
		lua_pushinteger(L, values_seen(L, check(L, 1, "observer")));
		return 1;
	}
	luaL_getmetafield(L, 1, "methods");
	lua_pushvalue(L, 2);
	if (lua_rawget(L, -2) != LUA_TNIL)
		return 1;
	lua_pop(L, 1);
	ql_prelude_require(L, "quant/ranges/observer_methods");
	lua_pop(L, 1);
	lua_pushvalue(L, 2);
	if (lua_rawget(L, -2) != LUA_TNIL)
		return 1;
	return ql_error(L, "observer: no field '%.40s'%s", key,
		ql_nearest(key, "update label params range stats merge reset plot histogram spec count", near));
}

static const luaL_Reg methods[] = {{"update", method_update}, {"label", method_label}, {"params", method_params},
	{"range", method_range}, {"merge", method_merge}, {"reset", method_reset}, {"measure", method_measure},
	{"histogram", method_histogram}, {NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", observer_gc}, {"__close", observer_gc}, {"__tostring", observer_tostring},
	{"__index", observer_index}, {NULL, NULL}};

static const struct ql_doc method_docs[] = {
	{"update", "o:update(x)",
		"Looks at the values of x (floats of any dtype; a quantized x is decoded) and returns the observer. Values that are not "
		"finite are counted and left out.",
		"o = quant.observer 'int8'\no:update(tensor{-1, 0.5}):update(tensor{2})\nprint(o:range())  --> -1.0 2.0",
		NULL},
	{"params", "o:params()  o:params{observer='mse'}",
		"What the observer has found, as a table {scale=, zero_point=} of tensors (zero_point nil: 0), to be used in a spec. An "
		"error when it has seen no values; a warning when more than 0.1 % of them lie outside of the codes. observer= (minmax, "
		"percentile with p=, entropy or mse) finds the range in what was seen in that way instead; average and adaptive follow "
		"single batches, so they only do what their spec says.",
		"o = quant.observer 'uint8'\no:update(tensor{-1, 3})\np = o:params()\n"
		"print(tensor{3}:quantize{dtype='uint8', scale=p.scale, zero_point=p.zero_point}:codes())  --> uint8(1)  255",
		NULL},
	{"label", "o:label(text)",
		"Says what is observed (of a longer text the first 63 bytes), for the warning of o:params, and returns the observer. "
		"m:calibrate names the layer and the operand so.",
		"print(quant.observer('int8'):label 'fc.input')  --> observer int8 of fc.input: 0 values in 0 batches",
		NULL},
	{"range", "o:range()", "The range that was found: two numbers lo, hi, or with an axis in the spec two tensors.",
		"o = quant.observer 'int8/1'\no:update(tensor{{-1, 2}, {3, 4}})\nprint((o:range()))  --> float32(2)  -1   3",
		NULL},
	{"merge", "o:merge(other)",
		"Adds what another observer of the same spec has seen, as if this one had seen it, and returns the observer. With average "
		"the ranges are averaged by the number of batches.",
		"a, b = quant.observer 'int8', quant.observer 'int8'\na:update(tensor{1})\nb:update(tensor{-5})\n"
		"print(a:merge(b):range())  --> -5.0 1.0",
		NULL},
	{"reset", "o:reset()", "Forgets everything seen; returns the observer.",
		"o = quant.observer('int8'):update(tensor{1}):reset()\nprint(pcall(o.params, o))  --> false ...no samples...",
		NULL},
	{"measure", "o:measure()",
		"The numbers of o:stats() as a plain table; outliers and clipped are shares, not percent.",
		"m = quant.observer('int8'):update(tensor{1, 3}):measure()\nprint(m.count, m.mean, m.std)  --> 2 2.0 1.0",
		NULL},
	{"histogram", "o:histogram(bins, scale)",
		"Counts of the values seen, over even bins (256 when not given) from the smallest to the largest, as a table of two "
		"lists: counts, and edges, which has one more. With an axis in the spec, of the scale-th scale.",
		"h = quant.observer('int8'):update(tensor{0, 1, 4}):histogram(4)\nprint(#h.counts, h.edges[1], h.edges[5])  --> 4 0.0 4.0",
		NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static const struct ql_doc docs[] = {
	{"observer", "quant.observer 'uint8@entropy'  quant.observer{dtype='int8', observer='percentile', p=99.9}",
		"An object that observes tensors one after another, o:update(x), and then gives the range, o:range(), and the scale and "
		"zero point, o:params(), that a spec needs for them. It keeps a histogram of fixed size (about 200 kB, with entropy 1.7 MB, with an axis for "
		"each scale), not the data; neither the order of the batches nor how they are cut matters, but for average and "
		"adaptive. o.spec is the spec, o.count the number of finite values seen; o:stats, o:plot, o:merge, o:reset.",
		"o = quant.observer 'int8@mse'\nfor i = 1, 3 do o:update(tensor.randn(1000)) end\n"
		"print(o)  --> observer int8@mse: 3000 values in 3 batches",
		NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

/* finite_range(x) -> lo, hi */
static int finite_range(lua_State *L)
{
	struct ql_tensor *x = ql_check_tensor(L, 1, "finite_range");
	double lo = 0, hi = 0;
	enum ql_status status = ql_finite_range(ql_ctx_of(L), x, &lo, &hi);

	if (status)
		return ql_raise(L, status);
	lua_pushnumber(L, lo);
	lua_pushnumber(L, hi);
	return 2;
}

int ql_open_observer(lua_State *L)
{
	static const luaL_Reg inner[] = {{"finite_range", finite_range}, {NULL, NULL}};
	static struct ql_doc_list list = {.module = "quant", .docs = docs};
	static struct ql_doc_list method_list = {.module = "observer", .docs = method_docs};
	static const luaL_Reg functions[] = {{"observer", observer_new}, {NULL, NULL}};

	ql_doc_register(&list);
	ql_doc_register(&method_list);
	ql_metatable_new(L, OBSERVER);
	ql_set_functions(L, meta);
	lua_newtable(L);
	ql_set_documented(L, methods, method_docs);
	lua_setfield(L, -2, "methods");
	lua_pop(L, 1);
	lua_getglobal(L, "quant");
	ql_set_documented(L, functions, docs);
	lua_pop(L, 1);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, inner, 0);
	lua_pop(L, 1);
	return 0;
}
