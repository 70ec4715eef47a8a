/* SPDX-License-Identifier: MIT
 * A front end names itself in JPY_PARENT_PID. The kernel's parent may be another process (a launcher in
 * between), so what counts is that the parent changes, as it does when it dies.
 */
#include "interp/jupyter/surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "interp/host/interrupt.h"

#define QL_LEAVE_IN 4 /* seconds to end in, after SIGTERM or the parent's death */

/* Signal handlers get no argument. */
static struct {
	struct ql_jupyter *volatile kernel;
	volatile int wake;
	struct sigaction interrupt, terminate;
} shared;

static void on_interrupt(int signal)
{
	struct ql_jupyter *k = shared.kernel;

	/* A second one must not end the process, as it does at a terminal. */
	if (k && !k->state->ctx->interrupted)
		shared.interrupt.sa_handler(signal);
}

static void leave(struct ql_jupyter *k)
{
	int saved = errno;

	k->leave = true;
	alarm(QL_LEAVE_IN);
	eventfd_write(shared.wake, 1);
	kill(getpid(), SIGINT);
	errno = saved;
}

static void on_terminate(int signal)
{
	(void)signal;
	if (shared.kernel)
		leave(shared.kernel);
}

static void set_handler(int signal, void (*handler)(int), struct sigaction *before)
{
	struct sigaction action = {.sa_handler = handler};

	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, before);
}

/* A front end that runs in the background has SIGINT ignored, and its kernel with it. */
static void take_signals(struct ql_jupyter *k, int wake)
{
	struct sigaction now;

	shared.wake = wake;
	sigaction(SIGINT, NULL, &now);
	if (now.sa_handler == SIG_IGN) {
		set_handler(SIGINT, SIG_DFL, NULL);
		ql_interrupt_install(k->state);
	}
	set_handler(SIGINT, on_interrupt, &shared.interrupt);
	set_handler(SIGTERM, on_terminate, &shared.terminate);
	shared.kernel = k;
}

/* A pipe in place of descriptor `fd`; returns the end that is read, -1 without one. */
static int replace(int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	dup2(ends[1], fd); /* this one is inherited */
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	return ends[0];
}

static bool redirect(struct ql_surroundings *p)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		p->saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
	if (nothing < 0)
		return false;
	dup2(nothing, STDIN_FILENO);
	close(nothing);
	p->kernel->log = p->saved[2] < 0 ? NULL : fdopen(fcntl(p->saved[2], F_DUPFD_CLOEXEC, 3), "w");
	if (p->kernel->log)
		setvbuf(p->kernel->log, NULL, _IOLBF, BUFSIZ);
	for (int i = 0; i < 2; i++)
		p->kernel->pipe[i] = replace(i + 1);
	return p->kernel->pipe[0] >= 0 && p->kernel->pipe[1] >= 0;
}

bool ql_surroundings_begin(struct ql_surroundings *p, struct ql_jupyter *k, int wake, char error[QL_CONNECTION_ERROR])
{
	const char *parent = getenv("JPY_PARENT_PID");

	*p = (struct ql_surroundings){.kernel = k, .parent = parent && *parent ? getppid() : 0, .begun = true};
	if (!redirect(p)) {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: %s", strerror(errno));
		ql_surroundings_end(p);
		return false;
	}
	take_signals(k, wake);
	return true;
}

void ql_surroundings_look(struct ql_surroundings *p)
{
	if (p->kernel->leave)
		ql_jupyter_interrupt();
	if (!p->parent || getppid() == p->parent)
		return;
	p->parent = 0;
	leave(p->kernel);
}

static void restore(struct ql_surroundings *p)
{
	for (int i = 0; i < 3; i++) {
		if (p->saved[i] >= 0) {
			dup2(p->saved[i], i);
			close(p->saved[i]);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (p->kernel->pipe[i] >= 0)
			close(p->kernel->pipe[i]);
		p->kernel->pipe[i] = -1;
	}
	if (p->kernel->log)
		fclose(p->kernel->log);
	p->kernel->log = NULL;
}

void ql_surroundings_end(struct ql_surroundings *p)
{
	if (!p->begun)
		return;
	p->begun = false;
	if (shared.kernel) {
		set_handler(SIGTERM, SIG_IGN, NULL);
		sigaction(SIGINT, &shared.interrupt, NULL);
		shared.kernel = NULL;
		if (getpgrp() == getpid())
			kill(0, SIGTERM);
	}
	restore(p);
}
