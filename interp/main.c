/* SPDX-License-Identifier: MIT
 * The command line. A first pass over the arguments checks them and takes the options into the environment;
 * the second, with the interpreter made, runs -e and -l in their order, then the script, command or prompt.
 *
 * Exit codes: 0; 1 after an error; 130 after Ctrl-C; 124 when the time of --time is over; what os.exit says. Messages go
 * to stderr as "quoll: ...".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/commands/commands.h"
#include "interp/host/interrupt.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/repl.h"
#include "interp/host/sandbox.h"
#include "interp/host/state.h"
#include "interp/host/temporary.h"
#include "interp/trace/traceback.h"
#include "tensor/cpu.h"
#include "tensor/nearest.h"

#define QL_INTERRUPTED 130

struct line {
	int argc;
	char **argv;
	int rest; /* index of the script or command; argc: there is none */
	bool prompt, version, help;
	int steps; /* -e and -l */
	struct ql_restore restore;
};

static int complain(const char *format, const char *a, const char *b)
{
	fputs("quoll: ", stderr);
	fprintf(stderr, format, a, b);
	fputs("\n", stderr);
	return 1;
}

/* ---- first pass ---- */

/* "-e code" or "-ecode": the index of the next argument, 0 when the value is missing. */
static int behind_value(const struct line *l, int i)
{
	if (l->argv[i][2])
		return i + 1;
	return i + 1 < l->argc ? i + 2 : 0;
}

static const char *value_of(const struct line *l, int i)
{
	return l->argv[i][2] ? l->argv[i] + 2 : l->argv[i + 1];
}

static int unknown_option(const char *given)
{
	char near[96], name[64];

	snprintf(name, sizeof(name), "%s", given + strspn(given, "-"));
	name[strcspn(name, "=")] = '\0';
	ql_nearest(name, ql_options_names(), near);
	return complain("%s: no such option%s (--help lists them)", given, near);
}

/* "--restore" or "--restore file" */
static int read_restore(struct line *l, int i)
{
	bool named = i + 1 < l->argc && l->argv[i + 1][0] != '-';

	l->prompt = l->restore.wanted = true;
	l->restore.path = named ? l->argv[i + 1] : NULL;
	return i + 1 + named;
}

/* One argument that begins with "-". Returns the index of the next, 0 after a message. */
static int read_option(struct line *l, int i)
{
	const char *a = l->argv[i];
	char error[QL_OPTIONS_ERROR];
	int used = 0;

	if (a[1] == 'e' || a[1] == 'l') {
		l->steps++;
		i = behind_value(l, i);
		if (!i)
			complain("%s: wanted a value, got none%s", a, "");
		return i;
	}
	l->prompt |= !strcmp(a, "-i");
	l->version |= !strcmp(a, "-v") || !strcmp(a, "--version");
	l->help |= !strcmp(a, "-h") || !strcmp(a, "--help");
	if (!strcmp(a, "--restore"))
		return read_restore(l, i);
	if (!strcmp(a, "-i") || l->version || l->help)
		return i + 1;
	if (a[1] == '-')
		used = ql_options_take(a, i + 1 < l->argc ? l->argv[i + 1] : NULL, error);
	if (used < 0)
		complain("%s%s", error, "");
	else if (used == 0)
		unknown_option(a);
	return used > 0 ? i + used : 0;
}

/* --kernel names a level of kernels, or the connection file of a Jupyter kernel: then it is the command. */
static bool is_command(const struct line *l, int i)
{
	return !strcmp(l->argv[i], "--kernel") && i + 1 < l->argc && ql_cpu_level(l->argv[i + 1]) < 0 &&
	       access(l->argv[i + 1], F_OK) == 0;
}

static bool read_line(struct line *l)
{
	int i = 1;

	while (i < l->argc && l->argv[i][0] == '-' && l->argv[i][1] != '\0') {
		if (!strcmp(l->argv[i], "--")) {
			i++;
			break;
		}
		if (is_command(l, i)) {
			l->argv[i] += 2;
			break;
		}
		i = read_option(l, i);
		if (i == 0)
			return false;
	}
	l->rest = i;
	return true;
}

static int print_help(void)
{
	printf("Quoll " QUOLL_VERSION ": quantization-aware tensors in Lua\n\n"
	       "usage: quoll [options]                        the prompt\n"
	       "       quoll [options] file.lua [argument...] runs a script; - is stdin\n"
	       "       quoll [options] command [argument...]\n\noptions:\n");
	for (const struct ql_letter *l = ql_letters; l->letter; l++) {
		char left[32];

		snprintf(left, sizeof(left), "%s %s", l->letter, l->argument);
		printf("  %-15s  %s\n", left, l->text);
	}
	ql_options_help(stdout);
	printf("\ncommands (a script of that name: ./name):\n");
	for (const struct ql_command *const *c = ql_commands; *c; c++) {
		char left[256];
		int width = snprintf(left, sizeof(left), "%s %s", (*c)->name, (*c)->arguments);

		printf("  %-24s%s  %s\n", left, width > 24 ? "\n                          " : "", (*c)->text);
	}
	printf("\nColours: only on a terminal, not with NO_COLOR.\n");
	return 0;
}

