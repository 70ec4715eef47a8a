/* SPDX-License-Identifier: MIT
 * plot.<kind>{…} and the methods of figures.
 */
#include <stdio.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/host/output.h"
#include "interp/plot/kind.h"
#include "interp/plot/plot.h"
#include "interp/plot/render.h"
#include "interp/plot/terminal.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/surplus.h"
#include "interp/host/width.h"

#define QL_KINDS_MAX 64

struct ql_figure **ql_figure_box(lua_State *L)
{
	struct ql_figure **box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = NULL;
	luaL_setmetatable(L, QL_FIGURE);
	return box;
}

static struct ql_figure *check_figure(lua_State *L)
{
	struct ql_figure **box = luaL_testudata(L, 1, QL_FIGURE);

	if (!box)
		ql_error(L, "figure: wanted a figure, as in fig:save(file), got %s", luaL_typename(L, 1));
	if (!*box)
		ql_error(L, "figure: wanted a live figure, got one that was already closed");
	return *box;
}

static int figure_gc(lua_State *L)
{
	struct ql_figure **box = luaL_checkudata(L, 1, QL_FIGURE);

	if (!ql_lifetime_may_free(L))
		return 0;
	ql_figure_free(*box);
	*box = NULL;
	return 0;
}

/* ---- bytes from the library to Lua ---- */

/* Bytes on their way into a Lua string, which may fail to be made. */
static int bytes_gc(lua_State *L)
{
	struct ql_encoded *b = lua_touserdata(L, 1);

	ql_free(ql_ctx_of(L), b->at);
	b->at = NULL;
	return 0;
}

static struct ql_encoded *bytes_box(lua_State *L)
{
	struct ql_encoded *b = lua_newuserdatauv(L, sizeof(*b), 0);

