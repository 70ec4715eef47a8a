/* SPDX-License-Identifier: MIT
 * os.tmpname that honours TMPDIR, and the folder of a run of tests.
 *
 * The folder is removed by a process of its own, which waits for the end of a pipe whose other end only this process
 * holds. So it goes away after an error, a second Ctrl-C, a crash and a kill -9 alike. The remover is in a session of its
 * own: a Ctrl-C of the terminal or a kill of the whole group does not reach it.
 */
#include "interp/host/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/host/box.h"
#include "interp/prelude/libs.h"

static struct {
	char path[4096];
	char *before;  /* TMPDIR, NULL: it was not set */
	int alive;     /* our end of the pipe */
	pid_t remover; /* 0: there is no folder */
	int users;     /* starts without an end yet */
} folder;

const char *ql_temporary_folder(void)
{
	const char *name = getenv("TMPDIR");

	return name && *name ? name : "/tmp";
}

/* Only what is safe after a fork of a process with threads. */
static _Noreturn void remove_later(int end)
{
	int nothing = open("/dev/null", O_RDWR);
	char byte;

	setsid();
	for (int i = 0; i < 3 && nothing >= 0; i++)
		dup2(nothing, i); /* nobody who reads our output waits for this process */
	while (read(end, &byte, 1) < 0 && errno == EINTR)
		;
	execlp("rm", "rm", "-rf", "--", folder.path, (char *)NULL);
	_exit(127);
}

/* Ctrl-C is the parent's from the start. */
static bool start_remover(void)
{
	int ends[2];
	sigset_t interrupt, mask;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &mask);
	folder.remover = fork();
	if (folder.remover == 0) {
		signal(SIGINT, SIG_IGN);
		close(ends[1]);
		remove_later(ends[0]);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(ends[0]);
	folder.alive = ends[1];
	if (folder.remover > 0)
		return true;
	folder.remover = 0;
	close(ends[1]);
	return false;
}

bool ql_temporary_start(void)
{
	const char *before = getenv("TMPDIR");
	int n;

	if (folder.remover) {
		folder.users++;
		return true;
	}
	n = snprintf(folder.path, sizeof(folder.path), "%s/quoll-test-XXXXXX", ql_temporary_folder());
	if (n < 0 || (size_t)n >= sizeof(folder.path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	folder.before = before ? strdup(before) : NULL;
	if (!mkdtemp(folder.path))
		return false;
	if (!start_remover()) {
		rmdir(folder.path);
		return false;
	}
	setenv("TMPDIR", folder.path, 1);
	folder.users = 1;
	return true;
}

void ql_temporary_end(void)
{
	if (!folder.remover || --folder.users > 0)
		return;
	close(folder.alive);
	while (waitpid(folder.remover, NULL, 0) < 0 && errno == EINTR)
		;
	folder.remover = 0;
	if (folder.before)
		setenv("TMPDIR", folder.before, 1);
	else
		unsetenv("TMPDIR");
	free(folder.before);
	folder.before = NULL;
}

/* ---- os.tmpname ---- */

static int tmpname(lua_State *L)
{
	const char *where = ql_temporary_folder();
	size_t size = strlen(where) + sizeof("/lua_XXXXXX");
	char *name = lua_newuserdatauv(L, size, 0);
	int file;

	snprintf(name, size, "%s/lua_XXXXXX", where);
	file = mkstemp(name);
	if (file < 0)
		return ql_error(L, "tmpname: wanted a folder that can be written (TMPDIR, else /tmp), got %s: %s",
			where, strerror(errno));
	close(file);
	lua_pushstring(L, name);
	return 1;
}

static int close_file(lua_State *L)
{
	luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);

	return luaL_fileresult(L, fclose(stream->f) == 0, NULL);
}

/* io.tmpfile(): as Lua's, in our folder */
static int tmpfile_there(lua_State *L)
{
	const char *where = ql_temporary_folder();
	size_t size = strlen(where) + sizeof("/lua_XXXXXX");
	char *name = lua_newuserdatauv(L, size, 0);
	luaL_Stream *stream = lua_newuserdatauv(L, sizeof(*stream), 0);
	int file;

	stream->closef = NULL; /* closed, until there is a file */
	luaL_setmetatable(L, LUA_FILEHANDLE);
	snprintf(name, size, "%s/lua_XXXXXX", where);
	file = mkstemp(name);
	if (file < 0)
		return luaL_fileresult(L, 0, where);
	unlink(name);
	stream->f = fdopen(file, "w+");
	if (!stream->f) {
		close(file);
		return luaL_fileresult(L, 0, where);
	}
	stream->closef = close_file;
	return 1;
}

int ql_open_temporary(lua_State *L)
{
	static const struct ql_doc docs[] = {
		{"tmpname", "os.tmpname()",
			"Makes an empty file and returns its name, in the folder that the environment's TMPDIR names, else in /tmp. In a "
			"run of `quoll test` that is a folder of the run's own, which is removed at the end.",
			"name = os.tmpname()\nprint(io.open(name):read 'a' == '')  --> true", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static struct ql_doc_list list = {.module = "os", .docs = docs};

	ql_doc_register(&list);
	lua_getglobal(L, "os");
	lua_pushcfunction(L, tmpname);
	lua_setfield(L, -2, "tmpname");
	lua_getglobal(L, "io");
	lua_pushcfunction(L, tmpfile_there);
	lua_setfield(L, -2, "tmpfile");
	lua_pop(L, 2);
	return 0;
}