/* ---- second pass ---- */

static int failed(lua_State *L)
{
	const char *text = lua_tostring(L, -1);
	bool interrupted = ql_ctx_of(L)->interrupted;

	fflush(stdout);
	ql_traceback_print(stderr, "quoll: ", text ? text : "error");
	lua_pop(L, 1);
	return ql_interrupt_over() ? QL_TIME_OVER : interrupted ? QL_INTERRUPTED : 1;
}

/* Calls the function on top below its n arguments. */
static int run(lua_State *L, int n)
{
	return ql_traceback_call(L, n, 0) ? failed(L) : 0;
}

static int run_code(lua_State *L, const char *code)
{
	static const char chunk[] = "=(command line)";

	ql_traceback_source(L, chunk, code, strlen(code));
	return luaL_loadbufferx(L, code, strlen(code), chunk, "t") ? failed(L) : run(L, 0);
}

static int run_require(lua_State *L, const char *name)
{
	lua_getglobal(L, "require");
	lua_pushstring(L, name);
	if (ql_traceback_call(L, 1, 1))
		return failed(L);
	lua_setglobal(L, name);
	return 0;
}

static int run_steps(lua_State *L, const struct line *l)
{
	int code = 0;

	for (int i = 1; i < l->rest && !code; i++) {
		const char *a = l->argv[i];

		if (a[0] != '-' || (a[1] != 'e' && a[1] != 'l'))
			continue; /* an option, or its value */
		code = a[1] == 'e' ? run_code(L, value_of(l, i)) : run_require(L, value_of(l, i));
		i = behind_value(l, i) - 1;
	}
	return code;
}

/* arg[0] is the script, arguments follow from 1, what stood before it has negative indices. */
static void set_arg(lua_State *L, const struct line *l)
{
	int script = l->rest < l->argc ? l->rest : 0;

	lua_createtable(L, l->argc - script, script + 1);
	for (int i = 0; i < l->argc; i++) {
		lua_pushstring(L, l->argv[i]);
		lua_rawseti(L, -2, i - script);
	}
	lua_setglobal(L, "arg");
}

