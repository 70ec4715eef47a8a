/* SPDX-License-Identifier: MIT
 * What a child puts out belongs into the notebook that runs: its stdout and stderr are one pipe then, read until the
 * shell has ended and the pipe is empty. (A Jupyter kernel has pipes of its own, interp/jupyter/iopub.c.) A program that was
 * left in the background keeps the pipe's other end and is not waited for.
 *
 * The child is a process group of its own, so that an interrupt, which may be a message and not a key, reaches all of
 * it: SIGINT first, SIGKILL when it is still there QL_PATIENCE milliseconds later.
 */
#include "interp/host/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/prelude/libs.h"
#include "interp/host/output.h"
#include "interp/prelude/prelude.h"
#include "interp/host/state.h"

#define QL_PATIENCE 2000
#define QL_LOOK 20 /* milliseconds between two looks whether the shell has ended */

extern char **environ;

struct child {
	pid_t pid;
	int pipe; /* our end */
	int status;
	bool ended;
	int left; /* milliseconds until SIGKILL; 0: nobody interrupted */
};

/* end: of the pipe that is its stdout and stderr; -1: it has ours. Its signals are those of a fresh program. */
static int spawn(pid_t *pid, const char *command, int end)
{
	const char *const words[] = {"sh", "-c", command, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; end >= 0 && fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_adddup2(&files, end, fd);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	error = posix_spawn(pid, "/bin/sh", &files, &attributes, (char *const *)(uintptr_t)words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

static bool start_captured(struct child *c, const char *command)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	error = spawn(&c->pid, command, ends[1]);
	close(ends[1]);
	c->pipe = ends[0];
	if (error)
		close(ends[0]);
	else
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
	errno = error;
	return !error;
}

static bool start_apart(struct child *c, const char *command)
{
	c->pipe = -1;
	errno = spawn(&c->pid, command, -1);
	return !errno;
}

/* Everything that is in the pipe now; false: its other end is closed. */
static bool pass_on(int from)
{
	char text[4096];
	ssize_t n;

	while ((n = read(from, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	fflush(stdout);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void look(struct child *c, const struct ql_ctx *ctx)
{
	pid_t pid = waitpid(c->pid, &c->status, WNOHANG);

	c->ended = pid == c->pid || (pid < 0 && errno != EINTR);
	if (c->ended || !ctx->interrupted)
		return;
	if (!c->left) {
		kill(-c->pid, SIGINT);
		c->left = QL_PATIENCE;
	} else if (c->left > 0 && (c->left -= QL_LOOK) <= 0) {
		kill(-c->pid, SIGKILL);
		c->left = -1;
	}
}

/* Waits for a child in a process group of its own. */
static int wait_for(struct child *c, const struct ql_ctx *ctx)
{
	bool open = c->pipe >= 0;

	while (!c->ended) {
		struct pollfd wait = {.fd = open ? c->pipe : -1, .events = POLLIN};

		if (poll(&wait, 1, QL_LOOK) > 0)
			open = pass_on(c->pipe);
		look(c, ctx);
	}
	if (c->pipe < 0)
		return c->status;
	pass_on(c->pipe);
	close(c->pipe);
	return c->status;
}

int ql_shell(lua_State *L, const char *command)
{
	enum ql_children children = ql_output_children();
	struct child c = {.status = -1};
	int status;

	fflush(stdout);
	if (children == QL_CHILDREN_CAPTURED)
		return start_captured(&c, command) ? wait_for(&c, ql_ctx_of(L)) : -1;
	if (children == QL_CHILDREN_APART)
		return start_apart(&c, command) ? wait_for(&c, ql_ctx_of(L)) : -1;
	status = system(command);
	if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		raise(SIGINT); /* the child got the key while system() ignored it here: a loop could not be left */
	return status;
}

/* os.execute([command]) */
static int os_execute(lua_State *L)
{
	const char *command = luaL_optstring(L, 1, NULL);
	int status;

	errno = 0;
	if (!command) {
		lua_pushboolean(L, system(NULL));
		return 1;
	}
	status = ql_shell(L, command);
	return luaL_execresult(L, status);
}

/* internal.at_prompt() -> whether commands of the shell have the terminal, if there is one: no notebook, no kernel */
static int at_prompt(lua_State *L)
{
	lua_pushboolean(L, ql_output_children() == QL_CHILDREN_OURS);
	return 1;
}

int ql_open_shell(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, at_prompt);
	lua_setfield(L, -2, "at_prompt");
	lua_getglobal(L, "os");
	lua_pushcfunction(L, os_execute);
	lua_setfield(L, -2, "execute");
	return 0;
}
