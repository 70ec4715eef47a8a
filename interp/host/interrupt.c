/* SPDX-License-Identifier: MIT
 * SIGINT -> flag + hook.
 *
 * The handler may run on a worker thread of a kernel: it then sends the signal on to the interpreter's
 * thread, because lua_sethook walks that thread's call list. Hooks belong to a coroutine, so the handler
 * needs to know the innermost running one (ql_state.running).
 *
 * The hook first fires at the next instruction or call. After it raised, it stays installed with a count of
 * QL_GRACE instructions: to-be-closed variables are closed in peace, and code that got hold of the error by
 * other means than our pcall (a library written in C) is interrupted again.
 *
 * A second Ctrl-C between QL_BOUNCE and QL_AGAIN milliseconds after the first, with the first still pending,
 * ends the process with status 130: the way out of a C function that cannot be interrupted. Quicker ones are
 * the same key held down.
 *
 * --time is the same by SIGALRM, but final.
 */
#include "interp/host/interrupt.h"

#include <lauxlib.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interp/prelude/prelude.h"

#define QL_GRACE 1000000 /* instructions: 5 to 20 ms */
#define QL_GRACE_MS 100  /* the same for functions of C that poll, in milliseconds */
#define QL_LEVELS 100    /* of the stack, that are looked at for a line of the user */
#define QL_BOUNCE 200
#define QL_AGAIN 2000
#define QL_LEAVE 5 /* seconds from the end of --time to the end of the process */

/* A signal handler gets no argument, so what it needs is static: one interpreter per process has the
 * keyboard. */
static struct ql_state *volatile target;
static pthread_t thread;
static struct sigaction before;
static bool installed;               /* SIGINT is ours */
static volatile sig_atomic_t over;   /* the time of --time */
static volatile int64_t pressed;     /* monotonic milliseconds of the pending interrupt */
static volatile sig_atomic_t raised; /* the hook has raised the pending interrupt */
static int64_t raised_at;            /* milliseconds */
static volatile sig_atomic_t hooked; /* `user` holds what was installed before our hook */
static struct {
	lua_Hook hook;
	int mask, count;
} user;

static const char *reason(void)
{
	return over ? "--time: the time is over" : "interrupted";
}

/* The innermost line of the user: in a hook, level 0 is the running function; it may be one of C, or of the prelude. */
static void push_where(lua_State *L)
{
	lua_Debug ar;

	for (int level = 0; level < QL_LEVELS && lua_getstack(L, level, &ar); level++) {
		lua_getinfo(L, "Sl", &ar);
		if (ar.currentline > 0 && !ql_prelude_is_own(ar.source)) {
			luaL_where(L, level);
			return;
		}
	}
	lua_pushliteral(L, "");
}

static int64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void hook(lua_State *L, lua_Debug *ar);

static void begin_grace(lua_State *L)
{
	raised_at = milliseconds();
	raised = 1;
	lua_sethook(L, hook, LUA_MASKCOUNT, QL_GRACE);
}

static void hook(lua_State *L, lua_Debug *ar)
{
	struct ql_ctx *ctx = ql_ctx_of(L);

	(void)ar;
	if (!ctx->interrupted) { /* a coroutine that slept through ql_interrupt_clear */
		lua_sethook(L, NULL, 0, 0);
		return;
	}
	begin_grace(L);
	push_where(L);
	lua_pushstring(L, reason());
	lua_concat(L, 2);
	lua_error(L);
}

static void arm(struct ql_state *s, lua_State *L)
{
	if (L == s->L && !hooked && lua_gethook(L) != hook) {
		user.hook = lua_gethook(L);
		user.mask = lua_gethookmask(L);
		user.count = lua_gethookcount(L);
		hooked = 1;
	}
	if (raised)
		lua_sethook(L, hook, LUA_MASKCOUNT, QL_GRACE);
	else
		lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKCOUNT, 1);
}

static void give_up(const char *text, int code)
{
	ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

	(void)ignored;
	_exit(code);
}

