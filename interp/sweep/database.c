/* SPDX-License-Identifier: MIT
 * Results files for the prelude: internal.sqlite_open(file, mode) gives an object with run, rows and close.
 *
 * Values only ever come in as bound parameters. A float that is NaN is stored as NULL (SQLite has no NaN);
 * the prelude keeps the kind of a value beside it. Waiting for another process's lock ends after a minute, or
 * with Ctrl-C.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/sweep/sqlite.h"

#define DATABASE "quoll.sweep_db"
#define STATEMENT "quoll.sweep_statement"
#define WAIT_MS 60000
#define PAUSE_MS 10

struct database {
	struct sqlite3 *handle;
	struct ql_ctx *ctx;
	char *file; /* from ql_alloc, for messages */
};

static const struct ql_sqlite *sql;

static int on_busy(void *user, int tries)
{
	const struct database *d = user;
	struct timespec pause = {0, PAUSE_MS * 1000000L};

	if (d->ctx->interrupted || tries > WAIT_MS / PAUSE_MS)
		return 0;
	nanosleep(&pause, NULL);
	return 1;
}

static struct database *check_database(lua_State *L)
{
	struct database *d = luaL_checkudata(L, 1, DATABASE);

	if (!d->handle)
		luaL_error(L, "sweep: the results file is closed");
	return d;
}

/* What the system says, where that says more than SQLite's "disk I/O error" and "unable to open"; else NULL. */
static const char *cause_of(const struct database *d)
{
	int cause = sql->sqlite3_system_errno(d->handle);

	if (cause != ENOSPC && cause != EDQUOT && cause != EFBIG && access(d->file, W_OK))
		cause = errno;
	return cause == ENOSPC || cause == EDQUOT || cause == EFBIG || cause == EROFS || cause == EACCES
		       ? strerror(cause)
		       : NULL;
}

/* Without the position, which would be one of the prelude. Never returns. */
static int fail(lua_State *L, const struct database *d)
{
	const char *why = cause_of(d);

	lua_pushfstring(L, "sweep: %s: %s%s%s%s", d->file, sql->sqlite3_errmsg(d->handle), why ? " (" : "",
		why ? why : "", why ? ")" : "");
	return lua_error(L);
}

/* ---- statements ---- */

/* Lives in a box, so that an error on the way leaves none open. */
static struct sqlite3_stmt **new_statement(lua_State *L)
{
	struct sqlite3_stmt **box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = NULL;
	luaL_setmetatable(L, STATEMENT);
	return box;
}

static int statement_gc(lua_State *L)
{
	struct sqlite3_stmt **box = luaL_checkudata(L, 1, STATEMENT);

	if (*box)
		sql->sqlite3_finalize(*box);
	*box = NULL;
	return 0;
}

/* The bytes are copied: SQLITE_TRANSIENT of sqlite3.h. */
static int bind_text(struct sqlite3_stmt *s, int at, const char *text, size_t n)
{
	intptr_t copied = -1;

	return sql->sqlite3_bind_text(s, at, text, (int)n, (void (*)(void *))copied);
}

static int bind(lua_State *L, struct sqlite3_stmt *s, int at, int index)
{
	size_t n;
	const char *text;

	switch (lua_type(L, index)) {
	case LUA_TNIL:
	case LUA_TNONE: return sql->sqlite3_bind_null(s, at);
	case LUA_TBOOLEAN: return sql->sqlite3_bind_int64(s, at, lua_toboolean(L, index));
	case LUA_TNUMBER:
		if (lua_isinteger(L, index))
			return sql->sqlite3_bind_int64(s, at, lua_tointeger(L, index));
		return sql->sqlite3_bind_double(s, at, lua_tonumber(L, index));
	case LUA_TSTRING:
		text = lua_tolstring(L, index, &n);
		if (n > INT_MAX)
			luaL_error(L, "sweep: a text of %I bytes is too long for the results file", (lua_Integer)n);
		return bind_text(s, at, text, n);
	default: return luaL_error(L, "sweep: cannot store a %s", luaL_typename(L, index));
	}
}

/* (database, text, values …): the statement with its values, in a box on top */
static struct sqlite3_stmt *prepare(lua_State *L, const struct database *d)
{
	const char *text = luaL_checkstring(L, 2);
	int given = lua_gettop(L) - 2;
	struct sqlite3_stmt **box = new_statement(L);

	if (sql->sqlite3_prepare_v2(d->handle, text, -1, box, NULL) != QL_SQLITE_OK)
		fail(L, d);
	if (sql->sqlite3_bind_parameter_count(*box) != given)
		luaL_error(L, "sweep: %d values for: %s", given, text);
	for (int i = 1; i <= given; i++)
		if (bind(L, *box, i, 2 + i) != QL_SQLITE_OK)
			fail(L, d);
	return *box;
}

static void push_column(lua_State *L, struct sqlite3_stmt *s, int column)
{
	const void *bytes;

	switch (sql->sqlite3_column_type(s, column)) {
	case QL_SQLITE_INTEGER: lua_pushinteger(L, sql->sqlite3_column_int64(s, column)); break;
	case QL_SQLITE_FLOAT: lua_pushnumber(L, sql->sqlite3_column_double(s, column)); break;
	case QL_SQLITE_TEXT:
	case QL_SQLITE_BLOB:
		bytes = sql->sqlite3_column_blob(s, column);
		lua_pushlstring(L, bytes ? bytes : "", (size_t)sql->sqlite3_column_bytes(s, column));
		break;
	default: lua_pushnil(L);
	}
}

