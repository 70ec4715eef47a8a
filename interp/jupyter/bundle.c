/* SPDX-License-Identifier: MIT
 * The bundle is a table of texts by mime type; types of JSON are sent as JSON, all others as text.
 */
#include "interp/jupyter/bundle.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/prelude/prelude.h"
#include "interp/repl/cell.h"
#include "interp/trace/traceback.h"

/* application/json and application/vnd.….+json */
static bool is_json(const char *type)
{
	size_t n = strlen(type);

	return n >= 5 && (!strcmp(type + n - 5, "/json") || !strcmp(type + n - 5, "+json"));
}

static void write_form(const char *type, const char *text, size_t n, struct ql_wire *out)
{
	const char *why;
	cJSON *object = is_json(type) ? ql_wire_read(text, n, &why) : NULL;

	ql_wire_quote_0(out, type);
	ql_wire_put(out, ":");
	if (object)
		ql_wire_add(out, text, n);
	else
		ql_wire_quote(out, text, n);
	cJSON_Delete(object);
}

struct job {
	const char *text;
	size_t n;
	struct ql_wire *out;
};

/* (value, job) */
static int write_bundle(lua_State *L)
{
	const struct job *job = lua_touserdata(L, 2);

	ql_prelude_require(L, "interp/jupyter/requests");
	lua_getfield(L, -1, "bundle");
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	if (job->text) {
		lua_pushlstring(L, job->text, job->n);
		lua_setfield(L, -2, "text/plain");
	}
	ql_wire_put(job->out, "{");
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		size_t n;
		const char *text = lua_tolstring(L, -1, &n);

		if (job->out->at[job->out->n - 1] != '{')
			ql_wire_put(job->out, ",");
		if (lua_type(L, -2) == LUA_TSTRING && text)
			write_form(lua_tostring(L, -2), text, n, job->out);
	}
	ql_wire_put(job->out, "}");
	return 0;
}

void ql_bundle_write(lua_State *L, int index, const char *text, size_t n, struct ql_wire *out)
{
	struct ql_wire bundle = {0};
	struct job job = {text, n, &bundle};
	int top = lua_gettop(L);

	index = lua_absindex(L, index);
	if (lua_checkstack(L, LUA_MINSTACK)) {
		lua_pushcfunction(L, write_bundle);
		lua_pushvalue(L, index);
		lua_pushlightuserdata(L, &job);
		lua_pcall(L, 2, 0, 0);
		lua_settop(L, top);
	}
	if (bundle.n && !bundle.failed && bundle.at[bundle.n - 1] == '}') {
		ql_wire_add(out, bundle.at, bundle.n);
		ql_wire_free(&bundle);
		return;
	}
	ql_wire_free(&bundle);
	ql_wire_put(out, "{\"text/plain\":");
	ql_wire_quote(out, text ? text : "", text ? n : 0);
	ql_wire_put(out, "}");
}

struct expression {
	const char *text;
	struct ql_wire *out;
	bool good;
};

/* (expression) */
static int evaluate(lua_State *L)
{
	struct expression *e = lua_touserdata(L, 1);
	struct ql_cell cell;
	enum ql_cell_state state = ql_cell_compile(L, e->text, strlen(e->text), "=user_expression", true, &cell);

	if (state == QL_CELL_EMPTY)
		return luaL_error(L, "wanted an expression, got nothing");
	if (state != QL_CELL_READY)
		return lua_error(L);
	lua_call(L, 0, 1);
	ql_bundle_write(L, -1, NULL, 0, e->out);
	e->good = true;
	return 0;
}

bool ql_bundle_of(lua_State *L, const char *expression, struct ql_wire *out)
{
	struct expression e = {expression, out, false};
	size_t n;
	const char *message;

	lua_pushcfunction(L, evaluate);
	lua_pushlightuserdata(L, &e);
	if (ql_traceback_call(L, 1, 0) == LUA_OK)
		return e.good;
	message = lua_tolstring(L, -1, &n);
	out->n = 0;
	ql_wire_add(out, message ? message : "error", message ? n : 5);
	lua_pop(L, 1);
	return false;
}
