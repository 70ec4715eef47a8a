/* SPDX-License-Identifier: MIT
 * A prompt on a pseudo-terminal without escape sequences (TERM=dumb), with a home of its own: types lines,
 * waits for text.
 */
#ifndef QUOLL_TESTS_DIALOG_H
#define QUOLL_TESTS_DIALOG_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define PATIENCE 20000 /* ms for anything that has no limit of its own */

struct dialog {
	int fd;
	pid_t pid;
	char out[1 << 22];
	size_t size, seen;
};

static char home[64], program[PATH_MAX];

static inline long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void pause_us(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* How often a test repeats: a variable of the environment, else so many times. */
static inline unsigned dialog_times(const char *variable, unsigned otherwise)
{
	const char *text = getenv(variable);

	return text && atoi(text) > 0 ? (unsigned)atoi(text) : otherwise;
}

/* False, after a message: there are no terminals here. */
static inline bool dialog_prepare(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 16);
	int ours, theirs;

	signal(SIGPIPE, SIG_IGN);
	if (openpty(&ours, &theirs, NULL, NULL, NULL)) {
		SKIP("the prompt in a terminal", "no pseudo-terminal can be opened here (/dev/ptmx, /dev/pts)");
		return false;
	}
	close(ours);
	close(theirs);
	program[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(program, '/') = '\0';
	strcat(program, "/quoll");
	strcpy(home, "/tmp/quoll-test-XXXXXX");
	if (!mkdtemp(home)) {
		printf("%s: %s\n", home, strerror(errno));
		exit(1);
	}
	return true;
}

static inline void dialog_clean(void)
{
	char command[PATH_MAX + 32];

	snprintf(command, sizeof(command), "rm -rf '%s'", home);
	if (system(command))
		printf("%s stays\n", home);
}

/* `argument` may be NULL; `setting`: one more variable of the environment. */
static inline struct dialog *dialog_open(const char *argument, const char *setting)
{
	struct dialog *d = calloc(1, sizeof(*d));
	struct winsize size = {40, 100, 0, 0};

	if (!d)
		exit(1);
	d->pid = forkpty(&d->fd, NULL, NULL, &size);
	if (d->pid < 0) { /* never to be killed: -1 is every process there is */
		CHECK(false, "forkpty: %s", strerror(errno));
		exit(check_end());
	}
	if (d->pid == 0) {
		setenv("TERM", "dumb", 1);
		setenv("HOME", home, 1);
		setenv("QUOLL_MEMORY", "4000", 1);
		for (const char *const *name = (const char *const[]){"XDG_STATE_HOME", "XDG_CONFIG_HOME", "QUOLL_PLOT",
			     "QUOLL_JOURNAL", "NO_COLOR", NULL};
			*name; name++)
			unsetenv(*name);
		if (setting)
			putenv(strdup(setting));
		execl(program, program, argument, (char *)NULL);
		_exit(127);
	}
	return d;
}

static inline bool dialog_read(struct dialog *d, int ms)
{
	struct pollfd p = {d->fd, POLLIN, 0};
	ssize_t n;

	if (poll(&p, 1, ms) <= 0 || d->size == sizeof(d->out) - 1)
		return false;
	n = read(d->fd, d->out + d->size, sizeof(d->out) - 1 - d->size);
	if (n <= 0)
		return false;
	d->size += (size_t)n;
	d->out[d->size] = '\0';
	return true;
}

/* Milliseconds until `text` came; what came before it is passed. -1: it did not come. */
static inline int dialog_wait(struct dialog *d, const char *text, int ms)
{
	long start = now();

	for (;;) {
		const char *found = strstr(d->out + d->seen, text);
		long left = start + ms - now();

		if (found) {
			d->seen = (size_t)(found - d->out) + strlen(text);
			return (int)(now() - start);
		}
		if (left <= 0)
			return -1;
		if (!dialog_read(d, (int)left) && waitpid(d->pid, NULL, WNOHANG | WNOWAIT) != 0 && !dialog_read(d, 50))
			return -1;
	}
}

static inline void dialog_send(struct dialog *d, const char *text)
{
	ssize_t n = write(d->fd, text, strlen(text));

	CHECK(n == (ssize_t)strlen(text), "write to the terminal: %s", text);
}

/* Types a line and waits for `wanted` ("": anything) and the next prompt. */
static inline void dialog_line(struct dialog *d, const char *line, const char *wanted)
{
	dialog_send(d, line);
	dialog_send(d, "\n");
	if (*wanted)
		CHECK(dialog_wait(d, wanted, PATIENCE) >= 0, "%s: wanted %s, got %s", line, wanted, d->out + d->seen);
	CHECK(dialog_wait(d, "In [", PATIENCE) >= 0, "%s: no prompt, got %s", line, d->out + d->seen);
}

static inline struct dialog *dialog_begin(const char *argument, const char *setting)
{
	struct dialog *d = dialog_open(argument, setting);

	CHECK(dialog_wait(d, "In [", PATIENCE) >= 0, "no prompt: %s", d->out);
	return d;
}

/* --restore: waits for what it says last, and the prompt behind it. */
static inline struct dialog *dialog_restore(void)
{
	struct dialog *d = dialog_open("--restore", NULL);
	long end = now() + PATIENCE;
	const char *last = NULL;

	while (now() < end && !last) {
		dialog_read(d, 100);
		last = strstr(d->out, "nothing was run");
		last = last ? last : strstr(d->out, "no session that");
	}
	d->seen = last ? (size_t)(last - d->out) : d->size;
	CHECK(dialog_wait(d, "\nIn [", PATIENCE) >= 0 && dialog_wait(d, "]: ", PATIENCE) >= 0, "no prompt: %s", d->out);
	return d;
}

static inline void dialog_free(struct dialog *d)
{
	close(d->fd);
	free(d);
}

/* Ctrl-D; the exit status, 128 + signal, -1: it does not end. */
static inline int dialog_leave(struct dialog *d)
{
	long end = now() + PATIENCE;
	int status, result = -1;

	dialog_send(d, "\x04");
	while (result < 0 && now() < end) {
		dialog_read(d, 10);
		if (waitpid(d->pid, &status, WNOHANG) == d->pid)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	if (result < 0)
		kill(d->pid, SIGKILL);
	while (dialog_read(d, 50))
		;
	dialog_free(d);
	return result;
}

static inline void dialog_kill(struct dialog *d)
{
	int status;

	kill(d->pid, SIGKILL);
	waitpid(d->pid, &status, 0);
	dialog_free(d);
}

#endif
