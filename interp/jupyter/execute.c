/* SPDX-License-Identifier: MIT
 * A cell is an input of the session, so it means what it means at the prompt. What it puts out comes back
 * through a listener. `silent` cells send nothing and leave In, Out and _ as they were; the page of ?name
 * goes to the front end as a payload.
 */
#include "interp/jupyter/execute.h"

#include <lauxlib.h>
#include <string.h>

#include "interp/jupyter/iopub.h"
#include "interp/jupyter/bundle.h"
#include "interp/prelude/prelude.h"
#include "interp/trace/traceback.h"

static const char saved_exit[] = "quoll.exit"; /* registry: os.exit as it was */

/* ---- what a cell puts out ---- */

static bool is_text(const char *text, size_t n, const char *word)
{
	return memmem(text, n, word, strlen(word)) != NULL;
}

static const char *error_name(const struct ql_jupyter *k, const char *text, size_t n)
{
	if (k->state->ctx->interrupted)
		return "Interrupted";
	if (!is_text(text, n, "\nstack traceback:") && n > 3 && !memcmp(text, "In[", 3))
		return "SyntaxError";
	return is_text(text, n, "not enough memory") ? "MemoryError" : "Error";
}

/* "ename":…,"evalue":…,"traceback":[…]: the message in red, then the stack, a line each. */
static void write_error(const struct ql_jupyter *k, const char *text, size_t n, struct ql_wire *out)
{
	const char *stack = memmem(text, n, "\nstack traceback:", 17), *end = text + n;
	struct ql_wire red = {0};
	size_t message = stack ? (size_t)(stack - text) : n;

	ql_wire_put(out, "\"ename\":");
	ql_wire_quote_0(out, error_name(k, text, n));
	ql_wire_put(out, ",\"evalue\":");
	ql_wire_quote(out, text, message);
	ql_wire_put(&red, "\033[31m");
	ql_wire_add(&red, text, message);
	ql_wire_put(&red, "\033[0m");
	ql_wire_put(out, ",\"traceback\":[");
	ql_wire_quote(out, red.at ? red.at : "", red.n);
	for (const char *line = stack; line && line < end;) {
		const char *next = memchr(line + 1, '\n', (size_t)(end - line - 1));

		ql_wire_put(out, ",");
		ql_wire_quote(out, line + 1, (size_t)((next ? next : end) - line - 1));
		line = next;
	}
	ql_wire_put(out, "]");
	ql_wire_free(&red);
}

static void heard_error(struct ql_jupyter *k, const struct ql_output *event)
{
	struct ql_execution *x = k->execution;
	struct ql_wire content = {0};

	if (k->exiting)
		return;
	x->failed = true;
	x->error.n = 0;
	write_error(k, event->text, event->size, &x->error);
	if (x->silent)
		return;
	ql_wire_put(&content, "{");
	ql_wire_add(&content, x->error.at, x->error.n);
	ql_wire_put(&content, "}");
	ql_iopub_publish(k, "error", &content);
}

static void heard_value(struct ql_jupyter *k, const struct ql_output *event)
{
	bool result = event->kind == QL_OUTPUT_RESULT;
	struct ql_wire content = {0};

	if (k->execution && k->execution->silent)
		return;
	ql_wire_put(&content, "{");
	if (result) {
		ql_wire_print(&content, "\"execution_count\":%d,", k->session.n);
		ql_recall_result(&k->history, k->session.n, event->text, event->size);
	}
	ql_wire_put(&content, "\"data\":");
	ql_bundle_write(event->L, event->index, event->text, event->size, &content);
	ql_wire_put(&content, ",\"metadata\":{}");
	ql_wire_put(&content, result ? "}" : ",\"transient\":{}}");
	ql_iopub_publish(k, result ? "execute_result" : "display_data", &content);
}

void ql_execute_heard(void *kernel, const struct ql_output *event)
{
	struct ql_jupyter *k = kernel;
	bool silent = k->execution && k->execution->silent;

	switch (event->kind) {
	case QL_OUTPUT_STDOUT:
	case QL_OUTPUT_STDERR:
		if (k->capture)
			ql_wire_add(k->capture, event->text, event->size);
		else if (!silent)
			ql_iopub_write(k, event->kind == QL_OUTPUT_STDERR, event->text, event->size);
		break;
	case QL_OUTPUT_RESULT:
	case QL_OUTPUT_DISPLAY: heard_value(k, event); break;
	case QL_OUTPUT_ERROR:
		if (k->execution)
			heard_error(k, event);
		break;
	case QL_OUTPUT_NOTE:
		if (silent)
			break;
		ql_iopub_write(k, 0, event->text, event->size);
		ql_iopub_write(k, 0, "\n", 1);
		break;
	}
}

/* ---- one cell ---- */

struct cell {
	struct ql_jupyter *k;
	const cJSON *content;
	const char *code;
	bool silent, store;
	int count;
	struct ql_execution x;
	struct ql_wire page; /* of ?name */
};