static int cannot_load(lua_State *L, const char *name)
{
	char near[96], names[512] = "";

	if (strstr(lua_tostring(L, -1), "attempt to load a binary chunk"))
		return complain("%s: precompiled Lua is only run with --bytecode%s", name, "");
	if (access(name, F_OK) == 0)
		return failed(L);
	for (const struct ql_command *const *c = ql_commands; *c; c++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ", (*c)->name);
	return complain("%s: no such file or command%s", name, ql_nearest(name, names, near));
}

/* Warns of globals that only functions of the chunk on top assign. */
static int warn_of_globals(lua_State *L)
{
	ql_prelude_require(L, "interp/input/strict");
	lua_getfield(L, -1, "script");
	lua_pushvalue(L, 1);
	lua_pushvalue(L, 2);
	lua_call(L, 2, 0);
	return 0;
}

/* `name` NULL: stdin */
static int run_script(lua_State *L, const char *name, int argc, char **argv)
{
	int code;

	ql_state_search(L, name);
	if (luaL_loadfilex(L, name, ql_chunk_mode(L)))
		return name ? cannot_load(L, name) : failed(L);
	luaL_checkstack(L, argc, "too many arguments");
	if (ql_state_of(L)->options.at[QL_OPTION_strict].i) {
		lua_pushcfunction(L, warn_of_globals);
		lua_pushvalue(L, -2);
		lua_pushstring(L, name ? name : "stdin");
		lua_call(L, 2, 0);
	}
	for (int i = 0; i < argc; i++)
		lua_pushstring(L, argv[i]);
	code = run(L, argc);
	return code ? code : ql_state_of(L)->exit_code;
}

/* Help and unknown options of all commands (interp/doc/subcommands.lua): false, with the exit code, when the command is not to run. */
static bool check_command(lua_State *L, int argc, char **argv, int *code)
{
	bool runs;

	ql_prelude_require(L, "interp/doc/subcommands");
	lua_getfield(L, -1, "check");
	lua_createtable(L, argc, 0);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_call(L, 1, 1);
	runs = lua_isnil(L, -1);
	*code = (int)lua_tointeger(L, -1);
	lua_pop(L, 2);
	return runs;
}

static int run_command(struct ql_state *s, const struct line *l, bool *found)
{
	int argc = l->argc - l->rest, code;
	char **argv = l->argv + l->rest;

	for (const struct ql_command *const *c = ql_commands; *c; c++)
		if (!strcmp(argv[0], (*c)->name)) {
			*found = true;
			return check_command(s->L, argc, argv, &code) ? (*c)->run(s, argc, argv) : code;
		}
	return 0;
}

static int run_rest(lua_State *L, const struct line *l)
{
	const char *name = l->argv[l->rest];
	bool found = false, plain = l->rest < 1 || strcmp(l->argv[l->rest - 1], "--");
	int code = plain ? run_command(ql_state_of(L), l, &found) : 0;

	if (found)
		return code;
	return run_script(L, strcmp(name, "-") ? name : NULL, l->argc - l->rest - 1, l->argv + l->rest + 1);
}

/* (line) -> exit code */
static int protected_main(lua_State *L)
{
	const struct line *l = lua_touserdata(L, 1);
	bool rest = l->rest < l->argc;
	int code;

	set_arg(L, l);
	if (!rest)
		ql_state_search(L, NULL);
	code = run_steps(L, l);
	if (!code && rest)
		code = run_rest(L, l);
	else if (!code && !l->steps && !l->prompt && !isatty(STDIN_FILENO))
		code = run_script(L, NULL, 0, NULL);
	if (l->prompt || (!rest && !l->steps && isatty(STDIN_FILENO))) {
		if (code != QL_INTERRUPTED && code != QL_TIME_OVER)
			code = ql_repl(ql_state_of(L), &l->restore);
	}
	lua_pushinteger(L, code);
	return 1;
}

static int run_line(struct ql_state *s, struct line *l)
{
	int64_t seconds = s->options.at[QL_OPTION_time].i;
	int code;

	ql_interrupt_install(s);
	if (seconds)
		ql_interrupt_after(seconds);
	ql_lifetime_harmless(s->L, protected_main);
	lua_pushcfunction(s->L, protected_main);
	lua_pushlightuserdata(s->L, l);
	if (ql_traceback_call(s->L, 1, 1))
		code = failed(s->L);
	else
		code = (int)lua_tointeger(s->L, -1);
	ql_interrupt_remove();
	ql_state_free(s);
	return code;
}

/* What was printed may be lost only now: a full disk. */
static int finish(int code)
{
	if ((fflush(stdout) || ferror(stdout)) && code == 0)
		return complain("cannot write the output%s%s", "", "");
	return code;
}

#define QL_SANDBOX_SHARE 2 /* the part of the machine's memory that each of the two limits is then */

/* Before anything is started: threads that are there would stay outside. */
static bool confine(const struct line *l, const struct ql_options *options, char *error)
{
	const char *folders = options->at[QL_OPTION_sandbox].s;
	char number[32];

	if (!folders && !getenv("QUOLL_SANDBOX"))
		return true;
	if (!folders) { /* a variable of a script that was not set must not open everything */
		snprintf(error, QL_SANDBOX_ERROR, "QUOLL_SANDBOX: wanted folders or none, got an empty text");
		return false;
	}
	if (options->at[QL_OPTION_bytecode].i) {
		snprintf(error, QL_SANDBOX_ERROR, "--sandbox: not with --bytecode");
		return false;
	}
	snprintf(number, sizeof(number), "%ld",
		(sysconf(_SC_PHYS_PAGES) / QL_SANDBOX_SHARE * (sysconf(_SC_PAGESIZE) >> 10)) >> 10);
	setenv("QUOLL_MEMORY", number, 0);
	setenv("QUOLL_JOURNAL", "none", 1);
	if (!ql_temporary_start()) {
		snprintf(error, QL_SANDBOX_ERROR, "--sandbox: %.400s: %s", ql_temporary_folder(), strerror(errno));
		return false;
	}
	return ql_sandbox_enter(folders, options->at[QL_OPTION_data].s, l->argv + l->rest, l->argc - l->rest, error);
}

int main(int argc, char **argv)
{
	struct line l = {.argc = argc, .argv = argv, .rest = argc};
	struct ql_options options;
	char error[QL_STATE_ERROR]; /* the largest of the three that write into it */
	struct ql_state *s;

	ql_interrupt_ignore(SIGXFSZ); /* a file beyond ulimit -f is an error of the write */
	if (argc < 1 || !read_line(&l))
		return 1;
	if (l.help)
		return finish(print_help());
	if (l.version) {
		printf("Quoll " QUOLL_VERSION " (" LUA_RELEASE ")\n");
		return finish(0);
	}
	if (!ql_options_read(&options, error) || !confine(&l, &options, error) || !ql_options_read(&options, error))
		return complain("%s%s", error, "");
	s = ql_state_new(&options, 0, error);
	if (!s)
		return complain("%s%s", error, "");
	return finish(run_line(s, &l)); /* the folder of temporary files goes with the process */
}
