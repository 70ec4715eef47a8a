/* SPDX-License-Identifier: MIT
 * Questions of the editor to Lua, and what interp/repl/complete.lua needs of C:
 *	internal.nested_tokens(text) -> list of {kind, begin, end, open}: 1-based, inclusive, blanks left out
 *	internal.magics() -> list of {name, arguments, text}
 *	internal.entries(path, prefix) -> list of {name, is_folder}, or nil: of names that begin so
 *	internal.input_function(text) -> the function that the prompt would call for the input; nil: it does not compile
 *	internal.pieces(text) -> list of {from=, to= (bytes), line=, magic= whether it is no Lua, code= where
 *its code begins} internal.keys() -> list of {keys, command, text} of keys.def
 */
#include "interp/repl/ask.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/input/lexer.h"
#include "interp/repl/magic.h"
#include "interp/repl/pieces.h"

/* ---- the state of an input ---- */

struct question {
	const char *text;
	size_t size, at;
	enum ql_cell_state state;
	struct ql_matches *matches;
	struct ql_cell cell;
};

static int ask_state(lua_State *L)
{
	struct question *q = lua_touserdata(L, 1);
	struct ql_pieces pieces = {.L = L, .text = q->text, .size = q->size};

	q->state = ql_pieces_state(pieces, "=input", &q->cell);
	return 0;
}

enum ql_cell_state ql_ask_state(lua_State *L, const char *text, size_t size)
{
	struct question q = {.text = text, .size = size, .state = QL_CELL_READY};

	lua_pushcfunction(L, ask_state);
	lua_pushlightuserdata(L, &q);
	if (lua_pcall(L, 1, 0, 0)) { /* no memory: running it will say so */
		lua_pop(L, 1);
		return QL_CELL_READY;
	}
	return q.state;
}

/* ---- completion ---- */

static const char *field(lua_State *L, const char *name)
{
	const char *text = lua_getfield(L, -1, name) == LUA_TSTRING ? lua_tostring(L, -1) : "";

	lua_pop(L, 1); /* the table keeps it */
	return text;
}

static int ask_complete(lua_State *L)
{
	struct question *q = lua_touserdata(L, 1);
	lua_Integer n;

	ql_prelude_require(L, "interp/repl/complete");
	lua_pushlstring(L, q->text, q->size);
	lua_pushinteger(L, (lua_Integer)q->at);
	lua_call(L, 2, 1);
	lua_getfield(L, -1, "from");
	q->matches->from = (size_t)lua_tointeger(L, -1);
	lua_getfield(L, -2, "to");
	q->matches->to = (size_t)lua_tointeger(L, -1);
	lua_getfield(L, -3, "matches");
	n = luaL_len(L, -1);
	for (lua_Integer i = 1; i <= n; i++) {
		lua_geti(L, -1, i);
		if (!ql_matches_add(q->matches, field(L, "text"), field(L, "kind"), field(L, "doc")))
			break;
		lua_pop(L, 1);
	}
	return 0;
}

bool ql_ask_complete(lua_State *L, const char *text, size_t size, size_t at, struct ql_matches *m)
{
	struct question q = {.text = text, .size = size, .at = at, .matches = m};

	lua_pushcfunction(L, ask_complete);
	lua_pushlightuserdata(L, &q);
	if (lua_pcall(L, 1, 0, 0)) { /* shown where the candidates would be: nothing is hidden */
		ql_matches_clear(m);
		m->from = m->to = at;
		ql_matches_add(m, "", "completion failed", lua_isstring(L, -1) ? lua_tostring(L, -1) : "error");
		ql_matches_add(m, "", "completion failed", "");
		lua_pop(L, 1);
	}
	return m->n > 0;
}

/* ---- for the prelude ---- */

static int internal_tokens(lua_State *L)
{
	static const char *const kinds[] = {"end", "name", "keyword", "number", "string", "comment", "op", "bad"};
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);
	struct ql_lexer l = ql_lexer_begin(text, size);
	struct ql_token t;

	lua_newtable(L);
	for (lua_Integer i = 1; (t = ql_lexer_next(&l)).kind != QL_TOKEN_END; i++) {
		lua_createtable(L, 4, 0);
		lua_pushstring(L, kinds[t.kind]);
		lua_seti(L, -2, 1);
		lua_pushinteger(L, (lua_Integer)t.begin + 1);
		lua_seti(L, -2, 2);
		lua_pushinteger(L, (lua_Integer)t.end);
		lua_seti(L, -2, 3);
		lua_pushboolean(L, t.open);
		lua_seti(L, -2, 4);
		lua_seti(L, -2, i);
	}
	return 1;
}

