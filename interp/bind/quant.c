/* SPDX-License-Identifier: MIT
 * The global `quant` and the quantization facts of a tensor. What only arranges results (compare, estimate, log as a
 * report) is Lua: quant/library.lua.
 */
#include <stdio.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/describe.h"
#include "interp/bind/quant_scheme.h"
#include "interp/bind/spec.h"
#include "interp/bind/spec_read.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/surplus.h"
#include "interp/bind/values.h"
#include "quant/format.h"
#include "quant/metrics.h"
#include "quant/ranges/observer.h"
#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/remote.h"

/* ---- params, dtypes ---- */

static int quant_params(lua_State *L)
{
	struct ql_spec spec;
	float scale;
	int32_t zero;
	enum ql_status status;

	if (lua_type(L, 1) != LUA_TNUMBER || lua_type(L, 2) != LUA_TNUMBER)
		return ql_error(L, "params: wanted two numbers lo, hi and a spec, got %s and %s", luaL_typename(L, 1),
			luaL_typename(L, 2));
	if (!ql_read_spec(L, 3, "params", &spec))
		return ql_error(L, "params: wanted a spec, got false");
	status = ql_quantize_range(ql_ctx_of(L), &spec, lua_tonumber(L, 1), lua_tonumber(L, 2), &scale, &zero);
	if (status)
		return ql_raise(L, status);
	lua_createtable(L, 0, 2);
	ql_set_number(L, "scale", (double)scale);
	if (spec.scheme->zero)
		ql_set_integer(L, "zero_point", zero);
	return 1;
}

static void push_dtype_names(lua_State *L)
{
	lua_createtable(L, QL_DTYPE_COUNT, 0);
	for (unsigned i = 0; i < QL_DTYPE_COUNT; i++) {
		lua_pushstring(L, ql_dtype_name(i));
		lua_seti(L, -2, (lua_Integer)i + 1);
	}
}

static int quant_dtype(lua_State *L)
{
	static const char *const kinds[] = {[QL_KIND_FLOAT] = "float",
		[QL_KIND_INT] = "int",
		[QL_KIND_UINT] = "uint",
		[QL_KIND_BOOL] = "bool",
		[QL_KIND_BINARY] = "binary"};
	const struct ql_dtype_info *d;
	const char *name;
	int dtype;

	if (lua_gettop(L) == 0) {
		push_dtype_names(L);
		return 1;
	}
	name = ql_check_string(L, 1, "dtype");
	dtype = ql_dtype_by_name(name);
	if (dtype < 0)
		return ql_raise(L, ql_fail_choice(ql_ctx_of(L), "dtype", ql_dtype_names, name));
	d = &ql_dtypes[dtype];
	lua_createtable(L, 0, 10);
	ql_set_text(L, "name", d->name);
	ql_set_text(L, "kind", kinds[d->kind]);
	ql_set_text(L, "whole", ql_dtype_name(ql_dtype_whole((unsigned)dtype)));
	ql_set_integer(L, "bits", d->bits);
	lua_pushboolean(L, d->kind != QL_KIND_UINT && d->kind != QL_KIND_BOOL);
	lua_setfield(L, -2, "signed");
	lua_pushboolean(L, d->kind == QL_KIND_FLOAT);
	lua_setfield(L, -2, "float");
	ql_set_integer(L, "packed", ql_dtype_group((unsigned)dtype));
	if (d->kind == QL_KIND_FLOAT) {
		ql_set_integer(L, "digits", d->digits);
		return 1;
	}
	ql_set_integer(L, "min", d->lo);
	ql_set_integer(L, "max", d->hi);
	if (d->bits < 64)
		ql_set_integer(L, "levels", d->kind == QL_KIND_BINARY ? 2 : d->hi - d->lo + 1);
	return 1;
}

/* ---- fallback and ledger ---- */

static int quant_fallback(lua_State *L)
{
	static const char *const modes[] = {"silent", "warn", "error", NULL};
	struct ql_ctx *ctx = ql_ctx_of(L);
	const char *wanted;
	char near[96];

	if (!lua_isnoneornil(L, 1)) {
		wanted = ql_check_string(L, 1, "fallback");
		for (int i = 0; modes[i]; i++)
			if (!strcmp(wanted, modes[i])) {
				lua_pushstring(L, modes[ctx->fallback]);
				ctx->fallback = (enum ql_fallback_mode)i;
				return 1;
			}
		return ql_error(L, "fallback: wanted silent, warn or error, got '%.40s'%s", wanted,
			ql_nearest(wanted, "silent warn error", near));
	}
	lua_pushstring(L, modes[ctx->fallback]);
	return 1;
}

