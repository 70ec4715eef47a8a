/* SPDX-License-Identifier: MIT
 * Child processes of a sweep, for the prelude: internal.process_start{…} gives an object.
 *
 * The child is made by fork and exec at once; everything that allocates happens before the fork, because
 * other threads may hold locks then. It leads a process group of its own: Ctrl-C on the terminal reaches
 * the sweep only, which then decides, and all that a trial started is ended together. It is killed by the
 * system when the sweep dies, whatever way (PR_SET_PDEATHSIG). stdout and stderr come back by one pipe, and
 * what the trial reports about itself by another (descriptor 3). A third one ends with exec, or tells its
 * error.
 *
 * Limits: `data` bytes of writable private memory (RLIMIT_DATA) and `cpu` seconds (RLIMIT_CPU) are the
 * system's; resident memory and wall time are watched by the caller through p:resident and the clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/bind/call.h"
#include "interp/host/interrupt.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/host/state.h"

#define PROCESS "quoll.sweep_process"
#define STATUS_FD 3
#define ERROR_FD 4 /* until exec */
#define CANNOT_EXEC 127
#define SOON_MS 2

struct process {
	pid_t pid;  /* 0: ended and waited for */
	int fd[2];  /* output, status; -1: closed */
	int status; /* of wait */
	struct rusage usage;
};

struct plan {
	char **argv, **environment;
	int output, status, error; /* ends of the pipes for the child */
	rlim_t data, cpu;          /* 0: none */
	pid_t parent;
};

/* ---- the child, between fork and exec: only system calls ---- */

/* Away from the numbers that are about to be taken. */
static int aside(int fd)
{
	return fcntl(fd, F_DUPFD, 10);
}

static void become(const struct plan *p)
{
	const struct rlimit core = {0, 0}, data = {p->data, p->data}, cpu = {p->cpu, p->cpu};
	int output = aside(p->output), status = aside(p->status), error = aside(p->error);
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != p->parent)
		_exit(CANNOT_EXEC);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	dup2(status, STATUS_FD);
	dup2(error, ERROR_FD);
	fcntl(ERROR_FD, F_SETFD, FD_CLOEXEC);
	syscall(SYS_close_range, ERROR_FD + 1, ~0u, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &core);
	if (p->data)
		setrlimit(RLIMIT_DATA, &data);
	if (p->cpu)
		setrlimit(RLIMIT_CPU, &cpu);
	execve(p->argv[0], p->argv, p->environment);
	error = errno;
	_exit(write(ERROR_FD, &error, sizeof(error)) < 0 ? errno : CANNOT_EXEC);
}

/* ---- starting ---- */

/* The list of strings at `index` as a NULL-terminated array in a userdata that is pushed. */
static char **push_list(lua_State *L, int index)
{
	lua_Integer n = luaL_len(L, index);
	char **list = lua_newuserdatauv(L, ql_size_array((int64_t)n + 1, sizeof(*list)), 0);

	for (lua_Integer i = 1; i <= n; i++) {
		lua_geti(L, index, i);
		list[i - 1] = (char *)(uintptr_t)luaL_checkstring(L, -1); /* the table at `index` keeps it */
		lua_pop(L, 1);
	}
	list[n] = NULL;
	return list;
}

/* A variable of ours that `set` (a list of "NAME=value") replaces. */
static bool replaced(const char *variable, char **set)
{
	size_t n = strcspn(variable, "=") + 1;

	for (; *set; set++)
		if (!strncmp(variable, *set, n))
			return true;
	return false;
}

static char **push_environment(lua_State *L, char **set)
{
	size_t n = 0, own = 0;
	char **list;

	while (environ[n])
		n++;
	while (set[own])
		own++;
	list = lua_newuserdatauv(L, ql_size_array((int64_t)(n + own + 1), sizeof(*list)), 0);
	memcpy(list, set, own * sizeof(*list));
	for (size_t i = 0; i < n; i++)
		if (!replaced(environ[i], set))
			list[own++] = environ[i];
	list[own] = NULL;
	return list;
}

static rlim_t limit_field(lua_State *L, const char *name)
{
	lua_Integer value;

	lua_getfield(L, 1, name);
	value = luaL_optinteger(L, -1, 0);
	lua_pop(L, 1);
	return value > 0 ? (rlim_t)value : 0;
}

static struct process *new_process(lua_State *L)
{
	struct process *p = lua_newuserdatauv(L, sizeof(*p), 0);

	memset(p, 0, sizeof(*p));
	p->fd[0] = p->fd[1] = -1;
	luaL_setmetatable(L, PROCESS);
	return p;
}

