/* SPDX-License-Identifier: MIT
 * quoll doc: interp/doc/doc.lua gets the arguments and returns the exit code. internal.command_line() hands it
 * what the program itself takes.
 */
#include "interp/commands/commands.h"
#include "interp/host/box.h"
#include "interp/host/options.h"
#include "interp/prelude/prelude.h"

static void push_letters(lua_State *L)
{
	lua_newtable(L);
	for (int i = 0; ql_letters[i].letter; i++) {
		lua_createtable(L, 0, 3);
		ql_set_text(L, "name", ql_letters[i].letter);
		ql_set_text(L, "argument", ql_letters[i].argument);
		ql_set_text(L, "text", ql_letters[i].text);
		lua_seti(L, -2, i + 1);
	}
}

static void push_options(lua_State *L)
{
	static const char *const values[] = {"N", "", "X"};

	lua_newtable(L);
	for (int i = 0; i < QL_OPTION_COUNT; i++) {
		struct ql_option_text o;

		ql_options_text((enum ql_option)i, &o);
		lua_createtable(L, 0, 4);
		ql_set_text(L, "name", o.name);
		ql_set_text(L, "argument", values[o.kind]);
		ql_set_text(L, "text", o.text);
		ql_set_text(L, "variable", o.variable);
		lua_seti(L, -2, i + 1);
	}
}

static void push_commands(lua_State *L)
{
	lua_newtable(L);
	for (int i = 0; ql_commands[i]; i++) {
		lua_createtable(L, 0, 3);
		ql_set_text(L, "name", ql_commands[i]->name);
		ql_set_text(L, "arguments", ql_commands[i]->arguments);
		ql_set_text(L, "text", ql_commands[i]->text);
		lua_seti(L, -2, i + 1);
	}
}

/* command_line() -> {letters=, options=, commands=}: lists of tables of texts; and version= */
static int command_line(lua_State *L)
{
	lua_createtable(L, 0, 4);
	push_letters(L);
	lua_setfield(L, -2, "letters");
	push_options(L);
	lua_setfield(L, -2, "options");
	push_commands(L);
	lua_setfield(L, -2, "commands");
	ql_set_text(L, "version", QUOLL_VERSION);
	return 1;
}

static int run(struct ql_state *s, int argc, char **argv)
{
	lua_State *L = s->L;

	ql_prelude_require(L, "interp/doc/doc");
	lua_pushcfunction(L, command_line);
	lua_createtable(L, argc, 0);
	for (int i = 1; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_call(L, 2, 1);
	return (int)lua_tointeger(L, -1);
}

const struct ql_command ql_command_doc = {"doc",
	"[--html] [--md] [--man] [--luals] [--luacheck] [--bash] [--zsh] [--fish] [file]",
	"writes the manual, editor definitions or shell completions", run};