static void push_row(lua_State *L, const struct ql_ledger_row *r)
{
	char operands[96];

	lua_createtable(L, 0, 6);
	ql_set_text(L, "op", r->op);
	ql_set_text(L, "operands", ql_ledger_operands(r->operands, operands));
	ql_set_text(L, "path", r->path);
	ql_set_text(L, "kernel", r->kernel);
	if (r->reason)
		ql_set_text(L, "reason", r->reason);
	ql_set_integer(L, "count", (int64_t)r->count);
}

/* quant.ledger(reset): plain rows, for quant/library.lua's log */
static int quant_ledger(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	bool reset = lua_toboolean(L, 1);
	lua_Integer n = 0;
	char got[QL_DESCRIPTION];

	if (lua_type(L, 1) > LUA_TBOOLEAN) {
		ql_value_got(L, 1, got);
		return ql_error(L, "ledger: wanted true or false, got %s", got);
	}

	lua_newtable(L);
	for (uint32_t i = 1; i <= ql_ledger_rows(ctx); i++) {
		const struct ql_ledger_row *r = ql_ledger_row(ctx, i);

		if (!r->count)
			continue;
		push_row(L, r);
		lua_seti(L, -2, ++n);
	}
	if (reset)
		ql_ledger_reset(ctx);
	return 1;
}

/* The word of ql_path.codes that dtype d belongs to; NULL: none. */
static const char *class_of(const struct ql_dtype_info *d)
{
	if (d->kind == QL_KIND_BINARY)
		return "binary";
	if (d->kind != QL_KIND_INT && d->kind != QL_KIND_UINT)
		return NULL;
	return d->bits < 8 ? "packed" : d->bits == 8 ? "8" : d->bits == 16 ? "16" : NULL;
}

/* Where the word of d is in the list, its end in *end; NULL: nowhere. */
static const char *find_class(const char *codes, const struct ql_dtype_info *d, const char **end)
{
	const char *class = class_of(d);

	for (const char *at = codes; class && *at; at = *end + strspn(*end, " ")) {
		size_t n = strcspn(at, "= ");

		*end = at + strcspn(at, " ");
		if (n == strlen(class) && !strncmp(at, class, n))
			return at + n;
	}
	return NULL;
}

/* Pushes a table: the name of the path that an operand of each dtype takes. */
static void push_path_dtypes(lua_State *L, const struct ql_path *p)
{
	lua_newtable(L);
	for (int i = 0; i < QL_DTYPE_COUNT; i++) {
		const struct ql_dtype_info *d = &ql_dtypes[i];
		const char *end, *at = find_class(p->codes, d, &end);

		if (!at)
			continue;
		if (at == end)
			lua_pushstring(L, p->name);
		else if (at[1] == '*')
			lua_pushstring(L, d->name);
		else
			lua_pushlstring(L, at + 1, (size_t)(end - at - 1));
		lua_setfield(L, -2, d->name);
	}
}

/* Every op with its integer paths: rows op, path, dtypes, text. */
static int quant_paths(lua_State *L)
{
	const struct ql_path *const *p = ql_ctx_of(L)->quant->paths;
	lua_Integer n = 0;

	lua_newtable(L);
	for (; *p; p++) {
		lua_createtable(L, 0, 4);
		ql_set_text(L, "op", (*p)->op ? (*p)->op : "*");
		ql_set_text(L, "path", (*p)->name);
		push_path_dtypes(L, *p);
		lua_setfield(L, -2, "dtypes");
		ql_set_text(L, "text", (*p)->text);
		lua_seti(L, -2, ++n);
	}
	return 1;
}

/* quant.bytes({sizes}, spec) */
static int quant_bytes(lua_State *L)
{
	static const struct ql_attr attrs[] = {
		{"sizes", QL_ATTR_INTS, QL_POSITIONAL | QL_REQUIRED, NULL, "sizes of the axes"},
		{"spec", QL_ATTR_SPEC, QL_POSITIONAL | QL_REQUIRED, NULL, "a spec"},
		{NULL, QL_ATTR_END, 0, NULL, NULL},
	};
	struct ql_arguments args;
	uint64_t bytes;
	enum ql_status status;

	ql_read_arguments(L, "bytes", attrs, 1, &args);
	if (args.value[0].ints.n > QL_MAX_RANK)
		return ql_error(L, "bytes: wanted at most %d sizes, got %d", QL_MAX_RANK, args.value[0].ints.n);
	status = ql_quantize_bytes(
		ql_ctx_of(L), args.value[1].spec, args.value[0].ints.n, args.value[0].ints.at, &bytes);
	if (status)
		return ql_raise(L, status);
	lua_pushinteger(L, (lua_Integer)bytes);
	return 1;
}

