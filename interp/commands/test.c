/* SPDX-License-Identifier: MIT
 * quoll test: one file is run here by prelude/doctest.lua; of several, each gets a process of its own, so a crash
 * costs one file and no state leaks from one to the next.
 */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "interp/commands.h"
#include "interp/prelude/prelude.h"
#include "interp/traceback.h"

extern char **environ;

static int run_here(lua_State *L, const char *file)
{
	ql_state_search(L, file);
	lua_createtable(L, 0, 1);
	lua_pushstring(L, file);
	lua_rawseti(L, -2, 0);
	lua_setglobal(L, "arg");
	ql_prelude_require(L, "doctest");
	lua_pushstring(L, file);
	if (ql_traceback_call(L, 1, 1)) {
		ql_traceback_print(stderr, "quoll: ", lua_tostring(L, -1));
		return 1;
	}
	return !lua_toboolean(L, -1);
}

static bool run_elsewhere(char *file)
{
	char program[] = "/proc/self/exe", command[] = "test";
	char *arguments[] = {program, command, file, NULL};
	pid_t pid;
	int status;

	if (posix_spawn(&pid, program, NULL, NULL, arguments, environ)) {
		fprintf(stderr, "quoll: test: cannot start a process for %s\n", file);
		return false;
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFSIGNALED(status))
		printf("FAIL %s: ended by signal %d (%s)\n", file, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int ql_command_test(struct ql_state *s, int argc, char **argv)
{
	int failed = 0;

	if (argc < 2)
		return luaL_error(s->L, "test: wanted one or more files, got none");
	if (argc == 2)
		return run_here(s->L, argv[1]);
	for (int i = 1; i < argc && !s->ctx->interrupted; i++)
		failed += !run_elsewhere(argv[i]);
	printf("%d of %d files passed\n", argc - 1 - failed, argc - 1);
	return failed > 0;
}