/* A list of triples; `row` is one of them. */
static void add_row(lua_State *L, const char *const row[3])
{
	lua_createtable(L, 3, 0);
	for (int i = 0; i < 3; i++) {
		lua_pushstring(L, row[i]);
		lua_seti(L, -2, i + 1);
	}
	lua_seti(L, -2, luaL_len(L, -2) + 1);
}

static int internal_magics(lua_State *L)
{
	static const char *const names[] = {
#define X(name, ...) "%" #name,
#include "interp/repl/magics.def"
#undef X
	};

	lua_newtable(L);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t from;
		const struct ql_magic *m = ql_magic_find(names[i], strlen(names[i]), &from);

		add_row(L, (const char *const[]){m->name, m->arguments, m->text});
	}
	return 1;
}

static void set_place(lua_State *L, const char *name, size_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

static int internal_pieces(lua_State *L)
{
	struct ql_pieces pieces = {.L = L};
	struct ql_piece piece;

	pieces.text = luaL_checklstring(L, 1, &pieces.size);
	lua_newtable(L);
	for (lua_Integer i = 1; ql_pieces_next(&pieces, &piece); i++) {
		lua_createtable(L, 0, 5);
		set_place(L, "from", piece.begin + 1);
		set_place(L, "to", piece.end);
		set_place(L, "line", piece.lines + 1);
		lua_pushboolean(L, piece.magic != NULL);
		lua_setfield(L, -2, "magic");
		if (piece.magic && ql_magic_takes_code(piece.magic))
			set_place(L, "code", piece.code + 1);
		lua_seti(L, -2, i);
	}
	return 1;
}

/* Compiled as it is: variables of earlier inputs are globals in it. */
static int internal_input_function(lua_State *L)
{
	struct ql_cell cell;
	size_t size;
	const char *text = luaL_checklstring(L, 1, &size);

	return ql_cell_compile(L, text, size, "=input", false, &cell) == QL_CELL_READY;
}

static int internal_keys(lua_State *L)
{
	static const char *const rows[][3] = {
#define X(key, command, text) {key, #command, text},
#include "interp/repl/keys.def"
#undef X
	};

	lua_newtable(L);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(L, rows[i]);
	return 1;
}

static bool is_folder(DIR *folder, const struct dirent *entry)
{
	struct stat info;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return !fstatat(dirfd(folder), entry->d_name, &info, 0) && S_ISDIR(info.st_mode);
}

#define FOLDER "quoll.folder_"
#define MOST_ENTRIES 1000000

static int folder_gc(lua_State *L)
{
	DIR **box = lua_touserdata(L, 1);

	if (*box)
		closedir(*box);
	*box = NULL;
	return 0;
}

static DIR **new_folder(lua_State *L)
{
	DIR **box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = NULL;
	if (ql_metatable_new(L, FOLDER)) {
		lua_pushcfunction(L, folder_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	return box;
}

static int internal_folder(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1), *prefix = luaL_optstring(L, 2, "");
	DIR **box = new_folder(L);
	struct dirent *entry;

	*box = opendir(path);
	if (!*box)
		return 0;
	lua_newtable(L);
	for (lua_Integer i = 1; i < MOST_ENTRIES && (entry = readdir(*box));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		lua_createtable(L, 2, 0);
		lua_pushstring(L, entry->d_name);
		lua_seti(L, -2, 1);
		lua_pushboolean(L, is_folder(*box, entry));
		lua_seti(L, -2, 2);
		lua_seti(L, -2, i++);
	}
	closedir(*box);
	*box = NULL;
	return 1;
}

int ql_open_ask(lua_State *L)
{
	static const luaL_Reg functions[] = {{"nested_tokens", internal_tokens}, {"magics", internal_magics},
		{"keys", internal_keys}, {"pieces", internal_pieces}, {"input_function", internal_input_function},
		{"entries", internal_folder}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