/* ---- facts of a tensor ---- */

static void push_alias(lua_State *L, struct ql_tensor *t)
{
	struct ql_tensor **box = ql_box_new(L);

	*box = ql_tensor_keep(t);
}

/* As internal.params, with a boolean as the upvalue, without nan and inf, which would wait for a device. */
static int method_qparams(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "qparams");
	const struct ql_qparams *q = t->q;
	struct ql_spec spec;
	enum ql_status status;
	int64_t nan, inf;

	if (!q) {
		lua_pushnil(L);
		return 1;
	}
	lua_createtable(L, 0, 12);
	push_alias(L, q->scale);
	lua_setfield(L, -2, "scale");
	if (q->zero_point) {
		push_alias(L, q->zero_point);
		lua_setfield(L, -2, "zero_point");
	}
	if (q->shift) {
		push_alias(L, q->shift);
		lua_setfield(L, -2, "minimum");
	}
	if (q->values) {
		push_alias(L, q->values);
		lua_setfield(L, -2, "values");
	}
	if (q->format)
		ql_set_text(L, "format", q->format->doc.name);
	ql_set_text(L, "dtype", ql_dtype_name(t->dtype));
	ql_set_text(L, "scheme", q->scheme->doc.name);
	ql_set_text(L, "from", ql_dtype_name(q->from));
	if (q->bits)
		ql_bits_push(L, q->bits);
	else
		lua_pushinteger(L, q->codes.bits);
	lua_setfield(L, -2, "bits");
	ql_set_integer(L, "min", q->codes.lo);
	ql_set_integer(L, "max", q->codes.hi);
	ql_spec_of(t, &spec);
	if (spec.has_min)
		ql_set_integer(L, "quant_min", spec.quant_min);
	if (spec.has_max)
		ql_set_integer(L, "quant_max", spec.quant_max);
	if (q->axis >= 0 || q->block)
		ql_set_integer(L, "axis", (q->block ? q->block_axis : q->axis) + 1);
	if (q->block)
		ql_set_integer(L, "block", q->block);
	if (q->scheme->table_length)
		ql_set_number(L, "octaves", (double)q->codes.octaves);
	if (lua_isboolean(L, lua_upvalueindex(1)))
		return 1;
	ql_qparams_counts(q, &nan, &inf);
	status = ql_check_read(ql_ctx_of(L));
	ql_set_integer(L, "nan", nan);
	ql_set_integer(L, "inf", inf);
	luaL_setmetatable(L, QL_QPARAMS);
	return status ? ql_raise(L, status) : 1;
}

/* ---- what q:qparams() prints ---- */

#define SHOWN 12 /* numbers of a tensor */

/* Number i of t, in row-major order: of codes what it stands for. */
static double number_at(lua_State *L, const struct ql_tensor *t, int64_t i)
{
	int64_t index[QL_MAX_RANK];
	enum ql_status status;
	float value;

	if (!t->q)
		return ql_tensor_at_f64(t, i);
	for (int d = t->rank - 1; d >= 0; d--) {
		index[d] = i % t->shape[d];
		i /= t->shape[d];
	}
	status = ql_decode_element(ql_ctx_of(L), t, index, &value);
	if (status)
		ql_raise(L, status);
	return (double)value;
}

/* Pushes "float32(3) 0.01 0.02 0.03": the first ones of many, after what they are stored as. */
static void push_numbers(lua_State *L, const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t);
	char text[256], number[48];
	luaL_Buffer b;

	luaL_buffinit(L, &b);
	luaL_addstring(&b, ql_describe(t, text));
	for (int64_t i = 0; i < n && i < SHOWN; i++) {
		snprintf(number, sizeof(number), " %.7g", number_at(L, t, i));
		luaL_addstring(&b, number);
	}
	snprintf(number, sizeof(number), " … (%lld)", (long long)n);
	luaL_addstring(&b, n > SHOWN ? number : "");
	luaL_pushresult(&b);
}