static void begin_interrupt(struct ql_state *s)
{
	raised = 0;
	s->ctx->interrupted = 1;
	arm(s, s->running);
}

static void on_interrupt(int signal)
{
	struct ql_state *s = target;
	int64_t now = milliseconds();

	if (!s)
		return;
	if (!pthread_equal(pthread_self(), thread)) {
		pthread_kill(thread, signal);
		return;
	}
	if (s->ctx->interrupted) {
		if (now - pressed >= QL_BOUNCE && now - pressed <= QL_AGAIN)
			give_up("\nquoll: interrupted twice: ended\n", 130);
		if (now - pressed > QL_AGAIN)
			pressed = now;
		return;
	}
	pressed = now;
	begin_interrupt(s);
}

static void on_alarm(int signal)
{
	struct ql_state *s = target;

	if (over)
		give_up("\nquoll: --time: the time is over\n", QL_TIME_OVER);
	if (s && !pthread_equal(pthread_self(), thread)) {
		pthread_kill(thread, signal);
		return;
	}
	over = 1;
	alarm(QL_LEAVE);
	if (s)
		begin_interrupt(s);
}

/* no SA_RESTART: a blocked read must come back */
static void handle(int signal, void (*function)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = function;
	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

void ql_interrupt_install(struct ql_state *s)
{
	thread = pthread_self();
	target = s;
	sigaction(SIGINT, NULL, &before);
	installed = before.sa_handler != SIG_IGN;
	if (installed)
		handle(SIGINT, on_interrupt);
}

void ql_interrupt_remove(void)
{
	if (installed)
		sigaction(SIGINT, &before, NULL);
	installed = false;
	target = NULL;
}

void ql_interrupt_after(int64_t seconds)
{
	handle(SIGALRM, on_alarm);
	alarm((unsigned int)seconds);
}

bool ql_interrupt_over(void)
{
	return over;
}

void ql_interrupt_clear(struct ql_state *s)
{
	s->running = s->L;
	if (over)
		return;
	s->ctx->interrupted = 0;
	if (hooked)
		lua_sethook(s->L, user.hook, user.mask, user.count);
	hooked = 0;
}

static void on_ignored(int signal)
{
	(void)signal;
}

/* A handler, unlike SIG_IGN, is not inherited by programs. */
void ql_interrupt_ignore(int signal)
{
	const struct sigaction action = {.sa_handler = on_ignored, .sa_flags = SA_RESTART};

	sigaction(signal, &action, NULL);
}

lua_State *ql_interrupt_enter(struct ql_state *s, lua_State *co)
{
	lua_State *from = s->running;

	s->running = co;
	if (s->ctx->interrupted) /* it came before `running` was set */
		arm(s, co);
	return from;
}

void ql_interrupt_leave(struct ql_state *s, lua_State *from)
{
	s->running = from;
	if (s->ctx->interrupted)
		arm(s, from);
}

/* Whether the error on top is the interrupt's; another error may have been raised before the interrupt came. */
static bool is_own_error(lua_State *L)
{
	const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";

	return strstr(text, reason());
}

void ql_interrupt_pass(lua_State *L)
{
	if (!ql_ctx_of(L)->interrupted)
		return;
	if (!is_own_error(L)) {
		push_where(L);
		lua_pushstring(L, reason());
		lua_concat(L, 2);
	}
	ql_interrupt_raised(L);
	lua_error(L);
}

void ql_interrupt_check(lua_State *L)
{
	if (!ql_ctx_of(L)->interrupted || (raised && milliseconds() - raised_at < QL_GRACE_MS))
		return;
	ql_interrupt_raised(L);
	luaL_error(L, "%s", reason());
}

bool ql_interrupt_again(lua_State *L)
{
	struct ql_state *s = ql_state_of(L);

	if (!s->ctx->interrupted)
		return false;
	raised = 0;
	arm(s, L);
	return true;
}

void ql_interrupt_raised(lua_State *L)
{
	if (!ql_ctx_of(L)->interrupted)
		return;
	begin_grace(L);
}