/* Puts a global back as it was; the value is on top and is popped. */
static void set_raw(lua_State *L, const char *name)
{
	lua_pushglobaltable(L);
	lua_insert(L, -2);
	lua_pushstring(L, name);
	lua_insert(L, -2);
	lua_rawset(L, -3);
	lua_pop(L, 1);
}

static void get_raw(lua_State *L, const char *name)
{
	lua_pushglobaltable(L);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	lua_remove(L, -2);
}

/* (list, number): list[number] = nil, when it is a table */
static void forget(lua_State *L, const char *list, int n)
{
	get_raw(L, list);
	if (lua_istable(L, -1)) {
		lua_pushnil(L);
		lua_rawseti(L, -2, n);
	}
	lua_pop(L, 1);
}

/* (cell): runs it as an input of the session that leaves no trace there */
static int run_unseen(lua_State *L)
{
	struct cell *c = lua_touserdata(L, 1);
	struct ql_session *s = &c->k->session;

	get_raw(L, "_");
	ql_session_input(s, c->code, strlen(c->code), true);
	s->n = c->count;
	set_raw(L, "_");
	forget(L, "In", c->count);
	forget(L, "Out", c->count);
	return 0;
}

/* ?name, ??name or name? ask for a page. Returns the depth of detail, -1: it is no such cell. */
static int question(const char *code, const char **name, size_t *n)
{
	const char *end = code + strlen(code);
	int detail = -1;

	while (code < end && strchr(" \t\r\n", *code))
		code++;
	while (end > code && strchr(" \t\r\n;", end[-1]))
		end--;
	if (memchr(code, '\n', (size_t)(end - code)))
		return -1;
	for (; code < end && *code == '?'; code++)
		detail++;
	for (; detail < 0 && end > code && end[-1] == '?'; end--)
		detail = end - 1 > code && end[-2] == '?' ? 1 : 0;
	while (detail == 1 && end > code && end[-1] == '?')
		end--;
	*name = code;
	*n = (size_t)(end - code);
	return *n ? detail > 1 ? 1 : detail : -1;
}

static bool run_question(struct cell *c)
{
	const char *name;
	size_t n;
	int detail = question(c->code, &name, &n);

	if (detail < 0)
		return false;
	ql_inspect(c->k, name, n, n, detail, &c->page);
	if (c->store)
		c->k->session.n++;
	return true;
}

static void run_cell(struct cell *c)
{
	struct ql_jupyter *k = c->k;
	lua_State *L = k->state->L;

	k->execution = &c->x;
	if (run_question(c))
		goto done;
	if (c->store) {
		ql_session_input(&k->session, c->code, strlen(c->code), true);
		goto done;
	}
	lua_pushcfunction(L, run_unseen);
	lua_pushlightuserdata(L, c);
	if (lua_pcall(L, 1, 0, 0))
		lua_pop(L, 1);
	k->session.n = c->count;
done:
	fflush(stdout);
	fflush(stderr);
	k->execution = NULL;
}

/* ---- user_expressions ---- */

static void write_expression(struct ql_jupyter *k, const cJSON *item, struct ql_wire *out)
{
	lua_State *L = k->state->L;
	struct ql_wire text = {0};

	ql_wire_quote_0(out, item->string);
	ql_wire_put(out, ":");
	if (cJSON_IsString(item) && ql_bundle_of(L, item->valuestring, &text)) {
		ql_wire_put(out, "{\"status\":\"ok\",\"metadata\":{},\"data\":");
		ql_wire_add(out, text.at, text.n);
		ql_wire_put(out, "}");
	} else {
		ql_wire_put(out, "{\"status\":\"error\",");
		write_error(k, text.at ? text.at : "no text", text.at ? text.n : 7, out);
		ql_wire_put(out, "}");
	}
	ql_wire_free(&text);
}

static void write_expressions(struct cell *c, struct ql_wire *out)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(c->content, "user_expressions"), *item;
	const char *separator = "";

	ql_wire_put(out, ",\"user_expressions\":{");
	if (cJSON_IsObject(object) && !c->x.failed) {
		cJSON_ArrayForEach(item, object)
		{
			ql_wire_put(out, separator);
			write_expression(c->k, item, out);
			separator = ",";
		}
	}
	ql_wire_put(out, "}");
}

/* ---- the request ---- */

static void write_payload(const struct cell *c, struct ql_wire *out)
{
	ql_wire_put(out, ",\"payload\":[");
	if (c->page.n) {
		ql_wire_put(out, "{\"source\":\"page\",\"start\":0,\"data\":{\"text/plain\":");
		ql_wire_quote(out, c->page.at, c->page.n);
		ql_wire_put(out, "}}");
	} else if (c->k->session.leave) {
		ql_wire_put(out, "{\"source\":\"ask_exit\",\"keepkernel\":false}");
	}
	ql_wire_put(out, "]");
}