/* Pushes the text of a field's value; a list of numbers is joined by blanks. */
static void push_value(lua_State *L, int index)
{
	struct ql_tensor *t = ql_host_tensor(L, index);

	if (t) {
		push_numbers(L, t);
	} else if (lua_type(L, index) == LUA_TTABLE) {
		int n = (int)lua_rawlen(L, index), shown = n < SHOWN ? n : SHOWN;

		luaL_checkstack(L, shown + 4, "numbers");
		lua_pushfstring(L, "%d channels:", n);
		for (int i = 1; i <= shown; i++) {
			lua_rawgeti(L, index, i);
			lua_pushfstring(L, " %s", luaL_tolstring(L, -1, NULL));
			lua_replace(L, -3);
			lua_pop(L, 1);
		}
		lua_concat(L, shown + 1);
	} else {
		luaL_tolstring(L, index, NULL);
	}
}

static int qparams_tostring(lua_State *L)
{
	static const char *const fields[] = {"format", "dtype", "scheme", "bits", "min", "max", "axis", "block",
		"octaves", "values", "scale", "zero_point", "minimum", "from", "nan", "inf"};
	char head[32];
	int pieces = 1;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	luaL_checkstack(L, 64, "qparams");
	lua_pushliteral(L, "qparams");
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		lua_pushstring(L, fields[i]);
		if (lua_rawget(L, 1) == LUA_TNIL) {
			lua_pop(L, 1);
			continue;
		}
		snprintf(head, sizeof(head), "\n  %-11s", fields[i]);
		push_value(L, lua_gettop(L));
		lua_remove(L, -2);
		lua_pushstring(L, head);
		lua_insert(L, -2);
		pieces += 2;
	}
	lua_concat(L, pieces);
	return 1;
}

static int method_spec(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "spec");
	struct ql_spec spec;

	if (!t->q) {
		lua_pushnil(L);
		return 1;
	}
	ql_spec_of(t, &spec);
	ql_spec_push(L, &spec);
	return 1;
}

/* x:metrics(y): plain table, for quant/library.lua's error */
static int method_metrics(lua_State *L)
{
	struct ql_tensor *x = ql_check_tensor(L, 1, "error"), *y = ql_check_tensor(L, 2, "error");
	struct ql_error_report r;
	enum ql_status status = ql_error_measure(ql_ctx_of(L), x, y, &r);

	if (status)
		return ql_raise(L, status);
	lua_createtable(L, 0, 8);
	ql_set_number(L, "mse", r.mse);
	ql_set_number(L, "rmse", r.rmse);
	ql_set_number(L, "max", r.max);
	ql_set_number(L, "mean", r.mean);
	ql_set_number(L, "sqnr", r.sqnr);
	ql_set_number(L, "cosine", r.cosine);
	ql_set_number(L, "clipped", r.clipped);
	return 1;
}

/* The row of the ledger that made this value, or nil. */
static int method_origin(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "explain");
	const struct ql_ledger_row *r = ql_ledger_row(ql_ctx_of(L), t->origin);

	if (r)
		push_row(L, r);
	else
		lua_pushnil(L);
	return 1;
}

/* Consistency of codes and params; raises what is wrong. */
static int method_check(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "check");
	enum ql_status status = ql_quantize_check(ql_ctx_of(L), t);

	if (status)
		return ql_raise(L, status);
	lua_settop(L, 1);
	return 1;
}

static const luaL_Reg functions[] = {{"spec", ql_spec_new}, {"params", quant_params}, {"dtype", quant_dtype},
	{"fallback", quant_fallback}, {"ledger", quant_ledger}, {"paths", quant_paths}, {"bytes", quant_bytes},
	{"scheme", ql_quant_scheme}, {NULL, NULL}};
static const luaL_Reg methods[] = {{"qparams", method_qparams}, {"spec", method_spec}, {"metrics", method_metrics},
	{"origin", method_origin}, {"check", method_check}, {NULL, NULL}};

