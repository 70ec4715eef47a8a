/* SPDX-License-Identifier: MIT
 * The folder in which the prompt works, its files, and texts for a shell.
 */
#include <stdio.h>
#include <string.h>

#include "interp/repl/magic.h"

static bool run_sh(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	bool good;

	(void)cell;
	if (strspn(rest, " \t\r\n") >= size)
		return ql_magic_refuse(s, "usage: %%%%sh, and commands in the lines below it");
	lua_pushlstring(s->state->L, rest, size);
	good = ql_magic_shell(s, lua_tostring(s->state->L, -1));
	lua_pop(s->state->L, 1);
	return good;
}

/* The text as one word of the shell. */
static void push_quoted(lua_State *L, const char *text, size_t size)
{
	lua_pushlstring(L, text, size);
	luaL_gsub(L, lua_tostring(L, -1), "'", "'\\''");
	lua_remove(L, -2);
}

static bool run_bash(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	lua_State *L = s->state->L;
	bool good;

	(void)cell;
	if (strspn(rest, " \t\r\n") >= size)
		return ql_magic_refuse(s, "usage: %%%%bash, and commands in the lines below it");
	push_quoted(L, rest, size);
	good = ql_magic_shell(s, lua_pushfstring(L, "bash -c '%s'", lua_tostring(L, -1)));
	lua_pop(L, 2);
	return good;
}

const struct ql_magic ql_magic_cd = {"cd", "[folder | -]", "goes to a folder (the home folder), - to the one before",
	QL_TAKES_WORDS, NULL, "interp/repl/magic_folders", "cd"};
const struct ql_magic ql_magic_pwd = {"pwd", "", "the folder in which files are looked for", QL_TAKES_NOTHING, NULL,
	"interp/repl/magic_folders", "pwd"};
const struct ql_magic ql_magic_ls = {"ls", "[folder | *.lua]", "the files there, folders with a /", QL_TAKES_WORDS,
	NULL, "interp/repl/magic_folders", "ls"};
const struct ql_magic ql_magic_sh = {
	"sh", "command", "as !command; %%sh: all lines below it as one text for sh", QL_TAKES_TEXT, run_sh, NULL, NULL};
const struct ql_magic ql_magic_bash = {
	"bash", "command", "the same with bash, which must be installed", QL_TAKES_TEXT, run_bash, NULL, NULL};