static void write_reply(struct cell *c, struct ql_wire *out)
{
	ql_wire_print(out, "{\"status\":\"%s\",\"execution_count\":%d", c->x.failed ? "error" : "ok", c->count);
	if (c->x.failed) {
		ql_wire_put(out, ",");
		ql_wire_add(out, c->x.error.at, c->x.error.n);
	}
	write_payload(c, out);
	write_expressions(c, out);
	ql_wire_put(out, "}");
}

static void announce(struct cell *c)
{
	struct ql_wire content = {0};

	if (c->silent)
		return;
	ql_wire_put(&content, "{\"code\":");
	ql_wire_quote_0(&content, c->code);
	ql_wire_print(&content, ",\"execution_count\":%d}", c->count);
	ql_iopub_publish(c->k, "execute_input", &content);
}

void ql_request_execute(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct cell c = {
		.k = k, .content = m->content, .code = ql_wire_member(m->content, "code"), .count = k->session.n};
	struct ql_wire reply = {0};

	if (!c.code) {
		ql_jupyter_error(&reply, "MessageError", "execute_request: code: wanted a text");
		ql_jupyter_reply(k, channel, m, "execute_reply", &reply);
		return;
	}
	c.silent = c.x.silent = ql_wire_flag(m->content, "silent", false);
	c.store = !c.silent && ql_wire_flag(m->content, "store_history", true);
	k->input_allowed = ql_wire_flag(m->content, "allow_stdin", true);
	k->typed.n = k->typed_taken = 0;
	announce(&c);
	if (c.store)
		ql_recall_add(&k->history, c.count, c.code);
	run_cell(&c);
	write_reply(&c, &reply);
	if (c.x.failed && ql_wire_flag(m->content, "stop_on_error", true))
		ql_jupyter_abort_queue(k, m, &reply);
	else
		ql_jupyter_reply(k, channel, m, "execute_reply", &reply);
	ql_wire_free(&c.x.error);
	ql_wire_free(&c.page);
}

/* ---- what only a kernel has: display(value, id, update), clear(wait), live(), os.exit ---- */

static struct ql_jupyter *kernel_of(lua_State *L)
{
	return lua_touserdata(L, lua_upvalueindex(1));
}

static int display(lua_State *L)
{
	struct ql_jupyter *k = kernel_of(L);
	const char *id = luaL_optstring(L, 2, NULL);
	bool update = lua_toboolean(L, 3);
	struct ql_wire content = {0};

	if (k->execution && k->execution->silent)
		return 0;
	ql_wire_put(&content, "{\"data\":");
	ql_bundle_write(L, 1, NULL, 0, &content);
	ql_wire_put(&content, ",\"metadata\":{},\"transient\":{");
	if (id) {
		ql_wire_put(&content, "\"display_id\":");
		ql_wire_quote_0(&content, id);
	}
	ql_wire_put(&content, "}}");
	ql_iopub_publish(k, update ? "update_display_data" : "display_data", &content);
	return 0;
}

static int clear_output(lua_State *L)
{
	struct ql_jupyter *k = kernel_of(L);
	struct ql_wire content = {0};

	ql_wire_print(&content, "{\"wait\":%s}", lua_toboolean(L, 1) ? "true" : "false");
	ql_iopub_publish(k, "clear_output", &content);
	return 0;
}

static int always(lua_State *L)
{
	lua_pushboolean(L, 1);
	return 1;
}

/* os.exit ends the kernel as it ends a script, but in order: the cell is left as by an interrupt, which
 * nothing catches, is answered, and the process ends with the code. */
static int leave(lua_State *L)
{
	struct ql_jupyter *k = kernel_of(L);

	k->code = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0);
	k->exiting = true;
	k->leave = true;
	k->state->ctx->interrupted = 1;
	return luaL_error(L, "exit");
}

void ql_execute_open(lua_State *L, struct ql_jupyter *k)
{
	static const luaL_Reg functions[] = {{"display", display}, {"clear", clear_output}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_createtable(L, 0, 2);
	lua_pushlightuserdata(L, k);
	luaL_setfuncs(L, functions, 1);
	lua_setfield(L, -2, "kernel");
	lua_pushcfunction(L, always); /* in place of that of interp/bind/system.c: front ends draw over a line, too */
	lua_setfield(L, -2, "live");
	lua_getglobal(L, "os");
	lua_getfield(L, -1, "exit");
	lua_setfield(L, LUA_REGISTRYINDEX, saved_exit);
	lua_pushlightuserdata(L, k);
	lua_pushcclosure(L, leave, 1);
	lua_setfield(L, -2, "exit");
	lua_pop(L, 2);
}

/* Finalizers that run when the state is closed must not meet a kernel that is gone. */
static int close_lua(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushnil(L);
	lua_setfield(L, -2, "kernel");
	ql_prelude_global(L, "os");
	if (lua_istable(L, -1) && lua_getfield(L, LUA_REGISTRYINDEX, saved_exit) != LUA_TNIL)
		lua_setfield(L, -2, "exit");
	return 0;
}

void ql_execute_close(lua_State *L)
{
	lua_pushcfunction(L, close_lua);
	if (lua_pcall(L, 0, 0, 0))
		lua_pop(L, 1);
}