static void close_pipes(int pipes[][2], int n)
{
	for (int i = 0; i < n; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

/* The child's ends go to `plan`, the end where its error is read goes to *error; false: errno has the reason. */
static bool make_pipes(struct process *p, struct plan *plan, int *error)
{
	int pipes[3][2], n = 0;

	while (n < 3 && !pipe2(pipes[n], O_CLOEXEC))
		n++;
	if (n < 3) {
		int saved = errno;

		close_pipes(pipes, n);
		errno = saved;
		return false;
	}
	p->fd[0] = pipes[0][0];
	p->fd[1] = pipes[1][0];
	*error = pipes[2][0];
	plan->output = pipes[0][1];
	plan->status = pipes[1][1];
	plan->error = pipes[2][1];
	fcntl(p->fd[0], F_SETFL, O_NONBLOCK);
	fcntl(p->fd[1], F_SETFL, O_NONBLOCK);
	return true;
}

/* Waits for the exec of the child: 0, or its error, after which there is no child any more. */
static int error_of_exec(struct process *p, int fd)
{
	int error = 0;
	ssize_t n;

	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	close(fd);
	if (n != (ssize_t)sizeof(error))
		return 0;
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	return error;
}

/* internal.process_start{arguments={program, …}, environment={"NAME=value", …}, data=bytes, cpu=seconds} */
static int process_start(lua_State *L)
{
	struct plan plan = {.data = limit_field(L, "data"), .cpu = limit_field(L, "cpu"), .parent = getpid()};
	struct process *p;
	int error = -1, failed;
	pid_t pid;

#if defined(__SANITIZE_ADDRESS__)
	plan.data = 0; /* the shadow memory counts */
#endif
	lua_settop(L, 1);
	lua_getfield(L, 1, "arguments");
	plan.argv = push_list(L, 2);
	lua_getfield(L, 1, "environment");
	plan.environment = push_environment(L, push_list(L, 4));
	p = new_process(L);
	if (!make_pipes(p, &plan, &error))
		return ql_error(L, "sweep: a trial cannot be started: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(&plan);
	failed = errno;
	close(plan.output);
	close(plan.status);
	close(plan.error);
	if (pid > 0) {
		setpgid(pid, pid); /* whichever is first */
		p->pid = pid;
		failed = error_of_exec(p, error);
	} else {
		close(error);
	}
	if (failed)
		return ql_error(L, "sweep: a trial cannot be started: %s", strerror(failed));
	return 1;
}

/* ---- what it writes ---- */

static struct process *check_process(lua_State *L, int index)
{
	return luaL_checkudata(L, index, PROCESS);
}

/* Appends what is there; closes the descriptor at its end. */
static int read_from(lua_State *L, int *fd)
{
	luaL_Buffer b;
	ssize_t n = 1;

	luaL_buffinit(L, &b);
	for (int i = 0; i < 64 && *fd >= 0 && n > 0; i++) { /* at most a few hundred KiB at a time */
		char *to = luaL_prepbuffer(&b);

		do
			n = read(*fd, to, LUAL_BUFFERSIZE);
		while (n < 0 && errno == EINTR);
		luaL_addsize(&b, n > 0 ? (size_t)n : 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			close(*fd);
			*fd = -1;
		}
	}
	luaL_pushresult(&b);
	return 1;
}

/* p:output(), p:status(): what came since the last call, "" when nothing did */
static int process_output(lua_State *L)
{
	return read_from(L, &check_process(L, 1)->fd[0]);
}

static int process_status(lua_State *L)
{
	return read_from(L, &check_process(L, 1)->fd[1]);
}

/* internal.process_poll(list, seconds): waits until one of them writes or ends, but not longer. Raises on
 * Ctrl-C. */
static int process_poll(lua_State *L)
{
	lua_Integer n = luaL_len(L, 1);
	int ms = (int)(1000 * luaL_checknumber(L, 2));
	struct pollfd *fds = lua_newuserdatauv(L, ql_size_array(ql_mul64(n, 2) + 1, sizeof(*fds)), 0);
	nfds_t count = 0;

	for (lua_Integer i = 1; i <= n; i++) {
		const struct process *p;

		lua_geti(L, 1, i);
		p = check_process(L, -1);
		for (int k = 0; k < 2; k++)
			if (p->fd[k] >= 0)
				fds[count++] = (struct pollfd){.fd = p->fd[k], .events = POLLIN};
		if (p->fd[0] < 0 && p->fd[1] < 0 && ms > SOON_MS) /* about to end */
			ms = SOON_MS;
		lua_pop(L, 1);
	}
	poll(fds, count, ms < 0 ? 0 : ms);
	ql_interrupt_check(L);
	return 0;
}

/* ---- its end ---- */

/* p:ended() -> nil while it runs; else "exit" or "signal", the code, and the peak of resident memory in bytes
 */
static int process_ended(lua_State *L)
{
	struct process *p = check_process(L, 1);

	if (p->pid && wait4(p->pid, &p->status, WNOHANG, &p->usage) == p->pid) {
		kill(-p->pid, SIGKILL); /* what it may have started and left behind */
		p->pid = 0;
	}
	if (p->pid) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushstring(L, WIFSIGNALED(p->status) ? "signal" : "exit");
	lua_pushinteger(L, WIFSIGNALED(p->status) ? WTERMSIG(p->status) : WEXITSTATUS(p->status));
	lua_pushinteger(L, (lua_Integer)p->usage.ru_maxrss * 1024);
	return 3;
}

/* p:kill(): all of its group, at once. p:kill 'interrupt': as Ctrl-C would. */
static int process_kill(lua_State *L)
{
	struct process *p = check_process(L, 1);

	if (p->pid && lua_isstring(L, 2))
		kill(p->pid, SIGINT);
	else if (p->pid)
		kill(-p->pid, SIGKILL);
	return 0;
}

static int process_pid(lua_State *L)
{
	lua_pushinteger(L, check_process(L, 1)->pid);
	return 1;
}

/* p:resident() -> bytes in memory now; 0: not known */
static int process_resident(lua_State *L)
{
	const struct process *p = check_process(L, 1);
	char path[40];
	long long pages = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)p->pid);
	f = p->pid ? fopen(path, "re") : NULL;
	if (f && fscanf(f, "%*s %lld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	lua_pushinteger(L, pages * sysconf(_SC_PAGESIZE));
	return 1;
}

/* p:stop(), __gc, __close: kills all of its group and waits for the end. Not interrupted by Ctrl-C. */
static int process_stop(lua_State *L)
{
	struct process *p = check_process(L, 1);

	if (p->pid) {
		kill(-p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		p->pid = 0;
	}
	for (int k = 0; k < 2; k++) {
		if (p->fd[k] >= 0)
			close(p->fd[k]);
		p->fd[k] = -1;
	}
	return 0;
}

/* ---- who this process is ---- */

/* internal.process_alive(pid): there is a process of this number that we can see */
static int process_alive(lua_State *L)
{
	lua_Integer pid = luaL_checkinteger(L, 1);

	lua_pushboolean(L, pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM));
	return 1;
}

/* internal.process_forget(name): removes a variable of the environment */
static int process_forget(lua_State *L)
{
	unsetenv(luaL_checkstring(L, 1));
	return 0;
}

/* internal.process_self() -> pid, the name of this machine, and the space in which the pid counts
 * (containers) */
static int process_self(lua_State *L)
{
	char name[256] = "", space[64] = "";

	gethostname(name, sizeof(name) - 1);
	if (readlink("/proc/self/ns/pid", space, sizeof(space) - 1) < 0)
		space[0] = '\0';
	lua_pushinteger(L, getpid());
	lua_pushstring(L, name);
	lua_pushstring(L, space);
	return 3;
}

/* internal.exit_code(n): that of the program when the script ends well */
static int set_exit_code(lua_State *L)
{
	ql_state_of(L)->exit_code = (int)luaL_checkinteger(L, 1);
	return 0;
}

int ql_open_sweep_process(lua_State *L)
{
	static const luaL_Reg methods[] = {{"output", process_output}, {"status", process_status},
		{"ended", process_ended}, {"kill", process_kill}, {"pid", process_pid}, {"resident", process_resident},
		{"stop", process_stop}, {NULL, NULL}};
	static const luaL_Reg functions[] = {{"exit_code", set_exit_code}, {"process_start", process_start},
		{"process_poll", process_poll}, {"process_alive", process_alive}, {"process_self", process_self},
		{"process_forget", process_forget}, {NULL, NULL}};

	ql_metatable_new(L, PROCESS);
	lua_pushcfunction(L, process_stop);
	lua_setfield(L, -2, "__gc");
	lua_pushcfunction(L, process_stop);
	lua_setfield(L, -2, "__close");
	lua_newtable(L);
	ql_set_functions(L, methods);
	lua_setfield(L, -2, "__index");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pushliteral(L, QUOLL_VERSION);
	lua_setfield(L, -2, "version");
	lua_settop(L, 0);
	return 0;
}