static const struct ql_doc docs[] = {
	{"scheme",
		"quant.scheme{name='p2', table={-1, -0.5, 0, 0.5, 1}}  quant.scheme{name='mine', bits=4, encode=f, decode=g, fit=h}",
		"Makes a number format of your own: codes are the numbers of up to 256 values, x = value * scale. Returns its spec; the "
		"name then goes wherever a dtype goes in a spec ('p2/1', 'p2:32@mse'): quantize, compare, rules, calibration, exported "
		"C. A scale is max|x| over unit (the largest |value| unless given). x becomes the nearest value, in a tie the lower "
		"one. Codes take as few bits as the table needs (2 to 6 or 8). A name may be used again; tensors keep their values. "
		"Values are not evenly spaced, so ops decode first and run in float32.\n\n"
		"Instead of a table, functions (slow: each conversion calls them, with one row per scale): encode(x, scale) gets float32 "
		"(rows, n) and (rows, 1) and returns codes (rows, n), whole numbers from 0 to 2^bits-1, or with signed=true from "
		"-2^(bits-1); bits are 2 to 8. decode(codes, scale) gets int32 and returns values; slices and transposed tensors show it "
		"other rows than encode saw, so a value depends on its code and scale only. fit(x, importance) returns the scale of each "
		"row, (rows) or (rows, 1), or a number for one row; without it the scale is max|x| over unit (1 unless given). "
		"Calibration and observers give fit the two ends of each range as x; importance is nil unless the spec has importance=. "
		"Short blocks at the end of an axis are a call of their own. NaN is passed as 0, infinity as the largest finite |x| of its "
		"row. Scales of blocks are stored in float16 when that holds all of them, as in other formats. The gradient of fake passes "
		"everywhere; exported C, the observer mse, and outer, scaling, saturate and stochastic rounding are refused. A file keeps the "
		"name, and loading needs functions of that name, which nothing compares with those that wrote it; a trial of a sweep "
		"defines them in its run function. They cannot yield.",
		"quant.scheme{name='p2', table={-1, -0.5, -0.25, 0, 0.25, 0.5, 1}}\n"
		"print(tensor{4, -0.9, 0.1}:quantize('p2'):dequantize())  --> float32(3)   4  -1   0\n"
		"quant.scheme{name='roots', bits=4, signed=true, unit=49,\n"
		"  encode=function(x, scale) return (x / scale):abs():sqrt():round() * (x / scale):sign() end,\n"
		"  decode=function(codes, scale) return codes * codes:abs() * scale end}\n"
		"print(tensor{49, -10, 1}:quantize('roots'):dequantize())  --> float32(3)  49  -9   1",
		NULL},
	{"spec", "quant.spec(s)",
		"Checks a spec (a text or a table), fills in the defaults and returns it as an object that prints as a text which is "
		"read back as the same spec; its fields can be read: dtype bits scheme axis block observer p momentum bins octaves scale "
		"zero_point minimum rounding, and name, the text without scale, zero_point and minimum. What its codes can do: affine (x = (q - zero_point) * "
		"scale), shift (a real minimum is added), values (under a scale of 1, of the bit fields from 0 on, where codes number the "
		"entries of a table), functions (Lua functions make the codes: quant.scheme), monotone (a larger code is never a smaller "
		"value), zero_code (0 is a code), mean (the scale comes from mean |x|), any_scale (a scale may be 0 or negative), offset "
		"(the zero point comes from the data), joint (codes and scale are fitted together, as in GGUF: no scale=), weighted (takes importance=), min, max of the codes. See spec.",
		"s = quant.spec{bits=4, axis=1}\nprint(s, s.dtype, s.scheme, s.affine, s.min)  --> int4/1 int4 symmetric true -7",
		NULL},
	{"params", "quant.params(lo, hi, spec)",
		"The scale and zero point that a spec gives to data between lo and hi, as a table {scale=, zero_point=} (nil: the scheme has none). Asymmetric "
		"specs widen the range to hold 0 first. An error when lo > hi or one is not finite.",
		"p = quant.params(-1, 3, 'uint8')\nprint(p.zero_point)  --> 64", NULL},
	{"dtype", "quant.dtype(name)  quant.dtype()",
		"Facts of a dtype as a table: name, bits, kind (float, int, uint, bool or binary), signed, float, packed (elements in the "
		"fewest whole bytes; 1: not packed), whole (the dtype of one byte per element that holds the codes of a packed one; of "
		"others the name), of integers min, max, levels, of floats digits (bits of the significand with the leading one). Without a name: a list of the names of all dtypes.",
		"d = quant.dtype 'int4'\nprint(d.bits, d.min, d.max, d.packed)  --> 4 -8 7 2", NULL},
	{"fallback", "quant.fallback()  quant.fallback(mode)",
		"What happens when an op has to dequantize its operands: silent (the default: it is counted in quant.log), warn (a "
		"warning, too) or error. Returns the mode that was set before. See fallback.",
		"before = quant.fallback 'error'\nprint(quant.fallback())  --> error\nquant.fallback(before)", NULL},
	{"ledger", "quant.ledger(reset)",
		"The rows of quant.log as a plain list of tables; with true the counts start anew.",
		"quant.ledger(true)\nx = tensor{1}:relu()\nprint(#quant.ledger(), quant.ledger()[1].op)  --> 1 relu",
		NULL},
	{"paths", "quant.paths()",
		"The integer implementations as a plain list of tables: op ('*': every elementwise op), path, dtypes (a table: the path that "
		"an operand of each dtype takes), text. quant.ops arranges them by op.",
		"print(#quant.paths() > 0, quant.paths()[1].op ~= nil)  --> true true", NULL},
	{"lsq", "quant.lsq(x, scale, {bits=4, signed=true, axis=})",
		"The same as x:lsq: fake quantization whose scale is learned.",
		"print(quant.lsq(tensor{0.3, 9}, tensor{0.5}, {bits=2}))  --> float32(2)  0.5000  0.5000", NULL},
	{"bytes", "quant.bytes(sizes, spec)  quant.bytes(rows, columns, …, spec)",
		"Bytes of a tensor of these sizes under a spec: codes, scales and zero points.",
		"print(quant.bytes({1000, 1000}, 'int8'))  --> 1000004", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static const struct ql_doc method_docs[] = {
	{"qparams", "q:qparams()",
		"How codes map to numbers, as a table: scale, zero_point and minimum (tensors; nil: 0; a scale may be quantized itself), "
		"format (its name, if it has one), dtype, scheme, bits (a list "
		"where channels differ), min and max of the codes (of the widest channel), axis and block where there are, from (the dtype before), nan and inf (how many were met). nil when "
		"the tensor is not quantized. It prints its values, and it is a spec with explicit numbers: `x:quantize`(q:qparams()) "
		"quantizes x as q is.",
		"p = tensor{-2,1}:quantize('int8'):qparams()\nprint(p.scheme, p.min, p.max, p.zero_point)  --> symmetric -127 127 nil\n"
		"print(tensor{1,-1}:quantize(p):codes())  --> int8(2)   64  -64",
		NULL},
	{"spec", "q:spec()", "The spec that describes how the tensor is quantized; nil when it is not.",
		"print(tensor{{1,2}}:quantize('int4:32'):spec())  --> int4:32", NULL},
	{"metrics", "x:metrics(y)",
		"The numbers of x:error(y) as a plain table: mse rmse max mean sqnr cosine clipped (a share, not percent).",
		"m = tensor{1,2}:metrics(tensor{1,4})\nprint(m.mse, m.max)  --> 2.0 2.0", NULL},
	{"origin", "x:origin()",
		"The line of the ledger that made this value, as a table op operands path kernel count reason; nil when no op did. "
		"x:explain says it in words.",
		"y = tensor{1}:quantize('int8') + 1\nprint(y:origin().op, y:origin().path)  --> add fallback", NULL},
	{"check", "q:check()",
		"Checks that codes, scales and zero points fit together (codes in range, scales finite and above 0) and returns the "
		"tensor, or raises what is wrong. For tensors made from foreign numbers.",
		"print(tensor{1}:quantize('int8'):check():dtype())  --> int8", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

int ql_open_quant(lua_State *L)
{
	static struct ql_doc_list list = {.module = "quant", .docs = docs};
	static struct ql_doc_list method_list = {.module = "x", .docs = method_docs};

	ql_doc_register(&list);
	ql_doc_register(&method_list);
	ql_spec_open(L);
	luaL_newmetatable(L, QL_QPARAMS);
	lua_pushcfunction(L, qparams_tostring);
	lua_setfield(L, -2, "__tostring");
	lua_pop(L, 1);
	luaL_getmetatable(L, QL_TENSOR);
	lua_getfield(L, -1, "methods");
	ql_set_documented(L, methods, method_docs);
	lua_newtable(L);
	ql_set_documented(L, functions, docs);
	ql_push_op(L, ql_op_by_name(ql_quant_ops, "lsq"), false);
	lua_setfield(L, -2, "lsq");
	lua_setglobal(L, "quant");
	lua_pop(L, 2);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushboolean(L, true);
	lua_pushcclosure(L, method_qparams, 1);
	lua_setfield(L, -2, "params");
	lua_pop(L, 1);
	return 0;
}
