/* SPDX-License-Identifier: MIT
 * Hands the prelude everything that is documented in C: internal.docs() gives one list of plain tables, read
 * from the registries (ops, schemes, formats, observers, dtypes, kernels, formats, devices) and the lists of
 * ql_doc_register. How help looks is interp/help/help.lua.
 */
#include <math.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/spec_read.h"
#include "nn/nn.h"
#include "quant/ranges/observer.h"
#include "quant/ranges/quantize.h"
#include "quant/blocks/block.h"
#include "quant/user_format.h"
#include "tensor/device.h"
#include "tensor/io/format.h"
#include "tensor/kernels/kernels.h"

static const char *const type_names[] = {[QL_ATTR_END] = "",
	[QL_ATTR_INT] = "integer",
	[QL_ATTR_FLOAT] = "number",
	[QL_ATTR_BOOL] = "true or false",
	[QL_ATTR_STRING] = "text",
	[QL_ATTR_INTS] = "integers",
	[QL_ATTR_AXIS] = "axis",
	[QL_ATTR_DTYPE] = "dtype",
	[QL_ATTR_SPEC] = "spec",
	[QL_ATTR_TENSOR] = "tensor"};

static void set_flag(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

/* A list of {name, type, text, choices} */
static void push_options(lua_State *L, const struct ql_attr *attrs)
{
	lua_newtable(L);
	for (int i = 0; attrs && attrs[i].type != QL_ATTR_END; i++) {
		lua_createtable(L, 4, 0);
		lua_pushstring(L, attrs[i].name);
		lua_seti(L, -2, 1);
		lua_pushstring(L, type_names[attrs[i].type]);
		lua_seti(L, -2, 2);
		lua_pushstring(L, attrs[i].text);
		lua_seti(L, -2, 3);
		lua_pushstring(L, attrs[i].choices);
		lua_seti(L, -2, 4);
		lua_seti(L, -2, i + 1);
	}
}

/* Appends an entry to the list below and leaves it on the stack. `module` NULL: a name of its own. */
static void add(lua_State *L, const char *kind, const char *module, const struct ql_doc *doc)
{
	lua_createtable(L, 0, 8);
	lua_pushvalue(L, -1);
	lua_seti(L, -3, luaL_len(L, -3) + 1);
	ql_set_text(L, "kind", kind);
	ql_set_text(L, "module", module);
	ql_set_text(L, "name", doc->name);
	ql_set_text(L, "usage", doc->usage);
	ql_set_text(L, "text", doc->text);
	ql_set_text(L, "example", doc->example);
	push_options(L, doc->attrs);
	lua_setfield(L, -2, "options");
}

/* `module` NULL: ops of tensors */
static void add_ops(lua_State *L, const char *module, const struct ql_op *const *ops)
{
	for (; *ops; ops++) {
		uint32_t flags = (*ops)->flags;

		add(L, flags & QL_FUNCTION ? "function" : "method",
			module                ? module
			: flags & QL_FUNCTION ? "tensor"
					      : "x",
			&(*ops)->doc);
		set_flag(L, "both", !(flags & (QL_FUNCTION | QL_METHOD)));
		set_flag(L, "inplace", flags & QL_INPLACE);
		lua_pop(L, 1);
	}
}

static void add_lists(lua_State *L)
{
	for (const struct ql_doc_list *l = ql_doc_lists(); l; l = l->next)
		for (const struct ql_doc *d = l->docs; d->name; d++) {
			add(L, "function", l->module, d); /* or a method: the prelude knows what is a module */
			lua_pop(L, 1);
		}
}

static const char *const kind_texts[] = {[QL_KIND_FLOAT] = "float",
	[QL_KIND_INT] = "signed integer",
	[QL_KIND_UINT] = "unsigned integer",
	[QL_KIND_BOOL] = "true or false",
	[QL_KIND_BINARY] = "-1 or 1"};

/* " Unsigned: see uint8." for int8, and the like. */
static const char *counterpart(lua_State *L, const struct ql_dtype_info *d)
{
	bool is_signed = d->kind == QL_KIND_INT;

	for (int i = 0; i < QL_DTYPE_COUNT; i++)
		if (ql_dtypes[i].bits == d->bits && ql_dtypes[i].kind == (is_signed ? QL_KIND_UINT : QL_KIND_INT))
			return lua_pushfstring(L, " %s: see %s.", is_signed ? "Unsigned" : "Signed", ql_dtypes[i].name);
	return "";
}

/* Pushes ", 4 bits of significand, up to 448" of a float; the latter for 8 bits, whose codes are few enough to look at. */
static const char *float_facts(lua_State *L, const struct ql_dtype_info *d)
{
	float most = 0;

	for (int c = 0; c < 256 && d->bits == 8; c++) {
		uint8_t code = (uint8_t)c;
		float value;

		d->to_f32(&code, 0, 1, 1, &value);
		most = isfinite(value) && value > most ? value : most;
	}
	if (d->bits > 8)
		return lua_pushfstring(L, ", %d bits of significand", (int)d->digits);
	return lua_pushfstring(
		L, ", %d bit%s of significand, up to %f", (int)d->digits, d->digits > 1 ? "s" : "", (lua_Number)most);
}

static void add_dtype(lua_State *L, const struct ql_dtype_info *d)
{
	bool ranged = d->kind == QL_KIND_INT || d->kind == QL_KIND_UINT;
	struct ql_doc doc = {.name = d->name};
	char range[64] = "";
	int top = lua_gettop(L);

	if (ranged)
		snprintf(range, sizeof(range), ", %lld to %lld", (long long)d->lo, (long long)d->hi);
	doc.usage = lua_pushfstring(L, "tensor.zeros{2, 3, dtype='%s'}", d->name);
	doc.text = lua_pushfstring(L, "Element type: %s of %d bit%s%s%s%s.%s", kind_texts[d->kind], (int)d->bits,
		d->bits > 1 ? "s" : "", range, d->bits < 8 ? ", packed" : "",
		d->kind == QL_KIND_FLOAT ? float_facts(L, d) : "", ranged ? counterpart(L, d) : "");
	doc.example = lua_pushfstring(L, "print(tensor.zeros{2, dtype='%s'}:dtype())  --> %s", d->name, d->name);
	lua_pushvalue(L, top);
	add(L, "dtype", NULL, &doc);
	lua_settop(L, top);
}

/* What the kernels of each family compute; interfaces and tolerances are in tensor/kernels/kernels.h. */
static const struct ql_doc families[] = {
	{.name = "gemm_f32",
		.text = "Product of float32 matrices. blas: the CBLAS library that QUOLL_BLAS names, if any. Multiplications are "
			"fused with additions, or the order of summation differs: other kernels, other last bits. ordered: each product "
			"is rounded and added to the sum before, as in a plain loop: the same bits on every processor and in exported C. "
			"Quantized models of the modes static and dynamic run with it, and g:run{ordered=true}; it takes 1.2 to 1.3 times "
			"as long."},
	{.name = "gemm_bf16",
		.text = "Product of matrices of bfloat16 numbers with float32 sums, under hw.force 'bf16': pairs of products with the "
			"roundings of the instruction vdpbf16ps, the odd element first; the same bits on every kernel. Kernels with tiles in their "
			"names are those of hw.force 'bf16tiles': sums of tdpbf16ps."},
	{.name = "gemm_coded",
		.text = "Products with a matrix of codes, decoded in registers: of floats in float32 sums, of 8-bit codes in exact sums of "
			"blocks that are scaled in their order; the latter are the same bits on every kernel."},
	{.name = "gemm_i8", .text = "Product of 8-bit matrices with exact sums; the same bits on every kernel."},
	{.name = "pack_i8", .text = "Rows of bytes to the panels that gemm_i8 reads."},
	{.name = "gemm_i16",
		.text = "Product of 16-bit matrices with exact 64-bit sums; the same bits on every kernel."},
	{.name = "taps_i16",
		.text = "Sums of a few taps over lines of codes: convolutions with few channels in a group."},
	{.name = "conv_i8",
		.text = "Convolution of 8-bit codes with exact sums, from codes to codes: a tile of pixels and outputs, without "
			"unfolding; the same bits on every kernel."},
	{.name = "depth_i8",
		.text = "Depthwise convolution of 8-bit codes with exact sums, from codes to codes, by vectors of channels; the same bits "
			"on every kernel."},
	{.name = "gemm_b1", .text = "Product of matrices of -1 and 1 by counting the bits that differ."},
	{.name = "quantize", .text = "float32 to codes: round half to even after an exact division, saturate."},
	{.name = "dequantize", .text = "Codes to float32: (code - zero_point) * scale."},
	{.name = "simd",
		.text = "Elementwise operations and reductions of any other kind; the same bits on every "
			"kernel."},
	{.name = "limit",
		.text = "Loops that measure what the processor can do at most with these instructions: multiply-adds that stay in "
			"registers, passes over memory. Nothing else uses them; see bench.machine."},
	{.name = NULL},
};

static void add_families(lua_State *L)
{
	for (const struct ql_doc *f = families; f->name; f++) {
		struct ql_doc doc = *f;
		int top = lua_gettop(L);

		doc.usage = "hw.kernels()";
		doc.example = lua_pushfstring(L, "print(#hw.kernels():where{family='%s'} > 0)  --> true", f->name);
		lua_pushvalue(L, top);
		add(L, "kernel", NULL, &doc);
		lua_settop(L, top);
	}
}

/* What scales are stored as, in their own words. */
static const char *scale_of(const struct ql_quant_format *f)
{
	if (f->blocks)
		return ql_dtype_name(f->blocks->scale);
	return f->scale ? f->scale : "float32";
}

/* "FP4 ...: codes in uint4, a scale in float8_e8m0 per 32 elements." */
static void add_number_format(lua_State *L, const struct ql_quant_format *f)
{
	struct ql_doc doc = f->doc;
	int top = lua_gettop(L);
	const char *scale = f->scale || f->blocks ? scale_of(f) : f->block ? "float16 or float32" : "float32";
	const char *per = f->block ? lua_pushfstring(L, "%d elements%s", (int)f->block,
					     f->fixed ? "" : " unless the spec says otherwise (name:64)")
				   : "tensor; name/1 and name:32 as with other dtypes";

	doc.text = lua_pushfstring(L, "%s. Codes in %s, a scale in %s per %s. See formats.", doc.text,
		ql_dtype_name(f->dtype), scale, per);
	if (!doc.example)
		doc.example = lua_pushfstring(
			L, "print(tensor.ones(2, 256):quantize('%s'):spec())  --> %s", doc.name, doc.name);
	lua_pushvalue(L, top);
	add(L, "number format", NULL, &doc);
	lua_settop(L, top);
}

static int internal_docs(lua_State *L)
{
	lua_settop(L, 0);
	lua_newtable(L);
	add_ops(L, NULL, ql_ops);
	add_ops(L, NULL, ql_quant_ops);
	add_ops(L, "nn", ql_nn_ops);
	add_lists(L);
	for (int i = 0; ql_schemes[i]; i++, lua_settop(L, 1))
		add(L, "scheme", NULL, &ql_schemes[i]->doc);
	for (int i = 0; ql_quant_formats[i]; i++)
		add_number_format(L, ql_quant_formats[i]);
	for (int i = 0; ql_observers[i]; i++, lua_settop(L, 1))
		add(L, "observer", NULL, &ql_observers[i]->doc);
	for (int i = 0; i < QL_DTYPE_COUNT; i++)
		add_dtype(L, &ql_dtypes[i]);
	add_families(L);
	for (int i = 0; ql_formats[i]; i++, lua_settop(L, 1))
		add(L, "format", NULL, &ql_formats[i]->doc);
	add(L, "device", NULL, &ql_device_cpu.doc);
	lua_settop(L, 1);
	return 1;
}

/* internal.source(chunk): text of a file of the prelude by its chunk name, or nil */
static int internal_source(lua_State *L)
{
	size_t size;
	const char *text = ql_prelude_source(luaL_checkstring(L, 1), &size);

	if (text)
		lua_pushlstring(L, text, size);
	else
		lua_pushnil(L);
	return 1;
}

/* internal.spec_fields(): what a spec given as a table takes, in the form of the options of a function */
static int internal_spec_fields(lua_State *L)
{
	push_options(L, ql_spec_attrs);
	return 1;
}

static void push_number_format(lua_State *L, const struct ql_quant_format *f)
{
	lua_createtable(L, 0, 6);
	ql_set_text(L, "name", f->doc.name);
	ql_set_text(L, "storage", ql_dtype_name(f->dtype));
	ql_set_text(L, "scale", scale_of(f));
	ql_set_text(L, "what", f->doc.text ? f->doc.text : "");
	set_flag(L, "fixed", f->fixed);
	set_flag(L, "user", f->stored != NULL);
	if (f->block) {
		lua_pushinteger(L, f->block);
		lua_setfield(L, -2, "block");
	}
}

/* internal.formats(): rows name, storage, scale, block (nil: none), fixed, user, what; those of quant.scheme last, of those of
 * one name the newest */
static int internal_formats(lua_State *L)
{
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; ql_quant_formats[i]; i++) {
		push_number_format(L, ql_quant_formats[i]);
		lua_seti(L, -2, ++n);
	}
	for (const struct ql_user_format *u = ql_ctx_of(L)->formats; u; u = u->next) {
		if (ql_quant_format_by_name(ql_ctx_of(L), u->name) != &u->format)
			continue;
		push_number_format(L, &u->format);
		lua_seti(L, -2, ++n);
	}
	return 1;
}

static const luaL_Reg internal[] = {{"docs", internal_docs}, {"formats", internal_formats},
	{"spec_fields", internal_spec_fields}, {"source", internal_source}, {NULL, NULL}};

int ql_open_help(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, internal);
	lua_pop(L, 1);
	return 0;
}