	*b = (struct ql_encoded){0};
	if (ql_metatable_new(L, "quoll.bytes")) {
		lua_pushcfunction(L, bytes_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	return b;
}

static int push_bytes(lua_State *L, struct ql_encoded *b, enum ql_status status)
{
	if (status)
		return ql_raise(L, status);
	lua_pushlstring(L, b->at, b->n);
	ql_free(ql_ctx_of(L), b->at);
	b->at = NULL;
	return 1;
}

/* ---- methods ---- */

static int picture(lua_State *L, enum ql_picture kind)
{
	struct ql_figure *f = check_figure(L);
	struct ql_encoded *b = bytes_box(L);

	return push_bytes(L, b, ql_figure_picture(f, kind, 0, 0, b));
}

static int figure_png(lua_State *L)
{
	return picture(L, QL_PICTURE_PNG);
}

static int figure_svg(lua_State *L)
{
	return picture(L, QL_PICTURE_SVG);
}

static int figure_pdf(lua_State *L)
{
	return picture(L, QL_PICTURE_PDF);
}

static int figure_save(lua_State *L)
{
	struct ql_figure *f = check_figure(L);
	enum ql_status status;

	if (lua_type(L, 2) != LUA_TSTRING)
		ql_error(L, "fig:save: file: wanted a name ending in .png, .svg, .pdf or .txt, got %s",
			luaL_typename(L, 2));
	status = ql_figure_save(f, lua_tostring(L, 2));
	if (status)
		return ql_raise(L, status);
	lua_settop(L, 1);
	return 1;
}

static const struct ql_attr text_attrs[] = {
	{"width", QL_ATTR_INT, 0, NULL, "columns (80)"},
	{"height", QL_ATTR_INT, 0, NULL, "rows (22)"},
	{"colour", QL_ATTR_BOOL, 0, NULL, "escape sequences for colours (false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int figure_text(lua_State *L)
{
	struct ql_figure *f = check_figure(L);
	struct ql_arguments args;
	struct ql_encoded *b;
	int64_t width, height;
	bool colour;

	ql_read_arguments(L, "text", text_attrs, 2, &args);
	width = args.value[0].set ? args.value[0].i : QL_TEXT_COLUMNS;
	height = args.value[1].set ? args.value[1].i : QL_TEXT_ROWS;
	colour = args.value[2].set && args.value[2].b;
	if (width < 20 || width > 1000 || height < 6 || height > 1000)
		ql_error(L, "fig:text: wanted width 20 to 1000 and height 6 to 1000, got %lld and %lld",
			(long long)width, (long long)height);
	b = bytes_box(L);
	return push_bytes(
		L, b, ql_figure_text(f, (int)width, (int)height, colour ? QL_COLOUR_24BIT : QL_COLOUR_NONE, b));
}

static const struct ql_attr encode_attrs[] = {
	{"protocol", QL_ATTR_STRING, QL_POSITIONAL | QL_REQUIRED, "kitty iterm sixel",
		"how the terminal takes pictures"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int figure_encode(lua_State *L)
{
	struct ql_figure *f = check_figure(L);
	struct ql_arguments args;
	struct ql_encoded *b;
	const char *name;

	ql_read_arguments(L, "fig:encode", encode_attrs, 2, &args);
	name = args.value[0].s;
	b = bytes_box(L);
	return push_bytes(L, b, ql_terminal_encode(f, ql_terminal_by_name(name), 0, 0, b));
}

static int figure_show(lua_State *L)
{
	struct ql_figure *f = check_figure(L);
	struct ql_output event = {.kind = QL_OUTPUT_DISPLAY, .L = L, .index = 1};
	FILE *terminal = ql_output_terminal(stdout);
	struct ql_encoded *b;
	enum ql_status status;

	lua_settop(L, 1);
	if (ql_output_heard()) {
		event.text = luaL_tolstring(L, 1, &event.size);
		ql_output_tell(&event);
		lua_settop(L, 1);
	}
	if (!terminal)
		return 1;
	b = bytes_box(L);
	status = ql_terminal_show(f, b);
	if (status)
		return ql_raise(L, status);
	fwrite(b->at ? b->at : "", 1, b->n, terminal);
	fflush(terminal);
	lua_settop(L, 1);
	return 1;
}

/* Without the last line break: who prints a value ends its line. */
static int figure_bytes(lua_State *L)
{
	struct ql_figure *f = check_figure(L);
	struct ql_encoded *b = bytes_box(L);
	enum ql_status status = ql_terminal_show(f, b);

	if (!status && !b->n) {
		lua_settop(L, 1);
		luaL_tolstring(L, 1, NULL);
		return 1;
	}
	b->n -= b->n && b->at[b->n - 1] == '\n';
	return push_bytes(L, b, status);
}

/* internal.plot_facts() -> whether pictures can be made, and a line about it (quoll doctor) */
static int plot_facts(lua_State *L)
{
	char text[256];

	lua_pushboolean(L, ql_plplot_describe(text, sizeof(text)));
	lua_pushstring(L, text);
	return 2;
}

static int figure_tostring(lua_State *L)
{
	char text[256];

	ql_figure_describe(check_figure(L), text, sizeof(text));
	lua_pushfstring(
		L, "%s%s", text, ql_width_script() ? "; fig:show() shows it, fig:save 'file.png' writes it" : "");
	return 1;
}

/* ---- plot.<kind> ---- */

/* One table with data and options; plot.line(y), plot.line(y, {…}) become one: {y, …}. */
static void collect(lua_State *L, const struct ql_plot_kind *kind)
{
	int top = lua_gettop(L), options = 0;

	if (top == 1 && lua_type(L, 1) == LUA_TTABLE)
		return;
	if (top == 0)
		ql_error(L, "plot.%s: wanted data, as in %s", kind->doc.name, kind->doc.usage);
	lua_newtable(L);
	if (top > 1 && lua_type(L, top) == LUA_TTABLE && !lua_rawlen(L, top)) {
		options = top;
		for (lua_pushnil(L); lua_next(L, options);) {
			lua_pushvalue(L, -2);
			lua_insert(L, -2);
			lua_settable(L, top + 1);
		}
	}
	for (int i = 1; i <= top - (options != 0); i++) {
		if (lua_type(L, i) != LUA_TTABLE && !ql_test_tensor(L, i))
			ql_error(L, "plot.%s: argument %d: wanted a list or a tensor, got %s", kind->doc.name, i,
				luaL_typename(L, i));
		lua_pushvalue(L, i);
		lua_rawseti(L, top + 1, i);
	}
	lua_replace(L, 1);
}

static int make(lua_State *L)
{
	const struct ql_plot_kind *kind = lua_touserdata(L, lua_upvalueindex(1));
	struct ql_figure **box;
	const char *file;
	enum ql_status status;

	collect(L, kind);
	lua_settop(L, 1);
	box = ql_figure_box(L);
	status = ql_figure_new(ql_ctx_of(L), kind, box);
	if (status)
		return ql_raise(L, status);
	ql_figure_read(L, 1, *box);
	lua_settop(L, 2);
	ql_pay_gc(L);
	file = ql_figure_string(*box, "file");
	status = file ? ql_figure_save(*box, file) : QL_OK;
	return status ? ql_raise(L, status) : 1;
}

/* ---- opening ---- */

static const struct ql_doc figure_docs[] = {
	{"save", "fig:save(file)",
		"Writes the figure as .png, .svg, .pdf or .txt, by the name's extension. The file appears "
		"whole or not at all. "
		"Returns the figure.",
		"plot.line{{1, 4, 9}}:save(os.tmpname() .. '.txt')", NULL},
	{"show", "fig:show()",
		"Shows the figure in the terminal: as a picture where the terminal takes kitty, iTerm2 or "
		"sixel graphics, else as "
		"text. The environment variable QUOLL_PLOT chooses: kitty, iterm, sixel, text or none.",
		"plot.line{{1, 4, 9}}:show()", NULL},
	{"png", "fig:png()", "The bytes of the picture as PNG.", "n = #plot.line{{1, 4, 9}}:svg()", NULL},
	{"svg", "fig:svg()", "The picture as SVG text.", "n = #plot.line{{1, 4, 9}}:svg()", NULL},
	{"pdf", "fig:pdf()", "The bytes of the picture as PDF.", "n = #plot.line{{1, 4, 9}}:svg()", NULL},
	{"text", "fig:text{width=, height=, colour=}", "The figure drawn with characters.",
		"print(plot.line{{1, 4, 9}}:text{width=40, height=8})", text_attrs},
	{"encode", "fig:encode(protocol)",
		"The bytes that show the picture in a terminal: 'kitty', 'iterm' or 'sixel'.",
		"n = #plot.line{{1, 4, 9}}:svg()", encode_attrs},
	{NULL, NULL, NULL, NULL, NULL},
};

static const struct ql_doc module_doc = {"plot",
	"plot.line{…}, plot.bar, plot.hist, plot.scatter, plot.heat, plot.box, plot.image",
	"Figures. plot.<kind>{data, options} returns one; the prompt shows it, fig:save(file) writes PNG, "
	"SVG, PDF or text, "
	"and file= does so at once. Data are lists of numbers or tensors, in the table's positions or as x= "
	"and y=; "
	"title xlabel ylabel xlog ylog xlim ylim vlines hlines names legend panels width height file are "
	"options of "
	"every kind. Pictures need plplot (quoll doctor says whether it is there), text needs nothing.",
	"fig = plot.line{{1, 2, 4, 8}, ylog=true, title='doubling'}", NULL};

static void register_docs(void)
{
	static struct ql_doc docs[QL_KINDS_MAX + 2];
	static struct ql_doc_list plots = {"plot", docs, NULL}, figures = {"figure", figure_docs, NULL};

	if (docs[0].name)
		return;
	docs[0] = module_doc;
	for (int i = 0; ql_plot_kinds[i] && i < QL_KINDS_MAX; i++)
		docs[i + 1] = ql_plot_kinds[i]->doc;
	ql_doc_register(&plots);
	ql_doc_register(&figures);
}

int ql_open_plot(lua_State *L)
{
	static const luaL_Reg methods[] = {{"save", figure_save}, {"show", figure_show}, {"png", figure_png},
		{"svg", figure_svg}, {"pdf", figure_pdf}, {"text", figure_text}, {"encode", figure_encode},
		{NULL, NULL}};
	static const luaL_Reg meta[] = {{"__gc", figure_gc}, {"__close", figure_gc}, {"__tostring", figure_tostring},
		{"__show", figure_bytes}, {NULL, NULL}};

	ql_metatable_new(L, QL_FIGURE);
	luaL_setfuncs(L, meta, 0);
	lua_newtable(L);
	ql_set_documented(L, methods, figure_docs);
	lua_setfield(L, -2, "__index");
	lua_newtable(L);
	for (int i = 0; ql_plot_kinds[i]; i++) {
		lua_pushlightuserdata(L, (void *)(uintptr_t)ql_plot_kinds[i]);
		lua_pushcclosure(L, make, 1);
		lua_setfield(L, -2, ql_plot_kinds[i]->doc.name);
	}
	lua_setglobal(L, "plot");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, plot_facts);
	lua_setfield(L, -2, "plot_facts");
	register_docs();
	lua_settop(L, 0);
	return 0;
}