static void push_row(lua_State *L, struct sqlite3_stmt *s)
{
	int n = sql->sqlite3_column_count(s);

	lua_createtable(L, 0, n);
	for (int i = 0; i < n; i++) {
		push_column(L, s, i);
		lua_setfield(L, -2, sql->sqlite3_column_name(s, i));
	}
}

static void close_statement(lua_State *L, struct sqlite3_stmt *s, int box)
{
	*(struct sqlite3_stmt **)lua_touserdata(L, box) = NULL;
	sql->sqlite3_finalize(s);
}

/* db:rows(statement, values …) -> a list of tables by column; a statement without result gives an empty one */
static int database_rows(lua_State *L)
{
	struct database *d = check_database(L);
	struct sqlite3_stmt *s = prepare(L, d);
	int box = lua_gettop(L), code;

	lua_newtable(L);
	while ((code = sql->sqlite3_step(s)) == QL_SQLITE_ROW) {
		push_row(L, s);
		lua_seti(L, -2, luaL_len(L, -2) + 1);
	}
	if (code != QL_SQLITE_DONE)
		return fail(L, d);
	close_statement(L, s, box);
	return 1;
}

/* db:run(statement, values …) -> the number of rows that it changed */
static int database_run(lua_State *L)
{
	struct database *d = check_database(L);
	struct sqlite3_stmt *s = prepare(L, d);
	int box = lua_gettop(L), code;

	do
		code = sql->sqlite3_step(s);
	while (code == QL_SQLITE_ROW);
	if (code != QL_SQLITE_DONE)
		return fail(L, d);
	close_statement(L, s, box);
	lua_pushinteger(L, sql->sqlite3_changes(d->handle));
	return 1;
}

/* ---- opening and closing ---- */

/* db:close(); also __gc and __close */
static int database_close(lua_State *L)
{
	struct database *d = luaL_checkudata(L, 1, DATABASE);

	if (d->handle)
		sql->sqlite3_close_v2(d->handle);
	d->handle = NULL;
	ql_free(d->ctx, d->file);
	d->file = NULL;
	return 0;
}

static void keep_name(lua_State *L, struct database *d, const char *file)
{
	size_t n = strlen(file) + 1;

	d->file = ql_alloc(d->ctx, n);
	if (!d->file)
		ql_raise(L, QL_ERR_MEMORY);
	memcpy(d->file, file, n);
}

/* internal.sqlite_open(file, 'create' | 'write' | 'frozen'); frozen: `file` is a URI with immutable=1 */
static int sqlite_open(lua_State *L)
{
	static const char *const modes[] = {"create", "write", "frozen", NULL};
	static const int flags[] = {
		QL_SQLITE_READWRITE | QL_SQLITE_CREATE, QL_SQLITE_READWRITE, QL_SQLITE_READONLY | QL_SQLITE_URI};
	const char *file = luaL_checkstring(L, 1);
	int mode = luaL_checkoption(L, 2, NULL, modes), code;
	struct database *d;
	char text[160];

	sql = ql_sqlite();
	if (!sql) {
		ql_sqlite_describe(text, sizeof(text));
		return ql_error(L, "sweep: %s", text);
	}
	d = lua_newuserdatauv(L, sizeof(*d), 0);
	memset(d, 0, sizeof(*d));
	d->ctx = ql_ctx_of(L);
	luaL_setmetatable(L, DATABASE);
	keep_name(L, d, file);
	code = sql->sqlite3_open_v2(file, &d->handle, flags[mode], NULL);
	if (code != QL_SQLITE_OK && d->handle)
		return fail(L, d);
	if (code != QL_SQLITE_OK)
		return luaL_error(L, "sweep: %s: %s", file, sql->sqlite3_errstr(code));
	sql->sqlite3_busy_handler(d->handle, on_busy, d);
	return 1;
}

/* internal.sqlite_facts() -> whether it can be used, and a line about it (quoll doctor) */
static int sqlite_facts(lua_State *L)
{
	char text[160];

	lua_pushboolean(L, ql_sqlite_describe(text, sizeof(text)));
	lua_pushstring(L, text);
	return 2;
}

int ql_open_sweep_db(lua_State *L)
{
	static const luaL_Reg methods[] = {
		{"rows", database_rows}, {"run", database_run}, {"close", database_close}, {NULL, NULL}};
	static const luaL_Reg functions[] = {
		{"sqlite_open", sqlite_open}, {"sqlite_facts", sqlite_facts}, {NULL, NULL}};

	ql_metatable_new(L, STATEMENT);
	lua_pushcfunction(L, statement_gc);
	lua_setfield(L, -2, "__gc");
	ql_metatable_new(L, DATABASE);
	lua_pushcfunction(L, database_close);
	lua_setfield(L, -2, "__gc");
	lua_pushcfunction(L, database_close);
	lua_setfield(L, -2, "__close");
	lua_newtable(L);
	ql_set_functions(L, methods);
	lua_setfield(L, -2, "__index");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_settop(L, 0);
	return 0;
}
