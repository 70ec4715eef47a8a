/* SPDX-License-Identifier: MIT
 * A program on a pseudo-terminal whose screen is known (screen.h): types keys, waits until the screen shows
 * what is expected.
 */
#ifndef QUOLL_TESTS_INTERP_REPL_TERMINAL_H
#define QUOLL_TESTS_INTERP_REPL_TERMINAL_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/interp/repl/screen.h"

#define PATIENCE 20000 /* ms for what has no limit of its own */

struct terminal {
	int fd;
	pid_t pid;
	struct screen screen;
	char text[SCREEN_ROWS * SCREEN_COLUMNS * 4];
	const char *answer; /* to a request for the terminal's attributes; NULL: it stays silent */
};

static inline long long microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static inline void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

/* The program under test lies beside the folder of the tests. */
static inline const char *program_path(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

	if (n < 0)
		exit(1);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/quoll");
	return path;
}

static inline bool have_terminals(void)
{
	int ours, theirs;

	if (openpty(&ours, &theirs, NULL, NULL, NULL))
		return false;
	close(ours);
	close(theirs);
	return true;
}

/* `settings`: variables of the environment, "NAME=value", up to a NULL; "NAME" alone takes one away. `argument`
 * may be NULL. */
static inline struct terminal *terminal_start(int rows, int columns, const char *const *settings, const char *argument)
{
	struct terminal *t = calloc(1, sizeof(*t));
	struct winsize size = {(unsigned short)rows, (unsigned short)columns, 0, 0};

	if (!t)
		exit(1);
	screen_begin(&t->screen, rows, columns);
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	if (t->pid < 0) { /* never to be killed: -1 is every process there is */
		CHECK(false, "forkpty: %s", strerror(errno));
		exit(check_end());
	}
	if (t->pid == 0) {
		const char *program = program_path();

		setenv("TERM", "xterm", 1);
		unsetenv("NO_COLOR");
		unsetenv("INPUTRC");
		for (; settings && *settings; settings++)
			if (strchr(*settings, '='))
				putenv(strdup(*settings));
			else
				unsetenv(*settings);
		execl(program, program, argument, (char *)NULL);
		_exit(127);
	}
	return t;
}

static inline struct terminal *terminal_open(int rows, int columns, const char *const *settings)
{
	return terminal_start(rows, columns, settings, NULL);
}

/* Reads what comes within `ms`; false: nothing did. */
static inline bool terminal_read(struct terminal *t, int ms)
{
	struct pollfd p = {t->fd, POLLIN, 0};
	char block[4096];
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return false;
	n = read(t->fd, block, sizeof(block));
	if (n <= 0)
		return false;
	screen_feed(&t->screen, block, (size_t)n);
	if (t->screen.asked && t->answer && write(t->fd, t->answer, strlen(t->answer)) < 0)
		return false;
	t->screen.asked = false;
	return true;
}

/* A pseudo-terminal takes some 8 KiB each way, so output is read while there is still something to write: with both
 * sides in write, nothing would move again. */
static inline void terminal_send(struct terminal *t, const char *text)
{
	size_t n = strlen(text);
	long long end = microseconds() + PATIENCE * 1000LL;

	fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) | O_NONBLOCK);
	while (n > 0) {
		struct pollfd p = {t->fd, POLLIN | POLLOUT, 0};
		ssize_t put = poll(&p, 1, 1000) > 0 && p.revents & POLLOUT ? write(t->fd, text, n) : 0;

		if ((put < 0 && errno != EAGAIN) || microseconds() > end) {
			CHECK(false, "write to the terminal: %s", put < 0 ? strerror(errno) : "nobody reads");
			return;
		}
		if (put > 0) {
			text += put;
			n -= (size_t)put;
		}
		while (terminal_read(t, 0))
			;
	}
}

static inline bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static inline bool terminal_ended(struct terminal *t)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid != 0;
}

/* Waits until the screen's text ends with `wanted`, and the cursor is in that column when it is not -1. */
static inline bool terminal_shows(struct terminal *t, const char *wanted, int column)
{
	long long end = microseconds() + PATIENCE * 1000LL;

	do {
		screen_text(&t->screen, t->text);
		if (ends_with(t->text, wanted) && !t->screen.hidden && (column < 0 || t->screen.column == column))
			return true;
		if (!terminal_read(t, 50) && terminal_ended(t))
			break;
	} while (microseconds() < end);
	return false;
}

/* Types the keys and waits for the screen. */
#define SHOWS(t, keys, end, at) \
	do { \
		bool shown_; \
\
		terminal_send(t, keys); \
		shown_ = terminal_shows(t, end, at); \
		CHECK(shown_, "wanted <<%s>> and column %d, got <<%s>> and %d", end, at, (t)->text, \
			(t)->screen.column); \
	} while (0)

/* Exit status, 128 + signal, or -1 when it does not end within `ms`. */
static inline int terminal_close(struct terminal *t, int ms)
{
	int status, result = -1;
	long long end = microseconds() + ms * 1000LL;

	while (result < 0 && microseconds() < end) {
		terminal_read(t, 10);
		if (waitpid(t->pid, &status, WNOHANG) == t->pid)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	while (terminal_read(t, 20))
		;
	if (result < 0) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, &status, 0);
	}
	close(t->fd);
	free(t);
	return result;
}

static inline void terminal_resize(struct terminal *t, int rows, int columns)
{
	struct winsize size = {(unsigned short)rows, (unsigned short)columns, 0, 0};

	screen_resize(&t->screen, rows, columns);
	ioctl(t->fd, TIOCSWINSZ, &size); /* the kernel sends SIGWINCH */
}

#endif
